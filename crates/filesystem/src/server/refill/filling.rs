//! This server's own parts of files are filled from their copies.

use super::RETRY_PAUSE;
use crate::server::faults::{disk_fault, disk_of};
use crate::server::mirrors::MirroredFile;
use crate::server::state::Server;
use futures_util::stream::{self, StreamExt};
use std::rc::Rc;
use tracing::debug;
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
            let files = self.lacking().until(some).await;
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
            while let Some(from) = file.filled_to(disk) {
                let bytes = self.fill_piece(file, disk, from).await?;
                self.lacking().filled(bytes).await;
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
        if file.is_filled() {
            self.lacking().whole(file.file, |left| left.own.clear()).await?;
            file.end_filling();
            if let Some(changes) = changes {
                self.mirrors().unmark(file, changes);
            }
        }
        Ok(())
    }

    /// Fills the next bytes of an object. Returns their number.
    async fn fill_piece(&self, file: &MirroredFile, disk: DiskId, from: u64) -> Result<u64, Fault> {
        // To the end: if these are the last bytes, none may follow meanwhile.
        let _locked = file.lock(disk, ByteRange::new(from, u64::MAX)).await;
        let failed = |error: DiskError| disk_fault(self.config().id, &error);
        let own = disk_of(self.world(), disk)?;
        let length = self.mirrors().length(file, disk).await?.unwrap_or(0);
        let range = ByteRange::new(from, length.min(from + PIECE_BYTES).max(from));
        if range.length() > 0 {
            let data = self.mirrors().read(file, disk, range).await?;
            own.write(file.file, from, data).await.map_err(failed)?;
        }
        if range.end < length {
            file.filled(disk, from, range.end);
            return Ok(range.length());
        }
        let here = own.metadata(file.file).await.map_err(failed)?;
        if here.is_some_and(|here| here.length > length) {
            own.truncate(file.file, length).await.map_err(failed)?;
        }
        file.filled(disk, from, u64::MAX);
        Ok(range.length())
    }
}
