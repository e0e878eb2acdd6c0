//! Directory of the object files of a disk, shared by the threads of the disk.

use super::checksums;
use super::failure::Failure;
use super::times::{Times, modified};
use crate::worker::WorkerState;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, StatVfs};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::FileId;
use world::{ObjectMetadata, Space};

/// Locked directory, unlocked when the last thread drops it.
pub(super) struct Root {
    path: PathBuf,
    pub(super) handle: OwnedFd,
    /// Device and inode of `handle`.
    identity: (u64, u64),
    pub(super) times: Arc<Times>,
    /// Ordinary files that are objects.
    adopted: Mutex<BTreeMap<FileId, OwnedFd>>,
}

impl WorkerState for Arc<Root> {}

impl Root {
    /// Opens and locks the directory at `path`, which must not be a link.
    pub(super) fn open(path: PathBuf) -> Result<Self, String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let handle = rustix::fs::open(&path, flags, Mode::empty()).map_err(|e| e.to_string())?;
        rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            if error == Errno::WOULDBLOCK {
                "another server uses it".to_owned()
            } else {
                error.to_string()
            }
        })?;
        let stat = rustix::fs::fstat(&handle).map_err(|error| error.to_string())?;
        let identity = (stat.st_dev, stat.st_ino);
        Ok(Self { path, handle, identity, times: Arc::default(), adopted: Mutex::default() })
    }

    /// Fails if the directory at the path is not the one that was opened. Without this check,
    /// writes to files of a deleted directory would succeed and be lost.
    pub(super) fn check_present(&self) -> Result<(), Failure> {
        match rustix::fs::stat(&self.path) {
            Ok(stat) if (stat.st_dev, stat.st_ino) == self.identity => Ok(()),
            Ok(_) | Err(Errno::NOENT | Errno::STALE | Errno::NOTDIR | Errno::NODEV) => {
                Err(Failure::Vanished)
            }
            Err(error) => Err(Failure::System(error)),
        }
    }

    /// Notes that an ordinary file is an object.
    pub(super) fn adopt(&self, object: FileId, file: OwnedFd) {
        self.adopted().insert(object, file);
    }

    /// Notes that an ordinary file is an object no longer.
    pub(super) fn release(&self, object: FileId) {
        self.adopted().remove(&object);
        self.times.forget(object);
    }

    /// Locks the map, which is held for a step that does not panic.
    fn adopted(&self) -> MutexGuard<'_, BTreeMap<FileId, OwnedFd>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the metadata of an object without queued changes.
    pub(super) fn metadata(&self, object: FileId) -> Result<Option<ObjectMetadata>, Failure> {
        if let Some(file) = self.adopted().get(&object) {
            let stat = rustix::fs::fstat(file)?;
            let modified = modified(&stat);
            return Ok(Some(ObjectMetadata { length: stat.st_size as u64, modified }));
        }
        match rustix::fs::statat(&self.handle, name(object), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                let modified = self.times.get(object).unwrap_or_else(|| modified(&stat));
                Ok(Some(ObjectMetadata { length: stat.st_size as u64, modified }))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the file of an object its time.
    pub(super) fn store_time(&self, object: FileId) {
        self.times.store(&self.handle, object, &name(object));
    }

    /// Gives the files of all objects their times, while none of them is written.
    pub(super) fn store_times(&self) {
        self.times.store_all(&self.handle, name);
    }

    /// True if an object without queued changes exists, or its checksums do.
    pub(super) fn has(&self, object: FileId) -> Result<bool, Failure> {
        if self.adopted().contains_key(&object) {
            return Ok(true);
        }
        for file in [name(object), checksums::name(object)] {
            match rustix::fs::statat(&self.handle, file, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => return Ok(true),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    /// Returns the size of the file system, without the space that is reserved for root.
    pub(super) fn space(&self) -> Result<Space, Failure> {
        let StatVfs { f_blocks, f_bfree, f_bavail, f_frsize, .. } =
            rustix::fs::fstatvfs(&self.handle)?;
        let kept = f_bfree.saturating_sub(f_bavail);
        let capacity = f_blocks.saturating_sub(kept);
        Ok(Space { capacity_bytes: capacity * f_frsize, free_bytes: f_bavail * f_frsize })
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // Closing alone is not enough: a child that another thread has just forked shares the lock
        // until it calls exec.
        let _ = rustix::fs::flock(&self.handle, FlockOperation::Unlock);
    }
}

/// Returns the file name of an object's bytes.
pub(super) fn name(object: FileId) -> String {
    format!("{:016x}", object.0)
}
