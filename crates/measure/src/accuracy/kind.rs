//! Kinds of programs whose predictions err alike.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Kind of a program on some servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It computes for longer than it is in calls of files.
    Computing,
    /// It moves most of its data by collective calls that servers direct.
    Directed,
    /// It moves most of its data by collective calls of another strategy.
    Exchanged,
    /// It moves most of its data by calls of single ranks.
    Independent,
}

/// Figures that decide about the kind of a program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Profile {
    /// Mean seconds of a rank in computations.
    pub computing_seconds: f64,
    /// Mean seconds of a rank in calls of files.
    pub files_seconds: f64,
    /// Share of bytes that collective calls move.
    pub collective_share: f64,
    /// True if servers direct collective transfers.
    pub is_directed: bool,
}

impl Kind {
    /// Returns the kind of a program.
    pub fn of(profile: Profile) -> Self {
        let Profile { computing_seconds, files_seconds, collective_share, is_directed } = profile;
        match () {
            () if computing_seconds > files_seconds => Self::Computing,
            () if collective_share < 0.5 => Self::Independent,
            () if is_directed => Self::Directed,
            () => Self::Exchanged,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Computing => "mostly computation",
            Self::Directed => "disk-directed collectives",
            Self::Exchanged => "other collectives",
            Self::Independent => "independent accesses",
        })
    }
}
