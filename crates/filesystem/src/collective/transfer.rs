//! The description of a collective transfer.

use super::strategy::Strategy;
use policy::{Access, Direction, DiskOrder};
use wire::FileRecord;

/// One collective transfer, the same at every member of the group.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Read or write, as the clients see it.
    pub direction: Direction,
    /// An open file.
    pub file: FileRecord,
    /// Assignment of bytes of the file to clients.
    pub access: Access,
    /// Strategy of the transfer.
    pub strategy: Strategy,
    /// Order in which disks are used, where the servers decide it.
    pub order: DiskOrder,
    /// Maximum number of active requests of one client at one disk (caching and two-phase).
    pub outstanding_per_disk: u32,
    /// Maximum number of clients that make requests at the same time (node grouping). 0 means the
    /// default of [`NodeGroups`](policy::NodeGroups::new).
    pub node_group_size: u32,
    /// True when written data must be on stable storage at the end.
    pub sync: bool,
}
