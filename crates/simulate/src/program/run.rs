//! The run of a program: servers and ranks on a fresh machine.

use crate::memory;
use crate::ranks::{Ended, JobRank, Stage, on_stage};
use crate::scenario::Scenario;
use filesystem::{Client, Fault};
use interface::{ExitCode, UserError};
use program::{Program, RankReport};
use std::sync::Arc;
use units::Duration;
use world::payload::Phantom;
use world_simulated::{Engine, SharedRecorder, SimulatedWorld};

/// Result of a simulated program.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgramOutcome {
    /// Simulated time from the begin of the first rank to the end of the last.
    pub seconds: f64,
    /// Times of each rank.
    pub ranks: Vec<RankReport>,
    /// Processor time of the servers together, from the begin of the first rank on.
    pub server_processor_seconds: f64,
    /// Processor time of the ranks together.
    pub rank_processor_seconds: f64,
    /// Requests that the servers answered, those that connect ranks and make files included.
    pub server_requests: u64,
    /// Events of the engine.
    pub events: u64,
    /// Digest of the whole simulation: equal on every host.
    pub digest: u64,
}

/// Carries a program out on the machine of a scenario, with a client for each rank. Its pattern,
/// size and record size are not used. `seed` is of the disk layout and everything else that varies.
///
/// # Errors
/// Fails when the scenario makes no sense, and when a call of the program fails.
pub fn simulate_program(
    scenario: &Scenario,
    program: &Arc<Program>,
    seed: u64,
) -> Result<ProgramOutcome, UserError> {
    run(scenario, program, seed, Engine::new())
}

/// [`simulate_program`] with a recorder.
pub(crate) fn simulate_program_recorded(
    scenario: &Scenario,
    program: &Arc<Program>,
    recorder: SharedRecorder,
) -> Result<ProgramOutcome, UserError> {
    run(scenario, program, scenario.seed, Engine::recorded(recorder))
}

fn run(
    scenario: &Scenario,
    program: &Arc<Program>,
    seed: u64,
    engine: Engine,
) -> Result<ProgramOutcome, UserError> {
    let scenario = of_program(scenario, program);
    check_program(&scenario, program)?;
    on_stage(&scenario, seed, engine, |stage| run_on(&scenario, program, stage))
}

/// Scenario with a client for each rank of a program.
fn of_program(scenario: &Scenario, program: &Program) -> Scenario {
    Scenario { clients: program.ranks(), ..scenario.clone() }
}

/// Refuses a scenario that makes no sense, or on which the program may take too much memory.
///
/// # Errors
/// Names the keys to change.
pub(crate) fn check_program(scenario: &Scenario, program: &Program) -> Result<(), UserError> {
    let scenario = of_program(scenario, program);
    scenario.check()?;
    memory::check_program(&scenario, program.moved_extent_bytes())
}

fn run_on(
    scenario: &Scenario,
    program: &Arc<Program>,
    stage: &Stage<Phantom>,
) -> Result<ProgramOutcome, UserError> {
    let Stage { engine, machine, .. } = stage;
    let starting = JobRank::start_all(stage, scenario, program);
    let ranks = engine.run(starting).map_err(|deadlock| never_ends(&deadlock.to_string()))?;
    let ranks = ranks.map_err(failed)?;
    let nodes = [0..scenario.servers, scenario.servers..scenario.servers + program.ranks()];
    let used = || {
        let busy = |node: u32| machine.processor_busy(node).as_seconds();
        nodes.clone().map(|nodes| nodes.map(busy).sum::<f64>())
    };
    let before = used();
    let asking = ranks.first().map(|rank| rank.client.clone());
    let carried_out = (0..).zip(ranks).map(|(number, rank)| {
        let program = Arc::clone(program);
        async move { Ok((program.run_rank(number, &rank).await?, rank)) }
    });
    let ranks: Vec<RankReport> = stage.run_ranks(carried_out).map_err(|ended| match ended {
        Ended::Failed(fault) => failed(fault),
        Ended::Never(cause) => never_ends(&cause),
    })?;
    machine.stop_recording();
    let longest = ranks.iter().map(|report| report.elapsed).max().unwrap_or(Duration::ZERO);
    let after = used();
    let (events, digest) = (engine.events(), engine.digest());
    // After the digest, which is of the program alone.
    let server_requests = asking.map_or(Ok(0), |client| requests(engine, client))?;
    Ok(ProgramOutcome {
        seconds: longest.as_seconds(),
        ranks,
        server_processor_seconds: after[0] - before[0],
        rank_processor_seconds: after[1] - before[1],
        server_requests,
        events,
        digest,
    })
}

fn failed(fault: Fault) -> UserError {
    UserError::of_fault("the simulated program failed", &fault)
}

/// Returns the number of requests that all servers have answered.
fn requests(engine: &Engine, client: Client<SimulatedWorld<Phantom>>) -> Result<u64, UserError> {
    let asked = engine.run(async move { client.status().await });
    let all = asked.map_err(|deadlock| never_ends(&deadlock.to_string()))?;
    all.into_iter().try_fold(0, |sum, status| Ok(sum + status?.requests)).map_err(failed)
}

fn never_ends(cause: &str) -> UserError {
    UserError::new(
        ExitCode::Failed,
        "the simulated program does not end",
        cause,
        "check the trace: unisono trace info TRACE; if it is whole, report this as a defect",
    )
}
