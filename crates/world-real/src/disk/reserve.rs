//! Room that is taken ahead of the writes that will fill it, so that objects which grow in turns
//! lie in long pieces.
//!
//! Invariants: a failure to take room is no failure of a write; room beyond the end of an object is
//! given back when it is closed, and when the disk is full.

use super::data::Data;
use rangemap::RangeSet;
use rustix::fs::FallocateFlags;
use units::ByteRange;

/// How many writes of the same length a reservation has room for.
const WRITES: u64 = 16;

/// The most bytes that are reserved at a time.
const RESERVED_BYTES_MAX: u64 = 64 << 20;

/// What reservations are multiples of.
const ROUNDED_TO_BYTES: u64 = 64 << 10;

/// The room that one open object has.
pub(super) struct Reservations {
    /// Bytes that need no reservation any more.
    had: RangeSet<u64>,
    /// Whether there may be room beyond the end of the object.
    to_give_back: bool,
    /// Whether it is worth asking for more.
    is_on: bool,
}

impl Reservations {
    /// Those of an object that was just opened.
    pub(super) fn new(is_on: bool, data: &Data) -> std::io::Result<Self> {
        let mut had = RangeSet::new();
        let length = data.length()?;
        if length > 0 {
            had.insert(0..length);
        }
        // A process that was killed gave nothing back.
        let to_give_back = data.room()? > length.next_multiple_of(ROUNDED_TO_BYTES);
        Ok(Self { had, to_give_back, is_on })
    }

    /// Takes room for a write of `bytes`, and for those that will probably follow it.
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
            // Not possible here, or no room for so much: the write itself will find out.
            Err(_) => self.is_on = false,
        }
        self.to_give_back = true;
    }

    /// Gives back what lies beyond the end of the object, and reserves no more for it.
    pub(super) fn give_back(&mut self, data: &Data) {
        self.is_on = false;
        if std::mem::take(&mut self.to_give_back)
            && let Ok(length) = data.length()
        {
            // Cutting a file where it ends frees what it has beyond. Where this fails, the room
            // comes back when the object is removed.
            let _ = data.truncate(length);
        }
    }

    /// The object now ends at `length`.
    pub(super) fn truncated(&mut self, length: u64) {
        if length < u64::MAX {
            self.had.remove(length..u64::MAX);
        }
    }
}
