//! A directory that stands for a disk: one sparse file for each object, one thread for the work.
//!
//! Invariants: requests are served in the order of their calls; at most [`DESCRIPTORS_MAX`] files
//! are open; one process at a time owns a directory (by a lock on it); a request is served only
//! while the directory that was opened is still the one at its path.

use crate::config::OpenError;
use crate::memory::{RealMemory, RealPayload};
use crate::worker::Worker;
use rustix::fs::{FlockOperation, Mode, OFlags, StatVfs};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use units::FileId;
use world::{Disk, DiskError, Memory, Payload, Space};

/// The most object files that one disk keeps open.
const DESCRIPTORS_MAX: usize = 256;

/// The most bytes that one request reads; more is refused as invalid.
const READ_BYTES_MAX: usize = 1 << 30;

/// Bits of an address that hold the offset; objects up to 16 TiB sort without overlap.
const ADDRESS_OFFSET_BITS: u32 = 44;

/// A handle to one disk.
#[derive(Clone)]
pub struct RealDisk {
    shared: Rc<Shared>,
}

struct Shared {
    name: String,
    worker: Worker<Directory>,
}

impl RealDisk {
    /// Takes `path`, a directory that exists, as a disk.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |cause: String| OpenError::Directory {
            directory: path.to_owned(),
            purpose: "objects",
            cause,
        };
        let name = path.display().to_string();
        let directory = Directory::open(path).map_err(failed)?;
        let worker = Worker::start("disk".into(), directory);
        let worker = worker.map_err(|error| failed(error.to_string()))?;
        Ok(Self { shared: Rc::new(Shared { name, worker }) })
    }

    async fn call<R: Send + 'static>(
        &self,
        operation: String,
        work: impl FnOnce(&mut Directory) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, DiskError> {
        let disk = self.shared.name.clone();
        let checked = move |directory: &mut Directory| {
            directory.check_present()?;
            work(directory)
        };
        match self.shared.worker.call(checked).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(Failure::Vanished)) => Err(DiskError::Vanished { disk }),
            // A file may also be larger than the system permits this process, or any.
            Ok(Err(Failure::System(Errno::NOSPC | Errno::DQUOT | Errno::FBIG))) => {
                Err(DiskError::NoSpace { disk })
            }
            Ok(Err(Failure::System(error))) => {
                Err(DiskError::Failed { disk, operation, cause: error.to_string() })
            }
            Err(_) => {
                let cause = "the thread of the disk has stopped".into();
                Err(DiskError::Failed { disk, operation, cause })
            }
        }
    }
}

impl Disk for RealDisk {
    type Payload = RealPayload;

    fn address(&self, object: FileId, offset: u64) -> u64 {
        let within = offset & ((1 << ADDRESS_OFFSET_BITS) - 1);
        (object.0 << ADDRESS_OFFSET_BITS) | within
    }

    async fn read(
        &self,
        object: FileId,
        offset: u64,
        length: u64,
    ) -> Result<RealPayload, DiskError> {
        let operation = format!("read {length} bytes at {offset} of {object}");
        let work = move |directory: &mut Directory| directory.read(object, offset, length as usize);
        self.call(operation, work).await
    }

    async fn write(
        &self,
        object: FileId,
        offset: u64,
        payload: RealPayload,
    ) -> Result<(), DiskError> {
        let operation = format!("write {} bytes at {offset} of {object}", payload.length());
        self.call(operation, move |directory| directory.write(object, offset, &payload)).await
    }

    async fn sync(&self, object: FileId) -> Result<(), DiskError> {
        self.call(format!("sync {object}"), move |directory| directory.sync(object)).await
    }

    async fn remove(&self, object: FileId) -> Result<(), DiskError> {
        self.call(format!("remove {object}"), move |directory| directory.remove(object)).await
    }

    async fn space(&self) -> Result<Space, DiskError> {
        self.call("tell its space".into(), |directory| directory.space()).await
    }
}

/// Why a request failed, before the disk's name is put to it.
enum Failure {
    Vanished,
    System(Errno),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::System(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

/// What the thread of a disk owns.
struct Directory {
    /// The directory of the objects.
    path: PathBuf,
    handle: OwnedFd,
    /// Device and inode of `handle`.
    identity: (u64, u64),
    open: BTreeMap<FileId, Open>,
    /// Counts uses, to find the file that was used longest ago.
    uses: u64,
    /// A file was created or removed since the directory was last synced.
    entries_changed: bool,
}

struct Open {
    file: File,
    last_use: u64,
}

impl Directory {
    fn open(path: &Path) -> Result<Self, String> {
        let objects = path.join("objects");
        match rustix::fs::mkdir(&objects, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.to_string()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |path: &Path| rustix::fs::open(path, flags, Mode::empty());
        let parent = open(path).map_err(|error| error.to_string())?;
        rustix::fs::fsync(parent).map_err(|error| error.to_string())?;
        let handle = open(&objects).map_err(|error| error.to_string())?;
        rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            if error == Errno::WOULDBLOCK {
                "another server uses it".to_owned()
            } else {
                error.to_string()
            }
        })?;
        let stat = rustix::fs::fstat(&handle).map_err(|error| error.to_string())?;
        let identity = (stat.st_dev, stat.st_ino);
        let open = BTreeMap::new();
        Ok(Self { path: objects, handle, identity, open, uses: 0, entries_changed: false })
    }

    /// Fails when the directory at the path is not the one that was opened. Without this, writes
    /// to files of a deleted directory would succeed and be lost.
    fn check_present(&self) -> Result<(), Failure> {
        match rustix::fs::stat(&self.path) {
            Ok(stat) if (stat.st_dev, stat.st_ino) == self.identity => Ok(()),
            Ok(_) | Err(Errno::NOENT | Errno::STALE | Errno::NOTDIR | Errno::NODEV) => {
                Err(Failure::Vanished)
            }
            Err(error) => Err(Failure::System(error)),
        }
    }

    fn read(&mut self, object: FileId, offset: u64, length: usize) -> Result<RealPayload, Failure> {
        if length > READ_BYTES_MAX {
            return Err(Failure::System(Errno::INVAL));
        }
        let memory = RealMemory::new(length);
        let mut filled = 0;
        if let Some(file) = self.existing(object)? {
            let mut bytes = memory.bytes_mut();
            while filled < length {
                match file.read_at(&mut bytes[filled..], offset.saturating_add(filled as u64)) {
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        memory.bytes_mut()[filled..].fill(0);
        Ok(memory.freeze())
    }

    fn write(&mut self, object: FileId, offset: u64, payload: &RealPayload) -> Result<(), Failure> {
        let file = match self.existing(object)? {
            Some(file) => file,
            None => self.create(object)?,
        };
        Ok(file.write_all_at(payload.bytes(), offset)?)
    }

    fn sync(&mut self, object: FileId) -> Result<(), Failure> {
        if let Some(file) = self.existing(object)? {
            rustix::fs::fdatasync(file)?;
        }
        if self.entries_changed {
            rustix::fs::fsync(&self.handle)?;
            self.entries_changed = false;
        }
        Ok(())
    }

    fn remove(&mut self, object: FileId) -> Result<(), Failure> {
        self.open.remove(&object);
        match rustix::fs::unlinkat(&self.handle, name(object), rustix::fs::AtFlags::empty()) {
            Ok(()) => self.entries_changed = true,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn space(&self) -> Result<Space, Failure> {
        let StatVfs { f_blocks, f_bavail, f_frsize, .. } = rustix::fs::fstatvfs(&self.handle)?;
        Ok(Space { capacity_bytes: f_blocks * f_frsize, free_bytes: f_bavail * f_frsize })
    }

    /// The file of `object`, or `None` when nothing was ever written to it.
    fn existing(&mut self, object: FileId) -> Result<Option<&File>, Failure> {
        self.file(object, OFlags::empty()).map(Some).or_else(|error| match error {
            Errno::NOENT => Ok(None),
            other => Err(Failure::System(other)),
        })
    }

    fn create(&mut self, object: FileId) -> Result<&File, Failure> {
        self.entries_changed = true;
        Ok(self.file(object, OFlags::CREATE)?)
    }

    fn file(&mut self, object: FileId, flags: OFlags) -> Result<&File, Errno> {
        self.uses += 1;
        if !self.open.contains_key(&object) {
            let flags = flags | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let mode = Mode::RUSR | Mode::WUSR;
            let file = rustix::fs::openat(&self.handle, name(object), flags, mode)?;
            self.close_one_if_full();
            self.open.insert(object, Open { file: file.into(), last_use: 0 });
        }
        let open = self.open.get_mut(&object).expect("the file was found or opened above");
        open.last_use = self.uses;
        Ok(&open.file)
    }

    /// Makes room for one more open file by closing the one used longest ago.
    fn close_one_if_full(&mut self) {
        if self.open.len() >= DESCRIPTORS_MAX {
            let oldest = self.open.iter().min_by_key(|(_, open)| open.last_use);
            if let Some(object) = oldest.map(|(object, _)| *object) {
                self.open.remove(&object);
            }
        }
    }
}

fn name(object: FileId) -> String {
    format!("{:016x}", object.0)
}
