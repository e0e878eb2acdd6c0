//! Programs that only move one access pattern: made, not recorded.

use crate::event::{Collective, Communicator, FileNumber, Operation, PartNumber, RankTrace};
use crate::made::{check_events, event, rank_trace, write_made};
use interface::{UserError, access_of};
use policy::{Direction, OwnPart, Pattern};
use std::ops::Range;
use std::path::Path;
use units::ClientId;

/// A program whose ranks open a file together and move a pattern a number of times; or groups of
/// ranks do, each with a file of its own, at the same time.
#[derive(Clone, Debug)]
pub struct PatternProgram {
    /// Pattern and direction.
    pub pattern: Pattern,
    /// Bytes of a record.
    pub record_bytes: u64,
    /// Bytes of a file.
    pub file_bytes: u64,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of files, each of a group of consecutive ranks.
    pub files: u32,
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
    /// Refuses a pattern that does not fit the file, and groups of different sizes.
    pub fn rank_traces(&self) -> Result<Vec<RankTrace>, UserError> {
        let Self { ranks, files, .. } = *self;
        if files == 0 || !ranks.is_multiple_of(files) {
            return Err(UserError::usage(
                format!("cannot divide the ranks among {files} files"),
                format!("there are {ranks} ranks"),
                "give a number of files that divides the number of ranks",
            ));
        }
        let group = ranks / files;
        let access = access_of(&self.pattern, group, self.record_bytes, self.file_bytes)?;
        let events = u64::from(self.ranks).saturating_mul(u64::from(self.repeat) * 3 + 4);
        check_events("a pattern", events)?;
        let of_rank = |rank| {
            let first = rank / group * group;
            self.rank_trace(access.own_part(ClientId(rank - first)), first..first + group)
        };
        Ok((0..self.ranks).map(of_rank).collect())
    }

    /// What a rank of these does, which have a file together.
    fn rank_trace(&self, part: OwnPart, group: Range<u32>) -> RankTrace {
        let (file, communicator) = (FileNumber(0), Communicator(0));
        let own = Communicator(u32::from(self.files > 1));
        let reads = self.pattern.direction == Direction::Read;
        let bytes = if reads { self.file_bytes } else { 0 };
        let (creates, is_fresh) = (!reads, !reads);
        let mut events = vec![
            event(0, Operation::Begin),
            event(0, Operation::Open { file, communicator: own, creates, is_fresh, bytes }),
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
        let name = match self.files {
            1 => "pattern".to_owned(),
            _ => format!("pattern-{}", group.start),
        };
        let mut trace = rank_trace(self.ranks, &[&name], events, vec![part]);
        if self.files > 1 {
            trace.communicators.push(group.collect());
        }
        trace
    }

    /// Writes the trace of the program as a new directory.
    ///
    /// # Errors
    /// Refuses a pattern that does not fit the file, and a directory that exists.
    pub fn write(&self, directory: &Path) -> Result<(), UserError> {
        let traces = self.rank_traces()?;
        let Self { pattern, record_bytes, file_bytes, files, .. } = self;
        let of_files =
            if *files == 1 { String::new() } else { format!(" in each of {files} files") };
        let command = format!(
            "pattern {pattern} of {record_bytes} byte records, {file_bytes} bytes{of_files}"
        );
        write_made(directory, "pattern", command, &traces)
    }
}
