//! Strategies of collective transfers, and their names.

use std::fmt;
use std::str::FromStr;

/// Strategy of a collective transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// Each client asks for each of its contiguous chunks (simple parallel file system).
    Caching,
    /// Clients read or write in a conforming distribution and permute among themselves.
    TwoPhase,
    /// Servers direct the transfer.
    DiskDirected,
    /// Servers direct the part of each client by itself.
    Noncollective,
    /// Each client asks for each of its contiguous chunks, for all blocks of a chunk at once.
    GlobalBarrier,
    /// The clients of one group at a time ask as with a global barrier.
    NodeGrouping,
}

impl Strategy {
    /// Strategies that the papers compare, in their order. They are the default.
    pub const ALL: [Self; 3] = [Self::Caching, Self::TwoPhase, Self::DiskDirected];
    /// All strategies, in the order of their names' listing.
    pub const NAMED: [Self; 6] = [
        Self::Caching,
        Self::TwoPhase,
        Self::DiskDirected,
        Self::Noncollective,
        Self::GlobalBarrier,
        Self::NodeGrouping,
    ];
}

impl fmt::Display for Strategy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Caching => "caching",
            Self::TwoPhase => "two-phase",
            Self::DiskDirected => "disk-directed",
            Self::Noncollective => "noncollective",
            Self::GlobalBarrier => "global-barrier",
            Self::NodeGrouping => "node-grouping",
        })
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "caching" | "independent" => Ok(Self::Caching),
            "two-phase" | "2pio" => Ok(Self::TwoPhase),
            "disk-directed" | "ddio" => Ok(Self::DiskDirected),
            "noncollective" => Ok(Self::Noncollective),
            "global-barrier" => Ok(Self::GlobalBarrier),
            "node-grouping" => Ok(Self::NodeGrouping),
            _ => Err(format!(
                "{word:?} is not a strategy; use caching, two-phase, disk-directed, noncollective, \
                 global-barrier or node-grouping"
            )),
        }
    }
}
