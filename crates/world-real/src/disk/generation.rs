//! Generations: the starts of an instance, as its disks and its catalogue record them.

use serde::{Deserialize, Serialize};

/// One start of an instance. Each gives its disks and its catalogue a new generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Generation {
    /// Number of starts up to this one.
    pub number: u32,
    /// Random number below 2^64 - 1, which tells this start from others with the same number.
    pub mark: u64,
}

/// Steps of the last starts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Generations {
    /// Last start that was complete.
    pub complete: Option<Generation>,
    /// Last start that began.
    pub begun: Option<Generation>,
}
