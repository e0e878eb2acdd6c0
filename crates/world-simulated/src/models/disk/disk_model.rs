//! What all disk models have in common: a command goes in, bursts of data and a report come out.
//!
//! ```text
//! the command has arrived -> `begin` -> Burst { from, bytes } -> the driver moves them over a bus
//!                                       ^                         |
//!                                       '------------ `moved` <---'
//!                                     Complete(at): the disk reports then
//! ```
//!
//! A disk whose data needs no bus of its node answers `Complete` at once.

use super::layout::DiskShape;
use std::ops::Range;
use units::Instant;

/// A disk: a state machine that turns commands into instants.
///
/// The driver tells it of events in the order of their instants. It begins no more than
/// [`commands_max`](Self::commands_max) commands before the first of them is complete. A model that
/// asks for bursts takes one command at a time, so it is clear to which one a burst belongs.
pub trait DiskModel {
    /// The sizes that a layout depends on.
    fn shape(&self) -> DiskShape;

    /// Bytes of a sector: the unit of addresses.
    fn sector_bytes(&self) -> u64;

    /// How many commands it takes at once; `None` when there is no end.
    fn commands_max(&self) -> Option<u32>;

    /// A command has arrived: what the disk does first.
    ///
    /// # Errors
    /// When `sectors` is empty, runs backwards, or ends beyond the disk; nothing has changed then.
    ///
    /// # Panics
    /// When the disk does not take one more command.
    fn begin(&mut self, now: Instant, command: &Command) -> Result<Step, SectorsOutOfRange>;

    /// The burst that the disk asked for has moved: what comes next.
    ///
    /// # Panics
    /// When the disk asked for none, or `now` is before it could start.
    fn moved(&mut self, now: Instant) -> Step;

    /// The host has lost interest in the command whose burst the disk waits for, if any: the next
    /// may come at once. What the disk has taken in is not affected.
    fn abandon(&mut self);

    /// When everything written so far is on the medium.
    fn idle_at(&self) -> Instant;

    /// Where the time goes that the latest step takes, from `from` (the present) to `until` (the
    /// instant that the step names): phases without gaps.
    fn phases(&self, _from: Instant, until: Instant) -> Vec<Phase> {
        vec![Phase { activity: Activity::Work, until }]
    }

    /// From now on, keeps account of what arm and medium do, until it is fetched by
    /// [`motions`](Self::motions). Disks without them have nothing to tell.
    fn watch(&mut self) {}

    /// What arm and medium did, or will do for certain, since it was last asked.
    fn motions(&mut self) -> Vec<Motion> {
        Vec::new()
    }

    /// The last of the motions, when nobody will look after `now`.
    fn end_watch(&mut self, _now: Instant) -> Vec<Motion> {
        self.motions()
    }
}

/// What the time of a disk goes to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Activity {
    /// Others have the bus.
    BusWait,
    /// A command goes over the bus.
    BusCommand,
    /// Data goes over the bus.
    BusBurst,
    /// The controller finds out what a command wants.
    Overhead,
    /// The arm is at work for an earlier command.
    ArmWait,
    /// The arm moves to another cylinder.
    Seek,
    /// Another head of the cylinder is chosen.
    HeadSwitch,
    /// The medium turns until the first sector is under the head.
    Rotation,
    /// Sectors that a host asked for, and the skews between them, pass under the head.
    Read,
    /// The same for sectors that nobody has asked for.
    ReadAhead,
    /// Sectors are written, skews included.
    Write,
    /// The work of a disk that is a formula.
    Work,
}

/// A part of the time of a command. It begins where the one before it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phase {
    /// What it went to.
    pub activity: Activity,
    /// When it ended.
    pub until: Instant,
}

/// What arm and medium did for a while, whoever it was for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Motion {
    /// What they did.
    pub activity: Activity,
    /// From then …
    pub from: Instant,
    /// … to then.
    pub until: Instant,
    /// The sectors that passed; none, at the place of the first to come, for a move and a wait.
    pub sectors: Range<u64>,
}

/// What a host asks of a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Reads, or writes.
    pub reads: bool,
    /// What is read or written.
    pub sectors: Range<u64>,
}

/// What a disk does next for a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A burst of data is to go over the bus.
    Burst {
        /// Not earlier than then.
        from: Instant,
        /// So much.
        bytes: u64,
    },
    /// The disk reports the command complete then.
    Complete(Instant),
}

/// A command named sectors that the disk does not have, or none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "sectors {} to {} (excluded) are no range on this {disk}, which has sectors 0 to \
     {capacity_sectors} (excluded)",
    .sectors.start, .sectors.end
)]
pub struct SectorsOutOfRange {
    /// What the disk is.
    pub disk: String,
    /// What the command named.
    pub sectors: Range<u64>,
    /// Sectors of the disk.
    pub capacity_sectors: u64,
}

impl Command {
    /// Refuses a command for sectors that a disk does not have.
    pub(super) fn check(&self, disk: &str, capacity_sectors: u64) -> Result<(), SectorsOutOfRange> {
        let sectors = self.sectors.clone();
        if sectors.is_empty() || sectors.end > capacity_sectors {
            return Err(SectorsOutOfRange { disk: disk.to_owned(), sectors, capacity_sectors });
        }
        Ok(())
    }
}
