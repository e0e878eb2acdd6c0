//! An HP 97560 disk: 1.3 GB of 1991, the disk of the disk-directed I/O papers.
//!
//! It holds the geometry, the arm, a 128 KB buffer that reads ahead across tracks and cylinders,
//! and writes that are reported when they are buffered. Parameters and algorithms: C. Ruemmler and
//! J. Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994, and D. Kotz,
//! S. Toh and S. Radhakrishnan, Dartmouth PCS-TR94-220, both through later restatements; what they
//! leave open is settled by the throughputs of D. Kotz, PCS-TR94-226 (1994) and ACM TOCS 15(1),
//! 1997, which `calibration.rs` repeats.
//!
//! One command at a time. The driver moves each command over the bus, and its data in bursts:
//!
//! ```text
//! read:   command on the bus, then `read` at its end        -> when the first burst is buffered
//!         burst on the bus,   then `read_transferred`       -> when the next one is, or complete
//! write:  command on the bus, then `write` at its end       -> when the disk can take a burst
//!         burst on the bus,   then `write_buffered`         -> when it can take the next, or when
//!                                                              it reports the command complete
//! ```
//!
//! Invariants: the buffer never holds data that was read and data that was written at once; the
//! data written and not yet on the medium is one run of sectors, at most [`Hp97560::FENCE_SECTORS`]
//! long, or two when the second waits for the first; the arm works on one thing at a time.

mod geometry;

#[cfg(test)]
mod calibration;
#[cfg(test)]
mod tests;

use geometry::{Pass, Spindle, Track};
use std::ops::Range;
use units::{Duration, Instant};

/// A command named sectors that the disk does not have, or none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "sectors {} to {} (excluded) are no range on an HP 97560, which has sectors 0 to {} (excluded)",
    .sectors.start, .sectors.end, Hp97560::CAPACITY_SECTORS
)]
pub struct SectorsOutOfRange {
    /// What the command named.
    pub sectors: Range<u64>,
}

/// What follows a burst of data on the bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterBurst {
    /// Another burst, which may start then.
    Burst(Instant),
    /// Nothing: the command is complete then, and the next one may come.
    Complete(Instant),
}

/// The state of one disk.
#[derive(Clone, Debug)]
pub struct Hp97560 {
    spindle: Spindle,
    arm: Arm,
    reading: Option<ReadStream>,
    dirty: Option<DirtyRun>,
    command: Option<Command>,
    /// When the latest command was complete: no other may come before.
    complete_at: Instant,
    /// When all data written so far is on the medium.
    clean_at: Instant,
}

/// Where the heads will be once the writes accepted so far are on the medium. Reading ahead does
/// not count: it gives way to everything else.
#[derive(Clone, Copy, Debug)]
struct Arm {
    track: Track,
    free_at: Instant,
}

/// The command in progress.
#[derive(Clone, Debug)]
struct Command {
    /// The data that the next burst carries.
    burst: Range<u64>,
    /// When that burst may start.
    burst_from: Instant,
    /// One past the last sector of the command.
    end: u64,
    /// When the controller had understood it.
    decoded: Instant,
    /// Not reported complete earlier.
    report_from: Instant,
}

impl Hp97560 {
    /// Bytes in a sector.
    pub const SECTOR_BYTES: u64 = geometry::SECTOR_BYTES;
    /// Sectors on a track.
    pub const TRACK_SECTORS: u64 = geometry::TRACK_SECTORS;
    /// Sectors a host can use: 1,355,304,960 bytes.
    pub const CAPACITY_SECTORS: u64 = geometry::CAPACITY_SECTORS;
    /// Time of one revolution, 60/4002 s, rounded down to a nanosecond.
    pub const REVOLUTION: Duration = geometry::REVOLUTION;
    /// Time the controller needs for each command, before a read may move the arm (Ruemmler &
    /// Wilkes 1994 by way of FSS). Not hidden behind the seek of a read: with 1.1 ms the random
    /// reads of TR94-226 would be 4.6 and 6.7 MB/s and not the published 4.4 and 6.2.
    pub const OVERHEAD: Duration = Duration::from_us(2_200);
    /// Sectors of the buffer: 128 KB (TH99 drive list, "128 KB static RAM").
    pub const BUFFER_SECTORS: u64 = 256;
    /// Read fence and write fence, 64 KB both (HRaid's table of disks): a read does not reconnect
    /// to the bus before so much (or all it wants) is buffered; a run of written data in the buffer
    /// grows no longer than this. That writes stop at the fence and not at the whole buffer is
    /// inferred from TR94-226: its contiguous writes, 34.8 MB/s, end 26 ms before the medium can
    /// have the data, and 26 ms are 7 blocks: the fence less the block that waits to enter.
    pub const FENCE_SECTORS: u64 = 128;
    /// Longest burst of a write: half the fence, so that a burst can move while the medium is busy
    /// with the one before and a long write loses no revolution. (Our choice.)
    pub const WRITE_BURST_SECTORS: u64 = Self::FENCE_SECTORS / 2;

    /// A disk at rest over its first track, turned by `angle_at_start` (less than a revolution).
    pub fn new(angle_at_start: Duration) -> Self {
        Self {
            spindle: Spindle::new(angle_at_start),
            arm: Arm { track: Track::of(0), free_at: Instant::START },
            reading: None,
            dirty: None,
            command: None,
            complete_at: Instant::START,
            clean_at: Instant::START,
        }
    }

    /// A command to read `sectors` has arrived: when the first burst is in the buffer.
    ///
    /// The caller moves [`burst_bytes`](Self::burst_bytes) over the bus from then on and calls
    /// [`read_transferred`](Self::read_transferred). The medium does not wait for the host while
    /// there is room in the buffer.
    ///
    /// # Errors
    /// When `sectors` is empty, runs backwards, or ends beyond the disk; nothing has changed then.
    ///
    /// # Panics
    /// When another command is in progress.
    pub fn read(
        &mut self,
        now: Instant,
        sectors: Range<u64>,
    ) -> Result<Instant, SectorsOutOfRange> {
        self.expect_command(now, &sectors)?;
        let decoded = now + Self::OVERHEAD;
        self.dirty = None; // The arm, free only when they are done, makes us wait for the writes.
        if !self.continue_reading(decoded, sectors.start) {
            self.start_reading(decoded, sectors.start);
        }
        let burst = first_part(&sectors, Self::FENCE_SECTORS);
        let burst_from = self.buffered_at(burst.end).max(decoded);
        self.command =
            Some(Command { burst, burst_from, end: sectors.end, decoded, report_from: decoded });
        Ok(burst_from)
    }

    /// The burst of the read has moved to the host: the next one, or the end of the command.
    ///
    /// # Panics
    /// When there is no read in progress, or `now` is before the burst may start.
    pub fn read_transferred(&mut self, now: Instant) -> AfterBurst {
        let command = self.expect_burst(now);
        let sent = command.burst.end;
        let stream = self.reading.as_mut().expect("a burst was read, so a read is in progress");
        stream.read_on(self.spindle, now, sent + Self::BUFFER_SECTORS);
        if sent == command.end {
            return self.complete(now);
        }
        let burst = first_part(&(sent..command.end), Self::FENCE_SECTORS);
        let burst_from = self.buffered_at(burst.end).max(now);
        self.command = Some(Command { burst, burst_from, ..command });
        AfterBurst::Burst(burst_from)
    }

    /// A command to write `sectors` has arrived: when the disk can take the first burst.
    ///
    /// The caller moves [`burst_bytes`](Self::burst_bytes) over the bus from then on and calls
    /// [`write_buffered`](Self::write_buffered). What was read ahead is lost.
    ///
    /// # Errors
    /// When `sectors` is empty, runs backwards, or ends beyond the disk; nothing has changed then.
    ///
    /// # Panics
    /// When another command is in progress.
    pub fn write(
        &mut self,
        now: Instant,
        sectors: Range<u64>,
    ) -> Result<Instant, SectorsOutOfRange> {
        self.expect_command(now, &sectors)?;
        let decoded = now + Self::OVERHEAD;
        self.stop_reading(decoded);
        let continues = self.dirty.as_ref().is_some_and(|run| run.end == sectors.start);
        let report_from = if continues { decoded } else { self.clean_at };
        if !continues {
            self.dirty = None; // Its place on the medium and in time is kept by the arm.
        }
        let burst = first_part(&sectors, Self::WRITE_BURST_SECTORS);
        let burst_from = self.room_at(&burst).max(decoded);
        self.command = Some(Command { burst, burst_from, end: sectors.end, decoded, report_from });
        Ok(burst_from)
    }

    /// The burst of the write is in the buffer: when the next may come, or when the disk reports
    /// the command complete.
    ///
    /// The report comes at once if the buffer was clean or the write continues the run of sectors
    /// that is being written; otherwise when that run is on the medium. The arm begins to move as
    /// soon as it is free and the command decoded, at the same time as the burst.
    ///
    /// # Panics
    /// When there is no write in progress, or `now` is before the burst may start.
    pub fn write_buffered(&mut self, now: Instant) -> AfterBurst {
        let command = self.expect_burst(now);
        self.put_on_medium(now, &command);
        if command.burst.end == command.end {
            return self.complete(now.max(command.report_from));
        }
        let burst = first_part(&(command.burst.end..command.end), Self::WRITE_BURST_SECTORS);
        let burst_from = self.room_at(&burst).max(now);
        self.command = Some(Command { burst, burst_from, ..command });
        AfterBurst::Burst(burst_from)
    }

    /// The host has lost interest in the command in progress, if any: the next may come at once.
    ///
    /// Bursts already buffered still go to the medium, and what was read ahead stays.
    pub fn abandon(&mut self) {
        self.command = None;
        self.complete_at = Instant::START;
    }

    /// Bytes of the burst that the bus is to move next; none when no command is in progress.
    pub fn burst_bytes(&self) -> u64 {
        let command = self.command.as_ref();
        command.map_or(0, |command| command.burst.end - command.burst.start) * Self::SECTOR_BYTES
    }

    /// When everything written so far is on the medium.
    pub fn idle_at(&self) -> Instant {
        self.clean_at
    }

    fn expect_command(&self, now: Instant, sectors: &Range<u64>) -> Result<(), SectorsOutOfRange> {
        assert!(
            self.command.is_none() && now >= self.complete_at,
            "a disk takes one command at a time, the next when the last is complete"
        );
        if sectors.is_empty() || sectors.end > Self::CAPACITY_SECTORS {
            return Err(SectorsOutOfRange { sectors: sectors.clone() });
        }
        Ok(())
    }

    fn expect_burst(&mut self, now: Instant) -> Command {
        let command = self.command.take().expect("a burst must belong to a command");
        assert!(now >= command.burst_from, "a burst must not end before it may start");
        command
    }

    fn complete(&mut self, at: Instant) -> AfterBurst {
        self.complete_at = at;
        AfterBurst::Complete(at)
    }

    /// When all sectors before `end` of the present stream are in the buffer.
    fn buffered_at(&self, end: u64) -> Instant {
        let stream = self.reading.as_ref().expect("a read command has a stream");
        stream.pass.passed_at(self.spindle, end)
    }

    /// Takes `start` from what was read ahead, or from where the head is going, if that brings it
    /// no later than moving the head. False, and nothing changed, if not.
    fn continue_reading(&mut self, decoded: Instant, start: u64) -> bool {
        let Some(stream) = self.reading.as_mut() else { return false };
        let reached = stream.reached(self.spindle, decoded);
        if start < stream.oldest(reached) || start >= stream.limit {
            return false;
        }
        if start >= reached {
            let track = stream.track(reached);
            let moved = decoded + track.move_to(Track::of(start));
            if self.spindle.tick_of_sector(moved, start) < stream.pass.tick_of(start) {
                return false;
            }
        }
        stream.read_on(self.spindle, decoded, start + Self::BUFFER_SECTORS);
        true
    }

    /// Gives up what was read, and moves the head to `start` to read from there on.
    fn start_reading(&mut self, decoded: Instant, start: u64) {
        self.stop_reading(decoded);
        let at = decoded.max(self.arm.free_at) + self.arm.track.move_to(Track::of(start));
        self.reading = Some(ReadStream {
            first: start,
            pass: Pass { sector: start, tick: self.spindle.tick_of_sector(at, start) },
            limit: (start + Self::BUFFER_SECTORS).min(Self::CAPACITY_SECTORS),
        });
    }

    /// Gives up what was read; the head stays where it is at `now`. It stops within a sector, as
    /// the HP disks do that DiskSim was validated on ("stop prefetch in sector").
    fn stop_reading(&mut self, now: Instant) {
        if let Some(stream) = self.reading.take() {
            let reached = stream.reached(self.spindle, now);
            self.arm = Arm { track: stream.track(reached), free_at: now };
        }
    }

    /// When the run that `burst` continues is short enough to take it; at once if there is none.
    fn room_at(&self, burst: &Range<u64>) -> Instant {
        let Some(run) = self.dirty.as_ref() else { return Instant::START };
        let staying = Self::FENCE_SECTORS - (burst.end - burst.start);
        run.pass.passed_at(self.spindle, run.end.saturating_sub(staying))
    }

    /// Plans the way of a buffered burst to the medium: nothing can come between any more.
    fn put_on_medium(&mut self, now: Instant, command: &Command) {
        let Range { start, end } = command.burst;
        let moving_from = self.arm.free_at.max(command.decoded);
        let moved = moving_from + self.arm.track.move_to(Track::of(start));
        let tick = self.spindle.tick_of_sector(moved.max(now), start);
        let pass = match self.dirty.as_ref() {
            Some(run) if run.pass.tick_of(start) == tick => run.pass,
            _ => Pass { sector: start, tick },
        };
        self.clean_at = pass.passed_at(self.spindle, end);
        self.dirty = Some(DirtyRun { pass, end });
        self.arm = Arm { track: Track::of(end - 1), free_at: self.clean_at };
    }
}

/// The first `sectors_max` sectors of `sectors`.
fn first_part(sectors: &Range<u64>, sectors_max: u64) -> Range<u64> {
    sectors.start..sectors.end.min(sectors.start + sectors_max)
}

/// Sectors that the head reads one after the other into the buffer, asked for or not.
#[derive(Clone, Debug)]
struct ReadStream {
    /// Where it began.
    first: u64,
    /// The way of the head since its latest pause, or a later part of it.
    pass: Pass,
    /// Where the buffer is full: 128 KB past what the host has yet to take.
    limit: u64,
}

impl ReadStream {
    /// The first sector not yet read at `now`.
    fn reached(&self, spindle: Spindle, now: Instant) -> u64 {
        if now >= self.pass.passed_at(spindle, self.limit) {
            return self.limit;
        }
        self.pass.reached(spindle, now)
    }

    /// The oldest sector still in the buffer when the head has reached `reached`.
    fn oldest(&self, reached: u64) -> u64 {
        self.first.max(reached.saturating_sub(Hp97560::BUFFER_SECTORS))
    }

    /// The track under the head when it has reached `reached`.
    fn track(&self, reached: u64) -> Track {
        Track::of(reached.min(self.limit - 1))
    }

    /// There is room up to `limit` from `now` on: the head goes on, or starts again if it had
    /// filled the buffer and paused.
    fn read_on(&mut self, spindle: Spindle, now: Instant, limit: u64) {
        let limit = limit.min(Hp97560::CAPACITY_SECTORS);
        if limit <= self.limit {
            return;
        }
        let sector = self.reached(spindle, now);
        let tick = if self.pass.passed_at(spindle, self.limit) < now {
            let moved = now + self.track(sector).move_to(Track::of(sector));
            spindle.tick_of_sector(moved, sector)
        } else {
            self.pass.tick_of(sector) // The same pass, told from here on: shorter to search.
        };
        self.pass = Pass { sector, tick };
        self.limit = limit;
    }
}

/// Written sectors on their way to the medium.
#[derive(Clone, Debug)]
struct DirtyRun {
    /// The way of the head over them. Those before its start are on the medium by then.
    pass: Pass,
    /// One past the last sector.
    end: u64,
}
