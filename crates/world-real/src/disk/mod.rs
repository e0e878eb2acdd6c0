//! A directory that stands for a disk, and the threads that do its work.
//!
//! ```text
//! handle      what a node holds: asks the threads, names the disk in what failed
//! root        the directory itself, at which a second thread looks while the first waits
//! directory   the objects of a disk: which are open, which exist
//!   object    one object: every byte verified before it is given out
//!     data    its file of bytes, through the page cache or past it
//!     sums    its file of checksums, four bytes for each 64 KiB
//!     recent  the pieces that were verified last
//!     reserve room taken ahead of the writes that will fill it
//!   stored    which objects must be there, with their sums
//!   extents   where the file system put an object; the handle keeps it as places
//!   pending   which writes are not on stable storage yet, and which never got there
//! ```
//!
//! Invariants: requests are served in the order of their calls, but for those to which the ones
//! that wait make no difference; one process at a time owns a directory (by a lock on it); a
//! request is served only while the directory that was opened is still the one at its path; bytes
//! that do not match their checksum are never given out
//! ([0019](../../../../docs/decisions/0019-checksums-beside-the-data.md)).

mod data;
mod directory;
mod extents;
mod failure;
mod handle;
mod object;
mod pending;
mod places;
mod recent;
mod reserve;
mod root;
mod stored;
mod sums;

pub use directory::OBJECTS_DIRECTORY;
pub(crate) use directory::objects_open_max;
pub use handle::RealDisk;
pub use stored::STORED_LOG;
