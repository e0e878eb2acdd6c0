//! Accesses: which bytes of a file go to which offset of which client's memory.
//!
//! [`Access`] is the entry point. Its kinds are in [`distribution`], [`nested`],
//! [`list`] and [`own_part`].
//! Regular kinds become a [`footprint`], which finds the pieces in a range of the file.
//! [`pattern`] makes accesses of the names that the papers use.

#[allow(clippy::module_inception, reason = "the file of the main type has its name")]
mod access;
mod chunks;
mod coalesce;
mod coordinates;
mod cover;
mod dimension;
mod distribution;
mod error;
mod factor;
mod footprint;
mod limits;
mod list;
mod nested;
mod own_part;
mod part;
mod pattern;

pub use access::Access;
pub use chunks::Chunk;
pub use cover::covers_block;
pub use dimension::Dimension;
pub use distribution::Distribution;
pub use error::AccessError;
pub use limits::{BYTES_MAX, CLIENTS_MAX, DIMENSIONS_MAX, LEVELS_MAX, LIST_ENTRIES_MAX};
pub use list::ListEntry;
pub use nested::{Level, Nested};
pub use own_part::{NESTS_MAX, OwnPart};
pub use pattern::{Direction, Pattern, PatternError, PatternKind, SHAPE_RECORDS_MAX};
