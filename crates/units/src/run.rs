//! Strided runs: many equal pieces at equal distances, described by a few numbers.
//!
//! An 8-byte cyclic distribution cuts a 1 MiB block into 131,072 pieces. One [`PieceRun`] describes
//! all of them, and one strided copy moves them.

/// `count` pieces of `length` bytes; piece `i` starts at `offset + i * stride`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    /// Start of the first piece, in bytes.
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

    /// One past the last byte of the last piece; `offset` when there is no piece. `None` when the
    /// end does not fit in 64 bits.
    pub fn checked_end(self) -> Option<u64> {
        if self.count == 0 {
            return Some(self.offset);
        }
        let last = self.stride.checked_mul(self.count - 1)?.checked_add(self.offset)?;
        last.checked_add(self.length)
    }

    /// Start of each piece, in order.
    pub fn offsets(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |index| self.offset + index * self.stride)
    }

    /// True when the pieces touch each other, so that they are one contiguous range.
    pub fn is_contiguous(self) -> bool {
        self.count <= 1 || self.stride == self.length
    }
}

/// Run of pieces on two sides: in a file or a block, and in a client's memory.
///
/// Piece `i` has `length` bytes. It starts at `offset + i * stride` of the file or block, and at
/// `memory_offset + i * memory_stride` of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PieceRun {
    /// Start of the first piece in the file or block, in bytes.
    pub offset: u64,
    /// Bytes between the starts of pieces in the file or block.
    pub stride: u64,
    /// Start of the first piece in the client's memory, in bytes.
    pub memory_offset: u64,
    /// Bytes between the starts of pieces in the client's memory.
    pub memory_stride: u64,
    /// Bytes in each piece.
    pub length: u64,
    /// Number of pieces.
    pub count: u64,
}

impl PieceRun {
    /// Pieces in the file or block.
    pub fn file_side(self) -> Run {
        Run { offset: self.offset, length: self.length, stride: self.stride, count: self.count }
    }

    /// Pieces in the client's memory.
    pub fn memory_side(self) -> Run {
        let Self { memory_offset, memory_stride, length, count, .. } = self;
        Run { offset: memory_offset, length, stride: memory_stride, count }
    }

    /// Bytes in all pieces.
    pub fn bytes(self) -> u64 {
        self.length * self.count
    }
}
