//! Disk of a real node: a directory, and the threads that do its work.
//!
//! ```text
//! real_disk          what a node holds: an open disk, a lost one, or one in memory
//! handle             an open disk: asks the threads, names the disk in errors
//! root               the directory itself, shared with a thread for metadata queries
//! directory          the objects of a disk: which are open, which exist
//!   object           one object: every byte is verified before it is returned
//!     data           file of bytes, through the page cache or by direct I/O
//!     checksums      file of checksums, four bytes for each 64 KiB
//!     verified_cache pieces that were verified last
//!     preallocation  space taken ahead of the writes that will fill it
//!   object_log       objects that must exist, with their checksums, and the starts of the instance
//!   generation       a start of the instance
//!   session          how long unsynced writes are sure to be there
//!   times            times of the last change, until the files of the objects have them
//!   extents          physical addresses of an object; the handle keeps an extent_cache
//!   write_back       writes that are not on stable storage yet, or failed
//! ```
//!
//! Invariants:
//!
//! - Requests take effect in the order of their calls; priority requests do not depend on queued
//!   ones.
//! - A lock on the directory gives it to one process at a time.
//! - A request is served only while the directory that was opened is still the one at its path.
//! - Bytes that do not match their checksum are never returned
//!   ([0052](../../../../docs/decisions/0052-checksums-are-beside-the-data.md)).

mod checksums;
mod data;
mod directory;
mod extent_cache;
mod extents;
mod failure;
mod generation;
mod handle;
mod object;
mod object_log;
mod preallocation;
mod real_disk;
mod root;
mod session;
mod times;
mod verified_cache;
mod write_back;

pub use directory::OBJECTS_DIRECTORY;
pub(crate) use directory::objects_open_max;
pub(crate) use failure::Failure;
pub use generation::{Generation, Generations};
pub use object_log::{
    LogSummary, STORED_LOG, begin_generation, complete_generation, read_log, reserve_generation,
};
pub use real_disk::RealDisk;
pub(crate) use write_back::WriteBackState;
