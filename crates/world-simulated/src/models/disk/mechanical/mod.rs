//! Mechanical disks: an arm, a turning medium, and a buffer.
//!
//! [`spec`] states a disk as a data sheet does, and [`drive`] derives values from it. [`hp97560`]
//! and [`hp_c2200a`] are published disks. [`geometry`] locates sectors, [`rotation`] times the
//! medium, [`mechanical_disk`] carries out commands, and [`motions`] reports them to a recorder.

mod arm_move;
mod drive;
mod geometry;
pub mod hp97560;
pub mod hp_c2200a;
mod mechanical_disk;
mod motions;
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
pub use spec::{DriveError, DriveSpec, Region, SeekCurve, Zone};
