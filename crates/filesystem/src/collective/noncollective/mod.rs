//! Non-collective disk-directed I/O: each client makes its own request, the servers direct it; the
//! requests meet in the block cache and at the disks, as in the Galley file system (Nieuwejaar and
//! Kotz 1997; TOCS 1997, sections 3 and 10).
//!
//! ```text
//! each client:                                   each server, for each request:
//!   one request to each server that has            send (or fetch) what the cache holds
//!   blocks of its part                             sort the other blocks as they lie on each disk
//!   wait for all of them                           with two buffers for each disk:
//!                                                    take a block from the cache, which reads it
//!                                                    once for all who want it, and memput the
//!                                                    client's pieces (or memget them into it)
//!                                                  answer the client
//! ```
//!
//! It needs no barrier and no group. What is written stays in the cache until a flush, so that the
//! pieces of several clients make one block before the disk has it.

pub(crate) mod client;
mod part;
pub(crate) mod server;

pub use part::Part;
