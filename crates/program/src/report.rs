//! Times of one rank.

use serde::{Deserialize, Serialize};
use units::Duration;

/// Times of one rank in a run, and what it moved. They sum to `elapsed`, but for the work of the
/// replay itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RankReport {
    /// Time from the begin of the first event to the end of the last.
    pub elapsed: Duration,
    /// Time of computations.
    pub computing: Duration,
    /// Time in which the program neither computed nor waited for others.
    pub blocked: Duration,
    /// Time in messages and collective operations of ranks.
    pub messages: Duration,
    /// Time in calls of files.
    pub files: Duration,
    /// Time in calls that only wait for begun operations.
    pub waiting: Duration,
    /// Bytes read from files.
    pub read_bytes: u64,
    /// Bytes written to files.
    pub written_bytes: u64,
    /// Number of transfers.
    pub transfers: u64,
}

impl RankReport {
    /// Seconds in calls of files, including those that wait for begun operations.
    pub fn file_seconds(&self) -> f64 {
        (self.files + self.waiting).as_seconds()
    }

    /// Seconds outside calls.
    pub fn computing_seconds(&self) -> f64 {
        (self.computing + self.blocked).as_seconds()
    }

    /// Seconds in messages and collective operations of ranks.
    pub fn message_seconds(&self) -> f64 {
        self.messages.as_seconds()
    }

    /// Returns the mean of a time over ranks; 0 for none.
    pub fn mean(ranks: &[Self], seconds: impl Fn(&Self) -> f64) -> f64 {
        ranks.iter().map(seconds).sum::<f64>() / ranks.len().max(1) as f64
    }
}
