//! Cache of a client: lines that it reads and writes by itself, in cooperation with other clients.
//!
//! The servers' side is in `server/client_caches`, with a picture. [`policy::ClientCache`] decides
//! which lines stay.
//!
//! Invariants:
//! - A read that begins after a write was answered returns the written bytes, or later ones. (A
//!   line that is invalidated on its way is given to the read, but not kept.)
//! - The server of a line knows that this client has it.
//! - The server of a line lacks its bytes only while this client owns the line, or a fault that
//!   the next write or flush reports.
//! - A line leaves the part of the cache that servers manage only by their commands.

mod cache;
mod commands;
mod enable;
mod evictions;
mod reads;
mod to_its_end;
mod writes;

pub use cache::CacheCounts;
pub(super) use cache::LineCache;
