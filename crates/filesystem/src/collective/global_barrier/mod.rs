//! Global barrier: all members wait for one another, then each makes its own requests (PIOSIM,
//! SC 1997).
//!
//! ```text
//! each member:                                   servers: as for caching
//!   barrier
//!   for each of its contiguous chunks
//!     ask the servers for all blocks of the chunk
//!     wait for all answers
//!   agree
//!   write: flush, agree
//! ```
//!
//! Caching (TOCS 1997) differs in the number of requests that a client has at a disk, and waits at
//! the end of a read for the servers' prefetches.

pub(crate) mod client;
