//! The kinds of data that a simulated world can move.
//!
//! *Phantom* data is a length: terabytes for nothing. *Traced* data is a length and where each
//! byte came from: it proves that every byte landed once, in its place. *Bytes* are real bytes.

mod bytes;
mod phantom;
mod traced;

pub use bytes::{Bytes, BytesMemory};
pub use phantom::{Phantom, PhantomMemory};
pub use traced::{Origin, Segment, Traced, TracedMemory};

use crate::{Memory, Payload};
use units::Run;

/// A kind of data: how memory of it begins, and what a disk remembers of it.
pub trait Kind: Payload {
    /// Memory that holds this kind.
    type Memory: Memory<Payload = Self>;

    /// False when contents are not kept at all, so that a disk need not remember what was written.
    const REMEMBERED: bool;

    /// A new memory of `length` bytes.
    fn memory(length: u64) -> Self::Memory;

    /// A memory that starts as `self`.
    fn thaw(self) -> Self::Memory;

    /// The pieces of `runs`, in order, packed. Panics when a run leaves the payload.
    fn gather(&self, runs: &[Run]) -> Self {
        match runs {
            [run] if run.is_contiguous() => self.slice(run.offset, run.bytes()),
            _ => self.clone().thaw().gather(runs),
        }
    }

    /// What a disk holds in the bytes `offset .. offset + length` of `object` before they are
    /// written: zeros, or for traced data the origin *disk*.
    fn unwritten(disk: u32, object: u64, offset: u64, length: u64) -> Self;
}
