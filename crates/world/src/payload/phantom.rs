//! Phantom data, which is only a length.

use super::Kind;
use crate::{Memory, Payload};
use units::Run;

/// Payload of this many bytes, none of which exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phantom(pub u64);

/// Memory of this many bytes, none of which exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhantomMemory(pub u64);

impl Payload for Phantom {
    fn length(&self) -> u64 {
        self.0
    }

    fn slice(&self, offset: u64, length: u64) -> Self {
        assert!(offset + length <= self.0, "a slice must lie in its payload");
        Self(length)
    }

    fn gather(&self, runs: &[Run]) -> Self {
        Self(measure(runs, self.0))
    }

    fn look_inside(&self) -> Option<&[u8]> {
        None
    }

    fn digest(&self) -> u32 {
        crc32c::crc32c(&self.0.to_le_bytes())
    }

    fn xor(&self, other: &Self) -> Self {
        assert!(self.0 == other.0, "both payloads must have the same length");
        *self
    }

    fn digest_of_xor(digests: &[u32], _: u64) -> Option<u32> {
        digests.first().copied()
    }
}

impl Memory for PhantomMemory {
    type Payload = Phantom;

    fn length(&self) -> u64 {
        self.0
    }

    fn gather(&self, runs: &[Run]) -> Phantom {
        Phantom(measure(runs, self.0))
    }

    fn scatter(&self, runs: &[Run], payload: &Phantom) {
        let bytes = measure(runs, self.0);
        assert!(bytes == payload.0, "a scatter must place every byte of its payload");
    }

    fn freeze(self) -> Phantom {
        Phantom(self.0)
    }
}

/// Returns the bytes in `runs`. Panics when a run leaves a memory of `length` bytes.
pub(super) fn measure(runs: &[Run], length: u64) -> u64 {
    let mut bytes = 0;
    for run in runs {
        let inside = run.checked_end().is_some_and(|end| end <= length);
        assert!(inside, "a run must lie in its memory of {length} bytes: {run:?}");
        bytes += run.bytes();
    }
    bytes
}

impl Kind for Phantom {
    type Memory = PhantomMemory;
    const REMEMBERED: bool = false;

    fn memory(length: u64) -> PhantomMemory {
        PhantomMemory(length)
    }

    fn thaw(self) -> PhantomMemory {
        PhantomMemory(self.0)
    }

    fn unwritten(_disk: u32, _object: u64, _offset: u64, length: u64) -> Self {
        Self(length)
    }
}
