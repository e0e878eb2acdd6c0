//! Where, which, in what order, how much: every decision of the file system, as pure functions and
//! small state machines.
//!
//! Invariants: no clock, no input or output, no async, no randomness, no order that depends on a
//! hash. A value that passed its `validate` makes no function of this crate panic, overflow or run
//! for longer than its answer is long; a value that did not may.
//!
//! | question | answer |
//! |---|---|
//! | Which server and disk holds a block of a file? | [`Stripe`], [`Pool`] |
//! | Which bytes of the file go where in which client's memory? | [`Access`] |
//! | Which blocks and servers have some of one client's part? | [`Access::blocks_of`] |
//! | Which access do the papers mean by "rbc"? | [`Pattern`] |
//! | In which order does a disk take its blocks? | [`disk_order`] |
//! | Which bytes of a block have arrived? | [`RangeSet`] |
//! | Which block leaves a full cache? | [`Residents`] |
//! | Which blocks are worth reading ahead? | [`next_on_disk`], [`Window`] |
//! | How is a file buffered? | [`Buffering`] |
//! | What does each client read itself in two-phase I/O? | [`conforming_segment`] |
//! | Which members of a group tell which others? | [`Dissemination`] |

mod access;
mod buffering;
mod chunks;
mod coalesce;
mod conforming;
mod coordinates;
mod cover;
mod dissemination;
mod distribution;
mod factor;
mod footprint;
mod list;
mod lru;
mod nested;
mod order;
mod own_part;
mod page_map;
mod part;
mod pattern;
mod pool;
mod prefetch;
mod ranges;
mod residents;
mod rules;
mod stripe;
mod window;

pub use access::{Access, AccessError, BYTES_MAX, CLIENTS_MAX};
pub use buffering::{Buffering, BufferingError, Declared, Prefetch, Replacement, WINDOW_BLOCKS};
pub use chunks::Chunk;
pub use conforming::conforming_segment;
pub use cover::covers_block;
pub use dissemination::Dissemination;
pub use distribution::{DIMENSIONS_MAX, Dimension, Distribution};
pub use list::{LIST_ENTRIES_MAX, ListEntry};
pub use lru::Lru;
pub use nested::{LEVELS_MAX, Level, Nested};
pub use order::{DiskOrder, SORT_WINDOW_BLOCKS, disk_order};
pub use own_part::{NESTS_MAX, OwnPart};
pub use page_map::{PAGE_MAP_MAX, PageMap, PageMapError};
pub use pattern::{Direction, Pattern, PatternError, PatternKind, SHAPE_RECORDS_MAX};
pub use pool::{Pool, PoolError};
pub use prefetch::next_on_disk;
pub use ranges::RangeSet;
pub use residents::{BlockKey, Residents};
pub use rules::{BrokenRule, MakeRule, Rule, RuleName, RuleNameError, Rules};
pub use stripe::{BLOCK_BYTES_MAX, Location, Stripe, StripeError};
pub use window::Window;
