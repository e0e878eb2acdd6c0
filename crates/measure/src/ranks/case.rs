//! A case of a bench: a pattern moved by a strategy, and the file that it moves.

use filesystem::collective::Strategy;
use interface::{UserError, access_of};
use policy::{Access, Pattern};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;

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

/// Creation and removal of the file of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum FileLife {
    /// The file must not exist; it is made, and removed at the end.
    Fresh,
    /// The file must not exist; it is made, and remains.
    Kept,
    /// The file exists from an earlier case, and is removed at the end.
    Existing,
    /// The file exists from an earlier case, and remains.
    Lasting,
}

/// Most records of one case of a strategy that makes a request for each: eight-byte records of a
/// whole file would take most of an hour.
const REQUESTED_RECORDS_MAX: u64 = 1 << 18;

/// Returns the most bytes of one case of a strategy.
pub(crate) fn bytes_max(strategy: Strategy, record_bytes: u64) -> u64 {
    match strategy {
        Strategy::Caching | Strategy::GlobalBarrier | Strategy::NodeGrouping => {
            REQUESTED_RECORDS_MAX.saturating_mul(record_bytes)
        }
        Strategy::TwoPhase | Strategy::DiskDirected | Strategy::Noncollective => u64::MAX,
    }
}

impl CaseSpec {
    /// Returns the case with a smaller file, if it would have too many requests.
    ///
    /// # Errors
    /// Fails when there is no such strategy or pattern.
    pub fn with_few_requests(self) -> Result<Self, UserError> {
        let (strategy, _) = self.parse()?;
        let file_bytes = self.file_bytes.min(bytes_max(strategy, self.record_bytes));
        Ok(Self { file_bytes, ..self })
    }

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
