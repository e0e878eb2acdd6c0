//! Times between two moments on the clock of this machine, which all of its processes share.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// A time from one moment to another. Moments are in nanoseconds since the boot of this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// Returns this moment.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * NS_PER_SECOND + now.tv_nsec as u64
}

impl Span {
    /// Returns the time from a moment up to now.
    pub(crate) fn since(start_ns: u64) -> Self {
        Self { start_ns, end_ns: now_ns() }
    }

    /// Returns the time from the earlier beginning to the later end of two.
    pub(crate) fn around(self, other: Self) -> Self {
        Self { start_ns: self.start_ns.min(other.start_ns), end_ns: self.end_ns.max(other.end_ns) }
    }

    /// Length in seconds.
    pub(crate) fn seconds(self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64 / NS_PER_SECOND as f64
    }
}
