//! The interface of all disk models: a command goes in, bursts of data and a report come out.
//!
//! ```text
//! the command has arrived -> `begin` -> Burst { from, bytes } -> the driver moves them over a bus
//!                                       ^                         |
//!                                       '------------ `moved` <---'
//!                                     Complete(at): the disk reports at this instant
//! ```
//!
//! A disk whose data needs no bus of its node answers `Complete` at once.

use super::layout::DiskShape;
use super::shared_medium::SharedMedium;
use std::ops::Range;
use units::{Duration, Instant};

/// A disk: a state machine that turns commands into instants.
///
/// The driver reports events in the order of their instants. It begins at most
/// [`commands_max`](Self::commands_max) commands before the first of them is complete. A model that
/// asks for bursts takes one command at a time, so each burst belongs to that command.
pub trait DiskModel {
    /// Sizes on which a layout depends.
    fn shape(&self) -> DiskShape;

    /// Bytes of a sector: the unit of addresses.
    fn sector_bytes(&self) -> u64;

    /// Number of commands that the disk takes at once; `None` for no limit.
    fn commands_max(&self) -> Option<u32>;

    /// Accepts a command that has arrived. Returns the first step of the disk.
    ///
    /// # Errors
    /// Fails when `sectors` is empty, runs backwards, or ends beyond the disk; the state has not
    /// changed then.
    ///
    /// # Panics
    /// Panics when the disk cannot take another command.
    fn begin(&mut self, now: Instant, command: &Command) -> Result<Step, SectorsOutOfRange>;

    /// Accepts the burst that the disk asked for and that has moved, or the work that a processor
    /// has done. Returns the next step.
    ///
    /// # Panics
    /// Panics when the disk asked for neither, or `now` is before the burst could start.
    fn moved(&mut self, now: Instant) -> Step;

    /// Cancels the command whose burst is pending, if any. The next command may start at once. Data
    /// that is already buffered is kept.
    fn abandon(&mut self);

    /// Instant at which everything written so far is on the medium.
    fn idle_at(&self) -> Instant;

    /// Puts everything written so far on the medium. Returns the instant at which it is there.
    fn sync(&mut self, _now: Instant) -> Instant {
        self.idle_at()
    }

    /// Tells a disk at rest the medium of its computer. Most disks have one of their own.
    fn join_medium(&mut self, _medium: &SharedMedium) {}

    /// Divides the latest step, from `from` (the present) to `until` (the instant that the step
    /// names), into phases without gaps.
    fn phases(&self, _from: Instant, until: Instant) -> Vec<Phase> {
        vec![Phase { activity: Activity::Work, until }]
    }

    /// Starts to record motions of arm and medium, which [`motions`](Self::motions) fetches. Disks
    /// without moving parts record nothing.
    fn watch(&mut self) {}

    /// Returns the motions since the last call, including future ones that are certain.
    fn motions(&mut self) -> Vec<Motion> {
        Vec::new()
    }

    /// Returns the last motions and ends the recording at `now`.
    fn end_watch(&mut self, _now: Instant) -> Vec<Motion> {
        self.motions()
    }
}

/// Activity of a disk, to which its time is charged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Activity {
    /// Waiting for a bus that others use.
    BusWait,
    /// Command transfer over the bus.
    BusCommand,
    /// Data transfer over the bus.
    BusBurst,
    /// Decoding of a command by the controller.
    Overhead,
    /// Waiting for an arm that works for an earlier command.
    ArmWait,
    /// Move of the arm to another cylinder.
    Seek,
    /// Switch to another head of the cylinder.
    HeadSwitch,
    /// Rotational latency, until the first sector is under the head.
    Rotation,
    /// Reading of requested sectors, skews between them included.
    Read,
    /// Reading of sectors that no host has requested, skews included.
    ReadAhead,
    /// Writing of sectors, skews included.
    Write,
    /// Work of a disk that is a formula.
    Work,
}

/// A part of the time of a command. It begins at the end of the previous part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phase {
    /// Activity of the part.
    pub activity: Activity,
    /// End of the part.
    pub until: Instant,
}

/// A motion of arm or medium, for any command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Motion {
    /// Kind of motion.
    pub activity: Activity,
    /// Beginning of the motion.
    pub from: Instant,
    /// End of the motion.
    pub until: Instant,
    /// Sectors that passed. For a move or a wait: an empty range at the first sector to come.
    pub sectors: Range<u64>,
}

/// A command of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// True for a read, false for a write.
    pub reads: bool,
    /// Sectors to read or write.
    pub sectors: Range<u64>,
}

/// Next step of a disk in a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A burst of data has to go over the bus.
    Burst {
        /// Earliest instant at which it may start.
        from: Instant,
        /// Bytes of the burst.
        bytes: u64,
    },
    /// A processor of the computer has to work for the command, on the thread of the disk.
    Processor {
        /// Length of the work on a core of its own.
        length: Duration,
    },
    /// The disk reports the command complete at this instant.
    Complete(Instant),
}

/// Error of a command with an empty range, or one that leaves the disk.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "sectors {} to {} (excluded) are no range on this {disk}, which has sectors 0 to \
     {capacity_sectors} (excluded)",
    .sectors.start, .sectors.end
)]
pub struct SectorsOutOfRange {
    /// Description of the disk.
    pub disk: String,
    /// Sectors of the command.
    pub sectors: Range<u64>,
    /// Sectors of the disk.
    pub capacity_sectors: u64,
}

impl Command {
    /// Refuses a command for sectors that a disk does not have. `disk` describes the disk.
    ///
    /// # Errors
    /// Fails when the range of sectors is empty, or ends beyond the disk.
    pub fn check(&self, disk: &str, capacity_sectors: u64) -> Result<(), SectorsOutOfRange> {
        let sectors = self.sectors.clone();
        if sectors.is_empty() || sectors.end > capacity_sectors {
            return Err(SectorsOutOfRange { disk: disk.to_owned(), sectors, capacity_sectors });
        }
        Ok(())
    }
}
