//! A value that an option or a line of a scenario file gives to a key.

use super::key::{Key, Table};
use super::keys::{key, keys};
use super::origin::Origin;
use super::value::Value;
use interface::{UserError, nearest};

/// A value that an option of the command line gives to a key.
#[derive(Clone, Debug)]
pub struct Setting {
    pub(super) key: &'static Key,
    pub(super) value: Value,
    /// Text of the value, as errors show it.
    pub(super) said: String,
    pub(super) origin: Origin,
}

impl Setting {
    /// Sets key `name` to this value by the key's option.
    ///
    /// # Panics
    /// Panics when there is no such key.
    pub fn option(name: &str, value: &str) -> Self {
        let key = key(name).expect("an option must be about a key");
        let option = match key.option {
            "" => format!("--set {name}"),
            option => option.to_owned(),
        };
        Self::new(key, option, key.kind.of_text(value), value)
    }

    /// Sets key `name` to a list of values by `option` of the command line.
    ///
    /// # Panics
    /// Panics when there is no such key.
    pub fn list(option: &str, name: &str, values: &[String]) -> Self {
        let key = key(name).expect("an option must be about a key");
        let words = values.iter().cloned().map(Value::Word).collect();
        Self::new(key, option.to_owned(), Value::List(words), &values.join(","))
    }

    /// Parses `name=value`, which changes a parameter of the machine.
    ///
    /// # Errors
    /// Fails when the text is not of this form, or there is no such parameter.
    pub fn parameter(assignment: &str) -> Result<Self, UserError> {
        let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
        let (name, value) = (name.trim(), value.trim());
        let known = keys().filter(|key| key.table == Table::Parameters);
        let Some(key) = known.clone().find(|key| key.name == name) else {
            return Err(UserError::usage(
                format!("--set cannot change {name:?}"),
                "no parameter of a machine has this name",
                help_with_key(name, known.map(|key| key.name)),
            ));
        };
        Ok(Self::new(key, format!("--set {name}"), key.kind.of_text(value), value))
    }

    /// Sets the key `name`, at the top or a parameter of the machine, to a value in JSON.
    ///
    /// # Errors
    /// Fails when there is no such key. A value that does not fit is refused with the plan.
    pub fn of_json(name: &str, value: &serde_json::Value) -> Result<Self, UserError> {
        let Some(key) = key(name) else {
            return Err(UserError::usage(
                format!("a scenario cannot have {name:?}"),
                "no key of a scenario has this name",
                help_with_key(name, keys().map(|key| key.name)),
            ));
        };
        let said = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Ok(Self::new(key, name.to_owned(), Value::of_json(value), &said))
    }

    fn new(key: &'static Key, option: String, value: Value, said: &str) -> Self {
        Self { key, value, said: format!("{said:?}"), origin: Origin::Option(option) }
    }

    pub(super) fn refuse(&self, cause: String) -> UserError {
        let subject = match &self.origin {
            Origin::File { file, line } => format!("{file}, line {line}: {}", self.key.name),
            Origin::Option(option) => option.clone(),
        };
        // A distribution in words of High-Performance Fortran is not a misspelt short name.
        let words = if self.said.contains(':') { &[] } else { self.key.kind.words() };
        let meant = nearest(self.said.trim_matches('"'), words.iter().copied());
        let help = match meant {
            Some(word) => format!("did you mean {word}?"),
            None => format!("{} must be {}. {}", self.key.name, self.key.kind.expected(), SEE_KEYS),
        };
        UserError::usage(format!("{subject} cannot be {}", self.said), cause, help)
    }
}

/// Help that names the explanation of every key.
const SEE_KEYS: &str = "docs/scenarios.md and `unisono sim --explain` explain every key";

/// Returns the help for a key that does not exist.
pub(super) fn help_with_key(name: &str, known: impl Iterator<Item = &'static str>) -> String {
    match nearest(name, known) {
        Some(meant) => format!("did you mean {meant}? {SEE_KEYS}"),
        None => SEE_KEYS.to_owned(),
    }
}
