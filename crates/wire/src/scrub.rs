//! Scrubbing: reading what a server has of a file, to find and repair what is damaged.

use crate::FileRecord;
use serde::{Deserialize, Serialize};
use units::DiskId;

/// Request to read, verify and repair a part of what a server has of a file on one disk.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ScrubRequest {
    /// Record of the file, which need not be open.
    pub record: FileRecord,
    /// Number of the disk.
    pub disk: DiskId,
    /// First byte, in the object of the file on that disk.
    pub offset: u64,
}

/// Outcome of a [`ScrubRequest`], or of several.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Scrubbed {
    /// Offset of the next request; `None` at the end.
    pub next: Option<u64>,
    /// Number of bytes that were read here.
    pub bytes: u64,
    /// Number of damaged ranges that were repaired from the copy.
    pub repaired: u64,
    /// Number of ranges of the copy that were damaged or different, and are written again.
    pub repaired_copies: u64,
    /// Number of bytes whose copy is behind, and was not compared.
    pub behind: u64,
    /// First byte and number of bytes of each range of the file that is damaged and could not be
    /// repaired.
    pub damaged: Vec<(u64, u64)>,
    /// First byte and number of bytes of each range of the file whose copy is damaged or different,
    /// and could not be written again.
    pub damaged_copies: Vec<(u64, u64)>,
}

impl Scrubbed {
    /// Adds the outcome of another request.
    pub fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.repaired += other.repaired;
        self.repaired_copies += other.repaired_copies;
        self.behind += other.behind;
        self.damaged.extend(other.damaged);
        self.damaged_copies.extend(other.damaged_copies);
    }
}
