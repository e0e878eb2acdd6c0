//! Programs that factor a matrix out of core, as `python/bench/lu.py` does: made, not recorded.
//!
//! The matrix and its factors are files of order * order doubles, by columns or by rows. Slabs of
//! columns are factored from left to right: a slab of the matrix is read, of which each rank has
//! some columns; each slab to its left is read by all ranks, and eliminated; then the ranks factor
//! their columns in turn, and broadcast them. (D. Kotz, "Disk-directed I/O for an out-of-core
//! computation", HPDC 1995.) Slabs to the left are read one ahead of their use. One call writes a
//! slab of factors, reads the next one of the matrix, and the first one of the factors.

use crate::event::{
    Collective, Communicator, Event, FileNumber, Operation, PartNumber, RankTrace, RequestNumber,
};
use crate::made::{check_events, event, rank_trace, write_made};
use interface::UserError;
use policy::{Direction, Level, Nested, OwnPart};
use std::ops::Range;
use std::path::Path;

/// Bytes of an element.
const ELEMENT_BYTES: u64 = 8;

const MATRIX: FileNumber = FileNumber(0);
const FACTORS: FileNumber = FileNumber(1);
const ALL: Communicator = Communicator(0);

/// Largest order of a matrix, in elements.
const ORDER_MAX: u64 = 1 << 24;

/// A program that factors a matrix with partial pivoting.
#[derive(Clone, Copy, Debug)]
pub struct LuProgram {
    /// Rows and columns of the matrix.
    pub order: u64,
    /// Columns of a slab.
    pub slab: u64,
    /// Number of ranks.
    pub ranks: u32,
    /// Floating-point operations of a rank in a microsecond (MFLOP/s).
    pub flops_per_us: u64,
    /// True when rows are contiguous in the files, false when columns are.
    pub is_by_rows: bool,
    /// True when each call ends before the next one begins, and one moves one file.
    pub is_sequential: bool,
}

impl LuProgram {
    /// Returns what each rank does. The matrix exists before.
    ///
    /// # Errors
    /// Refuses a matrix without elements, slabs wider than it, and too many events.
    pub fn rank_traces(&self) -> Result<Vec<RankTrace>, UserError> {
        let Self { order, slab, ranks, flops_per_us, .. } = *self;
        let refused =
            |cause, help| Err(UserError::usage("cannot make the trace of LU", cause, help));
        if order == 0 || order > ORDER_MAX || ranks == 0 {
            let cause = format!("a matrix of order {order} by {ranks} ranks is not possible");
            return refused(cause, format!("give an order from 1 to {ORDER_MAX}"));
        }
        if slab == 0 || slab > order {
            let cause = format!("slabs have {slab} columns, and the matrix {order}");
            return refused(cause, "give slabs of at least 1 column and at most all".to_owned());
        }
        if flops_per_us == 0 {
            return refused(
                "a rank computes 0 operations in a microsecond".to_owned(),
                "give at least 1 MFLOP/s".to_owned(),
            );
        }
        let slabs = order.div_ceil(slab);
        let each = slabs.saturating_mul(slabs).saturating_add(slabs * (u64::from(ranks) + 8));
        check_events("LU", each.saturating_mul(ranks.into()))?;
        Ok((0..ranks).map(|rank| Maker::new(self, rank).made()).collect())
    }

    /// Writes the trace of the program as a new directory.
    ///
    /// # Errors
    /// Those of [`LuProgram::rank_traces`], and a directory that exists.
    pub fn write(&self, directory: &Path) -> Result<(), UserError> {
        let Self { order, slab, .. } = self;
        let command = format!("LU of {order} by {order} in slabs of {slab} columns");
        write_made(directory, "lu", command, &self.rank_traces()?)
    }

    /// Columns of the slab that begins at `first`, and those of a rank among them.
    fn columns(&self, first: u64, rank: u32) -> Range<u64> {
        let width = self.slab.min(self.order - first);
        let chunk = width.div_ceil(self.ranks.into());
        let place = |rank: u64| first + (rank * chunk).min(width);
        place(rank.into())..place(u64::from(rank) + 1)
    }

    /// Time of floating-point operations, in nanoseconds.
    fn time_of(&self, operations: u64) -> u64 {
        (u128::from(operations) * 1_000 / u128::from(self.flops_per_us)) as u64
    }
}

/// Operations of bringing `columns` columns of `rows` rows up to date with `width` columns: a
/// triangular solve and a product.
fn elimination(rows: u64, width: u64, columns: u64) -> u64 {
    let product = 2 * (rows.saturating_sub(width)) * width * columns;
    width * width * columns + product
}

/// Operations of factoring `width` columns of `rows` rows.
fn factoring(rows: u64, width: u64) -> u64 {
    width * width * rows.saturating_sub(width / 3)
}

/// Makes the trace of a rank.
struct Maker<'a> {
    program: &'a LuProgram,
    rank: u32,
    events: Vec<Event>,
    parts: Vec<OwnPart>,
    /// Computation since the last event, in nanoseconds.
    computed_ns: u64,
}

impl<'a> Maker<'a> {
    fn new(program: &'a LuProgram, rank: u32) -> Self {
        Self { program, rank, events: Vec::new(), parts: Vec::new(), computed_ns: 0 }
    }

    fn made(mut self) -> RankTrace {
        let LuProgram { order, slab, ranks, is_sequential, .. } = *self.program;
        let bytes = order * order * ELEMENT_BYTES;
        self.push(Operation::Begin);
        for (file, creates, bytes) in [(MATRIX, false, bytes), (FACTORS, true, 0)] {
            let is_fresh = creates;
            self.push(Operation::Open { file, communicator: ALL, creates, is_fresh, bytes });
        }
        self.move_all(&[(Direction::Read, MATRIX, self.own_columns(0))]);
        let starts = || (0..order).step_by(slab as usize);
        for first in starts() {
            self.eliminate_left(first);
            self.factor(first);
            let mut moves = vec![(Direction::Write, FACTORS, self.own_columns(first))];
            let mut later = Vec::new();
            if first + slab < order {
                moves.push((Direction::Read, MATRIX, self.own_columns(first + slab)));
                // The first slab is read when it is written.
                let reads = if first == 0 { &mut later } else { &mut moves };
                reads.push((Direction::Read, FACTORS, self.lower(0)));
            }
            match is_sequential {
                true => moves.iter().for_each(|one| self.move_all(std::slice::from_ref(one))),
                false => self.move_all(&moves),
            }
            self.move_all(&later);
        }
        let names = ["matrix", "factors"];
        rank_trace(ranks, &names, self.events, self.parts)
    }

    /// Brings this rank's columns of a slab up to date with all slabs to the left, of which the
    /// first one was read before.
    fn eliminate_left(&mut self, first: u64) {
        let LuProgram { slab, is_sequential, .. } = *self.program;
        let mut ahead = None;
        for left in (0..first).step_by(slab as usize) {
            if let Some(request) = ahead.take() {
                self.push(Operation::Wait { requests: vec![request] });
            }
            let follows = left + slab < first;
            if follows && !is_sequential {
                let request = RequestNumber(0);
                self.begin((Direction::Read, FACTORS, self.lower(left + slab)), Some(request));
                ahead = Some(request);
            }
            let rows = self.program.order - left;
            self.compute(elimination(rows, slab, self.own_count(first)));
            if follows && is_sequential {
                self.move_all(&[(Direction::Read, FACTORS, self.lower(left + slab))]);
            }
        }
    }

    /// Factors a slab: each rank in turn its columns, which it broadcasts.
    fn factor(&mut self, first: u64) {
        let program = self.program;
        for owner in 0..program.ranks {
            let columns = program.columns(first, owner);
            let (rows, width) = (program.order - columns.start, columns.end - columns.start);
            if width == 0 {
                continue;
            }
            if owner == self.rank {
                self.compute(factoring(rows, width));
            }
            let (kind, communicator, request) = (Collective::Broadcast, ALL, None);
            let (root, bytes) = (owner, rows * width * ELEMENT_BYTES);
            self.push(Operation::Collective { kind, communicator, root, bytes, request });
            if self.rank > owner {
                self.compute(elimination(rows, width, self.own_count(first)));
            }
        }
    }

    fn own_count(&self, first: u64) -> u64 {
        let columns = self.program.columns(first, self.rank);
        columns.end - columns.start
    }

    /// This rank's columns of a slab, all rows.
    fn own_columns(&self, first: u64) -> (OwnPart, u64) {
        let columns = self.program.columns(first, self.rank);
        self.rectangle(0..self.program.order, columns)
    }

    /// All columns of a slab that begins at row and column `first`, from that row on.
    fn lower(&self, first: u64) -> (OwnPart, u64) {
        let order = self.program.order;
        self.rectangle(first..order, first..(first + self.program.slab).min(order))
    }

    /// Part of some rows and columns, and its place in the file.
    fn rectangle(&self, rows: Range<u64>, columns: Range<u64>) -> (OwnPart, u64) {
        let (slow, fast) = if self.program.is_by_rows { (rows, columns) } else { (columns, rows) };
        let length = (fast.end - fast.start) * ELEMENT_BYTES;
        let file_stride = self.program.order * ELEMENT_BYTES;
        let count = slow.end - slow.start;
        if length == 0 || count == 0 {
            return (OwnPart::NOTHING, 0);
        }
        let levels = vec![Level { count, file_stride, memory_stride: length }];
        let nest = Nested { file_offset: 0, memory_offset: 0, length, levels };
        let shift = slow.start * file_stride + fast.start * ELEMENT_BYTES;
        (OwnPart::Nested(vec![nest]), shift)
    }

    fn compute(&mut self, operations: u64) {
        self.computed_ns += self.program.time_of(operations);
    }

    fn push(&mut self, operation: Operation) {
        self.events.push(event(std::mem::take(&mut self.computed_ns), operation));
    }

    /// Moves parts of files in one call, and waits for them.
    fn move_all(&mut self, moves: &[(Direction, FileNumber, (OwnPart, u64))]) {
        if let [one] = moves {
            return self.begin(one.clone(), None);
        }
        let requests: Vec<_> = (1..=moves.len() as u32).map(RequestNumber).collect();
        for (one, request) in moves.iter().zip(&requests) {
            self.begin(one.clone(), Some(*request));
        }
        if !requests.is_empty() {
            self.push(Operation::Wait { requests });
        }
    }

    fn begin(
        &mut self,
        (direction, file, (part, shift)): (Direction, FileNumber, (OwnPart, u64)),
        request: Option<RequestNumber>,
    ) {
        let part = (part.bytes() > 0).then(|| self.number_of(part));
        let is_collective = true;
        self.push(Operation::Transfer { file, direction, is_collective, part, shift, request });
    }

    fn number_of(&mut self, part: OwnPart) -> PartNumber {
        let known = self.parts.iter().position(|known| *known == part);
        let number = known.unwrap_or_else(|| {
            self.parts.push(part);
            self.parts.len() - 1
        });
        PartNumber(number as u32)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: ranks write every element of the factors once, and read every element of the matrix
    //! once; each computes its share; what cannot be made is refused.
    use super::*;
    use units::ClientId;

    fn program(order: u64, slab: u64, ranks: u32, is_sequential: bool) -> LuProgram {
        let is_by_rows = order % 2 == 1;
        LuProgram { order, slab, ranks, flops_per_us: 1_000, is_by_rows, is_sequential }
    }

    /// Bytes that all transfers of a file in a direction touch, by how often.
    fn touched(traces: &[RankTrace], wanted: (Direction, FileNumber), bytes: u64) -> Vec<u32> {
        let mut times = vec![0; bytes as usize];
        for trace in traces {
            for event in &trace.events {
                let Operation::Transfer { file, direction, part: Some(part), shift, .. } =
                    &event.operation
                else {
                    continue;
                };
                if (*direction, *file) != wanted {
                    continue;
                }
                let part = trace.parts[part.0 as usize].shifted(*shift);
                part.validate(ClientId(0), bytes).unwrap();
                for chunk in policy::Access::Parts(vec![part]).chunks(ClientId(0)) {
                    let range = chunk.file_offset..chunk.file_offset + chunk.length;
                    range.for_each(|at| times[at as usize] += 1);
                }
            }
        }
        times
    }

    #[test]
    fn every_element_is_read_and_written() {
        for (order, slab, ranks) in
            [(12, 4, 2), (13, 5, 3), (12, 5, 3), (7, 7, 2), (9, 2, 4), (5, 1, 1)]
        {
            for is_sequential in [false, true] {
                let program = program(order, slab, ranks, is_sequential);
                let traces = program.rank_traces().unwrap();
                crate::check(&traces).unwrap();
                let bytes = order * order * ELEMENT_BYTES;
                let written = touched(&traces, (Direction::Write, FACTORS), bytes);
                assert!(written.iter().all(|times| *times == 1), "{program:?}");
                let read = touched(&traces, (Direction::Read, MATRIX), bytes);
                assert!(read.iter().all(|times| *times == 1), "{program:?}");
                // Each rank reads the slabs to the left of each slab but the first one.
                let again = touched(&traces, (Direction::Read, FACTORS), bytes);
                let slabs = order.div_ceil(slab);
                let expected = (slabs - 1) * u64::from(ranks);
                let first = if slabs > 1 { expected } else { 0 };
                assert_eq!(u64::from(again[0]), first, "{program:?}");
            }
        }
    }

    #[test]
    fn all_ranks_compute_what_the_factorisation_takes() {
        for (order, slab, ranks) in [(2048, 64, 1), (2048, 128, 4)] {
            let program = program(order, slab, ranks, false);
            let traces = program.rank_traces().unwrap();
            let events = traces.iter().flat_map(|trace| &trace.events);
            let computed: u64 = events.map(|event| event.computed_ns).sum();
            // Two thirds of the cube of the order, and lower terms.
            let expected = program.time_of(2 * order.pow(3) / 3);
            assert!((0.95..1.1).contains(&(computed as f64 / expected as f64)), "{computed}");
        }
    }

    #[test]
    fn a_written_trace_is_what_was_made() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lu");
        let program = program(40, 8, 3, false);
        program.write(&path).unwrap();
        let read = crate::Trace::open(&path).unwrap();
        assert!(read.ranks == program.rank_traces().unwrap());
        assert!(program.write(&path).is_err(), "it exists");
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        for (order, slab, ranks) in [(0, 1, 1), (8, 0, 1), (8, 9, 1), (8, 4, 0), (1 << 24, 1, 1)] {
            assert!(program(order, slab, ranks, false).rank_traces().is_err());
        }
        assert!(LuProgram { flops_per_us: 0, ..program(8, 4, 1, false) }.rank_traces().is_err());
    }
}
