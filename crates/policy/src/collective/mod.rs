//! Decisions of collective transfers: the order of a disk's blocks, the segment that each client
//! transfers in two-phase I/O, and the partners of each member in an agreement.

mod conforming;
mod disk_order;
mod dissemination;

pub use conforming::conforming_segment;
pub use disk_order::{DiskOrder, SORT_WINDOW_BLOCKS, disk_order};
pub use dissemination::Dissemination;
