//! Methods of transfer that the papers compare.

use serde::{Serialize, Serializer};
use std::fmt;

/// Strategy, with the order in which it visits its disks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Method {
    /// Traditional caching, TC; the simple parallel file system, SPFS.
    Caching,
    /// Two-phase I/O, 2PIO.
    TwoPhase,
    /// Disk-directed I/O that visits blocks in the order of the file: DD, "DDIO no sort".
    DiskDirectedUnsorted,
    /// Disk-directed I/O that sorts its blocks by physical address: DDs, "DDIO sort".
    DiskDirected,
}

impl Method {
    /// All methods, in the order in which they are shown.
    pub const ALL: [Self; 4] =
        [Self::Caching, Self::TwoPhase, Self::DiskDirectedUnsorted, Self::DiskDirected];

    /// Returns the name in tables and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Caching => "caching",
            Self::TwoPhase => "two-phase",
            Self::DiskDirectedUnsorted => "disk-directed-unsorted",
            Self::DiskDirected => "disk-directed",
        }
    }

    /// Returns the method of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
