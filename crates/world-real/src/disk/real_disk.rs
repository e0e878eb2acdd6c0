//! A disk of a node: open, or lost.

use super::handle::OpenDisk;
use crate::config::{DiskConfig, OpenError};
use crate::memory::{RealMemory, RealPayload};
use futures_util::future::Either;
use std::rc::Rc;
use std::time::Duration;
use units::{FileId, Timestamp};
use world::{Damage, Disk, DiskError, Memory, ObjectMetadata, Payload, Space};

/// Handle of one disk, held by its node.
#[derive(Clone)]
pub struct RealDisk(State);

#[derive(Clone)]
enum State {
    Open(OpenDisk),
    Lost(Rc<LostDisk>),
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
        Ok(Self(match &config.lost {
            None => State::Open(OpenDisk::open(config, objects_open_max, hang_limit)?),
            Some(cause) => State::Lost(Rc::new(LostDisk {
                name: config.directory.display().to_string(),
                cause: cause.clone(),
            })),
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

impl Disk for RealDisk {
    type Payload = RealPayload;

    fn address(&self, object: FileId, offset: u64) -> u64 {
        match &self.0 {
            State::Open(disk) => disk.address(object, offset),
            State::Lost(_) => 0,
        }
    }

    async fn locate(&self, object: FileId) {
        match &self.0 {
            State::Open(disk) => disk.locate(object).await,
            State::Lost(_) => {}
        }
    }

    async fn metadata(&self, object: FileId) -> Result<Option<ObjectMetadata>, DiskError> {
        match &self.0 {
            State::Open(disk) => disk.metadata(object).await,
            State::Lost(_) => Ok(None),
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
        }
    }

    async fn sync(&self, object: FileId) -> Result<(), DiskError> {
        match &self.0 {
            State::Open(disk) => disk.sync(object).await,
            // Nothing was written.
            State::Lost(_) => Ok(()),
        }
    }

    async fn truncate(&self, object: FileId, length: u64) -> Result<(), DiskError> {
        match &self.0 {
            State::Open(disk) => disk.truncate(object, length).await,
            State::Lost(disk) => disk.refuse(format!("truncate {object} to {length} bytes")),
        }
    }

    async fn remove(&self, object: FileId) -> Result<(), DiskError> {
        match &self.0 {
            State::Open(disk) => disk.remove(object).await,
            State::Lost(disk) => disk.refuse(format!("remove {object}")),
        }
    }

    async fn space(&self) -> Result<Space, DiskError> {
        match &self.0 {
            State::Open(disk) => disk.space().await,
            State::Lost(_) => Ok(Space { capacity_bytes: 0, free_bytes: 0 }),
        }
    }
}
