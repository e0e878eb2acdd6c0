//! Records that begin in a block of a file.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::ByteRange;

/// Largest number of bytes of a record.
pub const RECORD_BYTES_MAX: u32 = 1 << 16;

/// Records of equal size that follow one another in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecordGrid {
    /// Offset of the first record in the file, in bytes.
    pub start: u64,
    /// Bytes of each record.
    pub record_bytes: u32,
    /// Number of records.
    pub count: u64,
}

/// Reason for which records are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum RecordGridError {
    /// Records have no bytes, or too many.
    #[error("a record has {bytes} bytes; it must have 1 to {RECORD_BYTES_MAX}")]
    RecordBytes {
        /// Bytes of a record.
        bytes: u32,
    },
    /// A record is longer than a block.
    #[error("a record of {bytes} bytes is longer than a block of the file ({block_bytes} bytes)")]
    LongerThanBlock {
        /// Bytes of a record.
        bytes: u32,
        /// Bytes of a block.
        block_bytes: u64,
    },
    /// Records go beyond the end of the file.
    #[error(
        "{count} records of {bytes} bytes from byte {start} on end beyond the file \
         ({file_bytes} bytes)"
    )]
    BeyondFile {
        /// Number of records.
        count: u64,
        /// Bytes of a record.
        bytes: u32,
        /// Offset of the first.
        start: u64,
        /// Bytes of the file.
        file_bytes: u64,
    },
}

impl RecordGrid {
    /// Checks that the records are in a file of `file_bytes` bytes with blocks of `block_bytes`.
    pub fn validate(&self, file_bytes: u64, block_bytes: u64) -> Result<(), RecordGridError> {
        let Self { start, record_bytes: bytes, count } = *self;
        if bytes == 0 || bytes > RECORD_BYTES_MAX {
            return Err(RecordGridError::RecordBytes { bytes });
        }
        if u64::from(bytes) > block_bytes {
            return Err(RecordGridError::LongerThanBlock { bytes, block_bytes });
        }
        let length = u64::from(bytes).checked_mul(count);
        match length.and_then(|length| length.checked_add(start)) {
            Some(end) if end <= file_bytes => Ok(()),
            _ => Err(RecordGridError::BeyondFile { count, bytes, start, file_bytes }),
        }
    }

    /// Bytes of the file in which the records lie.
    pub fn extent(&self) -> ByteRange {
        ByteRange::at(self.start, u64::from(self.record_bytes) * self.count)
    }

    /// End of the last record, or the largest number if there is no such place.
    pub fn extent_end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.record_bytes).saturating_mul(self.count))
    }

    /// First byte of a record.
    pub fn offset_of(&self, record: u64) -> u64 {
        self.start + record * u64::from(self.record_bytes)
    }

    /// Number of the first record that begins at an offset or after it.
    fn first_from(&self, offset: u64) -> u64 {
        let records = offset.saturating_sub(self.start).div_ceil(u64::from(self.record_bytes));
        records.min(self.count)
    }

    /// Numbers of the records that begin in a block.
    pub fn beginning_in(&self, block: ByteRange) -> std::ops::Range<u64> {
        self.first_from(block.start)..self.first_from(block.end)
    }

    /// Bytes at the start of a block that belong to a record that began in the block before.
    pub fn head_of(&self, block: ByteRange) -> ByteRange {
        let first = self.first_from(block.start);
        if block.start <= self.start {
            return ByteRange::new(block.start, block.start);
        }
        let end = self.offset_of(first).min(block.end);
        ByteRange::new(block.start, end.max(block.start))
    }

    /// Bytes after a block of the last record that begins in it.
    pub fn rest_of(&self, block: ByteRange) -> ByteRange {
        let begin = self.beginning_in(block);
        match begin.is_empty() {
            true => ByteRange::new(block.end, block.end),
            false => ByteRange::new(block.end, self.offset_of(begin.end).max(block.end)),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves, for all small grids: each record begins in one block, and what a block lacks of its
    //! last record is what the next one has at its head.
    use super::*;

    #[test]
    fn blocks_have_all_records_once_and_heads_are_the_rests() {
        let block_bytes = 8;
        for start in 0..20 {
            for record_bytes in 1..=8 {
                for count in 0..9 {
                    let grid = RecordGrid { start, record_bytes, count };
                    let end = grid.extent().end;
                    let file_bytes = end + 3;
                    assert_eq!(grid.validate(file_bytes, block_bytes), Ok(()));
                    let blocks = 0..file_bytes.div_ceil(block_bytes);
                    let block =
                        |number: u64| ByteRange::new(number * 8, file_bytes.min(number * 8 + 8));
                    let mut next = 0;
                    for number in blocks.clone() {
                        let begin = grid.beginning_in(block(number));
                        if !begin.is_empty() {
                            assert_eq!(begin.start, next, "{grid:?}");
                            next = begin.end;
                        }
                        if number + 1 < blocks.end {
                            let (rest, head) =
                                (grid.rest_of(block(number)), grid.head_of(block(number + 1)));
                            assert_eq!(rest.length(), head.length(), "{grid:?} {number}");
                            if !rest.is_empty() {
                                assert_eq!(rest, head, "{grid:?} {number}");
                            }
                        }
                    }
                    assert_eq!(next, count, "{grid:?}");
                }
            }
        }
    }
}
