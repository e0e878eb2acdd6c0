//! What the recorder is told of one command of a disk: where its time went.

use super::Device;
use crate::models::disk_model::{Activity, Command, Motion, Phase, Step};
use crate::timeline::{Cause, Link, Slice, Track, What};
use units::Instant;
use world::payload::Kind;

/// The command under way. It is told of when it is dropped, complete or not; nothing is kept where
/// nobody listens.
pub(super) struct CommandLog<'a, P: Kind> {
    device: &'a Device<P>,
    command: Command,
    begun: Instant,
    /// Without gaps from the beginning on. The last may end in the future.
    phases: Vec<Phase>,
    is_recorded: bool,
    is_complete: bool,
}

impl<'a, P: Kind> CommandLog<'a, P> {
    pub(super) fn begin(device: &'a Device<P>, command: &Command) -> Self {
        Self {
            device,
            command: command.clone(),
            begun: device.engine.now(),
            phases: Vec::new(),
            is_recorded: device.engine.timeline().is_recorded(),
            is_complete: false,
        }
    }

    /// The bus is taken from `from` to `until`, for data or for a command.
    pub(super) fn on_bus(&mut self, from: Instant, until: Instant, bytes: Option<u64>) {
        let (track, disk) = (Track::Bus(self.device.bus_number), self.device.number);
        let what = What::Bus { disk, bytes };
        let slice = || Slice { track, from, until, what, phases: &[] };
        if self.device.engine.timeline().slice(slice).is_some() {
            let activity = bytes.map_or(Activity::BusCommand, |_| Activity::BusBurst);
            self.push(Phase { activity: Activity::BusWait, until: from });
            self.push(Phase { activity, until });
        }
    }

    /// The disk has said what it does next.
    pub(super) fn step(&mut self, step: &Step) {
        if self.is_recorded {
            let until = match *step {
                Step::Burst { from, .. } => from,
                Step::Complete(at) => at,
            };
            let phases = self.device.model.borrow().phases(self.device.engine.now(), until);
            phases.into_iter().for_each(|phase| self.push(phase));
        }
    }

    /// The command is complete: it is the cause of what its task does next.
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

impl<P: Kind> Drop for CommandLog<'_, P> {
    fn drop(&mut self) {
        let timeline = self.device.engine.timeline();
        let now = self.device.engine.now();
        let (track, from) = (Track::Commands(self.device.number), self.begun);
        for phase in &mut self.phases {
            phase.until = phase.until.min(now);
        }
        let Command { reads, sectors } = self.command.clone();
        let what = What::Command { reads, sectors, is_complete: self.is_complete };
        let slice = || Slice { track, from, until: now, what, phases: &self.phases };
        let Some(mark) = timeline.slice(slice) else { return };
        self.device.tell_motions(self.device.model.borrow_mut().motions());
        if self.is_complete {
            let request = timeline.cause().request;
            timeline.arrow(Link::Request, request, Some(mark));
            timeline.set_cause(Cause { request, command: Some(mark) });
        }
    }
}

impl<P: Kind> Device<P> {
    /// Tells the recorder of what the arm and the medium have done.
    pub(super) fn tell_motions(&self, motions: Vec<Motion>) {
        for Motion { activity, from, until, sectors } in motions {
            let track = Track::Mechanism(self.number);
            let what = What::Motion { activity, sectors };
            self.engine.record(|| Slice { track, from, until, what, phases: &[] });
        }
    }
}
