//! This server's own parts of files are filled from their copies.

use super::RETRY_PAUSE;
use crate::server::faults::{disk_fault, disk_of};
use crate::server::mirrors::MirroredFile;
use crate::server::state::Server;
use futures_util::stream::{self, StreamExt};
use std::rc::Rc;
use tracing::{debug, warn};
use units::{ByteRange, DiskId, MIB, Timestamp};
use wire::{Fault, FileRecord, FileSize};
use world::{Disk, DiskError, World};

/// Number of files that are filled at the same time.
const FILES_AT_ONCE: usize = 8;

/// Bytes that are filled at a time, in which the rest of the object does not change.
const PIECE_BYTES: u64 = MIB;

impl<W: World> Server<W> {
    /// Fills parts of files from their copies, whenever some are lacking.
    pub(super) async fn fill_parts(self: &Rc<Self>) {
        loop {
            let some = || Some(self.lacking().all_to_fill()).filter(|files| !files.is_empty());
            let files = self.lacking().until_grown(some).await;
            let filled = files.into_iter().map(|record| self.fill_file(record));
            stream::iter(filled).buffer_unordered(FILES_AT_ONCE).collect::<()>().await;
            if some().is_some() {
                self.world().sleep(RETRY_PAUSE).await;
            }
        }
    }

    async fn fill_file(&self, record: FileRecord) {
        let file = record.file;
        let Some(mirrored) = self.mirrors().of(file, || record) else { return };
        if let Err(fault) = self.fill(&mirrored).await {
            debug!(file = file.0, %fault, "a part of a file could not be filled");
        }
        drop(mirrored);
        self.mirrors().release(file);
    }

    /// Fills the part of a file from its copy, and takes the file off the list. Changes of the file
    /// go on meanwhile: they are made at the copy too.
    ///
    /// # Errors
    /// Fails when the copy cannot be read, or a disk here fails.
    async fn fill(&self, file: &MirroredFile) -> Result<(), Fault> {
        for disk in file.filling() {
            while file.filled_to(disk).is_some() {
                match self.fill_piece(file, disk).await? {
                    Some(bytes) => self.lacking().filled(file.file, bytes).await,
                    None => return self.lose_part(file).await,
                }
            }
        }
        let changes = file.ended_changes();
        self.mirrors().store_source(file, changes).await?;
        let size = self.mirrors().size_of_copy(file).await?;
        if size > FileSize::default() {
            self.kept_sizes().keep(file.file, size).await?;
        }
        let failed = |error: DiskError| disk_fault(self.config().id, &error);
        for disk in file.filling() {
            let own = disk_of(self.world(), disk)?;
            own.sync(file.file).await.map_err(failed)?;
            // Other servers and the catalogue know the time of the last change.
            own.set_modified(file.file, Timestamp::default()).await;
        }
        if self.lacking().of(file.file).is_some_and(|lacking| lacking.is_unmarked) {
            self.mirrors().lose_copy(file).await?;
        }
        // If something has failed meanwhile, it is filled anew.
        let _ = self.mirrors().notice_ended_connection(file);
        if file.is_filled() {
            self.lacking().whole(file.file, |left| left.own.clear()).await?;
            let _ = self.mirrors().notice_ended_connection(file);
            file.end_filling();
            if let Some(changes) = changes {
                self.mirrors().unmark(file, changes);
            }
        }
        Ok(())
    }

    /// Records with the catalogue that copies lack changes of parts that are lost here: if the new
    /// directory is lost too, they must not count as whole.
    pub(super) async fn record_lost(&self) {
        while self.lacking().has_lost_mirrored()
            && let Err(fault) = self.mirrors().record(true).await
        {
            warn!(%fault, "the catalogue cannot be told of a lost copy");
            self.world().sleep(RETRY_PAUSE).await;
        }
    }

    /// Notes that the part of a file is lost, because its copy is lost too.
    async fn lose_part(&self, file: &MirroredFile) -> Result<(), Fault> {
        self.lacking().whole(file.file, |left| left.is_lost = true).await?;
        file.give_up_filling();
        self.record_lost().await;
        warn!(file = file.file.0, "a part of a file is lost, with its copy");
        Ok(())
    }

    /// Fills the next bytes of an object. Returns their number; `None` if the copy is lost.
    async fn fill_piece(&self, file: &MirroredFile, disk: DiskId) -> Result<Option<u64>, Fault> {
        // All: if these are the last bytes, none may follow meanwhile.
        let _locked = file.lock(disk, ByteRange::new(0, u64::MAX)).await;
        let Some(progress) = file.filled_to(disk) else { return Ok(Some(0)) };
        let from = progress.to;
        let failed = |error: DiskError| disk_fault(self.config().id, &error);
        let own = disk_of(self.world(), disk)?;
        let Some(length) = self.mirrors().length_unless_lost(file, disk).await? else {
            return Ok(None);
        };
        let length = length.unwrap_or(0);
        let range = ByteRange::new(from, length.min(from + PIECE_BYTES).max(from));
        if range.length() > 0 {
            let data = self.mirrors().read(file, disk, range).await?;
            own.write(file.file, from, data).await.map_err(failed)?;
        }
        if range.end < length {
            file.filled(disk, progress, range.end);
            return Ok(Some(range.length()));
        }
        let here = own.metadata(file.file).await.map_err(failed)?;
        if here.is_some_and(|here| here.length > length) {
            own.truncate(file.file, length).await.map_err(failed)?;
        }
        file.filled(disk, progress, u64::MAX);
        Ok(Some(range.length()))
    }
}
