//! Simulated disks by name, or described in a file of their user.

mod description;
mod file;
mod microseconds;
mod name;

pub use name::DiskName;
