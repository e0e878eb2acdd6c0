//! Nested-strided accesses: a piece repeated at a distance, the result repeated at a distance, and
//! so on. This is the interface of the Galley file system (Nieuwejaar and Kotz 1997).
//!
//! Invariants of a valid nest:
//! - In the file, the stride of each level is at least the length of what it repeats. So pieces
//!   ascend and never overlap.
//! - In memory, pieces may come in any order (a transposition), but no two share a byte.

use super::error::AccessError;
use super::footprint::{Axis, Footprint};
use super::limits::{BYTES_MAX, LEVELS_MAX};
use serde::{Deserialize, Serialize};
use units::ClientId;

/// Bytes of one client: a piece and the levels that repeat it. With no bytes, or a level of zero
/// copies, the client owns nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Nested {
    /// Start of the first piece in the file, in bytes.
    pub file_offset: u64,
    /// Start of the first piece in the client's memory, in bytes.
    pub memory_offset: u64,
    /// Bytes in the piece.
    pub length: u64,
    /// Levels, the innermost first; at most [`LEVELS_MAX`].
    pub levels: Vec<Level>,
}

/// Repetition: copy `i` lies `i` strides further on each side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Level {
    /// Number of copies.
    pub count: u64,
    /// Bytes between starts of copies in the file.
    pub file_stride: u64,
    /// Bytes between starts of copies in memory.
    pub memory_stride: u64,
}

impl Nested {
    /// Refuses a nest that exceeds the file, overlaps itself, or exceeds a limit.
    pub(crate) fn validate(&self, client: ClientId, file_bytes: u64) -> Result<(), AccessError> {
        let levels = self.levels.len();
        if levels > LEVELS_MAX {
            return Err(AccessError::Levels { client, levels });
        }
        if self.is_nothing() {
            return Ok(());
        }
        let mut extent = self.length;
        for (level, repeat) in self.levels.iter().enumerate().filter(|(_, level)| level.count > 1) {
            if repeat.file_stride < extent {
                return Err(AccessError::FileOverlap { client, entry: level });
            }
            let grown = repeat.file_stride.checked_mul(repeat.count - 1);
            let grown = grown.and_then(|reach| reach.checked_add(extent));
            extent = grown.ok_or(AccessError::OutsideFile { client, entry: level, file_bytes })?;
        }
        let end = self.file_offset.checked_add(extent);
        if end.is_none_or(|end| end > file_bytes) {
            return Err(AccessError::OutsideFile { client, entry: levels, file_bytes });
        }
        self.validate_memory(client)
    }

    /// Refuses pieces that share a byte of memory. In the order of strides in memory, the stride of
    /// each level must be at least the span of the levels before it. This refuses some
    /// interleavings that are disjoint, but none that an array in any order of dimensions has.
    fn validate_memory(&self, client: ClientId) -> Result<(), AccessError> {
        let mut levels: Vec<Level> = self.levels.iter().filter(|l| l.count > 1).copied().collect();
        levels.sort_by_key(|level| level.memory_stride);
        let mut extent = self.length;
        for (entry, level) in levels.into_iter().enumerate() {
            if level.memory_stride < extent {
                return Err(AccessError::MemoryOverlap { client, entry });
            }
            let grown = level.memory_stride.checked_mul(level.count - 1);
            let grown = grown.and_then(|reach| reach.checked_add(extent));
            extent = grown.ok_or(AccessError::MemoryTooLarge { client })?;
        }
        let end = self.memory_offset.checked_add(extent);
        if end.is_none_or(|end| end > BYTES_MAX) {
            return Err(AccessError::MemoryTooLarge { client });
        }
        Ok(())
    }

    /// Required size of the client's memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        if self.is_nothing() {
            return 0;
        }
        let reach: u64 = self.levels.iter().map(|l| (l.count - 1) * stride_used(l).1).sum();
        self.memory_offset + reach + self.length
    }

    /// Footprint of the client.
    pub(crate) fn footprint(&self) -> Footprint {
        if self.is_nothing() {
            return Footprint::nothing();
        }
        let mut footprint =
            Footprint::contiguous(self.file_offset, self.memory_offset, self.length);
        for level in self.levels.iter().filter(|level| level.count > 1) {
            let axis = Axis {
                chunk: level.count,
                last_chunk: level.count,
                chunks: 1,
                file_unit: level.file_stride,
                file_period: 0,
                memory_unit: level.memory_stride,
                memory_period: 0,
                index_bytes: 0,
            };
            footprint.repeat(axis, 0);
        }
        footprint
    }

    fn is_nothing(&self) -> bool {
        self.length == 0 || self.levels.iter().any(|level| level.count == 0)
    }
}

/// Strides in file and memory. Those of a level with one copy are ignored: they count as 0.
fn stride_used(level: &Level) -> (u64, u64) {
    if level.count == 1 { (0, 0) } else { (level.file_stride, level.memory_stride) }
}
