//! Lists of pieces: accesses without a rule.
//!
//! Invariants of a valid list:
//! - Its entries ascend in the file and overlap neither there nor in memory.
//! - No entry is empty.

use super::error::AccessError;
use super::limits::BYTES_MAX;
use serde::{Deserialize, Serialize};
use units::{ByteRange, ClientId, PieceRun};

/// Piece of the file and its place in the client's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ListEntry {
    /// Start in the file, in bytes.
    pub file_offset: u64,
    /// Start in the client's memory, in bytes.
    pub memory_offset: u64,
    /// Number of bytes; at least 1.
    pub length: u64,
}

impl ListEntry {
    fn file_end(&self) -> u64 {
        self.file_offset + self.length
    }

    fn memory_end(&self) -> u64 {
        self.memory_offset + self.length
    }
}

/// Refuses the list of `client` when it exceeds the file, is out of order, or overlaps itself.
/// Takes time n log n for n entries.
pub(crate) fn validate(
    client: ClientId,
    entries: &[ListEntry],
    file_bytes: u64,
) -> Result<(), AccessError> {
    let mut end = 0;
    for (entry, piece) in entries.iter().enumerate() {
        if piece.length == 0 {
            return Err(AccessError::EmptyEntry { client, entry });
        }
        if piece.file_offset < end {
            return Err(AccessError::FileOverlap { client, entry });
        }
        let file_end = piece.file_offset.checked_add(piece.length);
        end = file_end.filter(|end| *end <= file_bytes).ok_or(AccessError::OutsideFile {
            client,
            entry,
            file_bytes,
        })?;
        let memory_end = piece.memory_offset.checked_add(piece.length);
        if memory_end.is_none_or(|end| end > BYTES_MAX) {
            return Err(AccessError::MemoryTooLarge { client });
        }
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|entry| entries[*entry].memory_offset);
    for pair in order.windows(2) {
        if entries[pair[1]].memory_offset < entries[pair[0]].memory_end() {
            return Err(AccessError::MemoryOverlap { client, entry: pair[1] });
        }
    }
    Ok(())
}

/// Required size of a client's memory, in bytes.
pub(crate) fn memory_bytes(entries: &[ListEntry]) -> u64 {
    entries.iter().map(ListEntry::memory_end).max().unwrap_or(0)
}

/// Smallest range that has every entry.
pub(crate) fn file_extent(entries: &[ListEntry]) -> Option<ByteRange> {
    let (first, last) = (entries.first()?, entries.last()?);
    Some(ByteRange::new(first.file_offset, last.file_end()))
}

/// First byte at or after `position`, found by bisection.
pub(crate) fn first_from(entries: &[ListEntry], position: u64) -> Option<u64> {
    let first = entries.partition_point(|entry| entry.file_end() <= position);
    entries.get(first).map(|entry| entry.file_offset.max(position))
}

/// Entries in `range`, clipped to it. Finds the first by bisection.
pub(crate) fn pieces(entries: &[ListEntry], range: ByteRange) -> ListPieces<'_> {
    let first = entries.partition_point(|entry| entry.file_end() <= range.start);
    ListPieces { entries: entries[first..].iter(), range }
}

/// Clipped entries of one list. See [`pieces`].
#[derive(Clone, Debug)]
pub(crate) struct ListPieces<'a> {
    entries: std::slice::Iter<'a, ListEntry>,
    range: ByteRange,
}

impl Iterator for ListPieces<'_> {
    type Item = PieceRun;

    fn next(&mut self) -> Option<PieceRun> {
        let entry = self.entries.next()?;
        let piece = ByteRange::new(entry.file_offset, entry.file_end()).intersect(self.range);
        if piece.is_empty() {
            return None;
        }
        let length = piece.length();
        Some(PieceRun {
            offset: piece.start,
            stride: length,
            memory_offset: entry.memory_offset + (piece.start - entry.file_offset),
            memory_stride: length,
            length,
            count: 1,
        })
    }
}
