//! A key of scenario files: its meaning, its accepted values, and the field that holds its value.

use super::simulation_plan::SimulationPlan;
use super::value::{Kind, Value};

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
    pub(super) meaning: &'static str,
    /// Source of the values of the presets; empty if none applies.
    pub(super) source: &'static str,
    pub(super) field: Field,
}

/// Accessors of the plan's field that holds the value of a key. `get` returns nothing when the key
/// has no meaning for the plan.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) get: fn(&SimulationPlan) -> Option<Value>,
    pub(super) set: fn(&mut SimulationPlan, &Value) -> Result<(), String>,
}

/// Makes the accessors of a field whose type converts to and from values by `ConvertValue`.
macro_rules! field {
    ($($field:ident).+) => {
        Field {
            get: |plan| Some(plan.$($field).+.to_value()),
            set: |plan, value| {
                plan.$($field).+ = ConvertValue::from_value(value)?;
                Ok(())
            },
        }
    };
}
pub(super) use field;

impl Key {
    /// Sets the value in a plan; the error says why the plan cannot have it.
    pub(super) fn set(&self, plan: &mut SimulationPlan, value: &Value) -> Result<(), String> {
        if self.kind.permits(value) {
            return (self.field.set)(plan, value);
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
        (self.field.get)(plan)
    }

    /// Formats `name = value`, as in a scenario file.
    pub(super) fn assignment(&self, value: &Value) -> String {
        format!("{} = {}", self.name, self.kind.in_toml(value))
    }
}
