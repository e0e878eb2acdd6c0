//! All trials of a scenario, in parallel on the processors of this machine.

use super::trial::{Trial, combine_trials, simulate_trial};
use crate::scenario::Scenario;
use interface::{Report, SIM_SCHEMA, UserError};
use std::num::NonZero;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Simulates one case. Trials run in parallel on all processors of this machine; the result does
/// not depend on the number of processors.
///
/// # Errors
/// Fails when the scenario makes no sense, or the file system reports a fault.
pub fn simulate(scenario: &Scenario) -> Result<Report, UserError> {
    scenario.check()?;
    let row = combine_trials(scenario, &run_trials(scenario)?)?;
    Ok(Report { schema: SIM_SCHEMA.to_owned(), limits: None, results: vec![row] })
}

/// Each trial, in order.
fn run_trials(scenario: &Scenario) -> Result<Vec<Trial>, UserError> {
    let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicU32::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers.min(scenario.trials as usize) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= scenario.trials {
                        return;
                    }
                    let trial = simulate_trial(scenario, number);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((number, trial));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, trial)| trial).collect()
}
