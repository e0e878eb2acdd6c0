//! Fast paths for simulations of thousands of nodes, behind one door.
//!
//! All else of the crate can be read without them: a container behaves as a map, a function as the
//! plain call that it replaces, and none changes an event. `cargo x tidy` finds such mechanisms
//! elsewhere in the crate. Figures are those of removing a mechanism (release builds, least
//! processor time of 20 runs or more, two busy cores, 25 November 2026).
//!
//! | mechanism | effect | without it |
//! |---|---|---|
//! | [`SmallMap`], [`LiteMap`], [`SmallVec`] | the entry of a small set needs no allocation | 1024 clients and 128 servers: 25 % more time |
//! | [`start`], [`frequent_header`], inlining in [`Table`] and [`NumberedQueue`] | a request is neither moved nor copied | requests of 8 bytes: 5 % (writes) to 9 % (reads) more time |
//! | [`RosterCache`] | servers of one process share equal rosters | 4096 clients and 512 servers: 122 MB, not 80 MB; no more time |
//! | [`rare`] | rare work does not enlarge the future of a request | not measured |
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
