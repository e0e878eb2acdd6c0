//! Simulated disks by name, or described in a file of their user.

mod file;
mod microseconds;
mod name;
mod plain;

pub use name::DiskName;
