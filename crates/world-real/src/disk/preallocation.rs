//! Preallocation: takes space ahead of the writes that will fill it, so that objects that grow in
//! turns have few extents.
//!
//! Invariants:
//!
//! - A failed preallocation does not fail a write.
//! - Space beyond the end of an object is freed when the object is closed, and when the disk is
//!   full.

use super::data::Data;
use rangemap::RangeSet;
use rustix::fs::FallocateFlags;
use units::ByteRange;

/// Number of writes of the same length that a preallocation has space for.
const WRITES: u64 = 16;

/// Maximum bytes preallocated at a time.
const RESERVED_BYTES_MAX: u64 = 64 << 20;

/// Granularity of preallocations.
const ROUNDED_TO_BYTES: u64 = 64 << 10;

/// Preallocated space of one open object.
pub(super) struct Preallocation {
    /// Bytes that need no preallocation any more.
    had: RangeSet<u64>,
    /// True if there may be space beyond the end of the object.
    to_give_back: bool,
    /// True until a preallocation fails.
    is_on: bool,
}

impl Preallocation {
    /// Returns the state of an object that was just opened.
    pub(super) fn new(is_on: bool, data: &Data) -> std::io::Result<Self> {
        let mut had = RangeSet::new();
        let length = data.length()?;
        if length > 0 {
            had.insert(0..length);
        }
        // A killed process freed no space.
        let to_give_back = data.room()? > length.next_multiple_of(ROUNDED_TO_BYTES);
        Ok(Self { had, to_give_back, is_on })
    }

    /// Takes space for a write of `bytes`, and for its probable successors.
    pub(super) fn reserve(&mut self, data: &Data, bytes: ByteRange) {
        if !self.is_on
            || bytes.is_empty()
            || !self.had.gaps(&(bytes.start..bytes.end)).any(|_| true)
        {
            return;
        }
        let wanted = bytes.length().saturating_mul(WRITES).min(RESERVED_BYTES_MAX);
        let length = wanted.next_multiple_of(ROUNDED_TO_BYTES).max(bytes.length());
        let kept = FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(data, kept, bytes.start, length) {
            Ok(()) => self.had.insert(bytes.start..bytes.start.saturating_add(length)),
            // Not supported, or not enough space: the write itself reports it.
            Err(_) => self.is_on = false,
        }
        self.to_give_back = true;
    }

    /// Frees space beyond the end of the object, and preallocates no more for it.
    pub(super) fn give_back(&mut self, data: &Data) {
        self.is_on = false;
        if std::mem::take(&mut self.to_give_back)
            && let Ok(length) = data.length()
        {
            // Truncating a file to its size frees space beyond the end. After an error, the space
            // is freed with the object.
            let _ = data.truncate(length);
        }
    }

    /// Records a truncation to `length`.
    pub(super) fn truncated(&mut self, length: u64) {
        if length < u64::MAX {
            self.had.remove(length..u64::MAX);
        }
    }
}
