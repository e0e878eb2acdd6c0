//! A key of scenario files: its meaning, its accepted values, and the field that holds its value.

use super::simulation_plan::SimulationPlan;
use super::value::{ConvertValue, Kind, Value};
use std::fmt;
use world_simulated::Parameter;

/// The table of a scenario file in which a key stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Table {
    /// No table: the key stands at the top of the file.
    Top,
    /// `[parameters]`
    Parameters,
}

/// The name of the table that changes the parameters of a machine.
pub(super) const PARAMETERS: &str = "parameters";

/// Owner of a value, which supplies the default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// The case to simulate. Its default is the same for every machine.
    Case,
    /// The machine, whose preset gives the default.
    Machine,
}

/// A key of scenario files.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// Option that sets the key, with its dashes; empty if there is none.
    pub(super) option: &'static str,
    pub(super) table: Table,
    pub(super) owner: Owner,
    pub(super) kind: Kind,
    /// Meaning of the key, in full sentences.
    pub(super) meaning: Meaning,
    /// Source of the values of the presets; empty if none applies.
    pub(super) source: &'static str,
    pub(super) field: Field,
}

/// Meaning of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    /// This text.
    Text(&'static str),
    /// Text that lists the declared models.
    Computed(fn() -> String),
}

impl fmt::Display for Meaning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => out.write_str(text),
            Self::Computed(text) => out.write_str(&text()),
        }
    }
}

/// Part of the plan that holds the value of a key.
#[derive(Debug)]
pub(super) enum Field {
    /// A field of the plan, by its accessors. `get` returns nothing when the key has no meaning for
    /// the plan.
    Plan {
        get: fn(&SimulationPlan) -> Option<Value>,
        set: fn(&mut SimulationPlan, &Value) -> Result<(), String>,
    },
    /// A parameter of the network.
    Network(&'static Parameter),
}

/// Makes the accessors of a field whose type converts to and from values by `ConvertValue`.
macro_rules! field {
    ($($field:ident).+) => {
        Field::Plan {
            get: |plan| Some(plan.$($field).+.to_value()),
            set: |plan, value| {
                plan.$($field).+ = ConvertValue::from_value(value)?;
                Ok(())
            },
        }
    };
}
pub(super) use field;

/// A key at the top with the same default for every machine.
pub(super) const fn case(
    name: &'static str,
    option: &'static str,
    kind: Kind,
    meaning: &'static str,
    field: Field,
) -> Key {
    let meaning = Meaning::Text(meaning);
    let (table, owner, source) = (Table::Top, Owner::Case, "");
    Key { name, option, table, owner, kind, meaning, source, field }
}

impl Key {
    /// Sets the value in a plan; the error says why the plan cannot have it.
    pub(super) fn set(&self, plan: &mut SimulationPlan, value: &Value) -> Result<(), String> {
        if self.kind.permits(value) {
            return self.field.set(plan, value);
        }
        let why = match (self.kind, value) {
            (Kind::Size, Value::Word(word)) => interface::parse_size(word).err(),
            (Kind::List { .. }, Value::List(values)) if values.is_empty() => {
                Some("the list is empty, so there is nothing to simulate".to_owned())
            }
            _ => None,
        };
        Err(why.unwrap_or_else(|| format!("the value must be {}", self.kind.expected())))
    }

    /// Returns the value in a plan; nothing when the key has no meaning for it.
    pub(super) fn get(&self, plan: &SimulationPlan) -> Option<Value> {
        self.field.get(plan)
    }

    /// Formats `name = value`, as in a scenario file.
    pub(super) fn assignment(&self, value: &Value) -> String {
        format!("{} = {}", self.name, self.kind.in_toml(value))
    }
}

impl Field {
    fn set(&self, plan: &mut SimulationPlan, value: &Value) -> Result<(), String> {
        match self {
            Self::Plan { set, .. } => set(plan, value),
            Self::Network(parameter) => {
                let values = &mut plan.base.machine.network.parameters;
                values.set(parameter, ConvertValue::from_value(value)?)
            }
        }
    }

    fn get(&self, plan: &SimulationPlan) -> Option<Value> {
        match self {
            Self::Plan { get, .. } => get(plan),
            Self::Network(parameter) => {
                Some(plan.base.machine.network.parameters.get(parameter).to_value())
            }
        }
    }
}
