//! Joining of neighbouring runs that continue each other, so that an access has few runs.
//!
//! Invariants:
//! - The bytes, their places and their order stay the same.
//! - A run that is one contiguous range on both sides becomes one piece.

use units::PieceRun;

/// Iterator over joined runs. `runs` must come in file order.
#[derive(Clone, Debug)]
pub(crate) struct Coalesce<I> {
    runs: I,
    pending: Option<PieceRun>,
}

impl<I: Iterator<Item = PieceRun>> Coalesce<I> {
    pub(crate) fn new(runs: I) -> Self {
        Self { runs, pending: None }
    }
}

impl<I: Iterator<Item = PieceRun>> Iterator for Coalesce<I> {
    type Item = PieceRun;

    fn next(&mut self) -> Option<PieceRun> {
        let mut run = match self.pending.take() {
            Some(pending) => pending,
            None => as_one_piece(self.runs.next()?),
        };
        for next in self.runs.by_ref() {
            let next = as_one_piece(next);
            match join(run, next) {
                Some(joined) => run = joined,
                None => {
                    self.pending = Some(next);
                    break;
                }
            }
        }
        Some(run)
    }
}

/// Returns `run` as a single piece if its pieces touch each other on both sides.
fn as_one_piece(run: PieceRun) -> PieceRun {
    if !(run.file_side().is_contiguous() && run.memory_side().is_contiguous()) {
        return run;
    }
    let length = run.bytes();
    PieceRun { length, stride: length, memory_stride: length, count: 1, ..run }
}

/// Returns one run for `first` and then `second`, if there is such a run.
fn join(first: PieceRun, second: PieceRun) -> Option<PieceRun> {
    let stride = step(first.offset, first.stride, first.count, second.offset)?;
    let memory_stride =
        step(first.memory_offset, first.memory_stride, first.count, second.memory_offset)?;
    if first.count == 1 && second.count == 1 && [stride, memory_stride] == [first.length; 2] {
        let length = first.length + second.length;
        return Some(PieceRun { length, stride: length, memory_stride: length, ..first });
    }
    let keeps_step =
        second.count == 1 || (stride == second.stride && memory_stride == second.memory_stride);
    let apart = stride >= first.length && memory_stride >= first.length;
    let joins = first.length == second.length && keeps_step && apart;
    joins.then(|| PieceRun { stride, memory_stride, count: first.count + second.count, ..first })
}

/// Returns the distance between pieces at which `count` pieces from `start` lead to `next`. A
/// single piece has no distance yet and accepts any.
fn step(start: u64, stride: u64, count: u64, next: u64) -> Option<u64> {
    let distance = next.checked_sub(start)?;
    if count == 1 {
        return Some(distance);
    }
    (stride.checked_mul(count) == Some(distance)).then_some(stride)
}
