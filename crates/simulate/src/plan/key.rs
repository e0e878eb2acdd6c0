//! A key of scenario files: what it means, what it takes, and where its value is kept.

use super::simulation_plan::SimulationPlan;
use super::value::{Kind, Value};

/// The table of a scenario file in which a key stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Table {
    /// None: it stands at the top.
    Top,
    /// `[parameters]`
    Parameters,
}

/// The name of the table that changes the parameters of a machine.
pub(super) const PARAMETERS: &str = "parameters";

/// What a value is a part of, which gives it when nobody says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// What is done; its default is the same for every machine.
    Case,
    /// The machine.
    Machine,
}

/// A key of scenario files.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// The option that says the same, with its dashes; empty if there is none.
    pub(super) option: &'static str,
    pub(super) table: Table,
    pub(super) owner: Owner,
    pub(super) kind: Kind,
    /// What it means, in full sentences.
    pub(super) meaning: &'static str,
    /// Where the values of the presets come from; empty where that is no question.
    pub(super) source: &'static str,
    pub(super) field: Field,
}

/// Where the value of a key is kept. `get` finds nothing where the key has no meaning.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) get: fn(&SimulationPlan) -> Option<Value>,
    pub(super) set: fn(&mut SimulationPlan, &Value) -> Result<(), String>,
}

/// A field of a plan that is said as it is.
macro_rules! field {
    ($($field:ident).+) => {
        Field {
            get: |plan| Some(plan.$($field).+.say()),
            set: |plan, value| {
                plan.$($field).+ = Said::hear(value)?;
                Ok(())
            },
        }
    };
}
pub(super) use field;

impl Key {
    /// Gives a plan the value; says why it cannot have it.
    pub(super) fn set(&self, plan: &mut SimulationPlan, value: &Value) -> Result<(), String> {
        if self.kind.permits(value) {
            return (self.field.set)(plan, value);
        }
        let why = match (self.kind, value) {
            (Kind::Size, Value::Word(word)) => interface::parse_size(word).err(),
            (Kind::List { .. }, Value::List(values)) if values.is_empty() => {
                Some("an empty list leaves nothing to simulate".to_owned())
            }
            _ => None,
        };
        Err(why.unwrap_or_else(|| format!("it is {}", self.kind.expected())))
    }

    /// The value in a plan; nothing where the key has no meaning.
    pub(super) fn get(&self, plan: &SimulationPlan) -> Option<Value> {
        (self.field.get)(plan)
    }

    /// `name = value`, as in a file.
    pub(super) fn assignment(&self, value: &Value) -> String {
        format!("{} = {}", self.name, self.kind.in_toml(value))
    }
}
