//! Node grouping: groups of members take turns, so that fewer requests meet at the servers
//! (Nitzberg, NASA RND-92-020; PIOSIM, SC 1997).
//!
//! ```text
//! each member:                                   servers: as for caching
//!   barrier
//!   for each group of members, in the order of ranks
//!     if it is mine
//!       for each of my contiguous chunks
//!         ask the servers for all blocks of the chunk
//!         wait for all answers
//!     agree
//!   write: flush, agree
//! ```
//!
//! With one group it is the global barrier.

pub(crate) mod client;
