//! Programs that only move one access pattern: made, not recorded.

use crate::event::{Collective, Communicator, FileNumber, Operation, PartNumber, RankTrace};
use crate::made::{check_events, event, rank_trace, write_made};
use interface::{UserError, access_of};
use policy::{Direction, OwnPart, Pattern};
use std::path::Path;
use units::ClientId;

/// A program whose ranks open one file together and move a pattern a number of times.
#[derive(Clone, Debug)]
pub struct PatternProgram {
    /// Pattern and direction.
    pub pattern: Pattern,
    /// Bytes of a record.
    pub record_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of transfers.
    pub repeat: u32,
    /// Computation of each rank before each transfer, in nanoseconds.
    pub computed_ns: u64,
    /// True when each rank moves its part by itself.
    pub is_independent: bool,
    /// True when written data is brought to stable storage after each transfer.
    pub sync: bool,
}

impl PatternProgram {
    /// Returns what each rank does. A file that is read exists before.
    ///
    /// # Errors
    /// Refuses a pattern that does not fit the file.
    pub fn rank_traces(&self) -> Result<Vec<RankTrace>, UserError> {
        let access = access_of(&self.pattern, self.ranks, self.record_bytes, self.file_bytes)?;
        let events = u64::from(self.ranks).saturating_mul(u64::from(self.repeat) * 3 + 4);
        check_events("a pattern", events)?;
        let of_rank = |rank| self.rank_trace(access.own_part(ClientId(rank)));
        Ok((0..self.ranks).map(of_rank).collect())
    }

    fn rank_trace(&self, part: OwnPart) -> RankTrace {
        let (file, communicator) = (FileNumber(0), Communicator(0));
        let reads = self.pattern.direction == Direction::Read;
        let bytes = if reads { self.file_bytes } else { 0 };
        let (creates, is_fresh) = (!reads, !reads);
        let mut events = vec![
            event(0, Operation::Begin),
            event(0, Operation::Open { file, communicator, creates, is_fresh, bytes }),
        ];
        for _ in 0..self.repeat {
            let (kind, root, bytes, request) = (Collective::Barrier, 0, 0, None);
            events
                .push(event(0, Operation::Collective { kind, communicator, root, bytes, request }));
            events.push(event(
                self.computed_ns,
                Operation::Transfer {
                    file,
                    direction: self.pattern.direction,
                    is_collective: !self.is_independent,
                    part: (part.bytes() > 0).then_some(PartNumber(0)),
                    shift: 0,
                    request: None,
                },
            ));
            if self.sync && !reads {
                events.push(event(0, Operation::Sync { file }));
            }
        }
        rank_trace(self.ranks, "pattern", events, vec![part])
    }

    /// Writes the trace of the program as a new directory.
    ///
    /// # Errors
    /// Refuses a pattern that does not fit the file, and a directory that exists.
    pub fn write(&self, directory: &Path) -> Result<(), UserError> {
        let traces = self.rank_traces()?;
        let Self { pattern, record_bytes, file_bytes, .. } = self;
        let command =
            format!("pattern {pattern} of {record_bytes} byte records, {file_bytes} bytes");
        write_made(directory, "pattern", command, &traces)
    }
}
