//! The cases of a plan: every pattern with every record size by every strategy.

use super::origin::Origin;
use crate::machine::Machine;
use crate::scenario::Scenario;
use filesystem::collective::Strategy;
use interface::UserError;
use policy::Pattern;
use std::collections::BTreeMap;

/// Cases to simulate: every pattern with every record size by every strategy. Each value knows
/// where it comes from.
#[derive(Clone, Debug)]
pub struct SimulationPlan {
    /// What every case has; its pattern, record and strategy are of no meaning.
    pub(super) base: Scenario,
    pub(super) patterns: Vec<Pattern>,
    pub(super) records: Vec<u64>,
    pub(super) strategies: Vec<Strategy>,
    /// Where each key was said last, if it was.
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
            origins: BTreeMap::new(),
        }
    }
}

impl SimulationPlan {
    /// Every case: patterns, then records, then strategies.
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

    /// The same with so many trials, unless their number was said.
    pub fn with_default_trials(mut self, trials: u32) -> Self {
        if !self.origins.contains_key("trials") {
            self.base.trials = trials;
        }
        self
    }

    pub(super) fn check(&self) -> Result<(), UserError> {
        self.scenarios().iter().try_for_each(Scenario::check)
    }

    /// A plan for a machine, which knows of no origins.
    pub(super) fn of_machine(machine: Machine) -> Self {
        Self { base: Scenario { machine, ..Scenario::default() }, ..Self::default() }
    }
}
