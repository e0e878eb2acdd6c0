//! Files by name, and their sizes.

pub(super) mod cached_sizes;
mod catalogue;
mod file_sizes;
mod limits;
mod nodes;
mod protection;
mod scrub;

pub use catalogue::NewFile;
