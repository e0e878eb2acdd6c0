//! Mechanical disks: an arm, a turning medium, and a buffer.
//!
//! [`spec`] states a disk as a data sheet does, [`drive`] derives values from it, and [`presets`]
//! has two published disks. [`geometry`] locates sectors, [`rotation`] times the medium,
//! [`mechanical_disk`] carries out commands, and [`motions`] reports them to a recorder.

mod arm_move;
mod drive;
mod geometry;
mod mechanical_disk;
mod motions;
mod presets;
mod rotation;
mod spec;

#[cfg(test)]
mod calibration;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod zoned_tests;

pub use drive::Drive;
pub use mechanical_disk::MechanicalDisk;
pub use presets::{HP_97560_INFO, HP_C2200A_INFO};
pub use spec::{DriveError, DriveSpec, Region, SeekCurve, Zone};
