//! The kinds of data that a simulated world can move.
//!
//! - *Phantom* data is a length: terabytes cost nothing.
//! - *Traced* data is a length and the origin of each byte: it proves that every byte landed once,
//!   in its place.
//! - *Bytes* are real bytes.

mod bytes;
mod phantom;
mod traced;

pub use bytes::{Bytes, BytesMemory};
pub use phantom::{Phantom, PhantomMemory};
pub use traced::{Origin, Segment, Traced, TracedMemory};

use crate::{Memory, Payload};

/// A kind of data: its memory, and its contents on a disk.
pub trait Kind: Payload {
    /// Memory that holds this kind.
    type Memory: Memory<Payload = Self>;

    /// False when contents are not stored, so that a disk need not remember writes.
    const REMEMBERED: bool;

    /// Returns a new memory of `length` bytes.
    fn memory(length: u64) -> Self::Memory;

    /// Returns a memory with the contents of `self`.
    fn thaw(self) -> Self::Memory;

    /// Returns the contents of the bytes `offset .. offset + length` of `object` on a disk before
    /// they are written: zeros, or for traced data the origin *disk*.
    fn unwritten(disk: u32, object: u64, offset: u64, length: u64) -> Self;
}
