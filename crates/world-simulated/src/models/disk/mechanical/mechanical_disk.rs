//! A mechanical disk: an arm, a turning medium, and a buffer.
//!
//! The buffer reads ahead across tracks and cylinders. It accepts writes that are reported when
//! they are buffered, where the drive does so. Parameters are data, a [`Drive`]; two drives are
//! presets.
//!
//! Algorithms: C. Ruemmler and J. Wilkes, "An introduction to disk drive modeling", IEEE Computer
//! 27(3), 1994, and D. Kotz, S. Toh and S. Radhakrishnan, Dartmouth PCS-TR94-220, through later
//! restatements. Open points are settled for the HP 97560 by the throughputs of D. Kotz,
//! PCS-TR94-226 (1994) and ACM TOCS 15(1), 1997, which `calibration.rs` repeats.
//!
//! The disk takes one command at a time. Each burst is as long as the fence of the drive permits.
//!
//! Invariants:
//!
//! - The buffer never holds read data and written data at once.
//! - Written data that is not yet on the medium is one run of sectors, at most the write fence
//!   long, or two runs when the second waits for the first.
//! - The arm works on one thing at a time.

use super::arm_move::ArmMove;
use super::drive::Drive;
use super::geometry::Track;
use super::rotation::{Medium, Pass};
use crate::models::bus::BusSpec;
use crate::models::disk::disk_model::{
    Activity, Command, DiskModel, Motion, Phase, SectorsOutOfRange, Step,
};
use crate::models::disk::layout::DiskShape;
use crate::models::disk::spec::DiskSpec;
use std::ops::Range;
use std::sync::Arc;
use units::{Duration, Instant};

/// State of one disk.
#[derive(Clone, Debug)]
pub struct MechanicalDisk {
    pub(super) medium: Medium,
    pub(super) arm: Arm,
    pub(super) reading: Option<ReadStream>,
    pub(super) dirty: Option<DirtyRun>,
    pub(super) command: Option<Progress>,
    /// Instant at which the controller has decoded the latest command.
    pub(super) decoded: Instant,
    /// Latest move of the arm.
    pub(super) arm_move: ArmMove,
    /// Recorded motions; `None` unless a recorder watches.
    pub(super) account: Option<Vec<Motion>>,
    /// Completion of the latest command: no other command may come before.
    pub(super) complete_at: Instant,
    /// Instant at which all data written so far is on the medium.
    pub(super) clean_at: Instant,
}

/// Position of the heads once all accepted writes are on the medium. Read-ahead does not count: it
/// gives way to everything else.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arm {
    track: Track,
    free_at: Instant,
}

/// The command in progress.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    reads: bool,
    /// Sectors of the next burst.
    burst: Range<u64>,
    /// Earliest start of the next burst.
    burst_from: Instant,
    /// One past the last sector of the command.
    end: u64,
    /// Earliest report of completion.
    report_from: Instant,
}

impl DiskSpec for Arc<Drive> {
    fn bus(&self) -> Option<BusSpec> {
        Some(self.spec.bus)
    }

    fn buffer_bytes(&self) -> Option<u64> {
        Some(self.spec.buffer_bytes)
    }

    fn build(&self, angle: u64) -> Box<dyn DiskModel> {
        let angle = Duration::from_ns(angle % self.revolution().as_ns());
        Box::new(MechanicalDisk::new(Self::clone(self), angle))
    }
}

impl DiskModel for MechanicalDisk {
    fn shape(&self) -> DiskShape {
        DiskShape {
            track_sectors: self.drive().track_sectors_min(),
            capacity_sectors: self.drive().capacity_sectors(),
        }
    }

    fn sector_bytes(&self) -> u64 {
        self.drive().spec.sector_bytes
    }

    fn commands_max(&self) -> Option<u32> {
        Some(1)
    }

    fn begin(&mut self, now: Instant, command: &Command) -> Result<Step, SectorsOutOfRange> {
        assert!(
            self.command.is_none() && now >= self.complete_at,
            "a disk takes one command at a time, the next when the last is complete"
        );
        command.check(&self.drive().spec.name, self.drive().capacity_sectors())?;
        let progress = match command.reads {
            true => self.read(now, command.sectors.clone()),
            false => self.write(now, command.sectors.clone()),
        };
        Ok(self.ask_for(progress))
    }

    fn moved(&mut self, now: Instant) -> Step {
        let progress = self.command.take().expect("a burst must belong to a command");
        assert!(now >= progress.burst_from, "a burst must not end before it may start");
        match progress.reads {
            true => self.read_transferred(now, progress),
            false => self.write_buffered(now, progress),
        }
    }

    /// Buffered bursts still go to the medium, and read-ahead data is kept.
    fn abandon(&mut self) {
        self.command = None;
        self.complete_at = Instant::START;
    }

    fn idle_at(&self) -> Instant {
        self.clean_at
    }

    fn phases(&self, from: Instant, until: Instant) -> Vec<Phase> {
        self.phases_between(from, until)
    }

    fn watch(&mut self) {
        self.account = Some(Vec::new());
    }

    fn motions(&mut self) -> Vec<Motion> {
        self.account.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn end_watch(&mut self, now: Instant) -> Vec<Motion> {
        self.note_read(now, Activity::ReadAhead);
        self.account.take().unwrap_or_default()
    }
}

impl MechanicalDisk {
    /// Creates a disk at rest over its first track, turned by `angle_at_start` (less than a
    /// revolution).
    pub fn new(drive: Arc<Drive>, angle_at_start: Duration) -> Self {
        let arm = Arm { track: drive.track_of(0), free_at: Instant::START };
        Self {
            medium: Medium::new(drive, angle_at_start),
            arm,
            reading: None,
            dirty: None,
            command: None,
            decoded: Instant::START,
            arm_move: ArmMove::default(),
            account: None,
            complete_at: Instant::START,
            clean_at: Instant::START,
        }
    }

    pub(super) fn drive(&self) -> &Drive {
        &self.medium.drive
    }

    /// Begins a read command. Its first burst may start when it is in the buffer. The medium does
    /// not wait for the host while there is room in the buffer.
    fn read(&mut self, now: Instant, sectors: Range<u64>) -> Progress {
        let decoded = now + self.drive().spec.read_overhead;
        self.decoded = decoded;
        self.dirty = None; // The arm is free only after the writes, so the read waits.
        if !self.continue_reading(decoded, &sectors) {
            self.start_reading(decoded, &sectors);
        }
        let burst = first_part(&sectors, self.drive().read_fence_sectors);
        let burst_from = self.buffered_at(burst.end).max(decoded);
        let end = sectors.end;
        Progress { reads: true, burst, burst_from, end, report_from: decoded }
    }

    /// Continues a read after one burst has moved to the host.
    fn read_transferred(&mut self, now: Instant, progress: Progress) -> Step {
        let sent = progress.burst.end;
        let limit = read_limit(&self.medium.drive, sent, progress.end);
        self.read_on(now, limit);
        if sent == progress.end {
            return self.complete(now);
        }
        let burst = first_part(&(sent..progress.end), self.drive().read_fence_sectors);
        let burst_from = self.buffered_at(burst.end).max(now);
        self.ask_for(Progress { burst, burst_from, ..progress })
    }

    /// Begins a write command. Its first burst may start when the buffer has room. Read-ahead data
    /// is lost.
    fn write(&mut self, now: Instant, sectors: Range<u64>) -> Progress {
        let decoded = now + self.drive().spec.write_overhead;
        self.decoded = decoded;
        self.stop_reading(decoded);
        let continues = self.dirty.as_ref().is_some_and(|run| run.end == sectors.start);
        let report_from = if continues { decoded } else { self.clean_at };
        if !continues {
            self.dirty = None; // The arm keeps its place on the medium and in time.
        }
        let burst = first_part(&sectors, self.drive().write_burst_sectors());
        let burst_from = self.room_at(&burst).max(decoded);
        let end = sectors.end;
        Progress { reads: false, burst, burst_from, end, report_from }
    }

    /// Continues a write after one burst is in the buffer.
    ///
    /// With immediate reporting the report comes at once if the buffer was clean or the write
    /// continues the run of sectors that is being written. Otherwise it comes when that run is on
    /// the medium. Without immediate reporting it comes when the write itself is on the medium. The
    /// arm begins to move as soon as it is free and the command decoded, concurrently with the
    /// burst.
    fn write_buffered(&mut self, now: Instant, progress: Progress) -> Step {
        self.put_on_medium(now, &progress);
        if progress.burst.end == progress.end {
            return match self.drive().spec.immediate_reporting {
                true => self.complete(now.max(progress.report_from)),
                false => self.complete(self.clean_at),
            };
        }
        let burst =
            first_part(&(progress.burst.end..progress.end), self.drive().write_burst_sectors());
        let burst_from = self.room_at(&burst).max(now);
        self.ask_for(Progress { burst, burst_from, ..progress })
    }

    fn ask_for(&mut self, progress: Progress) -> Step {
        let sectors = progress.burst.end - progress.burst.start;
        let bytes = sectors * self.drive().spec.sector_bytes;
        let from = progress.burst_from;
        self.command = Some(progress);
        Step::Burst { from, bytes }
    }

    fn complete(&mut self, at: Instant) -> Step {
        self.complete_at = at;
        Step::Complete(at)
    }

    /// Instant at which all sectors before `end` of the present stream are in the buffer.
    fn buffered_at(&self, end: u64) -> Instant {
        let stream = self.reading.as_ref().expect("a read command has a stream");
        stream.pass.passed_at(&self.medium, end)
    }

    /// Continues the present stream if the first sector was read ahead or is at the head. Otherwise
    /// returns false and changes nothing.
    ///
    /// A request that leaves a gap begins anew, and earlier data is lost: the buffer is one
    /// segment. This matters for requests that are nearly in order, and is inferred from them: 8 KB
    /// `rcb` and `rcc` by caching reach a third of the disks' rate in TR94-226 (Table 4), and would
    /// reach two thirds if the head read on across gaps.
    fn continue_reading(&mut self, decoded: Instant, sectors: &Range<u64>) -> bool {
        let Some(stream) = self.reading.as_mut() else { return false };
        let (medium, drive, start) = (&self.medium, &self.medium.drive, sectors.start);
        let reached = stream.reached(medium, decoded);
        if start < stream.oldest(drive, reached) || start >= stream.limit || start > reached {
            return false;
        }
        let limit = read_limit(drive, start, sectors.end);
        stream.asked_end = stream.asked_end.max(sectors.end);
        self.read_on(decoded, limit);
        true
    }

    /// Lets the head read up to `limit`, for which there is room in the buffer from `now` on.
    fn read_on(&mut self, now: Instant, limit: u64) {
        let stream = self.reading.as_ref().expect("only a read in progress can go on");
        if stream.pauses_before(&self.medium, now, limit) {
            self.note_read(now, Activity::Read); // It goes on, so a host takes this data.
        }
        let stream = self.reading.as_mut().expect("only a read in progress can go on");
        if let Some(arm_move) = stream.read_on(&self.medium, now, limit) {
            self.arm_move = arm_move;
        }
    }

    /// Discards the present stream and moves the head to the first sector of a new one.
    fn start_reading(&mut self, decoded: Instant, sectors: &Range<u64>) {
        self.stop_reading(decoded);
        let (drive, start) = (&self.medium.drive, sectors.start);
        let moved = drive.move_between(self.arm.track, drive.track_of(start));
        let from = decoded.max(self.arm.free_at);
        let at = from + moved;
        let pass = Pass { sector: start, tick: self.medium.tick_of_sector(at, start) };
        let limit = read_limit(drive, start, sectors.end);
        self.arm_move = ArmMove::new(&self.medium, self.arm.track, [from, at, at], pass);
        self.reading = Some(ReadStream { first: start, pass, limit, asked_end: sectors.end });
    }

    /// Discards the present stream; the head stays at its place at `now`. It stops within a sector,
    /// as the HP disks do on which DiskSim was validated ("stop prefetch in sector").
    fn stop_reading(&mut self, now: Instant) {
        self.note_read(now, Activity::ReadAhead);
        if let Some(stream) = self.reading.take() {
            let reached = stream.reached(&self.medium, now);
            self.arm = Arm { track: stream.track(self.drive(), reached), free_at: now };
        }
    }

    /// Instant from which the run that `burst` continues is short enough to take it; at once
    /// without such a run.
    fn room_at(&self, burst: &Range<u64>) -> Instant {
        let Some(run) = self.dirty.as_ref() else { return Instant::START };
        let staying = self.drive().write_fence_sectors - (burst.end - burst.start);
        run.pass.passed_at(&self.medium, run.end.saturating_sub(staying))
    }

    /// Plans the transfer of a buffered burst to the medium, which nothing can interrupt any more.
    fn put_on_medium(&mut self, now: Instant, progress: &Progress) {
        let Range { start, end } = progress.burst;
        let drive = &self.medium.drive;
        let from = self.arm.free_at.max(self.decoded);
        let arrived = from + drive.move_between(self.arm.track, drive.track_of(start));
        let ready = arrived.max(now);
        let tick = self.medium.tick_of_sector(ready, start);
        let written_before = self.clean_at;
        let pass = match self.dirty.as_ref() {
            Some(run) if run.pass.tick_of(&self.medium, start) == tick => run.pass,
            _ => Pass { sector: start, tick },
        };
        self.clean_at = pass.passed_at(&self.medium, end);
        if pass.sector == start {
            self.arm_move =
                ArmMove::new(&self.medium, self.arm.track, [from, arrived, ready], pass);
        }
        self.arm = Arm { track: drive.track_of(end - 1), free_at: self.clean_at };
        self.note_write(written_before, &progress.burst);
        self.dirty = Some(DirtyRun { pass, end });
    }
}

/// Returns the first `sectors_max` sectors of `sectors`.
fn first_part(sectors: &Range<u64>, sectors_max: u64) -> Range<u64> {
    sectors.start..sectors.end.min(sectors.start + sectors_max)
}

/// Returns the sector before which the head stops while the host has yet to take the data from
/// `sector` on: when the buffer is full, or at the end of the command where the drive does not read
/// ahead.
fn read_limit(drive: &Drive, sector: u64, command_end: u64) -> u64 {
    let wanted = if drive.spec.read_ahead { drive.capacity_sectors() } else { command_end };
    wanted.min(sector + drive.buffer_sectors)
}

/// Consecutive sectors that the head reads into the buffer, requested or not.
#[derive(Clone, Debug)]
pub(super) struct ReadStream {
    /// First sector of the stream.
    pub(super) first: u64,
    /// Pass of the head since its latest pause, or a later part of it.
    pub(super) pass: Pass,
    /// Sector before which the head stops; see [`read_limit`].
    pub(super) limit: u64,
    /// One past the last sector that a host has requested.
    pub(super) asked_end: u64,
}

impl ReadStream {
    /// Returns the first sector that is not yet read at `now`.
    pub(super) fn reached(&self, medium: &Medium, now: Instant) -> u64 {
        if now >= self.pass.passed_at(medium, self.limit) {
            return self.limit;
        }
        self.pass.reached(medium, now)
    }

    /// Returns the oldest sector in the buffer when the head has reached `reached`.
    fn oldest(&self, drive: &Drive, reached: u64) -> u64 {
        self.first.max(reached.saturating_sub(drive.buffer_sectors))
    }

    /// Returns the track under the head when it has reached `reached`.
    fn track(&self, drive: &Drive, reached: u64) -> Track {
        drive.track_of(reached.min(self.limit - 1))
    }

    /// True if the head rests at a full buffer when room up to `limit` becomes available at `now`.
    fn pauses_before(&self, medium: &Medium, now: Instant, limit: u64) -> bool {
        limit > self.limit && self.pass.passed_at(medium, self.limit) < now
    }

    /// Lets the head read up to `limit` from `now` on. Returns the new move of the arm if the head
    /// had paused at a full buffer.
    fn read_on(&mut self, medium: &Medium, now: Instant, limit: u64) -> Option<ArmMove> {
        if limit <= self.limit {
            return None;
        }
        let sector = self.reached(medium, now);
        let arm_move = self.pauses_before(medium, now, limit).then(|| {
            let (drive, left) = (&medium.drive, self.track(&medium.drive, sector));
            let arrived = now + drive.move_between(left, drive.track_of(sector));
            let pass = Pass { sector, tick: medium.tick_of_sector(arrived, sector) };
            ArmMove::new(medium, left, [now, arrived, arrived], pass)
        });
        self.pass = match &arm_move {
            Some(arm_move) => arm_move.pass,
            // The same pass from here on, which is shorter to search.
            None => Pass { sector, tick: self.pass.tick_of(medium, sector) },
        };
        self.limit = limit;
        arm_move
    }
}

/// Written sectors that are on their way to the medium.
#[derive(Clone, Debug)]
pub(super) struct DirtyRun {
    /// Pass of the head over them. Sectors before its start are on the medium by then.
    pass: Pass,
    /// One past the last sector.
    end: u64,
}
