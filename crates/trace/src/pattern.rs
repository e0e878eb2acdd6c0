//! Traces of programs that only move one access pattern: made, not recorded.

use crate::event::{Collective, Communicator, Event, Operation};
use crate::format::Writer;
use crate::header::{Header, Recorded};
use interface::{UserError, access_of};
use policy::{Direction, Pattern};
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
    /// Writes the trace of the program as a new directory. Files that it reads exist before.
    ///
    /// # Errors
    /// Refuses a pattern that does not fit the file, and a directory that exists.
    pub fn write(&self, directory: &Path) -> Result<(), UserError> {
        let access = access_of(&self.pattern, self.ranks, self.record_bytes, self.file_bytes)?;
        std::fs::create_dir(directory).map_err(|error| {
            UserError::usage(
                format!("cannot make the trace {}", directory.display()),
                error.to_string(),
                "name a directory that does not exist, in one that you may write to",
            )
        })?;
        for rank in 0..self.ranks {
            let mut writer = Writer::create(directory, (rank, self.ranks), "pattern", "none")?;
            let part = writer.part(&access.own_part(ClientId(rank)))?;
            let file = writer.file("pattern")?;
            let communicator = Communicator(0);
            let reads = self.pattern.direction == Direction::Read;
            let bytes = if reads { self.file_bytes } else { 0 };
            let mut write = |computed_ns: u64, operation: Operation| {
                let (blocked_ns, took_ns, depends_on_timing) = (0, 0, false);
                writer.write(&Event {
                    computed_ns,
                    blocked_ns,
                    took_ns,
                    depends_on_timing,
                    operation,
                })
            };
            write(0, Operation::Begin)?;
            write(
                0,
                Operation::Open { file, communicator, creates: !reads, is_fresh: !reads, bytes },
            )?;
            for _ in 0..self.repeat {
                let (kind, root) = (Collective::Barrier, 0);
                write(
                    0,
                    Operation::Collective { kind, communicator, root, bytes: 0, request: None },
                )?;
                write(
                    self.computed_ns,
                    Operation::Transfer {
                        file,
                        direction: self.pattern.direction,
                        is_collective: !self.is_independent,
                        part: part.map(|part| part.part),
                        shift: part.map_or(0, |part| part.shift),
                        request: None,
                    },
                )?;
                if self.sync && !reads {
                    write(0, Operation::Sync { file })?;
                }
            }
            write(0, Operation::Close { file })?;
            write(0, Operation::End)?;
            writer.close()?;
        }
        let header = Header {
            schema: Header::SCHEMA.to_owned(),
            command: vec![format!(
                "pattern {} of {} byte records, {} bytes",
                self.pattern, self.record_bytes, self.file_bytes
            )],
            ranks: self.ranks,
            hosts: vec!["pattern".to_owned(); self.ranks as usize],
            mpi: "none".to_owned(),
            started: String::new(),
            recorded: Recorded::Pattern,
            instance: None,
            processor_pressure_percent: None,
            steal_percent: None,
        };
        header.write(directory)
    }
}
