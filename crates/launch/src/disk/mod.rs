//! Simulated disks by name, or described in a file of their user.

mod file;
mod name;

pub use name::DiskName;
