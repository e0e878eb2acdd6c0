//! Treatment of data directories that are lost, at a start.

use serde::{Deserialize, Serialize};

/// Treatment of data directories that are lost, or are older copies, at a start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub enum LostData {
    /// It names them and ends.
    #[default]
    Refuse,
    /// It starts without them. Then nothing can be changed.
    Degraded,
    /// It takes the empty directories in their places, which are filled from copies.
    Refill {
        /// Maximum number of bytes that each server fills in a second; `None` means no limit.
        bytes_per_second: Option<u64>,
    },
}

impl LostData {
    /// True if the servers do without lost directories.
    pub(crate) fn is_degraded(self) -> bool {
        self == Self::Degraded
    }

    /// True if new directories take the places of lost ones.
    pub(crate) fn refills(self) -> bool {
        matches!(self, Self::Refill { .. })
    }

    /// Maximum number of bytes that each server fills in a second.
    pub(crate) fn refill_rate(self) -> Option<u64> {
        match self {
            Self::Refill { bytes_per_second } => bytes_per_second,
            Self::Refuse | Self::Degraded => None,
        }
    }
}
