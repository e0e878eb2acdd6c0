//! Renewal of copies that may be behind: they are compared piece by piece with what this server
//! has, and get what they lack.
//!
//! Invariants:
//! - A copy counts as equal only if it has missed no change since its renewal began.
//! - A piece does not change while it is compared.

use super::copy_calls::pieces_of;
use super::mirrored_file::MirroredFile;
use super::mirrors::{Mirrors, PIECE_BYTES};
use super::spans::WHOLE;
use crate::server::faults::{disk_fault, disk_of};
use tracing::{debug, warn};
use units::{ByteRange, DiskId, Duration};
use wire::{Fault, ObjectRequest, Reply};
use world::{Disk, DiskError, World};

/// Pause before copies that could not be renewed are tried again.
const RETRY_PAUSE: Duration = Duration::from_ms(1_000);

impl<W: World> Mirrors<W> {
    /// Renews copies whenever some are behind.
    pub(crate) async fn renew(&self) {
        // What is filled here from its copy is no source of it.
        self.lacking.until_listed().await;
        loop {
            let has_work = || (self.files_behind() > 0 || self.must_clear.get()).then_some(());
            self.fell_behind.until(has_work).await;
            if self.behind().iter().any(|file| file.has_missed()) {
                // A sync waits for it anyway.
                let _ = self.record(true).await;
            }
            let (mut renewed, mut has_failed) = (Vec::new(), false);
            for file in self.behind() {
                match self.renew_file(&file).await {
                    Ok(changes) => renewed.push((file, changes)),
                    Err(cause) => {
                        debug!(file = file.file.0, cause, "a copy could not be renewed");
                        has_failed = true;
                    }
                }
            }
            match self.record(false).await {
                // The marks go last: a start without marks does not tell the catalogue.
                Ok(()) => {
                    for (file, changes) in renewed {
                        if let Some(changes) = changes {
                            self.unmark(&file, changes);
                        }
                    }
                }
                // Until it is told, no copy is read in place of what is lost here.
                Err(fault) => {
                    warn!(%fault, "the catalogue cannot be told of equal copies");
                    has_failed = true;
                }
            }
            // While parts are lost whose copies lack changes, the catalogue is not told.
            let is_kept = self.must_clear.get() && self.files_behind() == 0;
            if has_failed || is_kept {
                self.world.sleep(RETRY_PAUSE).await;
            }
        }
    }

    /// Makes the copy of a file equal. Returns the number of changes after which it was, if none
    /// was active.
    async fn renew_file(&self, file: &MirroredFile) -> Result<Option<u64>, String> {
        let told = |fault: Fault| fault.to_string();
        if file.has_filling() {
            return Err("it is the source of what is filled here".to_owned());
        }
        if let Some(rows) = &file.rows {
            return self.renew_parity(file, rows).await;
        }
        let partner = &file.partners[0];
        // While it cannot be reached, no range is locked.
        let renewing = ObjectRequest::Renewing { file: file.file };
        let was_lost = match self.ask(file, partner.server, renewing, None).await.map_err(told)? {
            Reply::LostCopy if !partner.has_missed_all() => {
                file.miss(partner, WHOLE);
                true
            }
            reply => reply == Reply::LostCopy,
        };
        let (missed, ended) = (partner.missed(), self.ended(partner));
        for disk in (0..file.disks).map(DiskId) {
            match self.renew_object(file, disk).await {
                // It was removed while this server was away.
                Err(Fault::NoSuchFile { .. }) => {
                    self.forget(file.file);
                    return Ok(None);
                }
                renewed => renewed.map_err(told)?,
            }
        }
        self.renew_size(file, partner).await.map_err(told)?;
        let changes = file.ended_changes();
        for disk in (0..file.disks).map(DiskId) {
            disk_of(&self.world, disk)
                .map_err(told)?
                .sync(file.file)
                .await
                .map_err(|error| error.to_string())?;
        }
        let sync = ObjectRequest::Sync { file: file.file, disks: file.disks };
        let synced = self.ask(file, partner.server, sync, None).await;
        partner.set_unstored(synced.is_err());
        synced.map_err(told)?;
        if self.ended(partner) != ended {
            return Err("its server was not connected all the time".to_owned());
        }
        if was_lost {
            let renewed = ObjectRequest::Renewed { file: file.file };
            self.ask(file, partner.server, renewed, None).await.map_err(told)?;
        }
        match partner.caught_up(missed, ended) {
            false => Err("it has missed further changes".to_owned()),
            true => Ok(changes),
        }
    }

    async fn renew_object(&self, file: &MirroredFile, disk: DiskId) -> Result<(), Fault> {
        if self.lacking.is_lost(file.file, disk) {
            // The copy has more.
            return Ok(());
        }
        let (bytes, there) = self.cut_copy(file, disk).await?;
        let partner = &file.partners[0];
        for piece in pieces_of(ByteRange::new(0, bytes)) {
            // What the copy lacks at its end, too.
            if !partner.may_lack(piece) && piece.end <= there {
                continue;
            }
            // To the end: what is repaired or written again may be the last of the object.
            let _locked = file.lock(disk, ByteRange::new(piece.start, u64::MAX)).await;
            if !self.knows(file) {
                return Err(Fault::NoSuchFile { name: file.file.to_string() });
            }
            // It may have become shorter.
            let length = self.own_length(file, disk).await?;
            let end = piece.end.min(length);
            if end <= piece.start {
                continue;
            }
            let piece = ByteRange::new(piece.start, end);
            let own = self.own_or_repaired(file, disk, piece).await?;
            // Zeros beyond its end make it longer.
            let may_be_equal = piece.end <= there && !partner.is_unstored();
            if !may_be_equal || !self.is_equal(file, disk, piece, &own).await? {
                let place = (piece.start, piece.end == length);
                self.write_again(file, disk, place, own).await?;
            }
        }
        Ok(())
    }

    /// Makes the copy of an object no longer than the object. Returns the lengths of both.
    async fn cut_copy(&self, file: &MirroredFile, disk: DiskId) -> Result<(u64, u64), Fault> {
        let _locked = file.lock(disk, ByteRange::new(0, u64::MAX)).await;
        let length = self.own_length(file, disk).await?;
        let cut = |length| ObjectRequest::Truncate { file: file.file, disk, length };
        match self.ask(file, file.copy_at(), cut(length), None).await {
            // Damage at its new end: it is written anew.
            Err(Fault::DiskFailed { .. }) => {
                _ = self.ask(file, file.copy_at(), cut(0), None).await?
            }
            cut => _ = cut?,
        }
        Ok((length, self.length(file, disk).await?.unwrap_or(0)))
    }

    async fn own_length(&self, file: &MirroredFile, disk: DiskId) -> Result<u64, Fault> {
        let metadata = disk_of(&self.world, disk)?.metadata(file.file).await;
        let metadata = metadata.map_err(|error| disk_fault(self.own(), &error))?;
        Ok(metadata.map_or(0, |metadata| metadata.length))
    }

    /// Reads a range of an object, of which nothing changes. What is damaged is that of the copy,
    /// if that lacks nothing that was acknowledged.
    async fn own_or_repaired(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        range: ByteRange,
    ) -> Result<W::Payload, Fault> {
        let own = disk_of(&self.world, disk)?;
        let read = async || own.read(file.file, range.start, range.length()).await;
        let failed = |error: DiskError| disk_fault(self.own(), &error);
        match read().await {
            Err(DiskError::Corrupt { .. }) if !file.has_missed() => {}
            read => return read.map_err(failed),
        }
        let there = self.length(file, disk).await?.unwrap_or(0);
        for start in (range.start..range.end).step_by(PIECE_BYTES as usize) {
            let piece = ByteRange::new(start, range.end.min(start + PIECE_BYTES));
            if own.read(file.file, piece.start, piece.length()).await.is_err() {
                let whole = ByteRange::new(start, start + PIECE_BYTES);
                let data = self.read(file, disk, whole).await?;
                self.put_back(file, disk, start, (data, there)).await;
            }
        }
        read().await.map_err(failed)
    }
}
