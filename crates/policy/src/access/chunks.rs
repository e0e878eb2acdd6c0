//! Largest contiguous pieces of one client, one by one, as an ordinary program requests them.
//!
//! Invariants:
//! - Chunks come in file order, and no two of them touch on both sides.
//! - The next chunk of a strided run takes a few additions and no division.

use units::PieceRun;

/// Contiguous piece of the file that goes to a contiguous piece of a client's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Start in the file, in bytes.
    pub file_offset: u64,
    /// Start in the client's memory, in bytes.
    pub memory_offset: u64,
    /// Number of bytes; at least 1.
    pub length: u64,
}

/// Iterator over the chunks of runs. It joins chunks that touch across runs.
#[derive(Clone, Debug)]
pub(crate) struct Chunks<I> {
    runs: I,
    /// Rest of the current run.
    run: PieceRun,
    pending: Option<Chunk>,
}

impl<I: Iterator<Item = PieceRun>> Chunks<I> {
    /// Chunks of `runs`, which must be coalesced and in file order.
    pub(crate) fn new(runs: I) -> Self {
        let run = PieceRun {
            offset: 0,
            stride: 0,
            memory_offset: 0,
            memory_stride: 0,
            length: 0,
            count: 0,
        };
        Self { runs, run, pending: None }
    }

    /// Returns the next piece of the current run, or of the next run.
    #[inline]
    fn next_piece(&mut self) -> Option<Chunk> {
        if self.run.count == 0 {
            self.run = self.runs.next()?;
        }
        let run = &mut self.run;
        let chunk =
            Chunk { file_offset: run.offset, memory_offset: run.memory_offset, length: run.length };
        run.count -= 1;
        // The step after the last piece is not used, so it may wrap.
        run.offset = run.offset.wrapping_add(run.stride);
        run.memory_offset = run.memory_offset.wrapping_add(run.memory_stride);
        Some(chunk)
    }
}

impl<I: Iterator<Item = PieceRun>> Iterator for Chunks<I> {
    type Item = Chunk;

    #[inline]
    fn next(&mut self) -> Option<Chunk> {
        let mut chunk = match self.pending.take() {
            Some(pending) => pending,
            None => self.next_piece()?,
        };
        while let Some(next) = self.next_piece() {
            let touches = chunk.file_offset + chunk.length == next.file_offset
                && chunk.memory_offset + chunk.length == next.memory_offset;
            if !touches {
                self.pending = Some(next);
                break;
            }
            chunk.length += next.length;
        }
        Some(chunk)
    }
}
