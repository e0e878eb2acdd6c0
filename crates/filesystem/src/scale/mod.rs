//! Fast paths for simulations of thousands of nodes, behind one door.
//!
//! All else of the crate can be read without them: a container behaves as a map, a function as the
//! plain call that it replaces, and none changes an event. `cargo x tidy` finds such mechanisms
//! elsewhere in the crate. Figures are those of removing a mechanism (release builds, least
//! processor time of 20 runs or more, two busy cores, 25 November 2026).
//!
//! - [`SmallMap`], [`LiteMap`], [`SmallVec`]: the entry of a small set needs no allocation. Without
//!   them, 1024 clients and 128 servers take 25 % more time.
//! - [`start`], [`frequent_header`], inlining in [`Table`] and [`NumberedQueue`]: a request is
//!   neither moved nor copied. Without them, requests of 8 bytes take 5 % (writes) to 9 % (reads)
//!   more time.
//! - [`RosterCache`]: servers of one process share equal rosters. Without it, 4096 clients and 512
//!   servers take 122 MB instead of 80 MB, and no more time.
//! - [`rare`]: rare work does not enlarge the future of a request. It was not measured.
//!
//! The commands of the first two are in `docs/performance.md`, "Requests of 8 bytes" and "Scale".

mod frequent_header;
mod futures;
mod numbered_queue;
mod roster_cache;
mod small_map;
mod table;

pub(crate) use frequent_header::frequent_header;
pub(crate) use futures::{rare, start};
pub(crate) use litemap::LiteMap;
pub(crate) use numbered_queue::NumberedQueue;
pub use roster_cache::RosterCache;
pub(crate) use small_map::SmallMap;
pub(crate) use smallvec::SmallVec;
pub(crate) use table::Table;
