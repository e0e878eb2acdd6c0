//! Simulation of the cases of all experiments, each case once.

use crate::catalogue::Experiment;
use crate::scenarios::scenario;
use interface::UserError;
use simulate::{Progress, Scenario, Trial, simulate_trials};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

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

    /// Runs all trials on `jobs` threads. `progress` is called after each.
    ///
    /// # Errors
    /// The first error of a trial; running trials are finished, no other begins.
    pub(crate) fn run(
        self,
        jobs: usize,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Done, UserError> {
        let (keys, scenarios): (Vec<String>, Vec<Scenario>) = self.cases.into_iter().unzip();
        let trials = simulate_trials(&scenarios, jobs, &|now| {
            progress(now);
            ControlFlow::Continue(())
        })?;
        Ok(Done { trials: keys.into_iter().zip(trials).collect(), count: self.trials })
    }
}

impl Done {
    /// Returns the trials of a case; empty if it was not run.
    pub(crate) fn of(&self, scenario: &Scenario) -> &[Trial] {
        self.trials.get(&key(scenario)).map_or(&[], Vec::as_slice)
    }
}

/// Returns a key that is equal for equal scenarios only.
fn key(scenario: &Scenario) -> String {
    format!("{scenario:?}")
}

#[cfg(test)]
mod tests {
    //! Proves: cases that experiments share run once, each with its trials.
    use super::*;
    use crate::select::select;

    #[test]
    fn shared_cases_run_once() {
        let names = ["tocs-fig5", "tocs-fig14", "tocs-fig15"].map(str::to_owned);
        let only = ["rc:8192".parse().unwrap()];
        let mut experiments = select(&names, &only).unwrap();
        experiments[1].points.retain(|point| point.value == Some(10));
        let plan = Plan::new(&experiments, 2).unwrap();
        // Figure 5 has caching, two-phase, and disk-directed with and without sorting; Figure 14
        // has some of these; Figure 15 has its caching, and caching in a contiguous layout.
        assert_eq!(plan.cases.len(), 5);
        let done = plan.run(2, &|_| ()).unwrap();
        assert_eq!(done.trials.len(), 5);
        assert!(done.trials.values().all(|trials| trials.len() == 2));
    }
}
