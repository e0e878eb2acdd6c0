//! Differences of a machine from its preset, in words of scenario files and options.

use super::key::{Key, Owner, Table};
use super::keys::keys;
use super::simulation_plan::SimulationPlan;
use super::value::Value;
use crate::machine::Machine;
use std::fmt;

impl Machine {
    /// Lists the keys whose values differ from the preset, each with its value.
    fn changed(&self) -> impl Iterator<Item = (&'static Key, Value)> {
        let preset = SimulationPlan::of_machine(Self::of(self.preset));
        let changed = SimulationPlan::of_machine(self.clone());
        let of_machine = keys().filter(|key| key.owner == Owner::Machine);
        of_machine.filter_map(move |key| {
            let value = key.get(&changed)?;
            (key.get(&preset).as_ref() != Some(&value)).then_some((key, value))
        })
    }

    /// Lists the differences from the preset as lines of a scenario file: `buffers-per-disk = 4`.
    pub fn changes(&self) -> Vec<String> {
        self.changed().map(|(key, value)| key.assignment(&value)).collect()
    }

    /// Returns the options of a command that turn the preset into this machine.
    pub(crate) fn options(&self) -> String {
        let option = |(key, value): (&Key, Value)| match key.table {
            Table::Top => format!(" --{} {}", key.name, value.in_text()),
            Table::Parameters => format!(" --set {}={}", key.name, value.in_text()),
        };
        format!("--machine {}", self.preset) + &self.changed().map(option).collect::<String>()
    }
}

impl fmt::Display for Machine {
    /// Writes the name of the preset and the differences from it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.changes().as_slice() {
            [] => self.preset.fmt(out),
            changes => write!(out, "{} with {}", self.preset, changes.join(", ")),
        }
    }
}
