//! Identification of a process that is never reused, unlike a process id.

use serde::{Deserialize, Serialize};

/// Identifies a process. Its process id alone may be reused later, or exist on another machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessName {
    /// Boot id of the machine.
    pub boot: String,
    /// Process id.
    pub pid: u32,
    /// Start time of the process, in clock ticks since boot.
    pub began: u64,
}
