//! State of a disk's thread: the directory of its objects.
//!
//! Invariants:
//!
//! - At most `open_max` objects are open.
//! - An object is closed only when it has no unsynced bytes, or after their sync.

use super::checksums::{self, Checksums, PIECE_BYTES, Present};
use super::data::Data;
use super::extent_cache::ObjectExtents;
use super::failure::Failure;
use super::object::{Found, Object};
use super::object_log::ObjectLog;
use super::preallocation::Preallocation;
use super::root::{Root, name};
use super::session::{log_session, present_session};
use super::verified_cache::VerifiedCache;
use super::write_back::WriteBackState;
use crate::config::{DiskConfig, DiskOptions};
use crate::memory::{RealMemory, RealPayload};
use crate::worker::WorkerState;
use rustix::fs::{AtFlags, FallocateFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use units::{ByteRange, FileId};
use world::{Damage, Memory, OrdinaryFile, Payload};

/// Name of the directory of objects, in the directory of a disk.
pub const OBJECTS_DIRECTORY: &str = "objects";

/// Maximum number of objects that one disk keeps open …
const OBJECTS_OPEN_MAX: usize = 128;

/// … and minimum.
const OBJECTS_OPEN_MIN: usize = 4;

/// Files of an open object: its bytes, opened twice, and its checksums.
const FILES_OF_OBJECT: u64 = 3;

/// Returns the number of objects that each of `disks` disks may keep open. Three in four of the
/// process's descriptors are for them.
pub(crate) fn objects_open_max(disks: usize) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let files = limit.unwrap_or(u64::MAX) / 4 * 3 / (disks as u64).max(1);
    let objects = usize::try_from(files / FILES_OF_OBJECT).unwrap_or(usize::MAX);
    objects.clamp(OBJECTS_OPEN_MIN, OBJECTS_OPEN_MAX)
}

/// Maximum bytes of one read; a larger read is refused as invalid.
const READ_BYTES_MAX: u64 = 1 << 30;

/// Name of the file that tests if the file system supports direct I/O.
const PROBE: &str = "probe";

/// Maximum size of an object, so that no offset overflows: the system knows none beyond 2^63.
const OBJECT_BYTES_MAX: u64 = (1 << 63) - PIECE_BYTES;

pub(super) struct Directory {
    root: Arc<Root>,
    /// Maximum number of open objects.
    open_max: usize,
    options: DiskOptions,
    /// True if direct writes preallocate. The page cache delays allocation itself, and in memory
    /// there is no order to keep.
    reserves: bool,
    present: Present,
    /// Objects whose loss must be reported.
    log: ObjectLog,
    open: BTreeMap<FileId, Open>,
    /// Objects that are ordinary files: they have no checksums, and stay open.
    adopted: BTreeMap<FileId, Object>,
    /// Write-back state of objects with unsynced or failed writes. Some hundred bytes for each
    /// object written and never synced since the start.
    pending: BTreeMap<FileId, WriteBackState>,
    recent: VerifiedCache,
    /// Counter of uses, which finds the least recently used object.
    uses: u64,
    /// True if a file was created or removed since the last sync of the directory.
    entries_changed: bool,
}

struct Open {
    object: Object,
    last_use: u64,
}

impl Directory {
    pub(super) fn open(config: &DiskConfig, open_max: usize) -> Result<Self, String> {
        let (path, options) = (&config.directory, config.options);
        let objects = path.join(OBJECTS_DIRECTORY);
        match rustix::fs::mkdir(&objects, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.to_string()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| e.to_string())?;
        rustix::fs::fsync(&parent).map_err(|error| error.to_string())?;
        let root = Arc::new(Root::open(objects)?);
        // Files removed by an earlier process must not reappear after a crash.
        rustix::fs::fsync(&root.handle).map_err(|error| error.to_string())?;
        let session = present_session(&root.handle);
        let present = Present { disk: config.identity, session, number: config.generation };
        // Only after the lock: another server may be writing the log.
        let log = ObjectLog::open(&parent, log_session(session));
        let log = log.map_err(|error| error.to_string())?;
        let in_memory =
            rustix::fs::fstatfs(&root.handle).is_ok_and(|found| found.f_type == libc::TMPFS_MAGIC);
        Ok(Self {
            root,
            open_max,
            options,
            reserves: options.preallocate && options.direct && !in_memory,
            present,
            log,
            open: BTreeMap::new(),
            adopted: BTreeMap::new(),
            pending: BTreeMap::new(),
            recent: VerifiedCache::default(),
            uses: 0,
            entries_changed: false,
        })
    }

    /// Fails if the disk requires direct I/O and the file system does not support it.
    pub(super) fn check_direct(&self) -> std::io::Result<()> {
        if !self.options.direct {
            return Ok(());
        }
        let tried = self.probe_direct();
        // Also after a failed open: the system creates the file before it refuses.
        let removed = rustix::fs::unlinkat(&self.root.handle, PROBE, AtFlags::empty());
        tried.and(removed.map_err(std::io::Error::from))
    }

    fn probe_direct(&self) -> std::io::Result<()> {
        let probe = self.open_data(PROBE, OFlags::CREATE | OFlags::TRUNC)?;
        let piece = RealMemory::new(PIECE_BYTES as usize);
        piece.bytes_mut().fill(0);
        probe.write(&piece.bytes(), 0)?;
        probe.read(&mut piece.bytes_mut(), 0)
    }

    /// Returns the directory of objects.
    pub(super) fn root(&self) -> &Arc<Root> {
        &self.root
    }

    pub(super) fn read(
        &mut self,
        object: FileId,
        offset: u64,
        length: u64,
    ) -> Result<Found, Failure> {
        let range = range_of(offset, length)?;
        if length > READ_BYTES_MAX {
            return Err(Failure::System(Errno::INVAL));
        }
        if length > 0 {
            let mut recent = std::mem::take(&mut self.recent);
            let found = self.existing(object).map_err(|failure| failure.within(range));
            let read = found.map(|found| found.map(|object| object.read(range, &mut recent)));
            self.recent = recent;
            if let Some(read) = read? {
                return read;
            }
        }
        let memory = RealMemory::new(length as usize);
        memory.bytes_mut().fill(0);
        Ok(Found::Bytes(memory.freeze()))
    }

    pub(super) fn write(
        &mut self,
        object: FileId,
        offset: u64,
        payload: &RealPayload,
    ) -> Result<(), Failure> {
        let range = range_of(offset, payload.length())?;
        if range.is_empty() {
            return Ok(());
        }
        let mut written = self.write_once(object, range, payload);
        if matches!(written, Err(Failure::System(Errno::NOSPC | Errno::DQUOT))) {
            // The disk is full: return preallocated space.
            self.open.values_mut().for_each(|open| open.object.give_back());
            written = self.write_once(object, range, payload);
        }
        let pending = self.pending.entry(object).or_default();
        match &written {
            Ok(()) => pending.wrote(range),
            // Nothing was written.
            Err(Failure::Corrupt(..)) => {}
            Err(failure) => pending.write_failed(range, failure.clone()),
        }
        written
    }

    fn write_once(
        &mut self,
        object: FileId,
        range: ByteRange,
        payload: &RealPayload,
    ) -> Result<(), Failure> {
        let version = self.next_use();
        let mut recent = std::mem::take(&mut self.recent);
        let found = self.writable(object).map_err(|failure| failure.within(range));
        let written = found.and_then(|object| {
            object.moves(version);
            object.write(range, payload, &mut recent)
        });
        self.changed(object);
        self.recent = recent;
        written
    }

    /// Returns the extents of an object; `None` if `version` is current, or the file system does
    /// not tell.
    pub(super) fn locate(&mut self, object: FileId, version: Option<u64>) -> Option<ObjectExtents> {
        self.existing(object).ok()??.locate(version)
    }

    pub(super) fn truncate(&mut self, object: FileId, length: u64) -> Result<(), Failure> {
        if self.existing(object)?.is_none() {
            if let Some(pending) = self.pending.get_mut(&object) {
                pending.truncated(length);
            }
            return Ok(());
        }
        let end = length.min(OBJECT_BYTES_MAX);
        let version = self.next_use();
        let mut recent = std::mem::take(&mut self.recent);
        let truncated = self.writable(object).and_then(|found| {
            found.moves(version);
            found.truncate(end, &mut recent)
        });
        self.changed(object);
        self.recent = recent;
        truncated?;
        self.pending.entry(object).or_default().truncated(end);
        Ok(())
    }

    pub(super) fn sync(&mut self, object: FileId) -> Result<(), Failure> {
        if self.existing(object)?.is_none() {
            // The file could not be created, so its bytes are missing.
            self.settle(object)?;
        }
        self.store(object)
    }

    /// Syncs an object, if it is open, and the directory entries, and logs that.
    fn store(&mut self, object: FileId) -> Result<(), Failure> {
        self.sync_object(object)?;
        let generation = self.generation_of(object);
        self.entries_changed |= generation.is_some() && !self.log.is_durable(object);
        self.sync_entries()?;
        if let Some(number) = generation {
            self.log.stored(object, number);
        }
        Ok(())
    }

    /// Returns when the directory entries are on stable storage.
    pub(super) fn sync_entries(&mut self) -> Result<(), Failure> {
        if self.entries_changed {
            rustix::fs::fsync(&self.root.handle)?;
            self.entries_changed = false;
        }
        Ok(())
    }

    /// Makes the ordinary file at `path` an object, without checksums. It is read and written
    /// through the page cache, where other programs of this host see it, unless the disk uses
    /// direct I/O: then whole sectors of long transfers bypass it, and the system keeps both alike.
    pub(super) fn adopt(
        &mut self,
        object: FileId,
        path: &Path,
        lock: bool,
    ) -> Result<OrdinaryFile, Failure> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match rustix::fs::open(path, flags, Mode::empty()) {
            // Then nothing can be written.
            Err(Errno::ACCESS | Errno::ROFS | Errno::PERM) => {
                let flags = flags.difference(OFlags::RDWR) | OFlags::RDONLY;
                rustix::fs::open(path, flags, Mode::empty())?
            }
            opened => opened?,
        };
        let stat = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Failure::System(Errno::INVAL));
        }
        if lock {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // Some file systems have no such locks.
                Ok(()) | Err(Errno::NOTSUP | Errno::NOLCK | Errno::INVAL | Errno::NOSYS) => {}
                Err(Errno::WOULDBLOCK) => return Err(Failure::Locked),
                Err(error) => return Err(error.into()),
            }
        }
        let shared = rustix::io::fcntl_dupfd_cloexec(&file, 0)?;
        let sectors = self.options.direct.then(|| reopen_direct(&file)).transpose()?;
        let data = Data::ordinary(file.into(), sectors.map(Into::into));
        let reservations = Preallocation::new(false, &data)?;
        let version = self.next_use();
        self.root.adopt(object, shared);
        self.adopted.insert(object, Object::new(object, data, None, reservations, version));
        Ok(OrdinaryFile { device: stat.st_dev, inode: stat.st_ino })
    }

    /// Makes an object that is an ordinary file at least `length` bytes long. Its bytes stay, as do
    /// those that other servers write meanwhile.
    pub(super) fn extend(&mut self, object: FileId, length: u64) -> Result<(), Failure> {
        let Some(last) = length.checked_sub(1) else { return Ok(()) };
        let Some(found) = self.adopted.get(&object) else { return Ok(()) };
        if found.data().length()? >= length {
            return Ok(());
        }
        match rustix::fs::fallocate(found.data(), FallocateFlags::empty(), last, 1) {
            Err(Errno::OPNOTSUPP) if found.data().length()? < length => {
                Ok(found.data().write(&[0], last)?)
            }
            extended => Ok(extended?),
        }
    }

    /// Ends the work on an ordinary file, after [`Directory::extend`].
    pub(super) fn release(&mut self, object: FileId, length: u64) -> Result<(), Failure> {
        let extended = self.extend(object, length);
        if self.adopted.remove(&object).is_some() {
            self.root.release(object);
            self.pending.remove(&object);
        }
        extended
    }

    pub(super) fn remove(&mut self, object: FileId) -> Result<(), Failure> {
        self.open.remove(&object);
        self.recent.forget(object, 0..u64::MAX);
        // A crash in between may leave damaged files, which can be removed again.
        self.log.forget(object);
        if checksums::remove(&self.root.handle, object)? {
            self.entries_changed = true;
        }
        match rustix::fs::unlinkat(&self.root.handle, name(object), AtFlags::empty()) {
            Ok(()) => self.entries_changed = true,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        self.pending.remove(&object);
        self.root.times.forget(object);
        Ok(())
    }

    /// Notes a change of an object, made or attempted.
    fn changed(&mut self, object: FileId) {
        if self.adopted.contains_key(&object) {
            return;
        }
        self.root.times.wrote(object);
        if let Some(number) = self.generation_of(object) {
            self.log.changed(object, number);
        }
    }

    /// Number of the generation that the checksums of an open object name.
    fn generation_of(&self, object: FileId) -> Option<u32> {
        self.open.get(&object)?.object.generation()
    }

    /// Syncs an open object and records the outcome.
    fn sync_object(&mut self, object: FileId) -> Result<(), Failure> {
        let open = self.open.get_mut(&object).map(|open| &mut open.object);
        let Some(open) = open.or_else(|| self.adopted.get_mut(&object)) else { return Ok(()) };
        match open.sync() {
            Ok(()) => self.settle(object),
            Err(failure) => Err(self.pending.entry(object).or_default().sync_failed(failure)),
        }
    }

    /// Returns when the device has all bytes written to an object. Fails while some are missing.
    fn settle(&mut self, object: FileId) -> Result<(), Failure> {
        let Some(pending) = self.pending.get_mut(&object) else { return Ok(()) };
        let settled = pending.synced();
        if pending.is_settled() {
            self.pending.remove(&object);
        }
        settled
    }

    /// Returns the object; `None` when nothing was ever written to it.
    fn existing(&mut self, object: FileId) -> Result<Option<&mut Object>, Failure> {
        if self.adopted.contains_key(&object) {
            return Ok(self.adopted.get_mut(&object));
        }
        if !self.open.contains_key(&object) {
            let data = match self.open_data(&name(object), OFlags::empty()) {
                Err(Errno::NOENT) => return self.check_absent(object).map(|()| None),
                opened => opened?,
            };
            let sums = if self.options.checksums { self.sums_of(object, &data)? } else { None };
            self.insert(object, data, sums)?;
        }
        Ok(self.used(object))
    }

    /// Fails if the file of an object is missing that must be there.
    fn check_absent(&self, object: FileId) -> Result<(), Failure> {
        if !self.options.checksums {
            return Ok(());
        }
        let bytes = match Checksums::bytes_missing(&self.root.handle, object, self.present)? {
            None if self.log.known(object).is_some() => PIECE_BYTES,
            None => return Ok(()),
            Some(bytes) => bytes,
        };
        Err(Failure::Corrupt(object, ByteRange::new(0, bytes), Damage::Missing))
    }

    /// Returns the object, created if necessary, ready to be changed.
    fn writable(&mut self, object: FileId) -> Result<&mut Object, Failure> {
        if self.adopted.contains_key(&object) {
            return Ok(self.adopted.get_mut(&object).expect("the map has it"));
        }
        if self.existing(object)?.is_none() {
            self.entries_changed = true;
            let checksums = self.options.checksums;
            let sums = checksums
                .then(|| Checksums::create(&self.root.handle, object, self.present))
                .transpose()?;
            let data = self.open_data(&name(object), OFlags::CREATE)?;
            self.insert(object, data, sums)?;
        }
        let Self { root, options, present, log, open, .. } = self;
        let found = open.get_mut(&object).expect("the object was found or made above");
        root.times.keep(object, || rustix::fs::fstat(found.object.data()))?;
        let object_open = &mut found.object;
        if options.checksums && !object_open.has_sums() {
            let (data, known) = (object_open.data(), log.known(object));
            let sums = Checksums::open(&root.handle, object, data, known, *present)?;
            object_open.set_sums(Some(sums));
        }
        if !options.checksums {
            // The checksums are about to become wrong.
            log.remove(object)?;
            if checksums::remove(&root.handle, object)? {
                rustix::fs::fsync(&root.handle)?;
            }
        }
        Ok(object_open)
    }

    fn open_data(&self, name: &str, flags: OFlags) -> Result<Data, Errno> {
        let direct = self.options.direct;
        let flags = flags | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | Data::flags(direct);
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.root.handle, name, flags, mode)?;
        Ok(Data::new(file.into(), direct))
    }

    /// Opens the checksums of an existing object; `None` when there is no space to create them:
    /// reads must not depend on free space.
    fn sums_of(&mut self, object: FileId, data: &Data) -> Result<Option<Checksums>, Failure> {
        match Checksums::open(&self.root.handle, object, data, self.log.known(object), self.present)
        {
            Ok(sums) => Ok(Some(sums)),
            Err(Failure::System(Errno::NOSPC | Errno::DQUOT | Errno::ROFS)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn used(&mut self, object: FileId) -> Option<&mut Object> {
        let last_use = self.next_use();
        let open = self.open.get_mut(&object)?;
        open.last_use = last_use;
        Some(&mut open.object)
    }

    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// Adds an open object, and closes the least recently used one when there are too many.
    fn insert(&mut self, id: FileId, data: Data, sums: Option<Checksums>) -> Result<(), Failure> {
        if self.open.len() >= self.open_max {
            self.oldest().into_iter().for_each(|object| self.close(object));
        }
        let reservations = Preallocation::new(self.reserves, &data)?;
        let last_use = self.next_use();
        let object = Object::new(id, data, sums, reservations, last_use);
        self.open.insert(id, Open { object, last_use });
        Ok(())
    }

    /// Returns the open object to be closed next.
    fn oldest(&self) -> Option<FileId> {
        let key = |(object, open): &(&FileId, &Open)| (self.is_unsynced(**object), open.last_use);
        self.open.iter().min_by_key(key).map(|(object, _)| *object)
    }

    /// True if an object has writes that no sync has covered.
    fn is_unsynced(&self, object: FileId) -> bool {
        self.pending.get(&object).is_some_and(WriteBackState::is_unsynced)
    }

    fn close(&mut self, object: FileId) {
        // Once the file is closed, the system may forget a write error. A failure is kept for the
        // next sync.
        if self.is_unsynced(object) {
            let _ = self.sync_object(object);
        }
        if let Some(mut open) = self.open.remove(&object) {
            open.object.give_back();
            self.root.store_time(object);
        }
    }
}

impl WorkerState for Directory {
    /// Closes objects without recent requests, so that leftovers of a killed client hold no
    /// descriptors, no space and no memory.
    fn on_idle(&mut self) -> bool {
        self.recent = VerifiedCache::default();
        if let Some(object) = self.oldest() {
            if self.is_unsynced(object) {
                // A failure is kept for the next sync.
                let _ = self.store(object);
            }
            self.close(object);
        }
        if self.open.is_empty() {
            self.root.store_times();
        }
        !self.open.is_empty()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.open.values_mut().for_each(|open| open.object.give_back());
        self.root.store_times();
    }
}

/// Returns the byte range of a request, if it is valid.
fn range_of(offset: u64, length: u64) -> Result<ByteRange, Failure> {
    let range = ByteRange::checked_at(offset, length);
    range.filter(|range| range.end <= OBJECT_BYTES_MAX).ok_or(Failure::System(Errno::INVAL))
}

/// Opens an open file once more, for direct I/O and as it was opened.
fn reopen_direct(file: &OwnedFd) -> Result<OwnedFd, Failure> {
    let access = rustix::fs::fcntl_getfl(file)? & OFlags::ACCMODE;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = access | OFlags::CLOEXEC | OFlags::DIRECT;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Err(Failure::NotDirect),
        opened => Ok(opened?),
    }
}
