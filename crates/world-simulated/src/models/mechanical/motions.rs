//! What arm and medium of a mechanical disk do, told from the state that decides it.
//!
//! Nothing here changes what the disk does.

use super::geometry::Track;
use super::rotation::{Medium, Pass};
use super::{MechanicalDisk, Motion};
use crate::models::disk_model::{Activity, Phase};
use std::ops::Range;
use units::Instant;

/// A move of the arm, and the pass that it is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// Where it began.
    pub(super) left: Track,
    /// When it began.
    pub(super) from: Instant,
    /// When the head was over the track.
    pub(super) arrived: Instant,
    /// From when on only the turning medium was waited for.
    pub(super) ready: Instant,
    /// When the first sector began to pass.
    pub(super) begins: Instant,
    /// What passed then, from its beginning.
    pub(super) pass: Pass,
}

impl Default for Way {
    /// The way to where a disk at rest is.
    fn default() -> Self {
        let (from, pass) = (Instant::START, Pass { sector: 0, tick: 0 });
        Self { left: Track::FIRST, from, arrived: from, ready: from, begins: from, pass }
    }
}

impl Way {
    /// The way from `left` to the beginning of `pass`, which the arm takes from `times[0]` to
    /// `times[1]`, and which is ready at `times[2]`.
    pub(super) fn new(medium: &Medium, left: Track, times: [Instant; 3], pass: Pass) -> Self {
        let track_sectors = medium.drive.segment_of(pass.sector).track_sectors;
        let [from, arrived, ready] = times;
        let begins = medium.instant_of(track_sectors, pass.tick);
        Self { left, from, arrived, ready, begins, pass }
    }
}

impl MechanicalDisk {
    /// Where the time of the latest command goes between two instants: it waits for what the arm
    /// is doing.
    pub(super) fn phases_between(&self, from: Instant, until: Instant) -> Vec<Phase> {
        let passing = match self.reading {
            Some(_) => Activity::Read,
            None => Activity::Write,
        };
        let ends = [
            (Activity::Overhead, self.decoded),
            (Activity::ArmWait, self.way.from),
            (self.move_of_way(), self.way.arrived),
            (Activity::Rotation, self.way.begins),
            (passing, until),
        ];
        let mut phases = Vec::new();
        let mut reached = from;
        for (activity, end) in ends {
            let end = end.min(until);
            if end > reached {
                phases.push(Phase { activity, until: end });
                reached = end;
            }
        }
        phases
    }

    /// Tells of the stretch that the head reads, which ends at `now` at the latest. What nobody has
    /// asked for is called `not_asked`.
    pub(super) fn note_read(&mut self, now: Instant, not_asked: Activity) {
        let (Some(stream), true) = (&self.reading, self.account.is_some()) else { return };
        let (pass, begun) = (self.way.pass, self.way.begins);
        let reached = stream.reached(&self.medium, now).max(pass.sector);
        let asked = stream.asked_end.clamp(pass.sector, reached);
        let asked_at = pass.passed_at(&self.medium, asked).max(begun);
        let reached_at = pass.passed_at(&self.medium, reached).max(begun);
        self.note_way(now);
        self.note(Activity::Read, begun, asked_at, pass.sector..asked);
        self.note(not_asked, asked_at, reached_at, asked..reached);
    }

    /// Tells of a burst on its way to the medium. It begins where the one before it ends if it is
    /// of the same pass.
    pub(super) fn note_write(&mut self, written_before: Instant, burst: &Range<u64>) {
        if self.account.is_none() {
            return;
        }
        let is_first = self.way.pass.sector == burst.start;
        let from = if is_first { self.way.begins } else { written_before };
        if is_first {
            self.note_way(from);
        }
        self.note(Activity::Write, from, self.clean_at, burst.clone());
    }

    /// Tells of the move of the arm and the wait for its first sector, as far as it came by `end`.
    fn note_way(&mut self, end: Instant) {
        let (way, place) = (self.way, self.way.pass.sector..self.way.pass.sector);
        self.note(self.move_of_way(), way.from, way.arrived.min(end), place.clone());
        self.note(Activity::Rotation, way.ready, self.way.begins.min(end), place);
    }

    fn note(&mut self, activity: Activity, from: Instant, until: Instant, sectors: Range<u64>) {
        if let (Some(account), true) = (&mut self.account, until > from) {
            account.push(Motion { activity, from, until, sectors });
        }
    }

    fn move_of_way(&self) -> Activity {
        let drive = self.drive();
        let to = drive.track_of(self.way.pass.sector);
        match drive.cylinder_of(self.way.left) == drive.cylinder_of(to) {
            true => Activity::HeadSwitch,
            false => Activity::Seek,
        }
    }
}
