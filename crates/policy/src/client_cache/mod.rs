//! Decisions about caches at clients, and about their cooperation.
//!
//! A block of a client's cache is a *line*: a part of one block of a file, or a whole one.
//! [`ClientCache`] tells which lines a client keeps. A [`Directory`] at the server of a line knows
//! the clients that hold it. It tells where a read finds the line, whose copies a write
//! invalidates, and what becomes of an evicted line. Both hold no data.

mod cache;
mod directory;
mod former_places;
mod global_parts;
mod spec;

pub use cache::{ClientCache, EvictedLine, LineKey};
pub use directory::{Directory, LineFate, LineSource, Stored};
pub use spec::{
    ClientCacheSpec, ClientCacheSpecError, Cooperation, LINES_MAX, Organisation, WriteMiss,
    WritePolicy,
};
