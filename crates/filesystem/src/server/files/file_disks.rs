//! Disks of a server, and what they have of each file.
//!
//! Each change of a mirrored file is made at its copy too ([`Mirrors`]). Bytes that this server has
//! lost, or that are damaged, are read from the copy and repaired. What a disk lacks that took the
//! place of a lost one is read from the copy until it is filled ([`Lacking`]).

use crate::server::config::ServerConfig;
use crate::server::faults::{disk_fault, disk_of, file_fault};
use crate::server::files::open_file::OpenFile;
use crate::server::files::protections::Protections;
use crate::server::files::write_failures::WriteFailures;
use crate::server::mirrors::{MirroredFile, Mirrors, PIECE_BYTES};
use crate::server::refill::{Lacking, LackingFile};
use futures_util::future::{Either, join_all, select, try_join_all};
use policy::{BYTES_MAX, Protection, copy_object};
use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use tracing::debug;
use units::{ByteRange, DiskId, Duration, FileId, ServerId};
use wire::{Fault, FileRecord, FileSize};
use world::{Damage, Disk, DiskError, Payload, World};

/// Maximum time that a disk may take to report its space. After it the last report counts.
const SPACE_TIMEOUT: Duration = Duration::from_ms(1000);

/// Disks of one server.
pub(crate) struct FileDisks<W: World> {
    world: W,
    server: ServerId,
    failures: Rc<WriteFailures>,
    mirrors: Rc<Mirrors<W>>,
    lacking: Rc<Lacking<W>>,
    protections: Rc<Protections<W>>,
    /// True if nothing may be changed.
    read_only: bool,
    /// Number of ranges that were repaired.
    repaired: Cell<u64>,
    /// Capacity and free space of each disk in bytes, as last reported.
    spaces: Box<[Cell<(u64, u64)>]>,
}

impl<W: World> FileDisks<W> {
    pub(crate) fn new(
        world: W,
        config: &ServerConfig,
        failures: Rc<WriteFailures>,
        mirrors: Rc<Mirrors<W>>,
        (lacking, protections): (Rc<Lacking<W>>, Rc<Protections<W>>),
    ) -> Self {
        let spaces = world.disks().iter().map(|_| Cell::default()).collect();
        let (server, read_only) = (config.id, config.read_only);
        let repaired = Cell::new(0);
        Self { world, server, failures, mirrors, lacking, protections, read_only, repaired, spaces }
    }

    /// Number of damaged ranges that were repaired from copies since the start.
    pub(crate) fn repaired(&self) -> u64 {
        self.repaired.get()
    }

    /// List of files that new disks lack.
    pub(super) fn lacking(&self) -> &Lacking<W> {
        &self.lacking
    }

    /// Copies at other servers.
    pub(super) fn mirrors(&self) -> &Mirrors<W> {
        &self.mirrors
    }

    /// Number of this server.
    pub(super) fn server(&self) -> ServerId {
        self.server
    }

    /// True if nothing may be changed.
    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(super) fn disk(&self, disk: DiskId) -> Result<&W::Disk, Fault> {
        disk_of(&self.world, disk)
    }

    /// Returns the state of the mirror of a file, if it has one.
    pub(super) fn mirrored(&self, file: &OpenFile) -> Option<Rc<MirroredFile>> {
        // What is filled from a copy needs it, whatever else is known.
        if !self.lacking.is_empty()
            && let Some(record) = self.lacking.record_to_fill(file.file)
        {
            return self.mirrors.of(file.file, || record);
        }
        let protection = self.protections.of(file.file).unwrap_or(file.protection());
        match protection {
            Protection::None => None,
            Protection::Mirror | Protection::Parity { .. } => {
                let record = || FileRecord { protection, ..file.record() };
                self.mirrors.of(file.file, record)
            }
        }
    }

    /// Reads bytes of the object of a file on a disk.
    pub(crate) async fn read(
        &self,
        file: &OpenFile,
        number: DiskId,
        offset: u64,
        length: u64,
    ) -> Result<W::Payload, Fault> {
        self.lacking.until_listed().await;
        let range = ByteRange::new(offset, offset + length);
        if let Some(data) = self.read_lacking(file, number, range).await? {
            return Ok(data);
        }
        let error = match self.disk(number)?.read(file.file, offset, length).await {
            Ok(data) => return Ok(data),
            Err(error) => error,
        };
        let is_damaged = matches!(error, DiskError::Corrupt { .. });
        let mirrored = if is_damaged { self.mirrored(file) } else { None };
        let Some(mirrored) = mirrored else { return Err(self.fault(file, number, &error)) };
        match self.read_copy(&mirrored, number, range).await {
            Ok(data) => Ok(data),
            Err(cause) => {
                debug!(file = file.name().as_str(), %cause, "the copy of damaged bytes is no help");
                Err(self.fault(file, number, &error))
            }
        }
    }

    /// Reads a range that a disk lacks from the copy; `None` if it lacks nothing there.
    async fn read_lacking(
        &self,
        file: &OpenFile,
        number: DiskId,
        range: ByteRange,
    ) -> Result<Option<W::Payload>, Fault> {
        if self.lacking.is_empty() {
            return Ok(None);
        }
        self.check_not_lost(file, number, range)?;
        let mirrored = self.mirrored(file).filter(|it| it.lacks(number, range.end));
        let Some(mirrored) = mirrored else { return Ok(None) };
        match self.mirrors.read(&mirrored, number, range).await {
            Ok(data) => Ok(Some(data)),
            Err(fault @ Fault::ServerLeft { .. }) => Err(fault),
            Err(fault) => Err(self.lost(file, number, range, fault.to_string())),
        }
    }

    /// Fails if a disk has lost its part of a file for good.
    fn check_not_lost(
        &self,
        file: &OpenFile,
        number: DiskId,
        range: ByteRange,
    ) -> Result<(), Fault> {
        if self.lacking.is_empty() || !self.lacking.is_lost(file.file, number) {
            return Ok(());
        }
        let cause = "the data directory was lost, and no copy is sure to have all changes";
        Err(self.lost(file, number, range, cause.to_owned()))
    }

    /// Returns the fault of a range that a disk has lost.
    fn lost(&self, file: &OpenFile, number: DiskId, range: ByteRange, cause: String) -> Fault {
        let (disk, object, damage) = (number.to_string(), file.file, Damage::Lost { cause });
        let (offset, length) = (range.start, range.length());
        self.fault(file, number, &DiskError::Corrupt { disk, object, offset, length, damage })
    }

    /// Reads a range from the copy of a file, and repairs it here where something may be changed.
    async fn read_copy(
        &self,
        file: &Rc<MirroredFile>,
        number: DiskId,
        range: ByteRange,
    ) -> Result<W::Payload, Fault> {
        let repair = self.mirrors.repair(file, number, range, self.read_only);
        let (data, is_repaired) = repair.await?;
        self.repaired.update(|repaired| repaired + u64::from(is_repaired));
        Ok(data)
    }

    /// Writes bytes of the object of a file on a disk, and of its copy.
    pub(crate) async fn write(
        &self,
        file: &OpenFile,
        number: DiskId,
        offset: u64,
        payload: W::Payload,
    ) -> Result<(), Fault> {
        let disk = self.disk(number)?;
        self.lacking.until_listed().await;
        self.check_not_lost(file, number, ByteRange::new(offset, offset + payload.length()))?;
        let Some(mirrored) = self.mirrored(file) else {
            let _change = self.protections.begin_bare_change(file.file);
            let written = disk.write(file.file, offset, payload).await;
            return written.map_err(|error| self.fault(file, number, &error));
        };
        let range = ByteRange::new(offset, offset + payload.length());
        let reached = file
            .place_of(self.server)
            .and_then(|place| file.stripe.file_bytes(place, number, range.end));
        // While it is being cut, it has no byte beyond what stays.
        let cuts = if file.tail_is_clean.get() { file.size().cuts } else { 0 };
        let size = FileSize { cuts, bytes: reached.unwrap_or(0) };
        let both = self.mirrors.write_both(&mirrored, number, (offset, payload), size);
        let (written, copied) = both.await?;
        if let Err(error) = written {
            let is_damaged = matches!(error, DiskError::Corrupt { .. });
            // The rest of a piece is damaged here: the copy has it, with what was written.
            if is_damaged
                && copied.is_ok()
                && self.read_copy(&mirrored, number, range).await.is_ok()
            {
                return Ok(());
            }
            self.mirrors.note_difference(&mirrored, number, range);
            return Err(self.fault(file, number, &error));
        }
        copied
    }

    /// Returns the disks that have blocks of a file.
    fn of(&self, file: &OpenFile) -> impl Iterator<Item = (DiskId, &W::Disk)> {
        (0..file.stripe.disks_per_server).map(DiskId).zip(self.world.disks())
    }

    /// Returns the disks that have bytes of a file, or may have some beyond its end.
    fn with_blocks(&self, file: &OpenFile) -> impl Iterator<Item = (DiskId, &W::Disk)> {
        let has_blocks = |disk| {
            let bytes = |place| file.stripe.object_bytes(place, disk, file.bytes());
            !file.tail_is_clean.get() || file.place_of(self.server).map(bytes) > Some(0)
        };
        self.of(file).filter(move |(number, _)| has_blocks(*number))
    }

    pub(super) fn fault(&self, file: &OpenFile, disk: DiskId, error: &DiskError) -> Fault {
        file_fault(self.server, file, disk, error)
    }

    /// Returns the end of the last byte of a file that a disk has. The file learns the time of the
    /// data on the disks.
    pub(crate) async fn reach(&self, file: &OpenFile) -> Result<u64, Fault> {
        let Some(place) = file.place_of(self.server) else { return Ok(0) };
        self.lacking.until_listed().await;
        let mut reached = 0;
        for (number, disk) in self.of(file) {
            if let Some(mirrored) = self.filling(file, number) {
                let length = self.mirrors.length_unless_lost(&mirrored, number).await?;
                let length = length.flatten().unwrap_or(0);
                let bytes = file.stripe.file_bytes(place, number, length);
                reached = reached.max(bytes.filter(|bytes| *bytes <= BYTES_MAX).unwrap_or(0));
                continue;
            }
            let metadata = disk.metadata(file.file).await;
            let metadata = metadata.map_err(|error| self.fault(file, number, &error))?;
            let length = match metadata {
                Some(metadata) => {
                    file.learn_modified(metadata.modified);
                    metadata.length
                }
                None => match self.length_of_lost(file, number).await {
                    Some(length) => length,
                    None => continue,
                },
            };
            let bytes = file.stripe.file_bytes(place, number, length);
            // An object longer than any file is damaged, and its reader will find that.
            reached = reached.max(bytes.filter(|bytes| *bytes <= BYTES_MAX).unwrap_or(0));
        }
        Ok(reached)
    }

    /// Returns the state of a file whose part a disk is being filled with.
    pub(super) fn filling(&self, file: &OpenFile, number: DiskId) -> Option<Rc<MirroredFile>> {
        match self.lacking.is_empty() {
            true => None,
            false => self.mirrored(file).filter(|it| it.is_filling(number)),
        }
    }

    /// Returns the length of the copy of an object on a disk that is lost.
    async fn length_of_lost(&self, file: &OpenFile, number: DiskId) -> Option<u64> {
        if !self.read_only || file.protection() == Protection::None {
            return None;
        }
        let is_lost = self.disk(number).ok()?.read(file.file, 0, 1).await.is_err();
        let mirrored = self.mirrored(file).filter(|_| is_lost)?;
        self.mirrors.check_current(&mirrored, ByteRange::new(0, u64::MAX)).await.ok()?;
        self.mirrors.length(&mirrored, number).await.ok()?
    }

    /// Frees the bytes of a file beyond its first `bytes` bytes, durably: bytes that came back
    /// after a loss of power would count as written.
    pub(crate) async fn cut(&self, file: &OpenFile, bytes: u64) -> Result<(), Fault> {
        let Some(place) = file.place_of(self.server) else { return Ok(()) };
        self.lacking.until_listed().await;
        let size = FileSize { cuts: file.size().cuts, bytes };
        for (number, disk) in self.of(file) {
            let kept = file.stripe.object_bytes(place, number, bytes);
            let cut = async || {
                disk.truncate(file.file, kept).await?;
                disk.sync(file.file).await
            };
            // Where nothing is left, nothing is lost.
            let has_lost = !self.lacking.is_empty() && self.lacking.is_lost(file.file, number);
            if has_lost && kept > 0 {
                self.check_not_lost(file, number, ByteRange::new(0, kept))?;
            }
            let Some(mirrored) = self.mirrored(file) else {
                let _change = self.protections.begin_bare_change(file.file);
                cut().await.map_err(|error| self.fault(file, number, &error))?;
                self.recover(file, number, has_lost).await?;
                continue;
            };
            let (mut here, copied) = self.mirrors.cut_both(&mirrored, number, kept, size).await?;
            let last = ByteRange::new(kept / PIECE_BYTES * PIECE_BYTES, kept);
            // The rest of its last piece is damaged here: the copy has it.
            if matches!(here, Err(DiskError::Corrupt { .. }))
                && copied.is_ok()
                && self.read_copy(&mirrored, number, last).await.is_ok()
            {
                here = cut().await;
            }
            here.map_err(|error| {
                let beyond = ByteRange::new(kept, u64::MAX);
                self.mirrors.note_difference(&mirrored, number, beyond);
                self.fault(file, number, &error)
            })?;
            copied?;
            self.recover(file, number, has_lost).await?;
        }
        if let Some(mirrored) = self.mirrored(file) {
            mirrored.end_cut(size);
        }
        Ok(())
    }

    /// Keeps a size that no data shows with the copy of a file, too.
    pub(super) async fn keep_size_of_copy(
        &self,
        file: &OpenFile,
        size: FileSize,
    ) -> Result<(), Fault> {
        match self.mirrored(file) {
            Some(mirrored) => self.mirrors.keep_size(&mirrored, size).await,
            None => Ok(()),
        }
    }

    /// Notes that a file has nothing on a disk any more, which had lost something.
    async fn recover(&self, file: &OpenFile, number: DiskId, has_lost: bool) -> Result<(), Fault> {
        match has_lost {
            true => {
                let recovered = |one: &mut LackingFile| one.own.retain(|disk| *disk != number);
                self.lacking.whole(file.file, recovered).await
            }
            false => Ok(()),
        }
    }

    /// Waits until a file is on stable storage, on all of its disks. A disk that fails may have
    /// lost data of any client and may not report it again, so every client gets the fault.
    pub(crate) async fn sync(&self, file: &OpenFile) -> Result<(), Fault> {
        self.lacking.until_listed().await;
        let mirrored = self.mirrored(file);
        let changes = mirrored.as_ref().and_then(|mirrored| mirrored.ended_changes());
        // On a server without blocks there is only what a cut has already stored.
        let disks = self.with_blocks(file);
        let synced = disks.map(async |(number, disk)| (number, disk.sync(file.file).await));
        let mut outcome = Ok(());
        for (number, synced) in join_all(synced).await {
            if let Err(error) = synced {
                let fault = self.fault(file, number, &error);
                self.failures.record(file.file, fault.clone());
                outcome = outcome.and(Err(fault));
            }
        }
        match mirrored {
            Some(mirrored) if outcome.is_ok() => self.mirrors.sync(&mirrored, changes).await,
            _ => outcome,
        }
    }

    /// Makes the copies of files equal as the server ends, after all files are written back.
    ///
    /// # Errors
    /// As for [`Mirrors::settle`].
    pub(crate) async fn settle_copies(&self) -> Result<(), Fault> {
        let stored = async |file: FileId| {
            let synced = join_all(self.world.disks().iter().map(|disk| disk.sync(file))).await;
            synced.iter().all(Result::is_ok)
        };
        self.mirrors.settle(stored).await
    }

    /// Gives the disks the time of a file that was changed, at once. Returns the end of that.
    pub(crate) fn set_time(&self, file: &OpenFile) -> impl Future + '_ {
        let modified = file.modified_since_open();
        let set = modified.into_iter().flat_map(|modified| {
            let disks = self.with_blocks(file);
            disks.map(move |(_, disk)| disk.set_modified(file.file, modified))
        });
        join_all(set.collect::<Vec<_>>())
    }

    /// Removes the copy that this server has of another one's part of a file.
    pub(crate) async fn remove_copy(&self, file: FileId) -> Result<(), Fault> {
        let removed = self.world.disks().iter().map(|disk| disk.remove(copy_object(file)));
        let removed = join_all(removed).await;
        let first = removed.into_iter().find_map(Result::err);
        first.map_or(Ok(()), |error| Err(disk_fault(self.server, &error)))
    }

    /// Removes the data of a file from all disks, with a copy that this server may have of another
    /// one's part.
    pub(crate) async fn remove(&self, file: FileId, protection: Protection) -> Result<(), Fault> {
        let mut objects = vec![file];
        if protection.is_redundant() {
            objects.push(copy_object(file));
        }
        let disks = self.world.disks().iter();
        let all = disks.flat_map(|disk| objects.iter().map(|object| disk.remove(*object)));
        let removed = join_all(all).await;
        let first = removed.into_iter().find_map(Result::err);
        first.map_or(Ok(()), |error| Err(disk_fault(self.server, &error)))
    }

    /// Returns capacity and free space of each disk in bytes. A disk that does not report them in
    /// time has the last ones.
    pub(crate) async fn spaces(&self) -> Result<Vec<(u64, u64)>, Fault> {
        let spaces = self.world.disks().iter().zip(&self.spaces);
        let spaces = spaces.map(async |(disk, last)| {
            let limit = self.world.sleep(SPACE_TIMEOUT);
            if let Either::Left((space, _)) = select(pin!(disk.space()), pin!(limit)).await {
                let space = space.map_err(|error| disk_fault(self.server, &error))?;
                last.set((space.capacity_bytes, space.free_bytes));
            }
            Ok(last.get())
        });
        try_join_all(spaces).await
    }
}
