//! The turning medium: instants at which sectors pass the heads.
//!
//! Time on the medium is counted in **ticks**: the medium turns by one sector a tick, and a sector
//! can only begin at a tick. The length of a tick depends on the zone. A minute has whole
//! revolutions, and a revolution whole ticks. So ticks and nanoseconds convert into each other in
//! integers and never drift apart: an HP 97560 has 48,024 ticks in exactly 10 s.

use super::drive::Drive;
use std::sync::Arc;
use units::{Duration, Instant};

/// The medium of one disk, which turns at constant speed.
#[derive(Clone, Debug)]
pub(super) struct Medium {
    pub(super) drive: Arc<Drive>,
    angle_at_start_ns: u64,
}

impl Medium {
    pub(super) fn new(drive: Arc<Drive>, angle_at_start: Duration) -> Self {
        assert!(
            angle_at_start <= drive.revolution(),
            "the angle at the start must be less than a revolution, not {angle_at_start}"
        );
        Self { drive, angle_at_start_ns: angle_at_start.as_ns() }
    }

    /// Returns the first tick not before `instant`, in a zone with `track_sectors` sectors a track.
    pub(super) fn tick_from(&self, track_sectors: u64, instant: Instant) -> u64 {
        let period_ns = self.drive.period_ns;
        let period_ticks = self.drive.period_revolutions * track_sectors;
        let turned_ns = instant.as_ns() + self.angle_at_start_ns;
        let (periods, rest_ns) = (turned_ns / period_ns, turned_ns % period_ns);
        periods * period_ticks + (rest_ns * period_ticks).div_ceil(period_ns)
    }

    /// Returns the last tick not after `instant`, with ticks as in
    /// [`instant_of`](Self::instant_of).
    pub(super) fn tick_until(&self, track_sectors: u64, instant: Instant) -> u64 {
        self.tick_from(track_sectors, instant + Duration::from_ns(1)) - 1
    }

    /// Returns the instant of `tick`, which must not precede the start of the simulation. Rounded
    /// down, so that `tick_from(instant_of(tick)) == tick`.
    pub(super) fn instant_of(&self, track_sectors: u64, tick: u64) -> Instant {
        let period_ns = self.drive.period_ns;
        let period_ticks = self.drive.period_revolutions * track_sectors;
        let (periods, rest_ticks) = (tick / period_ticks, tick % period_ticks);
        let turned_ns = periods * period_ns + rest_ticks * period_ns / period_ticks;
        Instant::from_ns(turned_ns - self.angle_at_start_ns)
    }

    /// Returns the first tick not before `instant` at which `sector` begins to pass the heads.
    pub(super) fn tick_of_sector(&self, instant: Instant, sector: u64) -> u64 {
        let segment = self.drive.segment_of(sector);
        let track_sectors = segment.track_sectors;
        let earliest = self.tick_from(track_sectors, instant);
        let angle = segment.place(self.drive.spec.cylinder_tracks, sector) % track_sectors;
        earliest + (angle + track_sectors - earliest % track_sectors) % track_sectors
    }
}

/// A pass of the medium under the heads without a pause, from a known sector on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pass {
    /// First sector of the pass.
    pub(super) sector: u64,
    /// Tick, in its zone, at which that sector begins to pass.
    pub(super) tick: u64,
}

impl Pass {
    /// Returns the tick, in its zone, at which `sector` begins to pass; it must not be before the
    /// start.
    pub(super) fn tick_of(self, medium: &Medium, sector: u64) -> u64 {
        let drive = &*medium.drive;
        let Self { sector: mut from, mut tick } = self;
        loop {
            let segment = drive.segment_of(from);
            let place = segment.place(drive.spec.cylinder_tracks, from);
            if sector < segment.end_sector {
                return tick + segment.place(drive.spec.cylinder_tracks, sector) - place;
            }
            // On to the next segment, with a seek that no skew hides.
            let last = segment.end_sector - 1;
            let passed = tick + segment.place(drive.spec.cylinder_tracks, last) + 1 - place;
            from = segment.end_sector;
            let moved = medium.instant_of(segment.track_sectors, passed)
                + drive.move_between(drive.track_of(last), drive.track_of(from));
            tick = medium.tick_of_sector(moved, from);
        }
    }

    /// Returns the instant at which the last sector before `end` has passed; the start of the
    /// simulation if all of them passed before the pass began.
    pub(super) fn passed_at(self, medium: &Medium, end: u64) -> Instant {
        if end <= self.sector {
            return Instant::START;
        }
        let track_sectors = medium.drive.segment_of(end - 1).track_sectors;
        medium.instant_of(track_sectors, self.tick_of(medium, end - 1) + 1)
    }

    /// Returns the first sector that has not passed completely at `now`, found track by track.
    pub(super) fn reached(self, medium: &Medium, now: Instant) -> u64 {
        let mut pass = self;
        loop {
            let segment = medium.drive.segment_of(pass.sector);
            let track_end = segment.track_end(pass.sector);
            let tick = medium.tick_until(segment.track_sectors, now);
            let passed = tick.saturating_sub(pass.tick);
            if pass.sector + passed < track_end || track_end == medium.drive.capacity_sectors() {
                return track_end.min(pass.sector + passed);
            }
            pass = Self { sector: track_end, tick: pass.tick_of(medium, track_end) };
        }
    }
}
