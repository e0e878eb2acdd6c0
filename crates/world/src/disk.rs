//! Disks that hold objects: sparse sequences of bytes, each named by a number.

use crate::{Payload, Payloads};
use std::future::Future;
use thiserror::Error;
use units::{FileId, Timestamp};

/// One storage device, or one directory that stands for one.
///
/// A disk holds one object for each file that has blocks on it. An object is sparse: unwritten
/// bytes read as zeros. Requests to one disk take effect in the order of their calls.
pub trait Disk: Clone + 'static {
    /// Data that is read and written.
    type Payload: Payload;

    /// Returns the location of byte `offset` of `object`, as a number to sort by: the disk moves
    /// least when it serves ascending addresses. It is the location at the latest
    /// [`locate`](Disk::locate).
    fn address(&self, object: FileId, offset: u64) -> u64;

    /// Finds out the location of `object`, for [`Disk::address`]. Does nothing on a disk that
    /// cannot know it, or knows it already.
    fn locate(&self, object: FileId) -> impl Future<Output = ()>;

    /// Returns length and time of the object; `None` if it does not exist. A power failure may
    /// leave an object shorter, by bytes that no sync has covered, or with zeros at its end.
    fn metadata(
        &self,
        object: FileId,
    ) -> impl Future<Output = Result<Option<ObjectMetadata>, DiskError>>;

    /// Sets the time of the last change of the object, at once; writes that are queued or come
    /// later do not change it. The future, which need not be awaited, ends when a process that
    /// ends has left the time with the disk. An object that does not exist gets it when it is
    /// written. When the process is killed or power fails, the time of the last write may count
    /// instead.
    fn set_modified(
        &self,
        object: FileId,
        modified: Timestamp,
    ) -> impl Future<Output = ()> + 'static;

    /// Reads `length` bytes at `offset`.
    fn read(
        &self,
        object: FileId,
        offset: u64,
        length: u64,
    ) -> impl Future<Output = Result<Self::Payload, DiskError>>;

    /// Writes `payload` at `offset`. Later reads see it; it is durable only after [`Disk::sync`].
    fn write(
        &self,
        object: FileId,
        offset: u64,
        payload: Self::Payload,
    ) -> impl Future<Output = Result<(), DiskError>>;

    /// Makes every write to `object` that has returned durable. After a write or sync that failed,
    /// it fails until those bytes are written again and stored, or freed, or the object is removed.
    fn sync(&self, object: FileId) -> impl Future<Output = Result<(), DiskError>>;

    /// Frees everything beyond the first `length` bytes of `object`, which later reads see as
    /// zeros. A shorter object stays unchanged. Only after [`Disk::sync`] it is certain that a
    /// power failure restores nothing.
    fn truncate(&self, object: FileId, length: u64) -> impl Future<Output = Result<(), DiskError>>;

    /// Removes the object durably and frees its space. Succeeds if it does not exist.
    fn remove(&self, object: FileId) -> impl Future<Output = Result<(), DiskError>>;

    /// Makes an ordinary file the object: all requests for it concern that file, which keeps the
    /// times that the system gives it. [`Disk::release`] ends that.
    /// Only disks in a file system can. With `lock`, fails if another process has locked the file
    /// in this way.
    fn adopt(
        &self,
        object: FileId,
        path: &str,
        lock: bool,
    ) -> impl Future<Output = Result<OrdinaryFile, DiskError>> {
        let _ = lock;
        let (disk, operation) = ("the disk".to_owned(), format!("adopt {path:?} as {object}"));
        let cause = "it is not in a file system with ordinary files".to_owned();
        std::future::ready(Err(DiskError::Failed { disk, operation, cause }))
    }

    /// Makes an object that is an ordinary file at least `length` bytes long. Does nothing to
    /// others, of which no byte shows how long they are.
    fn extend(&self, object: FileId, length: u64) -> impl Future<Output = Result<(), DiskError>> {
        let _ = (object, length);
        std::future::ready(Ok(()))
    }

    /// Ends the work on an object that is an ordinary file, after [`Disk::extend`]. Also when that
    /// fails.
    fn release(&self, object: FileId, length: u64) -> impl Future<Output = Result<(), DiskError>> {
        let _ = (object, length);
        std::future::ready(Ok(()))
    }

    /// Capacity and free space of the disk.
    fn space(&self) -> impl Future<Output = Result<Space, DiskError>>;
}

/// An ordinary file, by its place in its file system.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OrdinaryFile {
    /// Number of the file system on this host.
    pub device: u64,
    /// Number of the file in it.
    pub inode: u64,
}

/// Metadata of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectMetadata {
    /// One past the last byte that was written and not freed.
    pub length: u64,
    /// Time of the last change: as set, or of the last write.
    pub modified: Timestamp,
}

/// Space on a disk, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Total space.
    pub capacity_bytes: u64,
    /// Space that is not used.
    pub free_bytes: u64,
}

/// The disks of this node.
pub trait Disks: Payloads {
    /// Handle to one of them.
    type Disk: Disk<Payload = Self::Payload>;

    /// Returns all disks; `DiskId(i)` is number `i`. Empty on a client.
    fn disks(&self) -> &[Self::Disk];
}

/// Error of a disk operation.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DiskError {
    /// The disk is full.
    #[error("no space left on {disk}")]
    NoSpace {
        /// Name of the disk, as its owner knows it.
        disk: String,
    },
    /// The disk, or the directory that stands for it, has disappeared.
    #[error("{disk} is gone")]
    Vanished {
        /// Name of the disk.
        disk: String,
    },
    /// The device reported an error.
    #[error("{disk} failed to {operation}: {cause}")]
    Failed {
        /// Name of the disk.
        disk: String,
        /// Attempted operation, with object and range.
        operation: String,
        /// Message of the device or system.
        cause: String,
    },
    /// Bytes of an object differ from those that were written. None of them was returned.
    #[error(
        "{disk} holds damaged data: bytes {offset} to {} of {object} {damage}",
        offset.saturating_add(*length)
    )]
    Corrupt {
        /// Name of the disk.
        disk: String,
        /// Damaged object.
        object: FileId,
        /// First byte of the damaged range.
        offset: u64,
        /// Length of the damaged range, as far as it is known to be damaged.
        length: u64,
        /// Kind of the damage.
        damage: Damage,
    },
}

/// Kind of damage of an object.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Damage {
    /// The bytes are not those of the checksum, or there is no checksum.
    #[error("do not match their checksum")]
    Mismatch,
    /// The disk does not have the object.
    #[error("are missing")]
    Missing,
    /// The object has been replaced by an older copy of itself.
    #[error("are from an older copy")]
    Older,
    /// The whole disk is lost.
    #[error("are lost: {cause}")]
    Lost {
        /// Cause of the loss, as far as it is known.
        cause: String,
    },
}
