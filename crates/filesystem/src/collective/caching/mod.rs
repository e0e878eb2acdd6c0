//! The simple parallel file system: clients ask for one contiguous chunk after another, servers
//! answer from a block cache.
//!
//! ```text
//! client, for each of its chunks:                server, for each request:
//!   for each block of the chunk                    look for the block in the cache
//!     if enough requests are at that disk          if it is not there
//!       wait for one of them                         make room, read it from the disk
//!     ask that disk's server for the bytes         answer with the bytes
//!   wait for all answers                           read one block ahead
//! ```
//!
//! Writes bring their bytes along; a block that has been written full is written behind.

pub(crate) mod client;
pub(crate) mod server;
