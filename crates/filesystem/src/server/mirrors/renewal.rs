//! Renewal of copies that may be behind: they are compared piece by piece with what this server
//! has, and get what they lack.
//!
//! Invariants:
//! - A copy counts as equal only if it has missed no change since its renewal began.
//! - A piece does not change while it is compared.

use super::mirrored_file::MirroredFile;
use super::mirrors::{Mirrors, pieces_of, strange};
use tracing::{debug, warn};
use units::{ByteRange, DiskId, Duration};
use wire::{Fault, ObjectRequest, Reply};
use world::{Disk, DiskError, Payload, World};

/// Pause before copies that could not be renewed are tried again.
const PAUSE: Duration = Duration::from_ms(1_000);

impl<W: World> Mirrors<W> {
    /// Renews copies whenever some are behind.
    pub(crate) async fn renew(&self) {
        loop {
            let some_behind = || (self.files_behind() > 0).then_some(());
            self.fell_behind.until(some_behind).await;
            // A sync waits for it anyway.
            let _ = self.record(true).await;
            let mut is_whole = true;
            for file in self.behind() {
                match self.renew_file(&file).await {
                    Ok(()) => debug!(file = file.file.0, "the copy of a mirrored file is renewed"),
                    Err(cause) => {
                        debug!(file = file.file.0, cause, "a copy could not be renewed");
                        is_whole = false;
                    }
                }
            }
            if let Err(fault) = self.record(false).await {
                // Until it is, no copy is read in place of what is lost here.
                warn!(%fault, "the catalogue cannot be told that all copies are equal");
            }
            if !is_whole {
                self.world.sleep(PAUSE).await;
            }
        }
    }

    async fn renew_file(&self, file: &MirroredFile) -> Result<(), String> {
        // While it cannot be reached, no range is locked.
        self.reach(file).await.map_err(|fault| fault.to_string())?;
        let (missed, ended) = (file.missed(), self.ended(file));
        for disk in (0..file.disks).map(DiskId) {
            self.renew_object(file, disk).await?;
        }
        let changes = file.ended_changes();
        for disk in (0..file.disks).map(DiskId) {
            self.disk(disk)?.sync(file.file).await.map_err(|error| error.to_string())?;
        }
        let sync = ObjectRequest::Sync { file: file.file, disks: file.disks };
        self.ask(file, sync, None).await.map_err(|fault| fault.to_string())?;
        if self.ended(file) != ended {
            return Err("its server was not connected all the time".to_owned());
        }
        match (file.caught_up(missed, ended), changes) {
            (false, _) => Err("it has missed further changes".to_owned()),
            (true, Some(changes)) => {
                self.unmark(file, changes);
                Ok(())
            }
            (true, None) => Ok(()),
        }
    }

    async fn renew_object(&self, file: &MirroredFile, disk: DiskId) -> Result<(), String> {
        let told = |error: DiskError| error.to_string();
        let failed = |fault: Fault| fault.to_string();
        let own = self.disk(disk)?;
        let length = async || {
            let metadata = own.metadata(file.file).await.map_err(told)?;
            Ok::<_, String>(metadata.map_or(0, |metadata| metadata.length))
        };
        let (bytes, there) = {
            let _locked = file.lock(disk, ByteRange::new(0, u64::MAX)).await;
            let length = length().await?;
            let cut = ObjectRequest::Truncate { file: file.file, disk, length };
            self.ask(file, cut, None).await.map_err(failed)?;
            let there = self.length(file, disk).await.map_err(failed)?;
            (length, there.unwrap_or(0))
        };
        for piece in pieces_of(ByteRange::new(0, bytes)) {
            let _locked = file.lock(disk, piece).await;
            if !self.knows(file) {
                return Err("the file is removed".to_owned());
            }
            // It may have become shorter.
            let piece = ByteRange::new(piece.start, piece.end.min(length().await?));
            if piece.is_empty() || piece.start > piece.end {
                continue;
            }
            let (offset, length) = (piece.start, piece.length());
            let payload = own.read(file.file, offset, length).await.map_err(told)?;
            let digest = ObjectRequest::Digest { file: file.file, disk, offset, length };
            let is_equal = match self.ask(file, digest, None).await {
                // Zeros beyond its end make it longer.
                Ok(Reply::Digests(found)) => found == [payload.digest()] && piece.end <= there,
                Ok(other) => return Err(strange(&other).to_string()),
                // What is damaged is written again.
                Err(Fault::DiskFailed { .. }) => false,
                Err(fault) => return Err(fault.to_string()),
            };
            if !is_equal {
                let write = ObjectRequest::Write { file: file.file, disk, offset };
                self.ask(file, write, Some(payload)).await.map_err(failed)?;
            }
        }
        Ok(())
    }

    fn disk(&self, disk: DiskId) -> Result<&W::Disk, String> {
        let disks = self.world.disks();
        disks.get(disk.0 as usize).ok_or_else(|| format!("this server has no {disk}"))
    }
}
