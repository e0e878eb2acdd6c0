//! Trials of many workloads on all processors of this machine.

use super::queue::Progress;
use super::workload_run::simulate_workload;
use crate::scenario::Scenario;
use crate::workload::{Workload, WorkloadTrial};
use interface::UserError;
use std::sync::{Mutex, PoisonError};

/// Finished trials with their case and number, and the first error.
type Done = (Vec<((usize, u32), WorkloadTrial)>, Option<UserError>);

/// Runs the trials of workloads, each on the machine of its scenario, on `jobs` threads. Returns
/// those of each case, in the order of their numbers. The result of a trial depends only on its
/// case and number.
///
/// # Errors
/// The first error of a trial. Running trials are finished, no other begins.
pub fn simulate_workloads(
    cases: &[(Scenario, Workload)],
    jobs: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<Vec<WorkloadTrial>>, UserError> {
    let trials: Vec<(usize, u32)> = cases
        .iter()
        .enumerate()
        .flat_map(|(case, (scenario, _))| (0..scenario.trials).map(move |number| (case, number)))
        .collect();
    let all = trials.len() as u64;
    let next = Mutex::new(trials.iter());
    let done: Mutex<Done> = Mutex::new((Vec::new(), None));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1).min(trials.len()) {
            scope.spawn(|| {
                loop {
                    let failed = done.lock().unwrap_or_else(PoisonError::into_inner).1.is_some();
                    if failed {
                        return;
                    }
                    let id = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(&(case, number)) = id else { return };
                    let (scenario, workload) = &cases[case];
                    let ended = simulate_workload(scenario, *workload, number);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    match ended {
                        Ok(trial) => done.0.push(((case, number), trial)),
                        Err(error) => done.1 = done.1.take().or(Some(error)),
                    }
                    progress(Progress { done: done.0.len() as u64, all });
                }
            });
        }
    });
    let (mut done, fault) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(fault) = fault {
        return Err(fault);
    }
    done.sort_by_key(|(id, _)| *id);
    let mut of_each = vec![Vec::new(); cases.len()];
    for ((case, _), trial) in done {
        of_each[case].push(trial);
    }
    Ok(of_each)
}
