//! The configuration of the disks of a machine.

use crate::models::disk::DiskKind;
use crate::models::layout::LayoutKind;
use crate::models::request_queue::QueueKind;

/// Configuration shared by all disks of a machine.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// Kind of disk.
    pub kind: DiskKind,
    /// Placement of the slots of an object on the disk. Random places differ from disk to disk.
    pub layout: LayoutKind,
    /// Bytes of one slot: the block size of the files.
    pub slot_bytes: u64,
    /// Rotation of the media at the start.
    pub start: StartAngle,
    /// Order of the requests that wait for a disk.
    pub queue: QueueKind,
    /// Bus commands of a read besides the first. Disk-directed reads of TOCS 1997 have one: the
    /// host tells the disk to fetch a block into its buffer, then asks for the data ("three bus
    /// transactions", footnote 3; caching has two).
    pub prefetch_commands: u32,
}

/// Rotation of the media at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartAngle {
    /// All disks at the angle of their first sector.
    Zero,
    /// All disks at one random angle.
    Common,
    /// Each disk at a random angle of its own.
    Independent,
}
