//! Motions of arm and medium of a mechanical disk, derived from its state.
//!
//! Invariant: recording changes nothing in the behaviour of the disk.

use super::mechanical_disk::MechanicalDisk;
use crate::models::disk::disk_model::{Activity, Motion, Phase};
use std::ops::Range;
use units::Instant;

impl MechanicalDisk {
    /// Divides an interval of the latest command into phases, by the activity of the arm for which
    /// it waits.
    pub(super) fn phases_between(&self, from: Instant, until: Instant) -> Vec<Phase> {
        let passing = match self.reading {
            Some(_) => Activity::Read,
            None => Activity::Write,
        };
        let ends = [
            (Activity::Overhead, self.decoded),
            (Activity::ArmWait, self.arm_move.from),
            (self.move_activity(), self.arm_move.arrived),
            (Activity::Rotation, self.arm_move.begins),
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

    /// Records the stretch that the head reads, up to `now` at the latest. Sectors that no host has
    /// requested get the activity `not_asked`.
    pub(super) fn note_read(&mut self, now: Instant, not_asked: Activity) {
        let (Some(stream), true) = (&self.reading, self.account.is_some()) else { return };
        let (pass, begun) = (self.arm_move.pass, self.arm_move.begins);
        let reached = stream.reached(&self.medium, now).max(pass.sector);
        let asked = stream.asked_end.clamp(pass.sector, reached);
        let asked_at = pass.passed_at(&self.medium, asked).max(begun);
        let reached_at = pass.passed_at(&self.medium, reached).max(begun);
        self.note_arm_move(now);
        self.note(Activity::Read, begun, asked_at, pass.sector..asked);
        self.note(not_asked, asked_at, reached_at, asked..reached);
    }

    /// Records a burst on its way to the medium. It begins at the end of the previous one if both
    /// belong to the same pass.
    pub(super) fn note_write(&mut self, written_before: Instant, burst: &Range<u64>) {
        if self.account.is_none() {
            return;
        }
        let is_first = self.arm_move.pass.sector == burst.start;
        let from = if is_first { self.arm_move.begins } else { written_before };
        if is_first {
            self.note_arm_move(from);
        }
        self.note(Activity::Write, from, self.clean_at, burst.clone());
    }

    /// Records the move of the arm and the wait for its first sector, up to `end`.
    fn note_arm_move(&mut self, end: Instant) {
        let (arm_move, place) =
            (self.arm_move, self.arm_move.pass.sector..self.arm_move.pass.sector);
        self.note(self.move_activity(), arm_move.from, arm_move.arrived.min(end), place.clone());
        self.note(Activity::Rotation, arm_move.ready, self.arm_move.begins.min(end), place);
    }

    fn note(&mut self, activity: Activity, from: Instant, until: Instant, sectors: Range<u64>) {
        if let (Some(account), true) = (&mut self.account, until > from) {
            account.push(Motion { activity, from, until, sectors });
        }
    }

    fn move_activity(&self) -> Activity {
        let drive = self.drive();
        let to = drive.track_of(self.arm_move.pass.sector);
        match drive.cylinder_of(self.arm_move.left) == drive.cylinder_of(to) {
            true => Activity::HeadSwitch,
            false => Activity::Seek,
        }
    }
}
