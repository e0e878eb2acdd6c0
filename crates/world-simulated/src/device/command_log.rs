//! The trace of one disk command, divided into phases.

use crate::engine::Engine;
use crate::models::disk_model::{Activity, Command, DiskModel, Motion, Phase, Step};
use crate::timeline::{Cause, Link, Slice, Track, What};
use std::cell::RefCell;
use units::Instant;

/// The tracks on which the recorder shows a disk.
#[derive(Clone, Copy)]
pub(super) struct DiskTracks<'a> {
    pub(super) engine: &'a Engine,
    /// Number of the disk, counted over the machine.
    pub(super) disk: u32,
    /// Number of the first disk on its bus.
    pub(super) bus: u32,
    pub(super) model: &'a RefCell<Box<dyn DiskModel>>,
}

impl DiskTracks<'_> {
    /// Reports motions of the arm and the medium to the recorder.
    pub(super) fn record_motions(&self, motions: Vec<Motion>) {
        for Motion { activity, from, until, sectors } in motions {
            let track = Track::Mechanism(self.disk);
            let what = What::Motion { activity, sectors };
            self.engine.record(|| Slice { track, from, until, what, phases: &[] });
        }
    }
}

/// A command under way. Dropping it reports the command, complete or not. Without a recorder it
/// stores nothing.
pub(super) struct CommandLog<'a> {
    tracks: DiskTracks<'a>,
    command: Command,
    begun: Instant,
    /// Phases without gaps from the beginning on. The last may end in the future.
    phases: Vec<Phase>,
    is_recorded: bool,
    is_complete: bool,
}

impl<'a> CommandLog<'a> {
    pub(super) fn begin(tracks: DiskTracks<'a>, command: &Command) -> Self {
        Self {
            tracks,
            command: command.clone(),
            begun: tracks.engine.now(),
            phases: Vec::new(),
            is_recorded: tracks.engine.timeline().is_recorded(),
            is_complete: false,
        }
    }

    /// Records that the bus is occupied from `from` to `until`, for data or for a command.
    pub(super) fn on_bus(&mut self, from: Instant, until: Instant, bytes: Option<u64>) {
        let (track, disk) = (Track::Bus(self.tracks.bus), self.tracks.disk);
        let what = What::Bus { disk, bytes };
        let slice = || Slice { track, from, until, what, phases: &[] };
        if self.tracks.engine.timeline().slice(slice).is_some() {
            let activity = bytes.map_or(Activity::BusCommand, |_| Activity::BusBurst);
            self.push(Phase { activity: Activity::BusWait, until: from });
            self.push(Phase { activity, until });
        }
    }

    /// Records the phases of the next step of the disk.
    pub(super) fn step(&mut self, step: &Step) {
        if self.is_recorded {
            let until = match *step {
                Step::Burst { from, .. } => from,
                Step::Processor { length } => self.tracks.engine.now() + length,
                Step::Complete(at) => at,
            };
            let phases = self.tracks.model.borrow().phases(self.tracks.engine.now(), until);
            phases.into_iter().for_each(|phase| self.push(phase));
        }
    }

    /// Marks the command complete. It becomes the cause of the further actions of its task.
    pub(super) fn complete(mut self) {
        self.is_complete = true;
    }

    fn push(&mut self, phase: Phase) {
        let end = self.phases.last().map_or(self.begun, |last| last.until);
        if phase.until > end {
            self.phases.push(phase);
        }
    }
}

impl Drop for CommandLog<'_> {
    fn drop(&mut self) {
        let timeline = self.tracks.engine.timeline();
        let now = self.tracks.engine.now();
        let (track, from) = (Track::Commands(self.tracks.disk), self.begun);
        for phase in &mut self.phases {
            phase.until = phase.until.min(now);
        }
        let Command { reads, sectors } = self.command.clone();
        let what = What::Command { reads, sectors, is_complete: self.is_complete };
        let slice = || Slice { track, from, until: now, what, phases: &self.phases };
        let Some(mark) = timeline.slice(slice) else { return };
        self.tracks.record_motions(self.tracks.model.borrow_mut().motions());
        if self.is_complete {
            let request = timeline.cause().request;
            timeline.arrow(Link::Request, request, Some(mark));
            timeline.set_cause(Cause { request, command: Some(mark) });
        }
    }
}
