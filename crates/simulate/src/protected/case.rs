//! One case of a call on a protected file, and its result.

use crate::scenario::Scenario;
use interface::UserError;
use policy::{Direction, Level, Nested, OwnPart, Protection};
use std::fmt;

/// Records of a block, for [`ProtectedCall::WriteRecords`].
const RECORDS_OF_BLOCK: u64 = 8;

/// Of so many blocks or records one is written where only parts of rows are. With an odd number,
/// all of an even number of servers have as much to write.
const STEP: u64 = 3;

/// Collective call of all clients, of which the time is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtectedCall {
    /// The whole of a new file is written.
    WriteNew,
    /// The whole of a file that was written before is written: all of its rows.
    WriteAgain,
    /// Every third block of a file that was written before is written: parts of rows.
    WriteBlocks,
    /// Every third record of a file that was written before is written, eight of which are a block,
    /// by clients in turn: parts of blocks.
    WriteRecords,
    /// The whole file is read.
    Read,
    /// As [`Read`](Self::Read), when the data of one server is lost: what that server had comes
    /// from copies, or is made of the rest of its rows.
    ReadWithout,
    /// The data of one server is lost, and a new one in its place is filled again.
    Refill,
}

impl ProtectedCall {
    /// Every call.
    pub const ALL: [Self; 7] = [
        Self::WriteNew,
        Self::WriteAgain,
        Self::WriteBlocks,
        Self::WriteRecords,
        Self::Read,
        Self::ReadWithout,
        Self::Refill,
    ];

    /// Direction of the transfer.
    pub fn direction(self) -> Direction {
        match self {
            Self::Read | Self::ReadWithout | Self::Refill => Direction::Read,
            _ => Direction::Write,
        }
    }

    /// Bytes of a file, of which each client writes a whole number of blocks and of parts of them.
    pub fn turn_bytes(clients: u32, block_bytes: u64) -> u64 {
        (STEP * u64::from(clients)).saturating_mul(block_bytes)
    }

    /// True if the data of a server is lost.
    pub fn loses_server(self) -> bool {
        matches!(self, Self::ReadWithout | Self::Refill)
    }

    /// Part of one of `clients` clients of a file of `file_bytes` bytes, in blocks of
    /// `block_bytes`.
    pub(super) fn part(
        self,
        (client, clients): (u32, u32),
        (file_bytes, block_bytes): (u64, u64),
    ) -> OwnPart {
        let (client, clients) = (u64::from(client), u64::from(clients));
        let unit = match self {
            Self::WriteBlocks => block_bytes,
            Self::WriteRecords => block_bytes / RECORDS_OF_BLOCK,
            _ => return OwnPart::contiguous(client * (file_bytes / clients), file_bytes / clients),
        };
        let stride = STEP * clients * unit;
        let level = Level { count: file_bytes / stride, file_stride: stride, memory_stride: unit };
        OwnPart::Nested(vec![Nested {
            file_offset: STEP * client * unit,
            memory_offset: 0,
            length: unit,
            levels: vec![level],
        }])
    }
}

impl fmt::Display for ProtectedCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::WriteNew => "write a new file",
            Self::WriteAgain => "write all again",
            Self::WriteBlocks => "write every third block",
            Self::WriteRecords => "write every third record",
            Self::Read => "read",
            Self::ReadWithout => "read without a server",
            Self::Refill => "fill a lost server again",
        })
    }
}

/// A case. Of the scenario, the pattern and the strategy have no effect: the servers direct the
/// call.
#[derive(Clone, Debug)]
pub struct ProtectedCase {
    /// Machine, clients, servers, blocks, size and protection of the file.
    pub scenario: Scenario,
    /// Call.
    pub call: ProtectedCall,
}

/// Result of a case. All of it follows from the case and the seed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProtectedOutcome {
    /// Simulated seconds from the begin at the first client to the end at the last one.
    pub seconds: f64,
    /// Bytes that clients have written or read, or that a lost server had.
    pub bytes: u64,
    /// Digest of the whole simulation.
    pub digest: u64,
}

impl ProtectedCase {
    /// Largest rate of the call over that without protection, where the disks are the limit: writes
    /// store copies or parity too, and one server of all is filled.
    pub fn bound(&self) -> f64 {
        match (self.call, self.call.direction()) {
            (ProtectedCall::Refill, _) => 1.0 / f64::from(self.scenario.servers),
            (_, Direction::Read) => 1.0,
            (_, Direction::Write) => self.data_share(),
        }
    }

    /// Share of data in what is stored.
    fn data_share(&self) -> f64 {
        self.scenario.protection.data_share(&self.scenario.stripe())
    }

    /// Bytes that one of all servers has of the file, with copies or parity.
    pub(super) fn bytes_of_server(&self) -> u64 {
        let stored = self.scenario.file_bytes as f64 / self.data_share();
        (stored / f64::from(self.scenario.servers)) as u64
    }

    /// Refuses a case that makes no sense.
    ///
    /// # Errors
    /// Says what to change.
    pub(super) fn check(&self) -> Result<(), UserError> {
        let Self { scenario, call } = self;
        let refused = |cause: String, help: &str| {
            Err(UserError::usage("cannot simulate a call on a protected file", cause, help))
        };
        let Scenario { file_bytes, block_bytes, clients, .. } = *scenario;
        scenario.check()?;
        let turn = (STEP * u64::from(clients)).checked_mul(block_bytes);
        let is_even = turn.is_some_and(|turn| file_bytes > 0 && file_bytes.is_multiple_of(turn));
        if !is_even || !block_bytes.is_multiple_of(RECORDS_OF_BLOCK) {
            let cause = format!("the file has {file_bytes} bytes, and a block {block_bytes}");
            let help = format!(
                "give blocks of a multiple of {RECORDS_OF_BLOCK} bytes, and for each client a \
                 multiple of {STEP} of them"
            );
            return refused(cause, &help);
        }
        if call.loses_server() && (scenario.protection == Protection::None || scenario.servers < 2)
        {
            let cause = "nothing else has what a lost server had".to_owned();
            return refused(cause, "protect the file: mirror, or parity");
        }
        Ok(())
    }
}
