//! What clients are told to measure, and what they tell back.

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
    /// The host of this machine on which they listen for one another, where servers listen by TCP;
    /// `None` for the one by which each reaches server 0.
    pub client_host: Option<String>,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// What to measure, one after another.
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
    /// Whether a write ends only when the data is on stable storage.
    pub sync: bool,
    /// Requests that one client has under way at one disk (caching and two-phase).
    pub outstanding_per_disk: u32,
}

/// What fills the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum SourceSpec {
    /// Numbers made from a seed and the position.
    Generated(u64),
    /// The bytes of a local file, and zeros after its end.
    File(PathBuf),
}

/// Parameters of one client process. It answers with a [`ClientReady`], and from then on gets a
/// [`CaseOrder`] at a time.
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

/// What a client answers when it was told who it is, on one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ClientReady {
    /// It is connected to the servers, and forms the group with its first case.
    Connected,
    /// Reason why it is not.
    Failed(Failure),
}

/// What becomes of the file of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum FileLife {
    /// It must not be there; it is made, and removed at the end.
    Fresh,
    /// It must not be there; it is made, and remains.
    Kept,
    /// It is there from an earlier case, and is removed at the end.
    Existing,
}

/// What a client is told for each case, on one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CaseOrder {
    pub(crate) case: CaseSpec,
    /// The file to write or read.
    pub(crate) file: String,
    /// Where its bytes come from and are compared with.
    pub(crate) source: SourceSpec,
    /// Whether the file is there, and whether it remains.
    pub(crate) life: FileLife,
    /// Where to leave the memory after a read, for whoever wants to put the file together.
    pub(crate) dump: Option<PathBuf>,
}

/// What a client answers to each order, on one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum CaseResult {
    /// Seconds of each transfer, from the barrier before it to its end, and whether every byte of
    /// this client was right.
    Measured { seconds: Vec<f64>, moved_bytes: u64, wrong: Option<String>, peak_bytes: u64 },
    /// What went wrong.
    Failed(Failure),
}

impl BenchPlan {
    /// Finds what is wrong with any case before anything is started.
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
                "cannot stripe a file like that",
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

/// A pattern by its name in the papers, or as `r:` or `w:` and a distribution.
pub(crate) fn parse_pattern(word: &str) -> Result<Pattern, UserError> {
    Pattern::from_str(word).map_err(|error| {
        UserError::usage(
            format!("there is no pattern {word:?}"),
            error.to_string(),
            "patterns are named as in the papers (rbc, wcn, …) or by --distribution block,cyclic",
        )
    })
}
