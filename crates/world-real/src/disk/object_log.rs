//! Log of the objects that a disk must have, and of the starts of its instance that used it.
//!
//! Without the log, an object that is lost with its checksums would be read as a hole, one that has
//! lost only its checksums would be read unverified, and an older copy of an object, or of the
//! whole disk, would be read as if it were the present one. The log is a file beside the directory
//! of objects:
//!
//! ```text
//! byte 0        8      12    16
//!      | object | what | crc | the next one | ...     all little-endian
//! ```
//!
//! `what` is a kind and, from bit 4 on, the number of a generation. In records of generations the
//! first field is the generation's mark, in those of sessions the session.
//!
//! Invariants:
//!
//! - An object is *durable* only after all of it is on stable storage.
//! - An object is *created* only after its files exist. It counts only in the session of that
//!   record: a crash of the machine may have taken it back.
//! - An object is recorded under a generation only after the header of its checksums names that
//!   generation or a later one, and a durable one after that header is on stable storage.
//! - An unreadable record, such as the last one after a crash, counts as never written: its object
//!   has as little protection as before.

use super::generation::{Generation, Generations};
use rangemap::RangeMap;
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use units::FileId;

/// Name of the log in the directory of a disk.
pub const STORED_LOG: &str = "stored";
const NEW_NAME: &str = "stored.new";

const RECORD_BYTES: usize = 16;

/// Number of superfluous records, beyond twice the needed ones, at which the log is rewritten.
const SPARE_RECORDS: usize = 4096;

/// Bytes that must be free for the records of a start.
const START_BYTES: u64 = 4 * RECORD_BYTES as u64;

/// Largest number of a generation.
const NUMBER_MAX: u32 = u32::MAX >> NUMBER_SHIFT;
const NUMBER_SHIFT: u32 = 4;

/// Kind of a record.
// Stored: append only.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    /// The object is on stable storage, with its checksums.
    Durable = 1,
    /// The object is about to be removed.
    Removed = 2,
    /// A start of the instance has begun to use the disk.
    Begun = 3,
    /// The start is complete.
    Complete = 4,
    /// The object exists, with its checksums.
    Created = 5,
    /// Later records are of this session.
    Session = 6,
}

const KINDS: [Kind; 6] =
    [Kind::Durable, Kind::Removed, Kind::Begun, Kind::Complete, Kind::Created, Kind::Session];

/// Record of an object in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Known {
    is_durable: bool,
    /// Number of the generation of the last recorded change; 0 if none is known.
    pub(super) number: u32,
}

/// Content of a log.
#[derive(Default)]
struct Content {
    generations: Generations,
    session: u64,
    /// Object numbers: consecutively created objects share few ranges.
    objects: RangeMap<u64, Known>,
}

/// Content of a disk's log, for the start of its instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogSummary {
    /// Starts that used the disk.
    pub generations: Generations,
    /// True if the disk must have objects.
    pub has_objects: bool,
}

/// Objects that a disk must have.
pub(super) struct ObjectLog {
    /// `None` on a read-only file system.
    log: Option<File>,
    content: Content,
}

impl ObjectLog {
    /// Opens the log in the directory of a disk, for changes in this session.
    pub(super) fn open(directory: &OwnedFd, session: u64) -> std::io::Result<Self> {
        let mut log = match open(directory, STORED_LOG, OFlags::CREATE) {
            // A disk that is full or read-only can still be read, and its objects removed.
            Err(Errno::ROFS | Errno::NOSPC | Errno::DQUOT) => {
                return Self::open_as_it_is(directory, session);
            }
            opened => opened?,
        };
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        let whole = bytes.len() / RECORD_BYTES * RECORD_BYTES;
        log.set_len(whole as u64)?;
        let mut opened = Self { log: Some(log), content: Content::of(&bytes) };
        opened.enter(session);
        if whole / RECORD_BYTES > 2 * opened.content.records().count() + SPARE_RECORDS {
            // After an error the old log is still valid.
            let written = opened.rewrite(directory);
            if written.is_err() {
                let _ = rustix::fs::unlinkat(directory, NEW_NAME, AtFlags::empty());
            }
        }
        Ok(opened)
    }

    fn open_as_it_is(directory: &OwnedFd, session: u64) -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut bytes = Vec::new();
        match rustix::fs::openat(directory, STORED_LOG, flags, Mode::empty()) {
            Err(Errno::NOENT) => {}
            opened => _ = File::from(opened?).read_to_end(&mut bytes)?,
        }
        let mut opened = Self { log: None, content: Content::of(&bytes) };
        opened.enter(session);
        Ok(opened)
    }

    fn enter(&mut self, session: u64) {
        // Without a record, objects that are created now have as little protection as before.
        if self.content.session != session && self.note(session, Kind::Session, 0).is_ok() {
            self.content.enter(session);
        }
    }

    /// Returns the record of an object; `None` if it need not exist.
    pub(super) fn known(&self, object: FileId) -> Option<Known> {
        self.content.objects.get(&object.0).copied()
    }

    /// True if an object must exist, with its checksums, also after a crash of the machine.
    pub(super) fn is_durable(&self, object: FileId) -> bool {
        self.known(object).is_some_and(|known| known.is_durable)
    }

    /// Records an object that is on stable storage, with its checksums and directory entries. Its
    /// checksums name the generation `number`.
    pub(super) fn stored(&mut self, object: FileId, number: u32) {
        self.add(object, Known { is_durable: true, number: number.min(NUMBER_MAX) });
    }

    /// Records an object that was changed or created. Its checksums name the generation `number`.
    pub(super) fn changed(&mut self, object: FileId, number: u32) {
        let is_durable = self.is_durable(object);
        self.add(object, Known { is_durable, number: number.min(NUMBER_MAX) });
    }

    fn add(&mut self, object: FileId, known: Known) {
        // Without a record, the object has as little protection as before.
        if object.0 < u64::MAX
            && self.known(object) != Some(known)
            && self.note(object.0, known.kind(), known.number).is_ok()
        {
            self.content.objects.insert(object.0..object.0 + 1, known);
        }
    }

    /// Removes an object whose checksums are about to be removed. Returns when the record is
    /// durable.
    pub(super) fn remove(&mut self, object: FileId) -> std::io::Result<()> {
        if self.known(object).is_some() {
            self.note(object.0, Kind::Removed, 0)?;
            self.log.as_ref().map_or(Ok(()), File::sync_data)?;
            self.take_out(object);
        }
        Ok(())
    }

    /// Removes an object that is about to be removed for good. A crash may undo the record.
    pub(super) fn forget(&mut self, object: FileId) {
        if self.known(object).is_some() {
            // A full disk must not prevent removals; this object number is never used again.
            let _ = self.note(object.0, Kind::Removed, 0);
            self.take_out(object);
        }
    }

    fn take_out(&mut self, object: FileId) {
        self.content.objects.remove(object.0..object.0 + 1);
    }

    fn note(&mut self, first: u64, kind: Kind, number: u32) -> std::io::Result<()> {
        let Some(log) = &mut self.log else { return Err(Errno::ROFS.into()) };
        let before = log.metadata()?.len();
        let noted = log.write_all(&record(first, kind, number));
        if noted.is_err() {
            // Part of a record would make all later ones unreadable.
            let _ = log.set_len(before);
        }
        noted
    }

    fn rewrite(&mut self, directory: &OwnedFd) -> std::io::Result<()> {
        let bytes: Vec<u8> = self.content.records().flatten().collect();
        let mut log = open(directory, NEW_NAME, OFlags::CREATE | OFlags::TRUNC)?;
        log.write_all(&bytes)?;
        log.sync_data()?;
        rustix::fs::renameat(directory, NEW_NAME, directory, STORED_LOG)?;
        self.log = Some(log);
        rustix::fs::fsync(directory)?;
        Ok(())
    }
}

impl Known {
    fn kind(self) -> Kind {
        if self.is_durable { Kind::Durable } else { Kind::Created }
    }
}

impl Content {
    /// Content of the bytes of a log.
    fn of(log: &[u8]) -> Self {
        let mut content = Self::default();
        for (first, kind, number) in log.chunks_exact(RECORD_BYTES).filter_map(parse) {
            let generation = Some(Generation { number, mark: first });
            let object = first..first.saturating_add(1);
            match kind {
                Kind::Durable | Kind::Created => {
                    let is_durable = kind == Kind::Durable;
                    content.objects.insert(object, Known { is_durable, number });
                }
                Kind::Removed => content.objects.remove(object),
                Kind::Begun => content.generations.begun = generation,
                Kind::Complete => content.generations.complete = generation,
                Kind::Session => content.enter(first),
            }
        }
        content
    }

    /// Begins a session. Objects that no sync has covered in an earlier one may be lost.
    fn enter(&mut self, session: u64) {
        if self.session != session {
            let lost = self.objects.iter().filter(|(_, known)| !known.is_durable);
            let lost: Vec<_> = lost.map(|(objects, _)| objects.clone()).collect();
            lost.into_iter().for_each(|objects| self.objects.remove(objects));
            self.session = session;
        }
    }

    /// The fewest records with this content.
    fn records(&self) -> impl Iterator<Item = [u8; RECORD_BYTES]> + '_ {
        let Generations { complete, begun } = self.generations;
        let of = |kind| move |Generation { number, mark }| record(mark, kind, number);
        let complete = complete.map(of(Kind::Complete));
        let begun = begun.map(of(Kind::Begun));
        let objects = self.objects.iter().flat_map(|(objects, known)| {
            objects.clone().map(|object| record(object, known.kind(), known.number))
        });
        let session = record(self.session, Kind::Session, 0);
        complete.into_iter().chain(begun).chain([session]).chain(objects)
    }
}

/// Reads the log at `path`. A log that is missing is empty.
///
/// # Errors
/// Fails when it cannot be read.
pub fn read_log(path: &Path) -> std::io::Result<LogSummary> {
    let content = match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Content::default(),
        read => Content::of(&read?),
    };
    let has_objects = !content.objects.is_empty();
    Ok(LogSummary { generations: content.generations, has_objects })
}

/// Takes the space that the records of a start need in the log at `path`. Returns false if the file
/// system is full or read-only.
///
/// # Errors
/// Fails for any other reason.
pub fn reserve_generation(path: &Path) -> std::io::Result<bool> {
    let reserved = open_log(path).and_then(|log| {
        let end = log.metadata()?.len();
        Ok(rustix::fs::fallocate(&log, FallocateFlags::KEEP_SIZE, end, START_BYTES)?)
    });
    match reserved.map_err(|error| (Errno::from_io_error(&error), error)) {
        // Not every file system reserves space.
        Ok(()) | Err((Some(Errno::OPNOTSUPP | Errno::NOSYS), _)) => Ok(true),
        Err((Some(Errno::ROFS | Errno::NOSPC | Errno::DQUOT), _)) => Ok(false),
        Err((_, error)) => Err(error),
    }
}

/// Records in the log at `path` that a start has begun. Returns when the record is durable.
///
/// # Errors
/// Fails when it cannot be written.
pub fn begin_generation(path: &Path, generation: Generation) -> std::io::Result<()> {
    note_generation(path, generation, Kind::Begun)
}

/// Records in the log at `path` that a start is complete. Returns when the record is durable.
///
/// # Errors
/// Fails when it cannot be written.
pub fn complete_generation(path: &Path, generation: Generation) -> std::io::Result<()> {
    note_generation(path, generation, Kind::Complete)
}

fn note_generation(path: &Path, generation: Generation, kind: Kind) -> std::io::Result<()> {
    let mut log = open_log(path)?;
    let length = log.metadata()?.len();
    let whole = length / RECORD_BYTES as u64 * RECORD_BYTES as u64;
    if whole != length {
        log.set_len(whole)?;
    }
    log.write_all(&record(generation.mark, kind, generation.number))?;
    log.sync_data()?;
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

fn open_log(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?))
}

fn open(directory: &OwnedFd, name: &str, flags: OFlags) -> Result<File, Errno> {
    let flags = flags | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
}

fn record(first: u64, kind: Kind, number: u32) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    let what = kind as u32 | number.min(NUMBER_MAX) << NUMBER_SHIFT;
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..12].copy_from_slice(&what.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..12]);
    bytes[12..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Decodes a record; `None` when it is damaged.
fn parse(bytes: &[u8]) -> Option<(u64, Kind, u32)> {
    let first = u64::from_le_bytes(bytes[..8].try_into().ok()?);
    let what = u32::from_le_bytes(bytes[8..12].try_into().ok()?);
    let number = what >> NUMBER_SHIFT;
    let kind = KINDS.into_iter().find(|kind| record(first, *kind, number) == *bytes)?;
    (first < u64::MAX).then_some((first, kind, number))
}

#[cfg(test)]
mod tests {
    //! Proves: recorded objects and generations are found again, whatever happened to the log,
    //! which stays short; objects without a sync count in their session only.
    use super::*;

    const SESSION: u64 = 77;

    fn directory(path: &Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::DIRECTORY, Mode::empty()).expect("it is there")
    }

    fn opened(directory: &OwnedFd) -> ObjectLog {
        ObjectLog::open(directory, SESSION).expect("it is there, or a new one")
    }

    fn known(log: &ObjectLog) -> Vec<u64> {
        log.content.objects.iter().flat_map(|(objects, _)| objects.clone()).collect()
    }

    #[test]
    fn a_log_is_known_again() {
        let place = tempfile::tempdir().expect("a test can have a directory");
        let (directory, path) = (directory(place.path()), place.path().join(STORED_LOG));
        let mut log = opened(&directory);
        [1, 2, 3, 9].into_iter().for_each(|object| log.stored(FileId(object), 5));
        log.remove(FileId(2)).expect("it is noted");
        assert_eq!(known(&opened(&directory)), [1, 3, 9]);
        let mut bytes = std::fs::read(&path).expect("it is there");
        // One record, behind that of the session, is damaged, and the last one torn.
        bytes[3 * RECORD_BYTES] ^= 1;
        std::fs::write(&path, &bytes[..bytes.len() - 1]).expect("a test may write");
        let mut log = opened(&directory);
        assert_eq!(known(&log), [1, 2, 9]);
        log.stored(FileId(10), 5);
        assert_eq!(known(&opened(&directory)), [1, 2, 9, 10]);
    }

    #[test]
    fn an_object_that_no_sync_has_covered_counts_in_its_session() {
        let place = tempfile::tempdir().expect("a test can have a directory");
        let directory = directory(place.path());
        let mut log = opened(&directory);
        log.changed(FileId(1), 5);
        log.changed(FileId(2), 5);
        log.stored(FileId(2), 5);
        let log = opened(&directory);
        assert_eq!(log.known(FileId(1)), Some(Known { is_durable: false, number: 5 }));
        for number in [5, 8] {
            let mut later = ObjectLog::open(&directory, SESSION + 1).expect("it is there");
            assert_eq!(later.known(FileId(1)), None);
            assert_eq!(later.known(FileId(2)), Some(Known { is_durable: true, number: 5 }));
            if number > 5 {
                later.changed(FileId(2), number);
                assert_eq!(later.known(FileId(2)), Some(Known { is_durable: true, number: 8 }));
            }
        }
        // The records of an earlier session are no longer those of the present one.
        assert_eq!(opened(&directory).known(FileId(1)), None);
        assert_eq!(known(&opened(&directory)), [2]);
    }

    #[test]
    fn the_steps_of_a_start_are_known_again() {
        let place = tempfile::tempdir().expect("a test can have a directory");
        let path = place.path().join(STORED_LOG);
        let [first, second] = [1, 2].map(|number| Generation { number, mark: u64::from(number) });
        let generations = || read_log(&path).expect("it is there").generations;
        assert_eq!(generations(), Generations::default());
        assert!(reserve_generation(&path).expect("there is room"));
        begin_generation(&path, first).expect("there is room");
        assert_eq!(generations(), Generations { complete: None, begun: Some(first) });
        complete_generation(&path, first).expect("there is room");
        let mut log = opened(&directory(place.path()));
        log.stored(FileId(3), 5);
        log.rewrite(&directory(place.path())).expect("there is room");
        begin_generation(&path, second).expect("there is room");
        let expected = Generations { complete: Some(first), begun: Some(second) };
        assert_eq!(generations(), expected);
        assert!(read_log(&path).expect("it is there").has_objects);
    }

    #[test]
    fn an_object_can_go_where_nothing_can_be_noted() {
        let place = tempfile::tempdir().expect("a test can have a directory");
        let mut log = opened(&directory(place.path()));
        log.stored(FileId(1), 5);
        log.log = None;
        log.stored(FileId(2), 5);
        assert_eq!(known(&log), [1]);
        assert!(log.remove(FileId(1)).is_err() && log.known(FileId(1)).is_some());
        log.forget(FileId(1));
        assert_eq!(log.known(FileId(1)), None);
    }

    #[test]
    fn a_log_of_what_is_gone_is_written_anew() {
        let place = tempfile::tempdir().expect("a test can have a directory");
        let directory = directory(place.path());
        let mut log = opened(&directory);
        log.stored(FileId(7), 5);
        for object in 0..SPARE_RECORDS as u64 {
            log.stored(FileId(100 + object), 5);
            log.remove(FileId(100 + object)).expect("it is noted");
        }
        drop(log);
        let mut log = opened(&directory);
        assert_eq!(known(&log), [7]);
        log.stored(FileId(8), 5);
        let length = place.path().join(STORED_LOG).metadata().expect("it is there").len();
        // With that of the session.
        assert_eq!(length, 3 * RECORD_BYTES as u64);
    }
}
