//! The description of a collective transfer.

use super::strategy::Strategy;
use policy::{Access, Direction, DiskOrder};
use wire::FileRecord;

/// One collective transfer, the same at every member of the group.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Whether the clients read or write.
    pub direction: Direction,
    /// An open file.
    pub file: FileRecord,
    /// Which bytes belong to whom.
    pub access: Access,
    /// How it is carried out.
    pub strategy: Strategy,
    /// In which order disks are used, where the servers decide it.
    pub order: DiskOrder,
    /// The most requests that one client has under way at one disk (caching and two-phase).
    pub outstanding_per_disk: u32,
    /// Whether written data must be on stable storage at the end.
    pub sync: bool,
}
