//! Times of the last change of objects, where the file of an object has another.
//!
//! The system sets the time of a file at each write, and a server writes back later than a client
//! has written. So the disk keeps the time that an object had before a write, or that it was told,
//! and gives it to the file later: one system call for many writes. A killed process leaves the
//! system's time.
//!
//! Invariant: at most [`TIMES_MAX`] times are kept. Of more objects, some have the system's time.

use rustix::fs::{AtFlags, Stat, Timespec, Timestamps, UTIME_OMIT};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::{FileId, Timestamp};

/// Maximum number of objects whose time is kept in memory.
const TIMES_MAX: usize = 1 << 16;

/// Times of the objects of one disk, shared by its threads.
#[derive(Default)]
pub(super) struct Times(Mutex<BTreeMap<FileId, Kept>>);

/// Time of one object.
struct Kept {
    time: Timestamp,
    /// Number of writes since the time is kept.
    writes: u64,
    /// Value of `writes` when the file got this time.
    stored_at: Option<u64>,
}

impl Times {
    /// Returns the time of an object, if it is not that of its file.
    pub(super) fn get(&self, object: FileId) -> Option<Timestamp> {
        self.lock().get(&object).map(|kept| kept.time)
    }

    /// Sets the time of an object.
    pub(super) fn set(&self, object: FileId, time: Timestamp) {
        let mut times = self.lock();
        let kept = times.entry(object).or_insert(Kept { time, writes: 0, stored_at: None });
        (kept.time, kept.stored_at) = (time, None);
        if times.len() > TIMES_MAX {
            times.pop_first();
        }
    }

    /// Keeps the time of a file that is about to be written, unless one is kept already.
    pub(super) fn keep<E>(
        &self,
        object: FileId,
        stat: impl FnOnce() -> Result<Stat, E>,
    ) -> Result<(), E> {
        if self.get(object).is_none() {
            let time = modified(&stat()?);
            self.lock().entry(object).or_insert(Kept { time, writes: 0, stored_at: Some(0) });
        }
        Ok(())
    }

    /// Notes that the system has changed the time of a file.
    pub(super) fn wrote(&self, object: FileId) {
        if let Some(kept) = self.lock().get_mut(&object) {
            kept.writes += 1;
        }
    }

    /// Forgets a removed object.
    pub(super) fn forget(&self, object: FileId) {
        self.lock().remove(&object);
    }

    /// Gives the file of an object its time. A file that does not exist yet gets it later; another
    /// failure leaves the system's time.
    pub(super) fn store(&self, directory: impl AsFd, object: FileId, file: &str) {
        let (time, writes) = match self.lock().get(&object) {
            Some(kept) if kept.stored_at != Some(kept.writes) => (kept.time, kept.writes),
            _ => return,
        };
        let seconds = time.as_seconds();
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec {
                tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX),
                tv_nsec: (time.as_ns() - Timestamp::from_seconds(seconds).as_ns()) as _,
            },
        };
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let stored = rustix::fs::utimensat(directory, file, &times, flags);
        if stored == Err(rustix::io::Errno::NOENT) {
            return;
        }
        // A write or a new time may have come meanwhile.
        if let Some(kept) = self.lock().get_mut(&object).filter(|kept| kept.time == time) {
            kept.stored_at = Some(writes);
        }
    }

    /// Stores the times of all objects, and forgets those that are stored. No object is written
    /// meanwhile.
    pub(super) fn store_all(&self, directory: impl AsFd, file_of: fn(FileId) -> String) {
        let objects: Vec<FileId> = self.lock().keys().copied().collect();
        for object in objects {
            self.store(&directory, object, &file_of(object));
        }
        self.lock().retain(|_, kept| kept.stored_at != Some(kept.writes));
    }

    /// Locks the map, which is held for a step that does not panic.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<FileId, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the time of the last change of a file, as the system knows it.
pub(super) fn modified(stat: &Stat) -> Timestamp {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    Timestamp::from_ns(Timestamp::from_seconds(seconds).as_ns().saturating_add(stat.st_mtime_nsec))
}
