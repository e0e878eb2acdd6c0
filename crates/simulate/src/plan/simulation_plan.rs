//! The cases of a plan: every pattern with every record size by every strategy.

use super::origin::Origin;
use crate::machine::Machine;
use crate::scenario::Scenario;
use filesystem::collective::Strategy;
use interface::UserError;
use policy::Pattern;
use std::collections::BTreeMap;

/// Largest number of cases of a plan.
const CASES_MAX: usize = 4096;

/// Cases to simulate: every pattern with every record size by every strategy. The plan records the
/// origin of each value.
#[derive(Clone, Debug)]
pub struct SimulationPlan {
    /// Scenario that all cases share; its pattern, record size and strategy are ignored.
    pub(super) base: Scenario,
    pub(super) patterns: Vec<Pattern>,
    pub(super) records: Vec<u64>,
    pub(super) strategies: Vec<Strategy>,
    /// Ratio of the numbers of clients and servers, if it is given.
    pub(super) clients_per_server: Option<u32>,
    /// Last origin of each key that a file or an option set.
    pub(super) origins: BTreeMap<&'static str, Origin>,
}

impl Default for SimulationPlan {
    /// The main case of the papers, reading and writing, by every strategy.
    fn default() -> Self {
        let pattern = |name: &str| name.parse().expect("the papers' patterns must be known");
        Self {
            base: Scenario::default(),
            patterns: vec![pattern("wbc"), pattern("rbc")],
            records: vec![8192],
            strategies: Strategy::ALL.to_vec(),
            clients_per_server: None,
            origins: BTreeMap::new(),
        }
    }
}

impl SimulationPlan {
    /// Returns the machine of all cases.
    pub fn machine(&self) -> &Machine {
        &self.base.machine
    }

    /// Lists every case: patterns, then records, then strategies.
    pub fn scenarios(&self) -> Vec<Scenario> {
        let mut scenarios = Vec::new();
        for pattern in &self.patterns {
            for &record_bytes in &self.records {
                for &strategy in &self.strategies {
                    let (pattern, base) = (pattern.clone(), self.base.clone());
                    scenarios.push(Scenario { pattern, record_bytes, strategy, ..base });
                }
            }
        }
        scenarios
    }

    /// Sets the number of trials, unless a file or an option set it.
    pub fn with_default_trials(mut self, trials: u32) -> Self {
        if !self.origins.contains_key("trials") {
            self.base.trials = trials;
        }
        self
    }

    pub(super) fn check(&self) -> Result<(), UserError> {
        let lists = [self.patterns.len(), self.records.len(), self.strategies.len()];
        let cases = lists.iter().try_fold(1_usize, |cases, list| cases.checked_mul(*list));
        if cases.is_none_or(|cases| cases > CASES_MAX) {
            let [patterns, records, strategies] = lists;
            return Err(UserError::usage(
                "there are too many cases",
                format!(
                    "{patterns} patterns, {records} records and {strategies} strategies have more \
                     than {CASES_MAX} combinations"
                ),
                "give shorter lists of pattern, record or strategy",
            ));
        }
        self.scenarios().iter().try_for_each(Scenario::check)
    }

    /// Returns a plan for a machine, without origins.
    pub(super) fn of_machine(machine: Machine) -> Self {
        Self { base: Scenario { machine, ..Scenario::default() }, ..Self::default() }
    }
}
