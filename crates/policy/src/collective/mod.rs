//! Decisions of collective transfers: the order of a disk's blocks, the segment that each client
//! transfers in two-phase I/O, the clients that make requests at the same time in node grouping,
//! and the partners of each member in an agreement.

mod conforming;
mod disk_order;
mod dissemination;
mod node_groups;

pub use conforming::conforming_segment;
pub use disk_order::{DiskOrder, SORT_WINDOW_BLOCKS, disk_order};
pub use dissemination::Dissemination;
pub use node_groups::NodeGroups;
