//! Open files of a server, their sizes, and failures of write-behind.

pub(crate) mod file_disks;
mod in_place;
pub(crate) mod in_place_files;
pub(crate) mod kept_sizes;
pub(crate) mod open_file;
pub(crate) mod open_files;
mod protection;
pub(crate) mod protections;
pub(crate) mod removed_files;
mod requests;
mod resize;
mod scrub;
pub(crate) mod write_failures;
