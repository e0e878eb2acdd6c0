//! Queue of the trials of all cases of all experiments, so that no processor idles while another
//! works through the trials of one long case.

use crate::catalogue::Experiment;
use crate::scenarios::scenario;
use interface::{Strategy, UserError};
use simulate::{Scenario, Trial, simulate_trial};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Progress of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Number of finished trials.
    pub done: u64,
    /// Number of all trials.
    pub all: u64,
}

/// Every case to simulate, once.
pub(crate) struct Plan {
    cases: BTreeMap<String, Scenario>,
    trials: u32,
}

/// Finished trials of every case, each in the order of its number.
pub(crate) struct Done {
    trials: BTreeMap<String, Vec<Trial>>,
    /// Number of trials of each case.
    pub(crate) count: u32,
}

/// State shared by the threads.
#[derive(Default)]
struct State {
    /// Trials that have not begun, the longest last.
    remaining: Vec<(String, u32)>,
    done: Vec<(String, Trial)>,
    /// First error; no trial begins after it.
    fault: Option<UserError>,
}

impl Plan {
    /// Plans the cases of these experiments.
    ///
    /// # Errors
    /// If a case cannot be simulated.
    pub(crate) fn new(experiments: &[Experiment], trials: u32) -> Result<Self, UserError> {
        let mut cases = BTreeMap::new();
        for experiment in experiments {
            for point in &experiment.points {
                for &method in &experiment.methods {
                    let scenario = scenario(experiment, point, method, trials)?;
                    scenario.check()?;
                    cases.insert(key(&scenario), scenario);
                }
            }
        }
        Ok(Self { cases, trials })
    }

    /// Runs all trials on `jobs` threads, the longest first. The result of a trial depends only on
    /// its case and number.
    ///
    /// # Errors
    /// The first error of a trial; running trials are finished, no other begins.
    pub(crate) fn run(
        &self,
        jobs: usize,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Done, UserError> {
        let numbers = 0..self.trials;
        let each = |(key, _): (&String, &Scenario)| {
            let key = key.clone();
            numbers.clone().map(move |number| (key.clone(), number))
        };
        let mut remaining: Vec<(String, u32)> = self.cases.iter().flat_map(each).collect();
        let work = |(key, _): &(String, u32)| self.cases.get(key).map_or(0, work_of);
        remaining.sort_by_cached_key(work);
        let all = remaining.len() as u64;
        let state = Mutex::new(State { remaining, ..State::default() });
        progress(Progress { done: 0, all });
        std::thread::scope(|scope| {
            for _ in 0..jobs.min(usize::try_from(all).unwrap_or(usize::MAX)) {
                scope.spawn(|| {
                    while let Some((key, number)) = next(&state) {
                        let Some(scenario) = self.cases.get(&key) else { continue };
                        let done = record(&state, key, simulate_trial(scenario, number));
                        progress(Progress { done, all });
                    }
                });
            }
        });
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.fault {
            Some(fault) => Err(fault),
            None => Ok(Done::new(state.done, self.trials)),
        }
    }
}

impl Done {
    fn new(mut done: Vec<(String, Trial)>, count: u32) -> Self {
        done.sort_by_key(|(_, trial)| trial.number);
        let mut trials: BTreeMap<String, Vec<Trial>> = BTreeMap::new();
        for (key, trial) in done {
            trials.entry(key).or_default().push(trial);
        }
        Self { trials, count }
    }

    /// Returns the trials of a case; empty if it was not run.
    pub(crate) fn of(&self, scenario: &Scenario) -> &[Trial] {
        self.trials.get(&key(scenario)).map_or(&[], Vec::as_slice)
    }
}

/// Returns a key that is equal for equal scenarios only.
fn key(scenario: &Scenario) -> String {
    format!("{scenario:?}")
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn next(state: &Mutex<State>) -> Option<(String, u32)> {
    let mut state = lock(state);
    if state.fault.is_some() {
        return None;
    }
    state.remaining.pop()
}

/// Records the end of a trial; returns the number of finished trials.
fn record(state: &Mutex<State>, key: String, ended: Result<Trial, UserError>) -> u64 {
    let mut state = lock(state);
    match ended {
        Ok(trial) => state.done.push((key, trial)),
        Err(fault) => {
            state.fault.get_or_insert(fault);
        }
    }
    state.done.len() as u64
}

/// Estimates the duration of a trial, in units of one caching request. Only affects the order of
/// the trials.
fn work_of(scenario: &Scenario) -> u64 {
    let pattern = scenario.pattern.to_string();
    let copies = if pattern == "ra" { u64::from(scenario.clients) } else { 1 };
    let cyclic = pattern.ends_with('c');
    let chunk = if cyclic { scenario.record_bytes } else { scenario.block_bytes };
    let requests = scenario.file_bytes / chunk.clamp(1, scenario.block_bytes.max(1)) * copies;
    // A collective moves the pieces of a block in few steps, whatever their number.
    let blocks = scenario.file_bytes / scenario.block_bytes.max(1) * copies;
    match scenario.strategy {
        Strategy::Caching => requests,
        Strategy::TwoPhase | Strategy::DiskDirected | Strategy::Noncollective => {
            blocks + requests / 32
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the number of threads has no effect, shared cases run once, long ones first, and an
    //! error ends the run.
    use super::*;
    use crate::select::select;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn plan(trials: u32) -> Plan {
        let names = ["tocs-fig5", "tocs-fig14", "tocs-fig15"].map(str::to_owned);
        let only = ["rc:8192".parse().unwrap()];
        let mut experiments = select(&names, &only).unwrap();
        experiments[1].points.retain(|point| point.value == Some(10));
        Plan::new(&experiments, trials).unwrap()
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let digests = |jobs| {
            let heard = AtomicU64::new(0);
            let done = plan(2)
                .run(jobs, &|progress| {
                    heard.fetch_max(progress.done, Ordering::Relaxed);
                })
                .unwrap();
            let trials = done.trials.values().flatten();
            let digests: Vec<(u32, u64)> =
                trials.map(|trial| (trial.number, trial.digest)).collect();
            assert_eq!(heard.into_inner(), digests.len() as u64);
            digests
        };
        assert_eq!(digests(1), digests(4));
    }

    #[test]
    fn shared_cases_run_once() {
        // Figure 5 has caching, two-phase, and disk-directed with and without sorting; Figure 14
        // has some of these; Figure 15 has its caching, and caching in a contiguous layout.
        assert_eq!(plan(1).cases.len(), 5);
    }

    #[test]
    fn small_cyclic_caching_comes_first() {
        let experiments = select(&["tr94-table4".to_owned()], &[]).unwrap();
        let plan = Plan::new(&experiments, 1).unwrap();
        let longest = plan.cases.values().max_by_key(|scenario| work_of(scenario)).unwrap();
        assert_eq!((longest.record_bytes, longest.strategy), (8, Strategy::Caching));
        assert!(longest.pattern.to_string().ends_with('c'));
    }

    #[test]
    fn a_fault_ends_the_run() {
        let mut plan = plan(2);
        for scenario in plan.cases.values_mut() {
            scenario.clients = 0;
        }
        assert!(plan.run(2, &|_| ()).is_err());
    }
}
