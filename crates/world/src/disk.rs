//! Disks that hold objects: sparse sequences of bytes with a number for a name.

use crate::{Payload, Payloads};
use std::future::Future;
use thiserror::Error;
use units::FileId;

/// One storage device, or one directory that stands for one.
///
/// A disk holds one object for each file that has blocks on it. An object is sparse: bytes never
/// written read as zeros. Requests to one disk are served in the order of their calls.
pub trait Disk: Clone + 'static {
    /// What is read and written.
    type Payload: Payload;

    /// Where the byte `offset` of `object` lies, as a number to sort by: the disk moves least when
    /// it serves ascending addresses. It is where the byte lay when the object was last located.
    fn address(&self, object: FileId, offset: u64) -> u64;

    /// Learns where `object` lies, for [`Disk::address`]. A disk that cannot know, or that knows
    /// without asking, does nothing.
    fn locate(&self, object: FileId) -> impl Future<Output = ()>;

    /// Where the object ends: one past its last byte that was written and not freed, 0 for none.
    /// Losing power may leave an object shorter, by what no sync has covered, or zeros at its end.
    fn length(&self, object: FileId) -> impl Future<Output = Result<u64, DiskError>>;

    /// Reads `length` bytes at `offset`.
    fn read(
        &self,
        object: FileId,
        offset: u64,
        length: u64,
    ) -> impl Future<Output = Result<Self::Payload, DiskError>>;

    /// Writes `payload` at `offset`. On return later reads see it; it is on stable storage only
    /// after [`Disk::sync`].
    fn write(
        &self,
        object: FileId,
        offset: u64,
        payload: Self::Payload,
    ) -> impl Future<Output = Result<(), DiskError>>;

    /// Returns when every write to `object` that returned before is on stable storage. After a
    /// write or a sync that failed, it fails until those bytes were written again and stored, or
    /// freed, or the object was removed.
    fn sync(&self, object: FileId) -> impl Future<Output = Result<(), DiskError>>;

    /// Frees what lies beyond the first `length` bytes of `object`: later reads of it see zeros. An
    /// object that ends before stays as it is. That nothing comes back when power is lost is
    /// certain only after [`Disk::sync`].
    fn truncate(&self, object: FileId, length: u64) -> impl Future<Output = Result<(), DiskError>>;

    /// Forgets the object and frees its space, for good: it does not come back when power is lost.
    /// Succeeds when there is none.
    fn remove(&self, object: FileId) -> impl Future<Output = Result<(), DiskError>>;

    /// How much the disk holds.
    fn space(&self) -> impl Future<Output = Result<Space, DiskError>>;
}

/// Room on a disk, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// All there is.
    pub capacity_bytes: u64,
    /// Not yet used.
    pub free_bytes: u64,
}

/// The disks of this node.
pub trait Disks: Payloads {
    /// A handle to one of them.
    type Disk: Disk<Payload = Self::Payload>;

    /// All of them; `DiskId(i)` is number `i`. Empty on a client.
    fn disks(&self) -> &[Self::Disk];
}

/// Why a disk did not do as asked.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DiskError {
    /// The disk is full.
    #[error("no space left on {disk}")]
    NoSpace {
        /// Which disk, as its owner names it.
        disk: String,
    },
    /// The disk, or the directory that stands for it, is no longer there.
    #[error("{disk} has vanished")]
    Vanished {
        /// Which disk.
        disk: String,
    },
    /// The device reported an error.
    #[error("{disk} failed to {operation}: {cause}")]
    Failed {
        /// Which disk.
        disk: String,
        /// What was attempted, with object and range.
        operation: String,
        /// What the device or system said.
        cause: String,
    },
    /// Bytes of an object are not those that were written. None of them was given out.
    #[error(
        "{disk} holds damaged data: bytes {offset} to {} of {object} do not match their checksum",
        offset.saturating_add(*length)
    )]
    Corrupt {
        /// Which disk.
        disk: String,
        /// Which object.
        object: FileId,
        /// The first byte of what is damaged.
        offset: u64,
        /// How many bytes share the checksum that does not match.
        length: u64,
    },
}
