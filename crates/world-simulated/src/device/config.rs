//! The configuration of the disks of a machine.

use crate::models::disk::DiskKind;
use crate::models::request_queue::QueueKind;

/// What every disk of a machine is.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// What moves the data.
    pub kind: DiskKind,
    /// How the slots of an object lie on the disk.
    pub layout: LayoutKind,
    /// Bytes of one slot: the block size of the files.
    pub slot_bytes: u64,
    /// At which angle the disks start.
    pub start: StartAngle,
    /// Which of the requests that wait for a disk is next.
    pub queue: QueueKind,
    /// Commands of a read over its bus besides the first. Disk-directed reads of TOCS 1997 have
    /// one: the host has the disk fetch a block into its buffer, then asks for the data ("three bus
    /// transactions", footnote 3; caching has two).
    pub prefetch_commands: u32,
}

/// At which angle disks start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartAngle {
    /// All at the angle of their first sector.
    Zero,
    /// All at one random angle.
    Common,
    /// Each at a random angle of its own.
    Independent,
}

/// How the slots of an object lie on a disk; random ones differ from disk to disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayoutKind {
    /// One after the other.
    Contiguous,
    /// Each at a place of its own.
    RandomBlocks,
    /// Consecutive within a track, the tracks anywhere.
    RandomTracks,
}
