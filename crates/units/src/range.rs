//! Half-open range of bytes.
//!
//! Invariant: the start is not after the end.

/// Bytes `start .. end`; empty when these are equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ByteRange {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl ByteRange {
    /// Bytes `start .. end`. Panics when `end < start`.
    pub fn new(start: u64, end: u64) -> Self {
        assert!(start <= end, "a byte range must not run backwards: {start}..{end}");
        Self { start, end }
    }

    /// `length` bytes from `start`. Panics when the end does not fit in 64 bits.
    pub fn at(start: u64, length: u64) -> Self {
        let end = start.checked_add(length);
        Self { start, end: end.expect("a byte range must end below 2^64") }
    }

    /// `length` bytes from `start`, or `None` when the end does not fit in 64 bits.
    pub fn checked_at(start: u64, length: u64) -> Option<Self> {
        Some(Self { start, end: start.checked_add(length)? })
    }

    /// Number of bytes.
    pub fn length(self) -> u64 {
        self.end - self.start
    }

    /// True when the range has no bytes.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Bytes in both ranges. The result is empty, at some position, when the ranges do not meet.
    pub fn intersect(self, other: Self) -> Self {
        let start = self.start.max(other.start);
        Self { start, end: self.end.min(other.end).max(start) }
    }

    /// Cuts the range into parts of `bytes` bytes, the last one perhaps shorter. Panics when
    /// `bytes` is 0.
    pub fn windows(self, bytes: u64) -> impl Iterator<Item = Self> + use<> {
        assert!(bytes > 0, "a window must have bytes");
        let count = self.length().div_ceil(bytes);
        (0..count).map(move |index| {
            let start = self.start + index * bytes;
            Self { start, end: self.end.min(start.saturating_add(bytes)) }
        })
    }

    /// True when every byte of `other` is in `self`.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}
