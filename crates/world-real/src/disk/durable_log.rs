//! Durable object log: the objects of a disk that are on stable storage with their checksums.
//!
//! Without the log, an object that is lost with its checksums would be read as a hole, and one that
//! has lost only its checksums would be read unverified. The log is a file beside the directory of
//! objects:
//!
//! ```text
//! byte 0        8      12    16
//!      | object | what | crc | the next one | ...     all little-endian
//! ```
//!
//! Invariants:
//!
//! - An object is added only after all of it is on stable storage.
//! - An unreadable record, such as the last one after a crash, counts as never written: its object
//!   has as little protection as before its first sync.

use rangemap::RangeSet;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use units::FileId;

/// Name of the log in the directory of a disk.
pub const STORED_LOG: &str = "stored";
const NEW_NAME: &str = "stored.new";

const RECORD_BYTES: usize = 16;
const ADDED: u32 = 1;
const REMOVED: u32 = 2;

/// Number of superfluous records, beyond twice the needed ones, at which the log is rewritten.
const SPARE_RECORDS: usize = 4096;

/// Durable objects of a disk.
pub(super) struct DurableLog {
    /// `None` on a read-only file system.
    log: Option<File>,
    /// Object numbers: consecutively created objects share few ranges.
    objects: RangeSet<u64>,
}

impl DurableLog {
    /// Opens the log in the directory of a disk.
    pub(super) fn open(directory: &OwnedFd) -> std::io::Result<Self> {
        let mut log = match open(directory, STORED_LOG, OFlags::CREATE) {
            // A disk that is full or read-only can still be read, and its objects removed.
            Err(Errno::ROFS | Errno::NOSPC | Errno::DQUOT) => {
                return Self::open_as_it_is(directory);
            }
            opened => opened?,
        };
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        let whole = bytes.len() / RECORD_BYTES * RECORD_BYTES;
        log.set_len(whole as u64)?;
        let mut stored = Self { log: Some(log), objects: objects_of(&bytes) };
        let needed = stored.numbers().count();
        if whole / RECORD_BYTES > 2 * needed + SPARE_RECORDS {
            // After an error the old log is still valid.
            let written = stored.rewrite(directory);
            if written.is_err() {
                let _ = rustix::fs::unlinkat(directory, NEW_NAME, AtFlags::empty());
            }
        }
        Ok(stored)
    }

    fn open_as_it_is(directory: &OwnedFd) -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut bytes = Vec::new();
        match rustix::fs::openat(directory, STORED_LOG, flags, Mode::empty()) {
            Err(Errno::NOENT) => {}
            opened => _ = File::from(opened?).read_to_end(&mut bytes)?,
        }
        Ok(Self { log: None, objects: objects_of(&bytes) })
    }

    /// True if an object must exist, with its checksums.
    pub(super) fn has(&self, object: FileId) -> bool {
        self.objects.contains(&object.0)
    }

    /// Adds an object that is on stable storage, with its checksums and directory entries.
    pub(super) fn add(&mut self, object: FileId) {
        // Without a record, the object has as little protection as before.
        if object.0 < u64::MAX && !self.has(object) && self.note(object, ADDED).is_ok() {
            self.objects.insert(object.0..object.0 + 1);
        }
    }

    /// Removes an object whose checksums are about to be removed. Returns when the record is
    /// durable.
    pub(super) fn remove(&mut self, object: FileId) -> std::io::Result<()> {
        if self.has(object) {
            self.note(object, REMOVED)?;
            self.log.as_ref().map_or(Ok(()), File::sync_data)?;
            self.take_out(object);
        }
        Ok(())
    }

    /// Removes an object that is about to be removed for good. A crash may undo the record.
    pub(super) fn forget(&mut self, object: FileId) {
        if self.has(object) {
            // A full disk must not prevent removals; this object number is never used again.
            let _ = self.note(object, REMOVED);
            self.take_out(object);
        }
    }

    fn take_out(&mut self, object: FileId) {
        self.objects.remove(object.0..object.0 + 1);
    }

    fn note(&mut self, object: FileId, what: u32) -> std::io::Result<()> {
        let Some(log) = &mut self.log else { return Err(Errno::ROFS.into()) };
        let before = log.metadata()?.len();
        let noted = log.write_all(&record(object.0, what));
        if noted.is_err() {
            // Part of a record would make all later ones unreadable.
            let _ = log.set_len(before);
        }
        noted
    }

    fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.objects.iter().flat_map(Clone::clone)
    }

    fn rewrite(&mut self, directory: &OwnedFd) -> std::io::Result<()> {
        let bytes: Vec<u8> = self.numbers().flat_map(|object| record(object, ADDED)).collect();
        let mut log = open(directory, NEW_NAME, OFlags::CREATE | OFlags::TRUNC)?;
        log.write_all(&bytes)?;
        log.sync_data()?;
        rustix::fs::renameat(directory, NEW_NAME, directory, STORED_LOG)?;
        self.log = Some(log);
        rustix::fs::fsync(directory)?;
        Ok(())
    }
}

fn open(directory: &OwnedFd, name: &str, flags: OFlags) -> Result<File, Errno> {
    let flags = flags | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
}

fn objects_of(log: &[u8]) -> RangeSet<u64> {
    let mut objects = RangeSet::new();
    for (object, what) in log.chunks_exact(RECORD_BYTES).filter_map(parse) {
        match what {
            ADDED => objects.insert(object..object + 1),
            _ => objects.remove(object..object + 1),
        }
    }
    objects
}

fn record(object: u64, what: u32) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..8].copy_from_slice(&object.to_le_bytes());
    bytes[8..12].copy_from_slice(&what.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..12]);
    bytes[12..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Decodes a record; `None` when it is damaged.
fn parse(bytes: &[u8]) -> Option<(u64, u32)> {
    let object = u64::from_le_bytes(bytes[..8].try_into().ok()?);
    let what = [ADDED, REMOVED].into_iter().find(|what| record(object, *what) == *bytes)?;
    (object < u64::MAX).then_some((object, what))
}

#[cfg(test)]
mod tests {
    //! Proves: recorded objects are found again, whatever happened to the log, which stays short.
    use super::*;

    fn directory(path: &std::path::Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::DIRECTORY, Mode::empty()).expect("it is there")
    }

    #[test]
    fn a_log_is_known_again() {
        let place = tempfile::tempdir().expect("a test can have a directory");
        let (directory, path) = (directory(place.path()), place.path().join(STORED_LOG));
        let mut stored = DurableLog::open(&directory).expect("a new one");
        [1, 2, 3, 9].into_iter().for_each(|object| stored.add(FileId(object)));
        stored.remove(FileId(2)).expect("it is noted");
        let known = |stored: &DurableLog| stored.numbers().collect::<Vec<_>>();
        assert_eq!(known(&DurableLog::open(&directory).expect("it is there")), [1, 3, 9]);
        let mut bytes = std::fs::read(&path).expect("it is there");
        // One record is damaged, and the last one torn.
        bytes[2 * RECORD_BYTES] ^= 1;
        std::fs::write(&path, &bytes[..bytes.len() - 1]).expect("a test may write");
        let mut stored = DurableLog::open(&directory).expect("it is there");
        assert_eq!(known(&stored), [1, 2, 9]);
        stored.add(FileId(10));
        assert_eq!(known(&DurableLog::open(&directory).expect("it is there")), [1, 2, 9, 10]);
    }

    #[test]
    fn an_object_can_go_where_nothing_can_be_noted() {
        let place = tempfile::tempdir().expect("a test can have a directory");
        let mut stored = DurableLog::open(&directory(place.path())).expect("a new one");
        stored.add(FileId(1));
        stored.log = None;
        stored.add(FileId(2));
        assert_eq!((stored.has(FileId(1)), stored.has(FileId(2))), (true, false));
        assert!(stored.remove(FileId(1)).is_err() && stored.has(FileId(1)));
        stored.forget(FileId(1));
        assert!(!stored.has(FileId(1)));
    }

    #[test]
    fn a_log_of_what_is_gone_is_written_anew() {
        let place = tempfile::tempdir().expect("a test can have a directory");
        let directory = directory(place.path());
        let mut stored = DurableLog::open(&directory).expect("a new one");
        stored.add(FileId(7));
        for object in 0..SPARE_RECORDS as u64 {
            stored.add(FileId(100 + object));
            stored.remove(FileId(100 + object)).expect("it is noted");
        }
        drop(stored);
        let mut stored = DurableLog::open(&directory).expect("it is there");
        assert_eq!(stored.numbers().collect::<Vec<_>>(), [7]);
        stored.add(FileId(8));
        let length = place.path().join(STORED_LOG).metadata().expect("it is there").len();
        assert_eq!(length, 2 * RECORD_BYTES as u64);
    }
}
