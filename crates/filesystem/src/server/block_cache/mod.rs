//! The block cache of a server, and the locks of blocks that collectives write.
//!
//! [`BlockCache`] is what others use. Its parts, each with the state that it alone changes:
//!
//! | where | what |
//! |---|---|
//! | `cache.rs` | requests to the cache |
//! | `admission.rs` | entering blocks, and waiting for room |
//! | `prefetch.rs` | reads before a request |
//! | `write_back.rs`, `water_marks.rs` | writing dirty blocks, in the background or at once |
//! | `block_table.rs` | the cached blocks and their eviction order |
//! | `block_disks.rs` | transfers between a block and its disk |
//! | `closed_blocks.rs`, `block_locks.rs` | blocks that may not come in |
//! | `entry.rs`, `pin.rs` | one block, its users and pins |
//! | `occupancy.rs`, `dirty.rs` | blocks that cannot be evicted at once |
//! | `evicted.rs`, `use_counts.rs` | records of evicted blocks |

mod admission;
mod block_disks;
mod block_locks;
mod block_table;
mod cache;
mod closed_blocks;
mod dirty;
mod entry;
mod evicted;
mod occupancy;
mod pin;
mod prefetch;
mod use_counts;
mod water_marks;
mod write_back;

pub(crate) use cache::BlockCache;
