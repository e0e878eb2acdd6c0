//! The plan of a replay, and its report.

use program::RankReport;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A replay of a trace.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// Trace.
    pub trace: PathBuf,
    /// Strategy of collective transfers, by name.
    pub strategy: String,
    /// Bytes of a block of the files that the replay makes.
    pub block_bytes: u64,
    /// Requests that one rank keeps outstanding at each disk (caching and two-phase).
    pub outstanding_per_disk: u32,
    /// Times that the program is carried out.
    pub repeat: u32,
}

/// Result of a replay.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReplayReport {
    /// Name and version of the form of the report.
    pub schema: String,
    /// Runs, in their order.
    pub runs: Vec<ReplayRun>,
}

impl ReplayReport {
    /// Name and version of the form.
    pub const SCHEMA: &str = "unisono.replay/1";

    /// Median of the seconds of all runs.
    pub fn median_seconds(&self) -> f64 {
        let mut seconds: Vec<f64> = self.runs.iter().map(|run| run.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        let (below, above) = ((seconds.len().max(1) - 1) / 2, seconds.len() / 2);
        let at = |index: usize| seconds.get(index).copied().unwrap_or_default();
        (at(below) + at(above)) / 2.0
    }
}

/// One run of the program.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReplayRun {
    /// Seconds from the begin of the first rank to the end of the last.
    pub seconds: f64,
    /// Times of each rank, in nanoseconds.
    pub ranks: Vec<RankReport>,
}
