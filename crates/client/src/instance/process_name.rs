//! A process by a name that no other process ever has.

use serde::{Deserialize, Serialize};

/// A process: its number may be another's later, and is another's on another machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessName {
    /// The machine, since it was switched on.
    pub boot: String,
    /// The process's number.
    pub pid: u32,
    /// When it began, in ticks since then.
    pub began: u64,
}
