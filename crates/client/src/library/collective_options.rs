//! Options of collective calls.

use filesystem::collective::Strategy;
use policy::DiskOrder;

/// Options of a collective call. All members must pass equal ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectiveOptions {
    /// Strategy of the transfer.
    pub strategy: Strategy,
    /// Order in which servers use their disks.
    pub order: DiskOrder,
    /// Requests that a member has under way at one disk (caching and two-phase).
    pub outstanding_per_disk: u32,
    /// Members that make requests at the same time (node grouping). 0: one for each disk of the
    /// file, and at least two groups.
    pub node_group_size: u32,
    /// True when written data must be on stable storage at the end.
    pub sync: bool,
    /// True when small calls need not wait for other members, and this member makes no other call
    /// of the group before this one has ended. After some calls in a row that are so at all
    /// members, each makes the next ones by itself, and gets only errors of its own.
    pub relaxed: bool,
}

impl Default for CollectiveOptions {
    /// Directed by the servers, blocks in the order in which they lie.
    fn default() -> Self {
        let (strategy, order) = (Strategy::DiskDirected, DiskOrder::Sorted);
        let (outstanding_per_disk, node_group_size) = (1, 0);
        Self { strategy, order, outstanding_per_disk, node_group_size, sync: false, relaxed: false }
    }
}
