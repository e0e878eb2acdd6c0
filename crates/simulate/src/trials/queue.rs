//! Queue of the trials of many scenarios, so that no processor idles while another works through
//! the trials of one long scenario.

use super::trial::{Trial, combine_trials, simulate_trial};
use crate::memory;
use crate::scenario::Scenario;
use filesystem::collective::Strategy;
use interface::{ExitCode, Report, SIM_SCHEMA, UserError};
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Progress of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Number of finished trials.
    pub done: u64,
    /// Number of all trials.
    pub all: u64,
}

/// Observer of a run, called before the first trial and after each. It may end the run.
pub type Observer<'a> = dyn Fn(Progress) -> ControlFlow<()> + Sync + 'a;

/// A trial: the index of its case, and its number there.
pub(super) type TrialId = (usize, u32);

/// Largest number of trials of all cases of a run. Their results take 200 bytes each.
const TRIALS_MAX: u64 = 1 << 20;

/// State shared by the threads. `T` is the result of a trial.
struct State<T> {
    /// Trials that have not begun, the last one first.
    remaining: Vec<TrialId>,
    done: Vec<(TrialId, T)>,
    /// First error; no trial begins after it.
    fault: Option<UserError>,
}

/// Simulates scenarios: one row for each, in their order. The trials of all run in parallel, on
/// `jobs` threads or, by default, on all processors of this machine. The result does not depend on
/// their number.
///
/// # Errors
/// Fails when a scenario makes no sense, the file system reports a fault, or `observer` ends the
/// run.
pub fn simulate_all(
    scenarios: &[Scenario],
    jobs: Option<usize>,
    observer: &Observer<'_>,
) -> Result<Report, UserError> {
    let processors = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let trials = simulate_trials(scenarios, jobs.unwrap_or_else(processors).max(1), observer)?;
    let rows = scenarios.iter().zip(&trials);
    let rows = rows.map(|(scenario, trials)| combine_trials(scenario, trials));
    let results = rows.collect::<Result<_, _>>()?;
    Ok(Report { schema: SIM_SCHEMA.to_owned(), limits: None, results })
}

/// Simulates one scenario, as [`simulate_all`] does.
///
/// # Errors
/// As [`simulate_all`].
pub fn simulate(scenario: &Scenario) -> Result<Report, UserError> {
    simulate_all(std::slice::from_ref(scenario), None, &|_| ControlFlow::Continue(()))
}

/// Runs the trials of scenarios on `jobs` threads, the longest first. Returns those of each
/// scenario, in the order of their numbers. The result of a trial depends only on its scenario and
/// number.
///
/// # Errors
/// The first error of a trial. Running trials are finished, no other begins.
pub fn simulate_trials(
    scenarios: &[Scenario],
    jobs: usize,
    observer: &Observer<'_>,
) -> Result<Vec<Vec<Trial>>, UserError> {
    for scenario in scenarios {
        scenario.check()?;
        memory::check(scenario)?;
    }
    check_number(scenarios)?;
    let mut trials: Vec<TrialId> = trials_of(scenarios.iter());
    trials.sort_by_cached_key(|(index, _)| work_of(&scenarios[*index]));
    let run = |(index, number): TrialId| simulate_trial(&scenarios[index], number);
    run_trials((scenarios.len(), trials), jobs, observer, run)
}

/// Refuses more trials than results can be held of.
pub(super) fn check_number<'a>(
    scenarios: impl IntoIterator<Item = &'a Scenario>,
) -> Result<(), UserError> {
    let trials: u64 = scenarios.into_iter().map(|scenario| u64::from(scenario.trials)).sum();
    if trials <= TRIALS_MAX {
        return Ok(());
    }
    Err(UserError::usage(
        "there are too many trials",
        format!("all cases together have {trials} trials, and the limit is {TRIALS_MAX}"),
        "choose fewer trials, or shorter lists of pattern, record or strategy",
    ))
}

/// Returns every trial of some scenarios.
pub(super) fn trials_of<'a>(scenarios: impl Iterator<Item = &'a Scenario>) -> Vec<TrialId> {
    let of_one = |(index, scenario): (usize, &Scenario)| {
        (0..scenario.trials).map(move |number| (index, number))
    };
    scenarios.enumerate().flat_map(of_one).collect()
}

/// Runs trials of this many cases on `jobs` threads, the last one first. Returns the results of
/// each case, in the order of their numbers.
///
/// # Errors
/// The first error of a trial. Running trials are finished, no other begins.
pub(super) fn run_trials<T: Send>(
    (cases, remaining): (usize, Vec<TrialId>),
    jobs: usize,
    observer: &Observer<'_>,
    run: impl Fn(TrialId) -> Result<T, UserError> + Sync,
) -> Result<Vec<Vec<T>>, UserError> {
    let all = remaining.len() as u64;
    let state = Mutex::new(State { remaining, done: Vec::new(), fault: None });
    observe(&state, observer, Progress { done: 0, all });
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(usize::try_from(all).unwrap_or(usize::MAX)) {
            scope.spawn(|| {
                while let Some(id) = next(&state) {
                    let done = record(&state, id, run(id));
                    observe(&state, observer, Progress { done, all });
                }
            });
        }
    });
    let mut state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(fault) = state.fault {
        return Err(fault);
    }
    state.done.sort_by_key(|(id, _)| *id);
    let mut of_each: Vec<Vec<T>> = (0..cases).map(|_| Vec::new()).collect();
    for ((index, _), trial) in state.done {
        of_each[index].push(trial);
    }
    Ok(of_each)
}

fn lock<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn next<T>(state: &Mutex<State<T>>) -> Option<TrialId> {
    let mut state = lock(state);
    if state.fault.is_some() {
        return None;
    }
    state.remaining.pop()
}

/// Records the end of a trial; returns the number of finished trials.
fn record<T>(state: &Mutex<State<T>>, id: TrialId, ended: Result<T, UserError>) -> u64 {
    let mut state = lock(state);
    match ended {
        Ok(trial) => state.done.push((id, trial)),
        Err(fault) => {
            state.fault.get_or_insert(fault);
        }
    }
    state.done.len() as u64
}

fn observe<T>(state: &Mutex<State<T>>, observer: &Observer<'_>, progress: Progress) {
    if observer(progress).is_break() {
        lock(state).fault.get_or_insert_with(|| {
            UserError::new(
                ExitCode::Failed,
                "the simulation was stopped",
                "its caller ended it",
                "start it again",
            )
        });
    }
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
        Strategy::Caching | Strategy::GlobalBarrier | Strategy::NodeGrouping => requests,
        Strategy::TwoPhase | Strategy::DiskDirected | Strategy::Noncollective => {
            blocks + requests / 32
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the number of threads has no effect, long scenarios run first, and an error or the
    //! observer ends the run.
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use units::MIB;

    fn scenarios() -> Vec<Scenario> {
        let small = Scenario { file_bytes: MIB, trials: 2, ..Scenario::default() };
        let strategies =
            Strategy::ALL.iter().map(|&strategy| Scenario { strategy, ..small.clone() });
        strategies.collect()
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let digests = |jobs| {
            let heard = AtomicU64::new(0);
            let trials = simulate_trials(&scenarios(), jobs, &|progress| {
                heard.fetch_max(progress.done, Ordering::Relaxed);
                ControlFlow::Continue(())
            });
            let digests: Vec<Vec<(u32, u64)>> = trials
                .unwrap()
                .iter()
                .map(|trials| trials.iter().map(|trial| (trial.number, trial.digest)).collect())
                .collect();
            assert_eq!(heard.into_inner(), digests.iter().map(Vec::len).sum::<usize>() as u64);
            digests
        };
        assert_eq!(digests(1), digests(4));
    }

    #[test]
    fn small_cyclic_caching_is_the_longest() {
        let pattern = |name: &str, record_bytes, strategy| Scenario {
            pattern: name.parse().unwrap(),
            record_bytes,
            strategy,
            ..Scenario::default()
        };
        let longest = work_of(&pattern("rc", 8, Strategy::Caching));
        for (name, record_bytes) in [("rc", 8192), ("rb", 8), ("ra", 8192)] {
            assert!(work_of(&pattern(name, record_bytes, Strategy::Caching)) < longest);
        }
        assert!(work_of(&pattern("rc", 8, Strategy::DiskDirected)) < longest);
    }

    #[test]
    fn a_fault_ends_the_run() {
        let mut scenarios = scenarios();
        scenarios[1].clients = 0;
        assert!(simulate_trials(&scenarios, 2, &|_| ControlFlow::Continue(())).is_err());
    }

    #[test]
    fn the_observer_ends_the_run() {
        let heard = AtomicU64::new(0);
        let stopped = simulate_all(&scenarios(), None, &|_| {
            heard.fetch_add(1, Ordering::Relaxed);
            ControlFlow::Break(())
        });
        assert_eq!(stopped.unwrap_err().error, "the simulation was stopped");
        assert_eq!(heard.into_inner(), 1, "no trial has begun");
    }
}
