//! Data in motion and memory at rest.
//!
//! Programs can measure and cut data, never look inside: a world may keep real bytes, or only
//! their number, or only where they came from.

use units::Run;

/// An immutable piece of data, passed by value; clones share the same bytes.
pub trait Payload: Clone + 'static {
    /// Number of bytes.
    fn length(&self) -> u64;

    /// The bytes `offset .. offset + length`, without copying. Panics when out of range.
    fn slice(&self, offset: u64, length: u64) -> Self;

    /// A number that equal data have in common, so that data can be compared where it is: the
    /// CRC32C of bytes. Data without bytes has a number that only its own kind knows.
    fn digest(&self) -> u32;
}

/// A mutable area of memory of fixed length; clones are handles to the same area.
///
/// A client's buffer is one, and so is a server's block under assembly.
pub trait Memory: Clone + 'static {
    /// The data that is cut from it.
    type Payload: Payload;

    /// Number of bytes.
    fn length(&self) -> u64;

    /// Copies the pieces of `runs`, in order, into one packed payload.
    /// Panics when a run leaves the memory.
    fn gather(&self, runs: &[Run]) -> Self::Payload;

    /// Copies `payload` piece by piece into `runs`, in order. Panics when a run leaves the memory
    /// or the runs hold another number of bytes than the payload.
    fn scatter(&self, runs: &[Run], payload: &Self::Payload);

    /// The whole contents as a payload; without a copy when this is the only handle.
    fn freeze(self) -> Self::Payload;
}

/// The kinds of data and memory of a world, and where new memory comes from.
pub trait Payloads: 'static {
    /// Data in motion.
    type Payload: Payload;
    /// Memory at rest.
    type Memory: Memory<Payload = Self::Payload>;

    /// A memory of `length` bytes. **Its contents are unspecified** until they are overwritten:
    /// whoever sends or stores it must have covered every byte.
    fn memory(&self, length: u64) -> Self::Memory;

    /// A memory that starts as `payload`; without a copy when the payload is the only handle to
    /// the whole of its bytes.
    fn thaw(&self, payload: Self::Payload) -> Self::Memory;
}
