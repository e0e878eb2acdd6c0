//! One case of records that clients want, and its result.

use crate::scenario::Scenario;
use interface::UserError;
use std::fmt;

/// Largest file of a case: it moves with its bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Way in which records get to the clients that want them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordDelivery {
    /// Clients read equal parts of the file by one directed collective, and look at all records.
    ClientsLook,
    /// Servers look; each client gets an equal share of the records that match.
    ServersLook,
    /// Clients read equal parts, look at all records, and send each to the client that wants it.
    ClientsExchange,
    /// Servers look, and deliver each record to the client that wants it.
    ServersDeliver,
}

impl RecordDelivery {
    /// Every way.
    pub const ALL: [Self; 4] =
        [Self::ClientsLook, Self::ServersLook, Self::ClientsExchange, Self::ServersDeliver];

    /// True if clients read all records.
    pub(super) fn is_by_clients(self) -> bool {
        matches!(self, Self::ClientsLook | Self::ClientsExchange)
    }

    /// True if a record is for one certain client.
    pub(super) fn has_owners(self) -> bool {
        matches!(self, Self::ClientsExchange | Self::ServersDeliver)
    }
}

impl fmt::Display for RecordDelivery {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::ClientsLook => "clients look",
            Self::ServersLook => "servers look",
            Self::ClientsExchange => "clients exchange",
            Self::ServersDeliver => "servers deliver",
        })
    }
}

/// A case. Of the scenario, the pattern and the strategy have no effect.
#[derive(Clone, Debug)]
pub struct RecordCase {
    /// Machine, clients, servers, blocks and size of the file.
    pub scenario: Scenario,
    /// Bytes of a record: at least 16, and a divisor of the block.
    pub record_bytes: u32,
    /// Records of a thousand that match, on average.
    pub matching_of_1000: u32,
    /// Way in which they get to the clients.
    pub delivery: RecordDelivery,
}

/// Result of a case. All of it follows from the case and the seed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecordOutcome {
    /// Simulated seconds from the begin at the first client to the end at the last one.
    pub seconds: f64,
    /// Bytes that messages and data took on the network meanwhile, headers included.
    pub network_bytes: u64,
    /// Records that clients got because they match.
    pub records: u64,
    /// Digest of the whole simulation.
    pub digest: u64,
}

impl RecordCase {
    /// Number of records in the file.
    pub(super) fn records(&self) -> u64 {
        self.scenario.file_bytes / u64::from(self.record_bytes)
    }

    pub(super) fn check(&self) -> Result<(), UserError> {
        let Self { scenario, record_bytes, matching_of_1000, .. } = self;
        let refused = |cause, help: &str| {
            Err(UserError::usage("cannot simulate the selection of records", cause, help))
        };
        let record = u64::from(*record_bytes);
        if record < 16 || !scenario.block_bytes.is_multiple_of(record) {
            let cause = format!("a record has {record} bytes, a block {}", scenario.block_bytes);
            return refused(cause, "give records of at least 16 bytes that divide a block");
        }
        if *matching_of_1000 > 1_000 {
            let cause = format!("{matching_of_1000} of 1000 records match");
            return refused(cause, "give at most 1000");
        }
        if scenario.file_bytes > FILE_BYTES_MAX || scenario.file_bytes < record {
            let cause = format!("the file has {} bytes", scenario.file_bytes);
            return refused(cause, "give a size of at least a record and at most 1 GiB");
        }
        scenario.check()
    }
}
