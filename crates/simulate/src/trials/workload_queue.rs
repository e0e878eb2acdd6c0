//! Trials of many workloads on all processors of this machine.

use super::queue::{Progress, check_number, run_trials, trials_of};
use super::workload_run::simulate_workload;
use crate::scenario::Scenario;
use crate::workload::{Workload, WorkloadTrial};
use interface::UserError;
use std::ops::ControlFlow;

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
    check_number(cases.iter().map(|(scenario, _)| scenario))?;
    let mut trials = trials_of(cases.iter().map(|(scenario, _)| scenario));
    trials.reverse();
    let observer = |now: Progress| {
        progress(now);
        ControlFlow::Continue(())
    };
    run_trials((cases.len(), trials), jobs.max(1), &observer, |(case, number)| {
        let (scenario, workload) = &cases[case];
        simulate_workload(scenario, *workload, number)
    })
}
