//! Programs that write as the NAS benchmark BTIO does: made, not recorded.
//!
//! P = q * q ranks solve equations in a cube of N * N * N points. The cube has q * q * q cells, of
//! which each rank has q on a diagonal, so that every rank has one in each plane of cells. At each
//! dump the ranks append the 5 doubles of every point to one file. (Wong and Van der Wijngaart,
//! NAS-03-002; `make_set.f`, `full_mpiio.f` and `simple_mpiio.f` of NPB 3.)

use crate::event::{Communicator, FileNumber, Operation, PartNumber, RankTrace};
use crate::made::{check_events, event, rank_trace, write_made};
use interface::UserError;
use policy::{Direction, Level, Nested, OwnPart};
use std::fmt;
use std::path::Path;

/// Bytes of a point: 5 doubles.
const POINT_BYTES: u64 = 40;

/// Fewest points of a cell in each direction, as in `make_set.f`.
const CELL_POINTS_MIN: u64 = 3;

/// Points around a cell in memory, in each direction: copies of its neighbours' points.
const GHOST_POINTS: u64 = 2;

/// Size of the cube.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BtioClass {
    /// 12 points in each direction.
    S,
    /// 24 points.
    W,
    /// 64 points.
    A,
    /// 102 points.
    B,
    /// 162 points.
    C,
    /// 408 points.
    D,
}

impl BtioClass {
    /// Points in each direction.
    pub fn points(self) -> u64 {
        match self {
            Self::S => 12,
            Self::W => 24,
            Self::A => 64,
            Self::B => 102,
            Self::C => 162,
            Self::D => 408,
        }
    }

    /// Dumps of the benchmark: one after each 5 of its 60, 200 or 250 time steps.
    pub fn dumps(self) -> u32 {
        match self {
            Self::S => 12,
            Self::W | Self::A | Self::B | Self::C => 40,
            Self::D => 50,
        }
    }

    /// Bytes of a dump.
    pub fn dump_bytes(self) -> u64 {
        POINT_BYTES * self.points().pow(3)
    }
}

/// Calls with which a dump is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BtioMode {
    /// One collective write of all cells of a rank.
    Full,
    /// An independent write of each row of points of each cell.
    Simple,
}

impl fmt::Display for BtioMode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Full => "full",
            Self::Simple => "simple",
        })
    }
}

/// A program that writes as BTIO does. The messages of the solver are left out.
#[derive(Clone, Copy, Debug)]
pub struct BtioProgram {
    /// Size of the cube.
    pub class: BtioClass,
    /// Calls of a dump.
    pub mode: BtioMode,
    /// Number of ranks, a square.
    pub ranks: u32,
    /// Number of dumps.
    pub dumps: u32,
    /// Computation of all ranks together before each dump, in nanoseconds. Each rank has the share
    /// of its points.
    pub computed_ns: u64,
    /// True when the data is brought to stable storage before the file is closed.
    pub sync: bool,
}

impl BtioProgram {
    /// Returns what each rank does.
    ///
    /// # Errors
    /// Refuses ranks that are no square or too many for the class, and too many events.
    pub fn rank_traces(&self) -> Result<Vec<RankTrace>, UserError> {
        let (points, side) = (self.class.points(), u64::from(self.ranks.isqrt()));
        let refused = |cause, help: String| {
            Err(UserError::usage("cannot make the trace of BTIO", cause, help))
        };
        let side_max = points / CELL_POINTS_MIN;
        let help = format!("give the square of a number from 1 to {side_max}, such as 4 or 9");
        if side * side != u64::from(self.ranks) || side == 0 {
            return refused(format!("{} ranks are no square", self.ranks), help);
        }
        if side > side_max {
            let cause = format!(
                "cells of {} ranks would have fewer than {CELL_POINTS_MIN} of {points} points in \
                 a direction",
                self.ranks
            );
            return refused(cause, help);
        }
        let calls = match self.mode {
            BtioMode::Full => u64::from(self.ranks),
            BtioMode::Simple => points * points * side,
        };
        let events = calls.saturating_mul(self.dumps.into()) + u64::from(self.ranks) * 5;
        check_events("BTIO", events)?;
        Ok((0..self.ranks).map(|rank| self.rank_trace(rank, side)).collect())
    }

    /// Writes the trace of the program as a new directory.
    ///
    /// # Errors
    /// Those of [`BtioProgram::rank_traces`], and a directory that exists.
    pub fn write(&self, directory: &Path) -> Result<(), UserError> {
        let Self { class, mode, dumps, .. } = self;
        let command = format!("btio {mode} of class {class:?}, {dumps} dumps");
        write_made(directory, "btio", command, &self.rank_traces()?)
    }

    fn rank_trace(&self, rank: u32, side: u64) -> RankTrace {
        let (file, communicator) = (FileNumber(0), Communicator(0));
        let cells = self.cells(rank, side);
        let points: u64 = cells.iter().map(Cell::points).sum();
        let share = u128::from(self.computed_ns) * u128::from(points)
            / u128::from(self.class.points().pow(3));
        let (parts, writes) = match self.mode {
            BtioMode::Full => self.full(&cells, side),
            BtioMode::Simple => self.simple(&cells),
        };
        let (creates, is_fresh, bytes) = (true, true, 0);
        let mut events = vec![
            event(0, Operation::Begin),
            event(0, Operation::Open { file, communicator, creates, is_fresh, bytes }),
        ];
        for dump in 0..u64::from(self.dumps) {
            for (number, (part, offset)) in writes.iter().enumerate() {
                let computed_ns = if number == 0 { share as u64 } else { 0 };
                let transfer = Operation::Transfer {
                    file,
                    direction: Direction::Write,
                    is_collective: self.mode == BtioMode::Full,
                    part: Some(*part),
                    shift: dump * self.class.dump_bytes() + offset,
                    request: None,
                };
                events.push(event(computed_ns, transfer));
            }
        }
        if self.sync {
            events.push(event(0, Operation::Sync { file }));
        }
        rank_trace(self.ranks, &["btio"], events, parts)
    }

    /// Cells of a rank: the next one lies one further in x and z, and one back in y.
    fn cells(&self, rank: u32, side: u64) -> Vec<Cell> {
        let (x, y) = (u64::from(rank) % side, u64::from(rank) / side);
        let span = |place: u64| {
            let (points, rest) = (self.class.points() / side, self.class.points() % side);
            // The first ones have the rest of the division.
            Span {
                start: place * points + place.min(rest),
                points: points + u64::from(place < rest),
            }
        };
        let cell = |z| Cell { x: span((x + z) % side), y: span((y + side - z) % side), z: span(z) };
        (0..side).map(cell).collect()
    }

    /// The one part of a rank, and its place in a dump. In memory, which begins with the first
    /// point that is written, ghost points lie between rows, planes and cells.
    fn full(&self, cells: &[Cell], side: u64) -> (Vec<OwnPart>, Vec<(PartNumber, u64)>) {
        let row = POINT_BYTES * self.class.points();
        let plane = row * self.class.points();
        // Dimension of the arrays of the benchmark.
        let room = self.class.points() / side + 1 + 2 * GHOST_POINTS;
        let (own_row, own_plane) = (POINT_BYTES * room, POINT_BYTES * room * room);
        let first = cells.iter().map(|cell| self.offset(cell, 0, 0)).min().unwrap_or_default();
        let nest = |(number, cell): (u64, &Cell)| Nested {
            file_offset: self.offset(cell, 0, 0) - first,
            memory_offset: number * own_plane * room,
            length: POINT_BYTES * cell.x.points,
            levels: vec![
                Level { count: cell.y.points, file_stride: row, memory_stride: own_row },
                Level { count: cell.z.points, file_stride: plane, memory_stride: own_plane },
            ],
        };
        let part = OwnPart::Nested((0..).zip(cells).map(nest).collect());
        (vec![part], vec![(PartNumber(0), first)])
    }

    /// Parts of each length of rows, and the rows of a dump: lengths and places.
    fn simple(&self, cells: &[Cell]) -> (Vec<OwnPart>, Vec<(PartNumber, u64)>) {
        let (mut lengths, mut rows) = (Vec::new(), Vec::new());
        for cell in cells {
            let length = POINT_BYTES * cell.x.points;
            let known = lengths.iter().position(|known| *known == length);
            let part = known.unwrap_or_else(|| {
                lengths.push(length);
                lengths.len() - 1
            });
            for z in 0..cell.z.points {
                let place = |y| (PartNumber(part as u32), self.offset(cell, y, z));
                rows.extend((0..cell.y.points).map(place));
            }
        }
        (lengths.into_iter().map(|length| OwnPart::contiguous(0, length)).collect(), rows)
    }

    /// Place in a dump of row (y, z) of a cell, in bytes.
    fn offset(&self, cell: &Cell, y: u64, z: u64) -> u64 {
        let points = self.class.points();
        POINT_BYTES * (cell.x.start + points * (cell.y.start + y + points * (cell.z.start + z)))
    }
}

/// Points of a cell in one direction.
#[derive(Clone, Copy)]
struct Span {
    start: u64,
    points: u64,
}

struct Cell {
    x: Span,
    y: Span,
    z: Span,
}

impl Cell {
    fn points(&self) -> u64 {
        self.x.points * self.y.points * self.z.points
    }
}

#[cfg(test)]
mod tests {
    //! Proves: in both modes, with cells of equal and of different sizes, the ranks write every
    //! byte of every dump once, in as many calls as the benchmark makes; what cannot be made is
    //! refused.
    use super::*;
    use units::ByteRange;

    fn program(class: BtioClass, mode: BtioMode, ranks: u32) -> BtioProgram {
        BtioProgram { class, mode, ranks, dumps: 2, computed_ns: 1_000_000, sync: true }
    }

    /// Pieces that a part moves, in the file.
    fn pieces(part: &OwnPart, shift: u64) -> Vec<ByteRange> {
        let OwnPart::Nested(nests) = part else { panic!("a part of strides") };
        let mut pieces = Vec::new();
        for nest in nests {
            let mut starts = vec![nest.file_offset + shift];
            for level in &nest.levels {
                let copies = |start| (0..level.count).map(move |i| start + i * level.file_stride);
                starts = starts.into_iter().flat_map(copies).collect();
            }
            pieces.extend(starts.into_iter().map(|start| ByteRange::at(start, nest.length)));
        }
        pieces
    }

    #[test]
    fn every_byte_is_written_once() {
        for (class, ranks) in [
            (BtioClass::S, 1),
            (BtioClass::S, 4),
            (BtioClass::S, 16),
            (BtioClass::W, 25),
            (BtioClass::A, 9),
        ] {
            for mode in [BtioMode::Full, BtioMode::Simple] {
                let program = program(class, mode, ranks);
                let traces = program.rank_traces().unwrap();
                crate::check(&traces).unwrap();
                let (mut written, mut calls, mut computed_ns) = (Vec::new(), 0, 0);
                for trace in &traces {
                    assert!(trace.parts.iter().all(|part| part.file_extent().unwrap().start == 0));
                    for event in &trace.events {
                        computed_ns += event.computed_ns;
                        if let Operation::Transfer { part, shift, is_collective, .. } =
                            &event.operation
                        {
                            assert_eq!(*is_collective, mode == BtioMode::Full);
                            calls += 1;
                            let part = &trace.parts[part.unwrap().0 as usize];
                            part.validate(units::ClientId(0), u64::MAX >> 8).unwrap();
                            written.extend(pieces(part, *shift));
                        }
                    }
                }
                written.sort_by_key(|piece| piece.start);
                let ends = written.iter().map(|piece| piece.end);
                let starts = written.iter().map(|piece| piece.start).skip(1);
                assert!(ends.zip(starts).all(|(end, start)| end == start), "{program:?}");
                assert_eq!(written[0].start, 0);
                assert_eq!(written.last().unwrap().end, 2 * class.dump_bytes());
                let rows = class.points().pow(2) * u64::from(ranks.isqrt());
                let expected = if mode == BtioMode::Full { u64::from(ranks) } else { rows };
                assert_eq!(calls, 2 * expected, "{program:?}");
                let ranks = u64::from(ranks);
                assert!((2_000_000 - 2 * ranks..=2_000_000).contains(&computed_ns));
            }
        }
    }

    #[test]
    fn a_written_trace_is_what_was_made() {
        let directory = tempfile::tempdir().unwrap();
        for mode in [BtioMode::Full, BtioMode::Simple] {
            let path = directory.path().join(mode.to_string());
            let program = program(BtioClass::S, mode, 9);
            program.write(&path).unwrap();
            let read = crate::Trace::open(&path).unwrap();
            assert!(read.ranks == program.rank_traces().unwrap(), "{program:?}");
            assert!(program.write(&path).is_err(), "it exists");
        }
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        for ranks in [0, 2, 15, 25] {
            assert!(program(BtioClass::S, BtioMode::Full, ranks).rank_traces().is_err(), "{ranks}");
        }
        let mut large = program(BtioClass::D, BtioMode::Simple, 16);
        large.dumps = 50;
        assert!(large.rank_traces().is_err(), "33 million calls");
    }
}
