//! Generations of an instance, as its disks and its catalogue record them.

use serde::{Deserialize, Serialize};

/// State of an instance. Each start, and a stop, gives its disks and its catalogue a new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Generation {
    /// Number of generations up to this one.
    pub number: u32,
    /// Random number below 2^64 - 1, which tells it from others with the same number.
    pub mark: u64,
}

/// The last generations of a disk, or of the catalogue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Generations {
    /// Last one that was complete.
    pub complete: Option<Generation>,
    /// Last one that began.
    pub begun: Option<Generation>,
}
