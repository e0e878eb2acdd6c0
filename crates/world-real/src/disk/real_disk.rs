//! A disk of a node: open, lost, or in memory.

use super::failure::Failure;
use super::handle::OpenDisk;
use crate::config::{DiskConfig, OpenError};
use crate::memory::{RealMemory, RealPayload};
use crate::memory_disk::MemoryDisk;
use crate::network::TURN_BYTES;
use futures_util::future::Either;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use units::{FileId, Timestamp};
use world::{Damage, Disk, DiskError, Memory, ObjectMetadata, OrdinaryFile, Payload, Space};

/// Handle of one disk, held by its node.
#[derive(Clone)]
pub struct RealDisk(State);

#[derive(Clone)]
enum State {
    Open(OpenDisk),
    Lost(Rc<LostDisk>),
    Memory(Rc<InMemory>),
}

/// Disk in the memory of this process. Its requests end at once.
struct InMemory {
    name: String,
    disk: RefCell<MemoryDisk>,
}

/// Disk that is lost. It has no objects.
struct LostDisk {
    name: String,
    cause: String,
}

impl RealDisk {
    /// Opens an existing directory as a disk, unless the disk is lost.
    /// With a limit for hangs, its requests fail when none has ended for that time.
    pub(crate) fn open(
        config: &DiskConfig,
        objects_open_max: usize,
        hang_limit: Option<Duration>,
    ) -> Result<Self, OpenError> {
        let name = || config.directory.display().to_string();
        Ok(Self(match (&config.lost, config.in_memory) {
            (None, None) => State::Open(OpenDisk::open(config, objects_open_max, hang_limit)?),
            (None, Some(number)) => {
                let disk = MemoryDisk::open(number).ok_or_else(|| OpenError::Directory {
                    directory: config.directory.clone(),
                    purpose: "objects in memory",
                    cause: "the process has no memory for disks".into(),
                })?;
                let name = format!("the memory of {}", name());
                State::Memory(Rc::new(InMemory { name, disk: RefCell::new(disk) }))
            }
            (Some(cause), _) => {
                State::Lost(Rc::new(LostDisk { name: name(), cause: cause.clone() }))
            }
        }))
    }
}

impl LostDisk {
    fn read(&self, object: FileId, offset: u64, length: u64) -> Result<RealPayload, DiskError> {
        if length == 0 {
            return Ok(RealMemory::new(0).freeze());
        }
        let (disk, damage) = (self.name.clone(), Damage::Lost { cause: self.cause.clone() });
        Err(DiskError::Corrupt { disk, object, offset, length, damage })
    }

    fn refuse(&self, operation: String) -> Result<(), DiskError> {
        Err(DiskError::Failed { disk: self.name.clone(), operation, cause: self.cause.clone() })
    }
}

impl InMemory {
    /// Executes a request that moves `bytes` bytes. Then other tasks run, if it was a long one.
    async fn call<R>(
        &self,
        operation: impl FnOnce() -> String,
        bytes: u64,
        work: impl FnOnce(&mut MemoryDisk) -> Result<R, Failure>,
    ) -> Result<R, DiskError> {
        let done = work(&mut self.disk.borrow_mut());
        let done = done.map_err(|failure| failure.of(self.name.clone(), operation()));
        if bytes >= TURN_BYTES {
            tokio::task::yield_now().await;
        }
        done
    }
}

impl Disk for RealDisk {
    type Payload = RealPayload;

    fn address(&self, object: FileId, offset: u64) -> u64 {
        match &self.0 {
            State::Open(disk) => disk.address(object, offset),
            State::Lost(_) => 0,
            State::Memory(_) => offset,
        }
    }

    async fn locate(&self, object: FileId) {
        match &self.0 {
            State::Open(disk) => disk.locate(object).await,
            State::Lost(_) | State::Memory(_) => {}
        }
    }

    async fn metadata(&self, object: FileId) -> Result<Option<ObjectMetadata>, DiskError> {
        match &self.0 {
            State::Open(disk) => disk.metadata(object).await,
            State::Lost(_) => Ok(None),
            State::Memory(memory) => Ok(memory.disk.borrow().metadata(object)),
        }
    }

    fn set_modified(
        &self,
        object: FileId,
        modified: Timestamp,
    ) -> impl Future<Output = ()> + 'static {
        match &self.0 {
            State::Open(disk) => Either::Left(disk.set_modified(object, modified)),
            State::Lost(_) => Either::Right(std::future::ready(())),
            State::Memory(memory) => {
                memory.disk.borrow_mut().set_modified(object, modified);
                Either::Right(std::future::ready(()))
            }
        }
    }

    async fn read(
        &self,
        object: FileId,
        offset: u64,
        length: u64,
    ) -> Result<RealPayload, DiskError> {
        match &self.0 {
            State::Open(disk) => disk.read(object, offset, length).await,
            State::Lost(disk) => disk.read(object, offset, length),
            State::Memory(memory) => {
                let operation = || format!("read {length} bytes at {offset} of {object}");
                memory.call(operation, length, |disk| disk.read(object, offset, length)).await
            }
        }
    }

    async fn write(
        &self,
        object: FileId,
        offset: u64,
        payload: RealPayload,
    ) -> Result<(), DiskError> {
        match &self.0 {
            State::Open(disk) => disk.write(object, offset, payload).await,
            State::Lost(disk) => {
                disk.refuse(format!("write {} bytes at {offset} of {object}", payload.length()))
            }
            State::Memory(memory) => {
                let length = payload.length();
                let operation = || format!("write {length} bytes at {offset} of {object}");
                let write = |disk: &mut MemoryDisk| disk.write(object, offset, &payload);
                memory.call(operation, length, write).await
            }
        }
    }

    async fn sync(&self, object: FileId) -> Result<(), DiskError> {
        match &self.0 {
            State::Open(disk) => disk.sync(object).await,
            // Nothing was written.
            State::Lost(_) => Ok(()),
            State::Memory(memory) => {
                memory.call(|| format!("sync {object}"), 0, |disk| disk.sync(object)).await
            }
        }
    }

    async fn truncate(&self, object: FileId, length: u64) -> Result<(), DiskError> {
        match &self.0 {
            State::Open(disk) => disk.truncate(object, length).await,
            State::Lost(disk) => disk.refuse(format!("truncate {object} to {length} bytes")),
            State::Memory(memory) => {
                let operation = || format!("truncate {object} to {length} bytes");
                memory.call(operation, 0, |disk| disk.truncate(object, length)).await
            }
        }
    }

    async fn remove(&self, object: FileId) -> Result<(), DiskError> {
        match &self.0 {
            State::Open(disk) => disk.remove(object).await,
            State::Lost(disk) => disk.refuse(format!("remove {object}")),
            State::Memory(memory) => {
                memory.disk.borrow_mut().remove(object);
                Ok(())
            }
        }
    }

    async fn extend(&self, object: FileId, length: u64) -> Result<(), DiskError> {
        match &self.0 {
            State::Open(disk) => disk.extend(object, length).await,
            State::Lost(_) | State::Memory(_) => Ok(()),
        }
    }

    async fn release(&self, object: FileId, length: u64) -> Result<(), DiskError> {
        match &self.0 {
            State::Open(disk) => disk.release(object, length).await,
            State::Lost(_) | State::Memory(_) => Ok(()),
        }
    }

    async fn adopt(
        &self,
        object: FileId,
        path: &str,
        lock: bool,
    ) -> Result<OrdinaryFile, DiskError> {
        let refused = |disk: &str, cause: String| {
            let (disk, operation) = (disk.to_owned(), format!("adopt {path:?} as {object}"));
            Err(DiskError::Failed { disk, operation, cause })
        };
        match &self.0 {
            State::Open(disk) => disk.adopt(object, path, lock).await,
            State::Lost(disk) => refused(&disk.name, disk.cause.clone()),
            State::Memory(memory) => {
                refused(&memory.name, "a disk in memory has no ordinary files".to_owned())
            }
        }
    }

    async fn space(&self) -> Result<Space, DiskError> {
        match &self.0 {
            State::Open(disk) => disk.space().await,
            State::Lost(_) => Ok(Space { capacity_bytes: 0, free_bytes: 0 }),
            State::Memory(memory) => Ok(memory.disk.borrow().space()),
        }
    }
}
