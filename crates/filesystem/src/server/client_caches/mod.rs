//! Caches at clients, as the server of their lines sees them.
//!
//! ```text
//! client misses a line:                       server of the line:
//!   ask the server                              wait for the turn of the line
//!   wait for the line, which                    have an owner write it back
//!   the server or another client sends          its own cache has it: send it
//!                                               a client has it: have that client send it
//!                                               else: read it from the disk and send it
//! ```
//!
//! The copy to use, the client that drops one, and the place of evicted lines are decided by
//! [`policy::Directory`].
//!
//! Invariants:
//! - Requests for one line are served one after another, in the order of their arrival.
//! - Commands and replies to a client are sent in the order in which they were decided.
//! - A write is answered after every other copy is invalid, or its holder has left.
//! - A file that is in caches changes through them only.

mod cached_files;
mod lines;
mod registered;
mod serve;
mod writes;

pub(crate) use cached_files::UncachedUse;
pub(crate) use registered::ClientCaches;
