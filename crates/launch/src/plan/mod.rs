//! What to simulate, as a user says it: a preset, then a scenario file, then options.
//!
//! Invariant: what a plan explains ([`SimulationPlan::explain`]), read again as a file, is the same
//! plan. Every key is described once, in `keys.rs` and `parameters.rs`.

mod explain;
mod file;
mod key;
mod keys;
mod page;
mod parameters;
#[cfg(test)]
mod tests;
mod value;

pub use page::scenarios_page;

use crate::error::LaunchError;
use crate::machine::Machine;
use crate::nearest::nearest;
use crate::scenario::Scenario;
use filesystem::collective::Strategy;
use key::{Key, Owner, Table};
use keys::{key, keys};
use policy::{Pattern, ReplacementPolicies};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use value::Value;

/// Cases to simulate: every pattern with every record size by every strategy. Each value knows
/// where it comes from.
#[derive(Clone, Debug)]
pub struct SimulationPlan {
    /// What every case has; its pattern, record and strategy are of no meaning.
    base: Scenario,
    patterns: Vec<Pattern>,
    records: Vec<u64>,
    strategies: Vec<Strategy>,
    /// Where each key was said last, if it was.
    origins: BTreeMap<&'static str, Origin>,
}

/// Where a value was said.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Origin {
    File { file: String, line: usize },
    Option(String),
}

/// A value that an option of the command line gives to a key.
#[derive(Clone, Debug)]
pub struct Setting {
    key: &'static Key,
    value: Value,
    /// What was said, as errors show it.
    said: String,
    origin: Origin,
}

impl Setting {
    /// That the option of the key `name` gives it this value.
    ///
    /// # Panics
    /// When there is no such key.
    pub fn option(name: &str, value: &str) -> Self {
        let key = key(name).expect("an option must be about a key");
        Self::new(key, key.option.to_owned(), key.kind.of_text(value), value)
    }

    /// That `option` of the command line gives the key `name` a list of values.
    ///
    /// # Panics
    /// When there is no such key.
    pub fn list(option: &str, name: &str, values: &[String]) -> Self {
        let key = key(name).expect("an option must be about a key");
        let words = values.iter().cloned().map(Value::Word).collect();
        Self::new(key, option.to_owned(), Value::List(words), &values.join(","))
    }

    /// `name=value`, which changes a parameter of the machine.
    ///
    /// # Errors
    /// When it is no such thing, or there is no such parameter.
    pub fn parameter(assignment: &str) -> Result<Self, LaunchError> {
        let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
        let (name, value) = (name.trim(), value.trim());
        let known = keys().filter(|key| key.table == Table::Parameters);
        let Some(key) = known.clone().find(|key| key.name == name) else {
            return Err(LaunchError::usage(
                format!("--set cannot change {name:?}"),
                "no parameter of a machine has this name",
                help_with_key(name, known.map(|key| key.name)),
            ));
        };
        Ok(Self::new(key, format!("--set {name}"), key.kind.of_text(value), value))
    }

    fn new(key: &'static Key, option: String, value: Value, said: &str) -> Self {
        Self { key, value, said: format!("{said:?}"), origin: Origin::Option(option) }
    }

    fn refuse(&self, cause: String) -> LaunchError {
        let subject = match &self.origin {
            Origin::File { file, line } => format!("{file}, line {line}: {}", self.key.name),
            Origin::Option(option) => option.clone(),
        };
        // Words of High-Performance Fortran are no slip of a short name.
        let words = if self.said.contains(':') { &[] } else { self.key.kind.words() };
        let meant = nearest(self.said.trim_matches('"'), words.iter().copied());
        let help = match meant {
            Some(word) => format!("did you mean {word}?"),
            None => format!("{} is {}. {}", self.key.name, self.key.kind.expected(), SEE_KEYS),
        };
        LaunchError::usage(format!("{subject} cannot be {}", self.said), cause, help)
    }
}

/// Where every key is explained.
const SEE_KEYS: &str = "docs/scenarios.md and `unisono sim --explain` explain every key";

/// What to do about a key that does not exist.
fn help_with_key(name: &str, known: impl Iterator<Item = &'static str>) -> String {
    match nearest(name, known) {
        Some(meant) => format!("did you mean {meant}? {SEE_KEYS}"),
        None => SEE_KEYS.to_owned(),
    }
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
    /// The plan of a scenario file, if there is one, and of options, which come before it, in a
    /// program with these replacement policies.
    ///
    /// # Errors
    /// When the file cannot be read, or something in it or in the options makes no sense.
    pub fn resolve(
        file: Option<&Path>,
        options: Vec<Setting>,
        policies: &ReplacementPolicies,
    ) -> Result<Self, LaunchError> {
        let mut settings = file.map_or_else(|| Ok(Vec::new()), file::read)?;
        settings.extend(options);
        let mut plan = Self::default();
        plan.base.policies = policies.clone();
        // The machine is the first of the keys, as it gives the others their values.
        for key in keys() {
            for setting in settings.iter().filter(|it| it.key.name == key.name) {
                key.set(&mut plan, &setting.value).map_err(|cause| setting.refuse(cause))?;
                plan.origins.insert(key.name, setting.origin.clone());
            }
        }
        plan.check().map_err(|error| match file {
            Some(path) => {
                LaunchError { error: format!("{}: {}", path.display(), error.error), ..error }
            }
            None => error,
        })?;
        Ok(plan)
    }

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

    fn check(&self) -> Result<(), LaunchError> {
        self.scenarios().iter().try_for_each(Scenario::check)
    }

    /// A plan for a machine, which knows of no origins.
    fn of_machine(machine: Machine) -> Self {
        Self { base: Scenario { machine, ..Scenario::default() }, ..Self::default() }
    }
}

impl Machine {
    /// What is not as in its preset: the name of each key with its value.
    fn changed(&self) -> impl Iterator<Item = (&'static Key, Value)> {
        let preset = SimulationPlan::of_machine(Self::of(self.preset));
        let changed = SimulationPlan::of_machine(self.clone());
        let of_machine = keys().filter(|key| key.owner == Owner::Machine);
        of_machine.filter_map(move |key| {
            let value = key.get(&changed)?;
            (key.get(&preset).as_ref() != Some(&value)).then_some((key, value))
        })
    }

    /// What is not as in its preset, as a scenario file says it: `buffers-per-disk = 4`.
    pub fn changes(&self) -> Vec<String> {
        self.changed().map(|(key, value)| key.assignment(&value)).collect()
    }

    /// The options of a command that make the preset this machine.
    pub(crate) fn options(&self) -> String {
        let option = |(key, value): (&Key, Value)| match key.table {
            Table::Top => format!(" --{} {}", key.name, value.in_text()),
            Table::Parameters => format!(" --set {}={}", key.name, value.in_text()),
        };
        format!("--machine {}", self.preset) + &self.changed().map(option).collect::<String>()
    }
}

impl fmt::Display for Machine {
    /// The name of its preset, and what was changed.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.changes().as_slice() {
            [] => self.preset.fmt(out),
            changes => write!(out, "{} with {}", self.preset, changes.join(", ")),
        }
    }
}
