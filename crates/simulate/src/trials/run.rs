//! One trial: starts servers and clients on a fresh machine, transfers once, and reads the clock.

use super::availability::{Period, availability_of};
use super::verify::{Verify, verify};
use crate::ranks::{Clients, Ended, Measured, Preparation, Stage, on_stage};
use crate::scenario::Scenario;
use interface::Availability;
use interface::{ExitCode, UserError};
use policy::Access;
use program::Program;
use std::sync::Arc;
use world_simulated::{Engine, Slice, Track, What};

/// Result of one trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Simulated seconds of the transfer.
    pub(crate) seconds: f64,
    /// Events of the engine, from start to end.
    pub(crate) events: u64,
    /// Digest of the whole simulation.
    pub(crate) digest: u64,
    /// True when every byte was traced to its place.
    pub(crate) verified: bool,
    /// Processor time left on the servers, if the scenario asks for it.
    pub(crate) availability: Option<Availability>,
}

/// Runs one trial to its end, on an engine that has not run yet.
pub(crate) fn run_trial<P: Verify>(
    scenario: &Scenario,
    access: &Arc<Access>,
    seed: u64,
    engine: Engine,
) -> Result<Outcome, UserError> {
    on_stage(scenario, seed, engine, |stage| run_on::<P>(scenario, access, stage))
}

fn run_on<P: Verify>(
    scenario: &Scenario,
    access: &Arc<Access>,
    stage: &Stage<P>,
) -> Result<Outcome, UserError> {
    let Stage { engine, machine, .. } = stage;
    let direction = scenario.pattern.direction;
    let program = Program::of_access(direction, access, scenario.file_bytes);
    let preparation = Preparation::Transfer { direction, access: Arc::clone(access) };
    let clients = Clients::new(stage, scenario, program, preparation);
    let carried_out =
        (0..scenario.clients).map(|rank| clients.clone().run(rank, stage.rank_world(rank)));
    let measured: Vec<Measured<P>> = stage.run_ranks(carried_out).map_err(|ended| match ended {
        Ended::Failed(fault) => UserError::of_fault("the simulated transfer failed", &fault),
        Ended::Never(cause) => defect(scenario, &cause),
    })?;
    let (events, digest) = (engine.events(), engine.digest());
    let period = Measured::period(&measured);
    let (from, until) = period.ok_or_else(|| defect(scenario, "it has no client"))?;
    let availability = scenario.availability.then(|| {
        let traces = (0..scenario.servers).map(|server| machine.processor_trace(server));
        availability_of(&traces.collect::<Vec<_>>(), Period { start: from, end: until })
    });
    engine.record(|| {
        let (track, what) = (Track::Transfer, What::Transfer);
        Slice { track, from, until, what, phases: &[] }
    });
    machine.stop_recording();
    let memories = measured.into_iter().map(|client| client.memory).collect();
    let verified = verify::<P>(scenario, access, engine, machine, memories)?;
    Ok(Outcome { seconds: until.since(from).as_seconds(), events, digest, verified, availability })
}

fn defect(scenario: &Scenario, cause: &str) -> UserError {
    UserError::new(
        ExitCode::Failed,
        format!("the simulation of {} by {} did not end", scenario.pattern, scenario.strategy),
        cause,
        "this is a defect of unisono; please report it with the command line",
    )
}
