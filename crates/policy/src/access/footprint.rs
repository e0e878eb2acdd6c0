//! Footprint: the bytes of a file that one client owns, folded into as few nested axes as possible.
//!
//! Every regular access (a whole file, an HPF distribution, nested strides) becomes a
//! [`Footprint`]: axes of chunks of indices, the innermost axis counting bytes. An HPF matrix
//! with rows BLOCK and columns CYCLIC, the columns a multiple of the grid, folds into one axis:
//!
//! ```text
//! file    ..[##]......[##]......[##]......[##]....    chunk = 2 bytes, file_period = 10
//! memory  [##][##][##][##]                            memory_period = 2
//! ```
//!
//! The rank of a byte is the number of the client's bytes before it in the file.
//!
//! Invariants:
//! - File offsets grow strictly with the rank. So the bytes of any range of the file are an
//!   interval
//!   of ranks, which one or two divisions for each axis find.
//! - The innermost axis has units of one byte on both sides.
//! - Owned bytes and the products of strides and counts stay below 2^63, because footprints are
//!   made
//!   of validated accesses.

use units::{ByteRange, PieceRun};

/// Axis: chunks of indices at equal distances. Index `w` of chunk `q` lies `q * period + w * unit`
/// bytes from the start of the axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Axis {
    /// Indices in each chunk except the last; at least 1.
    pub(crate) chunk: u64,
    /// Indices in the last chunk; 1 to `chunk`, and `chunk` when there is only one.
    pub(crate) last_chunk: u64,
    /// Number of chunks; at least 1.
    pub(crate) chunks: u64,
    /// Bytes of file between indices of one chunk.
    pub(crate) file_unit: u64,
    /// Bytes of file between starts of chunks; without meaning for a single chunk.
    pub(crate) file_period: u64,
    /// Bytes of memory between indices of one chunk.
    pub(crate) memory_unit: u64,
    /// Bytes of memory between starts of chunks; without meaning for a single chunk.
    pub(crate) memory_period: u64,
    /// Bytes that the client owns under one index: those of all inner axes together.
    pub(crate) index_bytes: u64,
}

impl Axis {
    /// Axis of `length` bytes in one piece on both sides.
    fn of_bytes(length: u64) -> Self {
        Self {
            chunk: length,
            last_chunk: length,
            chunks: 1,
            file_unit: 1,
            file_period: 0,
            memory_unit: 1,
            memory_period: 0,
            index_bytes: 1,
        }
    }

    /// Number of indices in all chunks.
    fn indices(&self) -> u64 {
        (self.chunks - 1) * self.chunk + self.last_chunk
    }

    /// Returns one axis that equals `self` around `inner`, if there is one.
    fn fold(self, inner: Self) -> Option<Self> {
        if self.indices() == 1 {
            return Some(inner);
        }
        if inner.chunks == 1 {
            return self.fold_one_chunk(inner);
        }
        // Each index of `self` continues the regular chunks of the one before it.
        let continues = inner.last_chunk == inner.chunk
            && inner.chunks * inner.file_period == self.file_unit
            && inner.chunks * inner.memory_period == self.memory_unit;
        let folds = continues && self.chunks == 1;
        folds.then(|| Self { chunks: inner.chunks * self.chunk, ..inner })
    }

    /// Folds as [`Axis::fold`], for an `inner` of one chunk.
    fn fold_one_chunk(self, inner: Self) -> Option<Self> {
        let touches = inner.chunk * inner.file_unit == self.file_unit
            && inner.chunk * inner.memory_unit == self.memory_unit;
        if touches {
            return Some(Self {
                chunk: self.chunk * inner.chunk,
                last_chunk: self.last_chunk * inner.chunk,
                file_unit: inner.file_unit,
                memory_unit: inner.memory_unit,
                index_bytes: inner.index_bytes,
                ..self
            });
        }
        let (chunks, file_period, memory_period) = if self.chunks == 1 {
            (self.chunk, self.file_unit, self.memory_unit)
        } else if self.chunk == 1 {
            (self.chunks, self.file_period, self.memory_period)
        } else {
            return None;
        };
        Some(Self { chunks, file_period, memory_period, ..inner })
    }

    /// Number of indices that end at or before `distance` bytes from the start of the axis. Also
    /// returns the offset in the next index, unless `distance` lies in a gap or after the end.
    fn indices_before(&self, distance: u64) -> (u64, Option<u64>) {
        let (chunk, rest) = match self.chunks {
            1 => (0, distance),
            _ => (distance / self.file_period, distance % self.file_period),
        };
        if chunk >= self.chunks {
            return (self.indices(), None);
        }
        let length = if chunk + 1 == self.chunks { self.last_chunk } else { self.chunk };
        let (index, rest) = match self.file_unit {
            1 => (rest, 0),
            unit => (rest / unit, rest % unit),
        };
        if index >= length {
            return (chunk * self.chunk + length, None);
        }
        (chunk * self.chunk + index, Some(rest))
    }

    /// Number of chunks that have the full length.
    fn full_chunks(&self) -> u64 {
        if self.last_chunk == self.chunk { self.chunks } else { self.chunks - 1 }
    }
}

/// Bytes that one client owns, in file order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Footprint {
    file_base: u64,
    memory_base: u64,
    bytes: u64,
    inner: Axis,
    /// Axes around `inner`, from the inside to the outside. Nearly always empty; a footprint then
    /// needs no allocation.
    outer: Vec<Axis>,
}

impl Footprint {
    /// Footprint of `length` bytes at `file_base` of the file and `memory_base` of the memory.
    pub(crate) fn contiguous(file_base: u64, memory_base: u64, length: u64) -> Self {
        Self {
            file_base,
            memory_base,
            bytes: length,
            inner: Axis::of_bytes(length.max(1)),
            outer: Vec::new(),
        }
    }

    /// Footprint of a client that owns nothing.
    pub(crate) fn nothing() -> Self {
        Self::contiguous(0, 0, 0)
    }

    /// Repeats the footprint along `axis`, starting `file_skip` bytes further into the file. Sets
    /// `axis.index_bytes`.
    pub(crate) fn repeat(&mut self, axis: Axis, file_skip: u64) {
        let axis = Axis { index_bytes: self.bytes, ..axis };
        self.file_base += file_skip;
        self.bytes *= axis.indices();
        let inside = self.outer.last_mut().unwrap_or(&mut self.inner);
        match axis.fold(*inside) {
            Some(folded) => *inside = folded,
            None => self.outer.push(axis),
        }
    }

    /// Moves everything `bytes` bytes further into the file.
    pub(crate) fn shift(&mut self, bytes: u64) {
        self.file_base += bytes;
    }

    /// Number of bytes that the client owns.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of the client's bytes before `position` in the file.
    pub(crate) fn rank(&self, position: u64) -> u64 {
        if self.bytes == 0 || position <= self.file_base {
            return 0;
        }
        let mut distance = position - self.file_base;
        let mut rank = 0;
        for axis in self.outer.iter().rev().chain([&self.inner]) {
            let (indices, rest) = axis.indices_before(distance);
            rank += indices * axis.index_bytes;
            match rest {
                Some(rest) => distance = rest,
                None => break,
            }
        }
        rank
    }

    /// First of the client's bytes at or after `position`.
    pub(crate) fn first_from(&self, position: u64) -> Option<u64> {
        let rank = self.rank(position);
        (rank < self.bytes).then(|| self.run_at(rank, self.bytes).offset)
    }

    /// One past the last of the client's bytes.
    pub(crate) fn end(&self) -> Option<u64> {
        let last = self.bytes.checked_sub(1)?;
        Some(self.run_at(last, self.bytes).offset + 1)
    }

    /// Number of the client's bytes in `range`.
    pub(crate) fn count_bytes(&self, range: ByteRange) -> u64 {
        self.rank(range.end) - self.rank(range.start)
    }

    /// Pieces of the client in `range`, ascending. Neighbours are not joined across axes.
    pub(crate) fn pieces(self, range: ByteRange) -> FootprintPieces {
        let (next, end) = (self.rank(range.start), self.rank(range.end));
        FootprintPieces { footprint: self, next, end }
    }

    /// Longest run of equal pieces that starts at the byte of rank `rank` and ends before the byte
    /// of rank `end`.
    fn run_at(&self, rank: u64, end: u64) -> PieceRun {
        let (mut offset, mut memory_offset) = (self.file_base, self.memory_base);
        let mut rest = rank;
        for axis in self.outer.iter().rev() {
            let index = rest / axis.index_bytes;
            rest %= axis.index_bytes;
            let (chunk, index) = (index / axis.chunk, index % axis.chunk);
            offset += chunk * axis.file_period + index * axis.file_unit;
            memory_offset += chunk * axis.memory_period + index * axis.memory_unit;
        }
        let axis = &self.inner;
        let (chunk, skip) = match axis.chunks {
            1 => (0, rest),
            _ => (rest / axis.chunk, rest % axis.chunk),
        };
        offset += chunk * axis.file_period + skip;
        memory_offset += chunk * axis.memory_period + skip;
        let bytes_left = end - rank;
        if skip == 0 && chunk < axis.full_chunks() && bytes_left >= axis.chunk {
            let count = (axis.full_chunks() - chunk).min(bytes_left / axis.chunk);
            let (stride, memory_stride) = match count {
                1 => (axis.chunk, axis.chunk),
                _ => (axis.file_period, axis.memory_period),
            };
            let length = axis.chunk;
            return PieceRun { offset, stride, memory_offset, memory_stride, length, count };
        }
        let whole = if chunk + 1 == axis.chunks { axis.last_chunk } else { axis.chunk };
        let length = bytes_left.min(whole - skip);
        PieceRun { offset, stride: length, memory_offset, memory_stride: length, length, count: 1 }
    }
}

/// Runs of one client in one range of the file. See [`Footprint::pieces`].
#[derive(Clone, Debug)]
pub(crate) struct FootprintPieces {
    footprint: Footprint,
    /// Rank of the first byte that was not returned yet.
    next: u64,
    /// One past the rank of the last byte to return.
    end: u64,
}

impl Iterator for FootprintPieces {
    type Item = PieceRun;

    fn next(&mut self) -> Option<PieceRun> {
        if self.next >= self.end {
            return None;
        }
        let run = self.footprint.run_at(self.next, self.end);
        self.next += run.bytes();
        Some(run)
    }
}
