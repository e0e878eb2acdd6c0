//! Fast paths for simulations of thousands of nodes, behind one door.
//!
//! All else of the crate can be read without them: a container behaves as a map, a function as the
//! plain call that it replaces, and none changes an event. `cargo x tidy` finds such mechanisms
//! elsewhere in the crate.
//!
//! - [`SmallMap`], [`LiteMap`], [`SmallVec`]: a small set needs no tree, and its first entry no
//!   allocation. With maps and vectors of the standard library, a read by 1024 clients and 128
//!   servers takes 25 % more time.
//! - [`start`], [`frequent_header`], and inlining in [`Table`] and [`NumberedQueue`]: a request is
//!   neither moved nor searched for. Without them, requests of 8 bytes take 5 % more time (writes)
//!   to 9 % (reads).
//! - [`rare`]: rare work does not enlarge the future of a request. Not measured.
//!
//! Figures compare release builds by the least processor time of many runs on two busy cores, 25
//! November 2026. `docs/performance.md` has the commands, in "Requests of 8 bytes" and "Scale".

mod frequent_header;
mod futures;
mod numbered_queue;
mod small_map;
mod table;

pub(crate) use frequent_header::frequent_header;
pub(crate) use futures::{rare, start};
pub(crate) use litemap::LiteMap;
pub(crate) use numbered_queue::NumberedQueue;
pub(crate) use small_map::SmallMap;
pub(crate) use smallvec::SmallVec;
pub(crate) use table::Table;
