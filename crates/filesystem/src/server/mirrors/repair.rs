//! Repair of what is damaged or lost here, with what the copy of a file has.
//!
//! Invariants:
//! - A copy that may lack changes is not used.
//! - A repair is stored before its range may change again.

use super::mirrored_file::MirroredFile;
use super::mirrors::{Mirrors, PIECE_BYTES};
use super::partner::Partner;
use std::rc::Rc;
use tracing::{info, warn};
use units::{ByteRange, DiskId};
use wire::Fault;
use world::{Disk, Payload, World};

impl<W: World> Mirrors<W> {
    /// Refuses a copy that may lack changes of a range.
    pub(crate) async fn check_current(
        &self,
        file: &MirroredFile,
        range: ByteRange,
    ) -> Result<(), Fault> {
        for partner in &file.partners {
            self.check_current_at(file, partner, range).await?;
        }
        Ok(())
    }

    /// Refuses the copy, or parity, of one server, if it may lack changes of a range.
    pub(super) async fn check_current_at(
        &self,
        file: &MirroredFile,
        partner: &Partner,
        range: ByteRange,
    ) -> Result<(), Fault> {
        // Whoever writes or syncs the file gets its fault.
        let _ = self.notice_ended_connection(file);
        let lacks_changes = partner.may_lack(range) && partner.missed() > 0;
        // Where all marks are lost too, it is not known which copies are behind.
        let may_be_recorded = partner.may_lack(range) || self.marks.are_none();
        if lacks_changes || may_be_recorded && self.are_recorded_behind().await? {
            let cause = format!("the copy or parity at {} may lack changes", partner.server);
            return Err(Fault::BadRequest { cause });
        }
        Ok(())
    }

    /// Repairs a range of an object, which is damaged here, with what the copy of a file has.
    /// Returns the bytes of the range. Where nothing may be changed, they are only returned. The
    /// repair goes on if the caller is given up.
    ///
    /// # Errors
    /// Fails when the copy may lack changes, and when it cannot be read.
    pub(crate) async fn repair(
        self: &Rc<Self>,
        file: &Rc<MirroredFile>,
        disk: DiskId,
        range: ByteRange,
        read_only: bool,
    ) -> Result<(W::Payload, bool), Fault> {
        let (mirrors, file) = (Rc::clone(self), Rc::clone(file));
        self.to_its_end(async move { mirrors.repair_whole(&file, disk, range, read_only).await })
            .await
    }

    async fn repair_whole(
        self: &Rc<Self>,
        file: &MirroredFile,
        number: DiskId,
        range: ByteRange,
        read_only: bool,
    ) -> Result<(W::Payload, bool), Fault> {
        let there = match file.rows {
            Some(_) => self.own_length_or_guess(file, number).await?,
            None => self.length(file, number).await?,
        };
        let none = || Fault::BadRequest { cause: "there is no copy".to_owned() };
        let there = there.ok_or_else(none)?;
        let start = range.start / PIECE_BYTES * PIECE_BYTES;
        // The last piece, which is repaired as a whole, may be longer than the object for a while.
        let _locked = file.lock(number, ByteRange::new(start, u64::MAX)).await;
        let disk = &self.world.disks()[number.0 as usize];
        // Another one may have repaired it meanwhile.
        if let Ok(data) = disk.read(file.file, range.start, range.length()).await {
            return Ok((data, false));
        }
        let pieces = ByteRange::new(start, range.end.next_multiple_of(PIECE_BYTES));
        let data = self.read(file, number, pieces).await?;
        let is_repaired = match read_only {
            true => false,
            false => self.put_back(file, number, start, (data.clone(), there)).await,
        };
        Ok((data.slice(range.start - start, range.length()), is_repaired))
    }

    /// Returns the length of an object of this server, or what it should be if it is lost.
    async fn own_length_or_guess(
        &self,
        file: &MirroredFile,
        number: DiskId,
    ) -> Result<Option<u64>, Fault> {
        let disk = &self.world.disks()[number.0 as usize];
        match disk.metadata(file.file).await {
            Ok(Some(known)) => Ok(Some(known.length)),
            _ => self.length(file, number).await,
        }
    }

    /// Writes whole pieces of an object, of which nothing changes, as they are in the copy, and
    /// stores them: pieces that were not stored would be accepted with any bytes after a loss of
    /// power. `there` is the length of the copy.
    pub(super) async fn put_back(
        &self,
        file: &MirroredFile,
        number: DiskId,
        start: u64,
        (data, there): (W::Payload, u64),
    ) -> bool {
        let disk = &self.world.disks()[number.0 as usize];
        let end = start + data.length();
        let stored = async {
            let known = disk.metadata(file.file).await.ok().flatten();
            let length = known.map_or(there, |known| known.length);
            disk.write(file.file, start, data).await?;
            if end > length {
                disk.truncate(file.file, length).await?;
            }
            disk.sync(file.file).await
        };
        match stored.await {
            Ok(()) => {
                let (file, disk) = (file.file.0, number.0);
                info!(file, disk, start, end, "damaged bytes were repaired");
                true
            }
            // The next read finds the damage again.
            Err(error) => {
                warn!(file = file.file.0, %error, "damaged bytes could not be repaired");
                false
            }
        }
    }
}
