//! Commands on the servers of an instance and their disks.

mod file_systems;
pub(crate) mod mounts;
pub(crate) mod servers;
pub(crate) mod space;
pub(crate) mod stops;
mod waiting;
