//! Parameters of models, as users set them, and the values that they have.
//!
//! Invariants:
//! - A parameter is declared once, in the file of its model. Scenario keys, the keys of files that
//!   describe disks, their checks and their documentation are made of the declaration.
//! - A value is within the range of its parameter.

use std::collections::BTreeMap;
use units::Duration;

/// Declaration of a parameter of a model.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Key in scenario files, or in files that describe a disk. Models may share a parameter.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Least permitted value.
    pub least: u64,
    /// Greatest permitted value.
    pub most: u64,
    /// Value of a parameter that nobody sets.
    pub default: u64,
    /// Meaning, in full sentences.
    pub meaning: &'static str,
    /// Source of the default, as a sentence.
    pub source: &'static str,
}

/// Unit of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Time, whose value is in nanoseconds. Files that describe a disk write it in microseconds,
    /// with decimals where wanted.
    Time,
}

/// Values of parameters. A parameter that is not set has its default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ParameterValues {
    /// Values that differ from the default, by the name of the parameter.
    changed: BTreeMap<&'static str, u64>,
}

impl ParameterValues {
    /// Values of which each is the default.
    pub const DEFAULTS: Self = Self { changed: BTreeMap::new() };

    /// Sets a parameter.
    ///
    /// # Errors
    /// Fails when the value is not in the range of the parameter.
    pub fn set(&mut self, parameter: &Parameter, value: u64) -> Result<(), String> {
        let Parameter { name, least, most, default, .. } = *parameter;
        if !(least..=most).contains(&value) {
            return Err(format!("{name} is {value}, not from {least} to {most}"));
        }
        if value == default {
            self.changed.remove(name);
        } else {
            self.changed.insert(name, value);
        }
        Ok(())
    }

    /// Value of a parameter.
    pub fn get(&self, parameter: &Parameter) -> u64 {
        self.changed.get(parameter.name).copied().unwrap_or(parameter.default)
    }

    /// Value of a parameter of at most 32 bits.
    ///
    /// # Panics
    /// Panics when the value has more bits: then the parameter permits too much.
    pub fn count(&self, parameter: &Parameter) -> u32 {
        let value = u32::try_from(self.get(parameter));
        value.expect("a count must be declared with at most 32 bits")
    }

    /// Value of a parameter that is a time.
    pub fn time(&self, parameter: &Parameter) -> Duration {
        Duration::from_ns(self.get(parameter))
    }
}

#[cfg(test)]
mod tests {
    //! Proves: values outside the range are refused, and a default that is set is no change.
    use super::*;

    #[test]
    fn values_keep_to_their_range() {
        let spines = Parameter {
            name: "spines",
            unit: Unit::Count,
            least: 1,
            most: 8,
            default: 4,
            meaning: "",
            source: "",
        };
        let mut values = ParameterValues::default();
        assert_eq!(values.count(&spines), 4);
        assert_eq!(values.set(&spines, 8), Ok(()));
        assert_eq!((values.get(&spines), values.clone() == ParameterValues::DEFAULTS), (8, false));
        assert_eq!(values.set(&spines, 9), Err("spines is 9, not from 1 to 8".to_owned()));
        assert_eq!(values.set(&spines, 4), Ok(()));
        assert_eq!(values, ParameterValues::DEFAULTS);
    }
}
