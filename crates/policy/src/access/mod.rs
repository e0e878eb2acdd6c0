//! Accesses: which bytes of a file go to which offset of which client's memory.
//!
//! [`Access`] is the entry point. Its kinds are in [`distribution`], [`nested`] and [`list`].
//! Regular kinds become a [`footprint`], which finds the pieces in a range of the file.
//! [`pattern`] makes accesses of the names that the papers use.

#[allow(clippy::module_inception, reason = "the file of the main type has its name")]
mod access;
mod chunks;
mod coalesce;
mod coordinates;
mod dimension;
mod distribution;
mod error;
mod factor;
mod footprint;
mod limits;
mod list;
mod nested;
mod part;
mod pattern;

pub use access::Access;
pub use chunks::Chunk;
pub use dimension::Dimension;
pub use distribution::Distribution;
pub use error::AccessError;
pub use limits::{BYTES_MAX, CLIENTS_MAX, DIMENSIONS_MAX, LEVELS_MAX, LIST_ENTRIES_MAX};
pub use list::ListEntry;
pub use nested::{Level, Nested};
pub use pattern::{Direction, Pattern, PatternError, PatternKind, SHAPE_RECORDS_MAX};
