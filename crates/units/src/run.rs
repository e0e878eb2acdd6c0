//! Strided runs: many equal pieces at equal distances, said in five numbers.
//!
//! An 8-byte cyclic distribution cuts a 1 MiB block into 131,072 pieces. They are never listed:
//! one [`PieceRun`] says them all, and moving them is one strided copy.

/// `count` pieces of `length` bytes; piece `i` starts at `offset + i * stride`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    /// Where the first piece starts, in bytes.
    pub offset: u64,
    /// Bytes in each piece.
    pub length: u64,
    /// Bytes from the start of a piece to the start of the next.
    pub stride: u64,
    /// Number of pieces.
    pub count: u64,
}

impl Run {
    /// One piece: the bytes `offset .. offset + length`.
    pub fn contiguous(offset: u64, length: u64) -> Self {
        Self { offset, length, stride: length, count: 1 }
    }

    /// Bytes in all pieces.
    pub fn bytes(self) -> u64 {
        self.length * self.count
    }

    /// One past the last byte of the last piece; `offset` when there is none.
    /// `None` when that does not fit in 64 bits.
    pub fn checked_end(self) -> Option<u64> {
        if self.count == 0 {
            return Some(self.offset);
        }
        let last = self.stride.checked_mul(self.count - 1)?.checked_add(self.offset)?;
        last.checked_add(self.length)
    }

    /// The start of each piece, in order.
    pub fn offsets(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |index| self.offset + index * self.stride)
    }

    /// True when the pieces touch one another, so that they are one contiguous range.
    pub fn is_contiguous(self) -> bool {
        self.count <= 1 || self.stride == self.length
    }
}

/// A run of pieces on two sides at once: where they lie near the disk (in a file or a block) and
/// where they lie in a client's memory.
///
/// Piece `i` is the `length` bytes at `offset + i * stride` of the file or block, and at
/// `memory_offset + i * memory_stride` of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PieceRun {
    /// Where the first piece starts in the file or block, in bytes.
    pub offset: u64,
    /// Bytes between the starts of pieces in the file or block.
    pub stride: u64,
    /// Where the first piece starts in the client's memory, in bytes.
    pub memory_offset: u64,
    /// Bytes between the starts of pieces in the client's memory.
    pub memory_stride: u64,
    /// Bytes in each piece.
    pub length: u64,
    /// Number of pieces.
    pub count: u64,
}

impl PieceRun {
    /// The pieces as they lie in the file or block.
    pub fn file_side(self) -> Run {
        Run { offset: self.offset, length: self.length, stride: self.stride, count: self.count }
    }

    /// The pieces as they lie in the client's memory.
    pub fn memory_side(self) -> Run {
        let Self { memory_offset, memory_stride, length, count, .. } = self;
        Run { offset: memory_offset, length, stride: memory_stride, count }
    }

    /// Bytes in all pieces.
    pub fn bytes(self) -> u64 {
        self.length * self.count
    }
}
