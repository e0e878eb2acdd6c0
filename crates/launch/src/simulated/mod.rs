//! Simulations: the file system on a machine made of models.

mod machines;
mod run;
mod verify;

use crate::error::{ExitCode, LaunchError};
use crate::row::{Report, Row, SIM_SCHEMA};
use crate::scenario::{PayloadName, Scenario};
use policy::Access;
use run::{Outcome, run_trial};
use std::num::NonZero;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use units::ClientId;
use world::payload::{Phantom, Traced};
use world_simulated::Mechanism;

/// Simulates one case. Trials run in parallel on all processors of this machine; the result does
/// not depend on how many there are.
///
/// # Errors
/// When the scenario makes no sense, or the file system reports a fault.
pub fn simulate(scenario: &Scenario) -> Result<Report, LaunchError> {
    let access = scenario.access()?;
    let mechanism = scenario.disk().mechanism()?;
    let started = Instant::now();
    let outcomes = run_trials(scenario, &access, &mechanism)?;
    let seconds: Vec<f64> = outcomes.iter().map(|outcome| outcome.seconds).collect();
    let moved = (0..scenario.clients).map(|rank| access.memory_bytes(ClientId(rank))).sum();
    let mut row = Row {
        strategy: scenario.strategy.to_string(),
        pattern: scenario.pattern.to_string(),
        record_bytes: scenario.record_bytes,
        file_bytes: scenario.file_bytes,
        clients: scenario.clients,
        servers: scenario.servers,
        disks_per_server: scenario.disks_per_server,
        block_bytes: scenario.block_bytes,
        machine: scenario.machine.to_string(),
        layout: scenario.layout.to_string(),
        sync: scenario.sync,
        verified: outcomes.iter().all(|outcome| outcome.verified),
        events: Some(outcomes.iter().map(|outcome| outcome.events).sum()),
        digest: Some(format!("{:016x}", combine(&outcomes))),
        host_seconds: Some(started.elapsed().as_secs_f64()),
        ..Row::default()
    };
    row.measure(&seconds, moved);
    Ok(Report { schema: SIM_SCHEMA.to_owned(), limits: None, results: vec![row] })
}

fn combine(outcomes: &[Outcome]) -> u64 {
    let mix = |sum: u64, outcome: &Outcome| sum.rotate_left(7) ^ outcome.digest;
    outcomes.iter().fold(0, mix)
}

/// The outcome of each trial, in order.
fn run_trials(
    scenario: &Scenario,
    access: &Access,
    mechanism: &Mechanism,
) -> Result<Vec<Outcome>, LaunchError> {
    let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicU32::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers.min(scenario.trials as usize) {
            scope.spawn(|| {
                loop {
                    let trial = next.fetch_add(1, Ordering::Relaxed);
                    if trial >= scenario.trials {
                        return;
                    }
                    let outcome = one_trial(scenario, access, mechanism, trial);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((trial, outcome));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(trial, _)| *trial);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

fn one_trial(
    scenario: &Scenario,
    access: &Access,
    mechanism: &Mechanism,
    trial: u32,
) -> Result<Outcome, LaunchError> {
    let seed = scenario.seed.wrapping_add(u64::from(trial));
    let outcome = match scenario.payload {
        PayloadName::Phantom => run_trial::<Phantom>(scenario, access, mechanism, seed)?,
        PayloadName::Traced => run_trial::<Traced>(scenario, access, mechanism, seed)?,
    };
    if scenario.payload == PayloadName::Traced && !outcome.verified {
        return Err(LaunchError::new(
            ExitCode::DataCheck,
            format!("{} put bytes in wrong places", scenario.strategy),
            format!("pattern {}, seed {seed}: the traces differ", scenario.pattern),
            format!(
                "this is a defect of unisono; repeat it with: unisono sim --strategy {} --pattern \
                 {} --record {} --size {} --seed {seed} --trials 1 --payload traced",
                scenario.strategy, scenario.pattern, scenario.record_bytes, scenario.file_bytes
            ),
        ));
    }
    Ok(outcome)
}
