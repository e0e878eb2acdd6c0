//! Parity that this server has of what other servers hold.
//!
//! Invariants:
//! - Changes of a piece of parity are made one after the other; in which order makes no difference.
//!   Those that the disks do not have yet are written before the parity is read, cut or stored.
//! - Parity that this server lacks is not read. Changes of it are not made: what is made anew has
//!   them.

use super::mirrored_file::MirroredFile;
use super::mirrors::Mirrors;
use super::pending_parity::PendingKey;
use super::spans::WHOLE;
use crate::server::faults::{disk_fault, disk_of};
use crate::server::refill::LackingFile;
use policy::{BYTES_MAX, copy_object};
use std::rc::Rc;
use tracing::warn;
use units::{ByteRange, DiskId, FileId};
use wire::{Fault, FileRecord, FileSize};
use world::{Disk, DiskError, Payload, World};

/// Bytes that a disk has free, besides what held changes take, while changes are held: at most so
/// many, and at most this part of the disk.
const SPARE_BYTES: u64 = 64 << 20;
const SPARE_PART: u64 = 16;

impl<W: World> Mirrors<W> {
    /// Changes bytes of the parity of a file by a difference.
    pub(crate) async fn combine(
        &self,
        file: FileId,
        (number, offset): (DiskId, u64),
        size: FileSize,
        difference: W::Payload,
    ) -> Result<(), Fault> {
        let end = offset.checked_add(difference.length()).filter(|end| *end <= BYTES_MAX);
        let Some(end) = end else {
            return Err(Fault::BadRequest { cause: "parity lies beyond every file".to_owned() });
        };
        size.validate()?;
        disk_of(&self.world, number)?;
        self.make_room(difference.length()).await?;
        let turn = self.parity.turn(file, number);
        let _turn = turn.lock().await;
        self.parity.learn(file, size);
        let mut difference = difference;
        if let Some(from) = self.lacks_parity_from(file, number) {
            if let Some(known) = self.known(file).filter(|_| end > from) {
                known.lost_parity.pass(number, end);
            }
            if from <= offset {
                return Ok(());
            }
            difference = difference.slice(0, end.min(from) - offset);
        }
        let range = ByteRange::at(offset, difference.length());
        for (key, found) in self.parity.pending.overlapping((file, number), range) {
            if found != range {
                self.write_pending(key).await.map_err(|error| disk_fault(self.own, &error))?;
            }
        }
        let key = (file, number, offset);
        self.parity.pending.add(key, difference);
        match self.has_room_for_pending(number).await {
            true => Ok(()),
            // Whoever writes the bytes hears of a full disk, and not who calls for a sync.
            false => self.write_pending(key).await.map_err(|error| disk_fault(self.own, &error)),
        }
    }

    /// True if a disk has room for all changes of parity that are held, and some more.
    async fn has_room_for_pending(&self, number: DiskId) -> bool {
        let now = self.world.now();
        let space = match self.parity.space_of(number, now) {
            Some(known) => known,
            None => match self.world.disks()[number.0 as usize].space().await {
                Ok(space) => {
                    self.parity.has_space(number, now, space);
                    space
                }
                // A write will tell.
                Err(_) => return true,
            },
        };
        let spare = SPARE_BYTES.min(space.capacity_bytes / SPARE_PART);
        self.parity.pending.bytes().saturating_add(spare) <= space.free_bytes
    }

    /// Writes the oldest changes of parity until there is room for so many bytes of others.
    async fn make_room(&self, bytes: u64) -> Result<(), Fault> {
        let (mut tries, mut first) = (self.parity.pending.count(), None);
        while self.parity.pending.is_full(bytes) {
            let Some(key) = self.parity.pending.oldest().filter(|_| tries > 0) else { break };
            tries -= 1;
            let turn = self.parity.turn(key.0, key.1);
            let _turn = turn.lock().await;
            if let Err(error) = self.write_pending(key).await {
                first.get_or_insert(error);
            }
        }
        match first.filter(|_| self.parity.pending.is_full(bytes)) {
            Some(error) => Err(disk_fault(self.own, &error)),
            None => Ok(()),
        }
    }

    /// Writes all changes of parity, as the server ends. Those that cannot be written are lost with
    /// it: their senders keep marks.
    pub(super) async fn write_all_pending(&self) {
        for _ in 0..self.parity.pending.count() {
            let Some(key) = self.parity.pending.oldest() else { break };
            let turn = self.parity.turn(key.0, key.1);
            let _turn = turn.lock().await;
            if let Err(error) = self.write_pending(key).await {
                warn!(file = key.0.0, %error, "a change of parity could not be written");
            }
        }
    }

    /// Writes all changes of the parity of a file, so that the disks have them.
    pub(crate) async fn write_pending_of(&self, file: FileId) -> Result<(), Fault> {
        for number in (0..self.world.disks().len() as u32).map(DiskId) {
            // Whoever holds it may be writing some of them.
            let turn = self.parity.turn(file, number);
            let _turn = turn.lock().await;
            let written = self.write_pending_in((file, number), WHOLE).await;
            written.map_err(|error| disk_fault(self.own, &error))?;
        }
        Ok(())
    }

    /// Forgets the changes of the parity of a file that has none any more.
    pub(crate) async fn drop_pending(&self, file: FileId) {
        for number in (0..self.world.disks().len() as u32).map(DiskId) {
            // One that is being written comes before the removal.
            drop(self.parity.turn(file, number).lock().await);
        }
        self.parity.forget(file);
    }

    /// Writes the changes of a range of parity, whose turn is held.
    async fn write_pending_in(
        &self,
        object: (FileId, DiskId),
        range: ByteRange,
    ) -> Result<(), DiskError> {
        for (key, _) in self.parity.pending.overlapping(object, range) {
            self.write_pending(key).await?;
        }
        Ok(())
    }

    /// Writes a change of parity, whose turn is held. It stays if that fails, or is given up.
    async fn write_pending(&self, key: PendingKey) -> Result<(), DiskError> {
        let (file, number, offset) = key;
        let Some(mut writing) = self.parity.pending.begin(key) else { return Ok(()) };
        let (disk, object) = (&self.world.disks()[number.0 as usize], copy_object(file));
        let change = writing.change();
        if !change.is_whole {
            let known = disk.metadata(object).await?;
            if known.is_some_and(|known| known.length > offset) {
                let before = disk.read(object, offset, change.bytes.length()).await?;
                change.bytes = change.bytes.xor(&before);
            }
            // A write that fails may have been made in part.
            change.is_whole = true;
        }
        disk.write(object, offset, change.bytes.clone()).await?;
        writing.end();
        Ok(())
    }

    /// First byte that a disk lacks of the parity of a file, if it lacks some.
    fn lacks_parity_from(&self, file: FileId, disk: DiskId) -> Option<u64> {
        if self.lacking.is_empty() {
            return None;
        }
        let record = self.lacking.parity_record(file)?;
        self.of(file, || record)?.lost_parity.from(disk)
    }

    /// Reads parity for another server, which lacks what it is of.
    pub(super) async fn read_parity(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        range: ByteRange,
    ) -> Result<W::Payload, Fault> {
        if file.lost_parity.from(disk).is_some_and(|from| from < range.end) {
            let cause = format!("the parity at {} was lost with its directory", self.own);
            return Err(Fault::BadRequest { cause });
        }
        let turn = self.parity.turn(file.file, disk);
        let _turn = turn.lock().await;
        let written = self.write_pending_in((file.file, disk), range).await;
        written.map_err(|error| disk_fault(self.own, &error))?;
        let object = copy_object(file.file);
        let read = disk_of(&self.world, disk)?.read(object, range.start, range.length()).await;
        read.map_err(|error| disk_fault(self.own, &error))
    }

    /// Stores parity that was made anew, of pieces that do not change.
    pub(super) async fn store_parity(
        &self,
        file: &Rc<MirroredFile>,
        (number, range): (DiskId, ByteRange),
        parity: W::Payload,
    ) -> Result<(), Fault> {
        let (disk, object) = (disk_of(&self.world, number)?, copy_object(file.file));
        let failed = |error: DiskError| disk_fault(self.own, &error);
        let turn = self.parity.turn(file.file, number);
        let stored = async {
            let _turn = turn.lock().await;
            let length = disk.metadata(object).await?.map_or(0, |known| known.length);
            self.replace_pending((file.file, number), range).await?;
            let kept = range.end.min(length).saturating_sub(range.start);
            let parity = without_zeros(parity, kept);
            if parity.length() == 0 {
                file.lost_parity.made(number, range);
                return Ok(());
            }
            let key = (file.file, number, range.start);
            let writing = self.parity.pending.begin_whole(key, parity.clone());
            match disk.write(object, range.start, parity.clone()).await {
                // All that the damaged piece has is written anew.
                Err(DiskError::Corrupt { .. }) if length <= range.end => {
                    disk.truncate(object, range.start).await?;
                    disk.write(object, range.start, parity).await?;
                }
                written => written?,
            }
            writing.end();
            file.lost_parity.made(number, range);
            Ok(())
        };
        match stored.await {
            Err(error @ DiskError::Corrupt { .. }) => {
                // The rest of a piece is damaged, which belongs to other rows.
                self.lose_parity(file).await?;
                Err(failed(error))
            }
            stored => stored.map_err(failed),
        }
    }

    /// Forgets the changes of a range of parity, which is made anew with them. Those that are not
    /// in it as a whole are written.
    async fn replace_pending(
        &self,
        (file, number): (FileId, DiskId),
        range: ByteRange,
    ) -> Result<(), DiskError> {
        let pending = &self.parity.pending;
        for (key, found) in pending.overlapping((file, number), range) {
            match range.contains(found) {
                true => _ = pending.take(key),
                false => self.write_pending(key).await?,
            }
        }
        Ok(())
    }

    /// Records that this server lacks the parity that it had of a file: all of it is made anew.
    async fn lose_parity(&self, file: &Rc<MirroredFile>) -> Result<(), Fault> {
        let disks: Vec<DiskId> = (0..file.disks).map(DiskId).collect();
        warn!(file = file.file.0, "the parity of a file is made anew");
        file.lost_parity.lose(disks.iter().copied());
        self.parity.pending.forget(file.file);
        let record = file.record.clone();
        let (own, is_lost, is_unmarked) = (Vec::new(), false, false);
        let lacking = LackingFile { record, own, copy: disks, is_lost, is_unmarked };
        self.lacking.list(vec![lacking]).await
    }

    /// Frees the parity behind the last row of a file that was cut, once for each cut. Returns the
    /// number of bytes that are behind it.
    pub(crate) async fn cut_parity(
        &self,
        record: FileRecord,
        size: FileSize,
    ) -> Result<u64, Fault> {
        size.validate()?;
        let bad = || Fault::BadRequest { cause: "no parity of that file is here".to_owned() };
        let place = record.place_of(self.own).ok_or_else(bad)?;
        let rows = record.protection.rows(&record.stripe).ok_or_else(bad)?;
        let _one_at_a_time = self.parity.cut().await;
        let (file, object) = (record.file, copy_object(record.file));
        let is_first = size.cuts > self.size_of_parity(file).await?.cuts;
        self.parity.learn(file, size);
        let mut beyond = 0;
        for number in (0..record.stripe.disks_per_server).map(DiskId) {
            let disk = disk_of(&self.world, number)?;
            let turn = self.parity.turn(file, number);
            let _turn = turn.lock().await;
            let kept = rows.parity_bytes(place, number, size.bytes);
            match self.write_pending_in((file, number), WHOLE).await {
                Ok(()) => {}
                Err(DiskError::Corrupt { .. }) => {
                    let known = self.of(file, || record.clone()).ok_or_else(bad)?;
                    self.lose_parity(&known).await?;
                }
                Err(error) => return Err(disk_fault(self.own, &error)),
            }
            let known = disk.metadata(object).await;
            let known = known.map_err(|error| disk_fault(self.own, &error))?;
            let length = known.map_or(0, |known| known.length);
            if length <= kept {
                continue;
            }
            if !is_first {
                beyond = beyond.max(length - kept);
                continue;
            }
            let cut = async {
                disk.truncate(object, kept).await?;
                disk.sync(object).await
            };
            match cut.await {
                Ok(()) => {}
                Err(DiskError::Corrupt { .. }) => {
                    let known = self.of(file, || record.clone()).ok_or_else(bad)?;
                    self.lose_parity(&known).await?;
                }
                Err(error) => return Err(disk_fault(self.own, &error)),
            }
        }
        if is_first {
            self.kept_sizes.keep(object, size).await?;
        }
        Ok(beyond)
    }

    /// Size of a file, as far as changes of the parity here have shown it.
    pub(crate) async fn size_of_parity(&self, file: FileId) -> Result<FileSize, Fault> {
        let shown = self.parity.shown(file).unwrap_or_default();
        Ok(self.kept_sizes.of(copy_object(file)).await?.max(shown))
    }

    /// Stores the size of a file that changes of its parity here have shown.
    pub(crate) async fn keep_size_of_parity(&self, file: FileId) -> Result<(), Fault> {
        let shown = self.parity.shown(file);
        match shown {
            Some(size) => self.kept_sizes.keep(copy_object(file), size).await,
            None => Ok(()),
        }
    }

    /// Learns how far the data of another server reaches.
    pub(crate) async fn learn_reach(&self, file: FileId, size: FileSize) -> Result<(), Fault> {
        self.parity.learn(file, size);
        self.keep_size_of_parity(file).await
    }

    /// Returns the size of a file, as far as this server has data or parity of it. `own` is its
    /// size by the last cut that the data here has had.
    pub(crate) async fn reach(
        &self,
        record: &FileRecord,
        own: FileSize,
    ) -> Result<FileSize, Fault> {
        let reached = self.own_reach(record).await?;
        let own = FileSize { bytes: own.bytes.max(reached), ..own };
        Ok(own.max(self.size_of_parity(record.file).await?))
    }

    /// Returns the end of the last byte of a file that a disk of this server has.
    pub(super) async fn own_reach(&self, record: &FileRecord) -> Result<u64, Fault> {
        let Some(place) = record.place_of(self.own) else { return Ok(0) };
        let mut reached = 0;
        for number in (0..record.stripe.disks_per_server).map(DiskId) {
            let metadata = disk_of(&self.world, number)?.metadata(record.file).await;
            let metadata = metadata.map_err(|error| disk_fault(self.own, &error))?;
            let length = metadata.map_or(0, |metadata| metadata.length);
            let bytes = record.stripe.file_bytes(place, number, length);
            reached = reached.max(bytes.filter(|bytes| *bytes <= BYTES_MAX).unwrap_or(0));
        }
        Ok(reached)
    }

    /// Notes the size with which parity of a file begins: what was cut before concerns none of it.
    pub(crate) fn begin_parity(&self, record: &FileRecord) {
        self.parity.learn(record.file, FileSize { cuts: record.cuts, bytes: 0 });
    }
}

/// Leaves out the zeros at the end of data, but for its first `kept` bytes.
fn without_zeros<P: Payload>(data: P, kept: u64) -> P {
    let Some(bytes) = data.look_inside() else { return data };
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
    data.slice(0, used.max(kept))
}
