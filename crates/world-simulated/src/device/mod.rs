//! Disk devices: a model of the disk, a queue, a share of a bus, and the contents of objects.
//!
//! [`disk`] carries out requests and implements `world::Disk`. [`queue`] gives turns, [`objects`]
//! and [`contents`] remember what was written, [`command_log`] reports commands to a recorder, and
//! [`faults`] makes a disk slow, failing or powerless.

mod command_log;
mod config;
mod contents;
mod disk;
mod faults;
mod objects;
mod queue;
#[cfg(test)]
mod tests;

pub use config::{DiskConfig, StartAngle};
pub use disk::SimulatedDisk;
