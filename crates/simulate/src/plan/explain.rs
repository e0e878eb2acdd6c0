//! A plan as a file in which every key is explained.

use super::key::{Key, Owner, PARAMETERS, Table};
use super::keys::keys;
use super::origin::Origin;
use super::simulation_plan::SimulationPlan;
use crate::machine::Machine;
use serde_json::{Map, json};
use std::fmt::Write;

/// Names the form of an explained plan in JSON.
const SCENARIO_SCHEMA: &str = "unisono.scenario/1";

/// Columns of a comment.
const COLUMNS_MAX: usize = 96;

impl SimulationPlan {
    /// Returns the whole plan as a scenario file, with the meaning of each key and the origin of
    /// its value.
    pub fn explain(&self) -> String {
        let mut out = String::from(
            "# A scenario of unisono, from presets, the scenario file and options, in this order.\n\
             # To simulate it: unisono sim --scenario FILE.toml\n",
        );
        for table in [Table::Top, Table::Parameters] {
            if table == Table::Parameters {
                let _ = writeln!(out, "\n[{PARAMETERS}]");
            }
            for key in keys().filter(|key| key.table == table) {
                let Some(value) = key.get(self) else { continue };
                out.push('\n');
                comment(&mut out, &format!("{} Takes {}.", key.meaning, key.kind.expected()));
                if !key.source.is_empty() {
                    comment(&mut out, &format!("Source: {}", key.source));
                }
                comment(&mut out, &format!("Value: {}.", self.whence(key)));
                let _ = writeln!(out, "{}", key.assignment(&value));
            }
        }
        out
    }

    /// Returns the explained plan as JSON: for each key its value, meaning, accepted values and
    /// origin.
    pub fn explain_as_json(&self) -> serde_json::Value {
        let table = |table: Table| {
            let mut entries = Map::new();
            for key in keys().filter(|key| key.table == table) {
                let Some(value) = key.get(self) else { continue };
                let mut entry = json!({
                    "value": value.in_json(),
                    "meaning": key.meaning.to_string(),
                    "takes": key.kind.expected(),
                    "from": self.whence_as_json(key),
                });
                for (name, text) in [("source", key.source), ("option", key.option)] {
                    if !text.is_empty() {
                        entry[name] = text.into();
                    }
                }
                entries.insert(key.name.to_owned(), entry);
            }
            entries
        };
        json!({
            "schema": SCENARIO_SCHEMA,
            "scenario": table(Table::Top),
            PARAMETERS: table(Table::Parameters),
        })
    }

    /// Describes the origin of a value.
    fn whence(&self, key: &Key) -> String {
        let preset = self.base.machine.preset;
        match (self.origins.get(key.name), key.owner) {
            (None, Owner::Machine) => format!("preset {preset}"),
            (None, Owner::Case) => "default".to_owned(),
            (Some(origin), Owner::Case) => origin.to_string(),
            (Some(origin), Owner::Machine) => {
                let of_preset = key.get(&Self::of_machine(Machine::of(preset)));
                match of_preset {
                    Some(value) => {
                        format!("{origin}; preset {preset} has {}", key.kind.in_toml(&value))
                    }
                    None => origin.to_string(),
                }
            }
        }
    }

    fn whence_as_json(&self, key: &Key) -> serde_json::Value {
        match (self.origins.get(key.name), key.owner) {
            (None, Owner::Machine) => json!({ "preset": self.base.machine.preset.to_string() }),
            (None, Owner::Case) => json!("default"),
            (Some(Origin::File { file, line }), _) => json!({ "file": file, "line": line }),
            (Some(Origin::Option(option)), _) => json!({ "option": option }),
        }
    }
}

/// Writes words as lines of a comment.
fn comment(out: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() > 1 && line.chars().count() + 1 + word.chars().count() > COLUMNS_MAX {
            out.push_str(&line);
            out.push('\n');
            line.truncate(1);
        }
        line.push(' ');
        // A file name may contain control characters, which TOML forbids in comments.
        line.extend(word.chars().map(|letter| if letter.is_control() { '?' } else { letter }));
    }
    out.push_str(&line);
    out.push('\n');
}
