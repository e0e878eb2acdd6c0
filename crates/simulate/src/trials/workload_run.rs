//! One trial of a workload: the clients run their programs, and the servers count their disk reads.

use crate::memory;
use crate::ranks::{CacheUse, Clients, Ended, Measured, Preparation, Stage, on_stage};
use crate::scenario::Scenario;
use crate::workload::{Workload, WorkloadTrial};
use filesystem::collective::Strategy;
use interface::{ExitCode, UserError};
use world::payload::Phantom;
use world_simulated::Engine;

/// Runs trial `number` of a workload on the machine of a scenario, whose pattern, record size and
/// strategy do not matter. The clients use caches, which the scenario must give them.
///
/// # Errors
/// Fails when the scenario makes no sense or has no caches at clients, the file is too small, or
/// the file system reports a fault.
pub fn simulate_workload(
    scenario: &Scenario,
    workload: Workload,
    number: u32,
) -> Result<WorkloadTrial, UserError> {
    // Any file is a whole number of such records.
    let mut scenario = Scenario { record_bytes: 1, ..scenario.clone() };
    scenario.strategy = Strategy::Caching;
    if let Some(bytes) = workload.file_bytes() {
        scenario.file_bytes = bytes;
    }
    scenario.check()?;
    memory::check(&scenario)?;
    let refused = |cause: String, help: &str| {
        Err(UserError::usage("this workload cannot be simulated", cause, help))
    };
    if !scenario.has_client_caches() {
        return refused("its clients have no caches".to_owned(), "set client-cache");
    }
    if workload.request_bytes_max(scenario.block_bytes) > scenario.file_bytes {
        let cause = format!("the file has {} bytes", scenario.file_bytes);
        return refused(cause, "choose a larger file or smaller requests");
    }
    let seed = scenario.seed.wrapping_add(u64::from(number));
    let run = |stage: &Stage<Phantom>| run_on(&scenario, workload, seed, stage);
    on_stage(&scenario, seed, Engine::new(), run)
}

fn run_on(
    scenario: &Scenario,
    workload: Workload,
    seed: u64,
    stage: &Stage<Phantom>,
) -> Result<WorkloadTrial, UserError> {
    let sizes = (scenario.block_bytes, scenario.file_bytes);
    let program = workload.program(scenario.clients, sizes, seed);
    let preparation = Preparation::Caches { collective: workload.collective() };
    let clients = Clients::new(stage, scenario, program, preparation);
    let carried_out =
        (0..scenario.clients).map(|rank| clients.clone().run(rank, stage.rank_world(rank)));
    let defect = |cause: String| {
        let help = "this is a defect of unisono; please report it with the command line";
        UserError::new(ExitCode::Failed, "the simulated workload did not end", cause, help)
    };
    let measured: Vec<Measured<Phantom>> =
        stage.run_ranks(carried_out).map_err(|ended| match ended {
            Ended::Failed(fault) => UserError::of_fault("the simulated workload failed", &fault),
            Ended::Never(cause) => defect(cause),
        })?;
    let period = Measured::period(&measured);
    let (start, end) = period.ok_or_else(|| defect("it has no client".to_owned()))?;
    let sum = |of: fn(&CacheUse) -> u64| measured.iter().map(|client| of(&client.counts)).sum();
    Ok(WorkloadTrial {
        seconds: end.since(start).as_seconds(),
        disk_reads: sum(|counts| counts.disk_reads),
        hits: sum(|counts| counts.caches.hits),
        from_servers: sum(|counts| counts.caches.from_servers),
        from_clients: sum(|counts| counts.caches.from_clients),
        events: stage.engine.events(),
        digest: stage.engine.digest(),
    })
}
