//! Orders that a bench sends to its clients, and their answers.

use filesystem::collective::Strategy;
use interface::{Failure, UserError, access_of};
use policy::{Access, Pattern, Stripe};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;

/// A set of cases to measure on one instance.
#[derive(Clone, Debug, Default)]
pub struct BenchPlan {
    /// Number of client processes.
    pub clients: u32,
    /// Host of this machine on which the clients listen for one another, if servers listen by TCP;
    /// `None` for the one by which each client reaches server 0.
    pub client_host: Option<String>,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Cases to measure, one after another.
    pub cases: Vec<CaseSpec>,
}

/// The most client processes of one bench.
const CLIENTS_MAX: u32 = 4096;

/// One case: a pattern moved by a strategy, a number of times.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseSpec {
    /// A strategy by name.
    pub strategy: String,
    /// A pattern by name, or a direction and a distribution: `w:block,cyclic(4)`.
    pub pattern: String,
    /// Bytes of a record.
    pub record_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Number of transfers to time.
    pub repeat: u32,
    /// True when a write ends only once the data is on stable storage.
    pub sync: bool,
    /// Outstanding requests of one client at one disk (caching and two-phase).
    pub outstanding_per_disk: u32,
    /// Clients that make requests at the same time (node grouping); 0 for the default.
    pub node_group_size: u32,
}

/// Content of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum SourceSpec {
    /// Numbers made from a seed and the position.
    Generated(u64),
    /// The bytes of a local file, and zeros after its end.
    File(PathBuf),
}

/// Parameters of one client process. The client answers with a [`ClientReady`], and then receives
/// one [`CaseOrder`] at a time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClientSpec {
    pub(crate) instance: PathBuf,
    pub(crate) group: u64,
    pub(crate) rank: u32,
    pub(crate) clients: u32,
    /// As [`BenchPlan::client_host`].
    pub(crate) host: Option<String>,
    pub(crate) block_bytes: u64,
}

/// Answer of a client to its parameters, on one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ClientReady {
    /// The client is connected to the servers, and forms the group with its first case.
    Connected,
    /// Reason for which it is not connected.
    Failed(Failure),
}

/// Creation and removal of the file of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum FileLife {
    /// The file must not exist; it is made, and removed at the end.
    Fresh,
    /// The file must not exist; it is made, and remains.
    Kept,
    /// The file exists from an earlier case, and is removed at the end.
    Existing,
}

/// Order to a client for one case, on one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CaseOrder {
    pub(crate) case: CaseSpec,
    /// The file to write or read.
    pub(crate) file: String,
    /// Source of the file's bytes, with which bytes that are read are compared.
    pub(crate) source: SourceSpec,
    /// Creation and removal of the file.
    pub(crate) life: FileLife,
    /// File in which to leave the memory after a read, for a caller that assembles the whole file.
    pub(crate) dump: Option<PathBuf>,
}

/// Answer of a client to each order, on one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum CaseResult {
    /// Seconds of each transfer, from the barrier before it to its end; and a description of the
    /// first byte of this client that was wrong, if any.
    Measured { seconds: Vec<f64>, moved_bytes: u64, wrong: Option<String>, peak_bytes: u64 },
    /// Reason of the failure.
    Failed(Failure),
}

impl BenchPlan {
    /// Checks every case before anything is started.
    pub fn check(&self) -> Result<(), UserError> {
        if self.clients == 0 || self.clients > CLIENTS_MAX {
            return Err(UserError::usage(
                "cannot start these clients",
                format!("the number of clients is {}", self.clients),
                format!("give --clients a number from 1 to {CLIENTS_MAX}"),
            ));
        }
        let stripe = Stripe::round_robin(self.block_bytes, 1, 1);
        stripe.validate().map_err(|error| {
            UserError::usage(
                "cannot stripe the file in blocks of this size",
                error.to_string(),
                "choose a block size such as 256KiB or 1MiB",
            )
        })?;
        self.cases.iter().try_for_each(|case| case.access(self.clients).map(|_| ()))
    }
}

impl CaseSpec {
    pub(crate) fn parse(&self) -> Result<(Strategy, Pattern), UserError> {
        let usage = |cause: String| {
            UserError::usage("cannot measure this case", cause, "see: unisono bench --help")
        };
        let strategy = Strategy::from_str(&self.strategy).map_err(usage)?;
        let pattern = parse_pattern(&self.pattern)?;
        Ok((strategy, pattern))
    }

    pub(crate) fn access(&self, clients: u32) -> Result<Access, UserError> {
        let (_, pattern) = self.parse()?;
        access_of(&pattern, clients, self.record_bytes, self.file_bytes)
    }
}

/// Parses a pattern by its name in the papers, or as `r:` or `w:` and a distribution.
pub(crate) fn parse_pattern(word: &str) -> Result<Pattern, UserError> {
    Pattern::from_str(word).map_err(|error| {
        UserError::usage(
            format!("there is no pattern {word:?}"),
            error.to_string(),
            "patterns are named as in the papers (rbc, wcn, …) or by --distribution block,cyclic",
        )
    })
}
