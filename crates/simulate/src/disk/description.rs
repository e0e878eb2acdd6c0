//! A disk described in a file by the parameters that its model declares; `docs/disks/nvme.toml` and
//! `docs/disks/analytic.toml` explain every key of such files.

use super::microseconds::Microseconds;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use world_simulated::models::Unit;
use world_simulated::{DiskDeclaration, DiskKind, Parameter, ParameterValues};

/// Key that states the model.
pub(super) const KIND: &str = "kind";

/// Returns the disk of a description, or the reason for which it is refused. `text` is that of the
/// table.
pub(super) fn disk_of_table(
    disk: &DiskDeclaration,
    table: &DeTable<'_>,
    text: &str,
) -> Result<DiskKind, String> {
    let mut values = ParameterValues::default();
    for (key, value) in table {
        let at = |cause: String| format!("line {}: {cause}", line(text, key.span().start));
        let name = key.get_ref().as_ref();
        match disk.parameters.iter().find(|parameter| parameter.name == name) {
            Some(parameter) => {
                let value = value_of(parameter, value).map_err(at)?;
                values.set(parameter, value).map_err(at)?;
            }
            None if name == KIND => {}
            None => {
                let known: Vec<&str> = disk.parameters.iter().map(|known| known.name).collect();
                let known = known.join(", ");
                return Err(at(format!("unknown field `{name}`, expected one of {known}")));
            }
        }
    }
    // A parameter that is 0 by default may be left out: files of older versions lack it.
    let is_missing =
        |parameter: &&Parameter| parameter.default > 0 && !table.contains_key(parameter.name);
    match disk.parameters.iter().find(is_missing) {
        Some(Parameter { name, meaning, .. }) => Err(format!("missing field `{name}`: {meaning}")),
        None => (disk.make)(&values),
    }
}

/// Reads the value of a parameter.
fn value_of(parameter: &Parameter, value: &Spanned<DeValue<'_>>) -> Result<u64, String> {
    let Parameter { name, unit, .. } = parameter;
    match (unit, value.get_ref()) {
        (Unit::Count | Unit::Bytes | Unit::BytesPerSecond, DeValue::Integer(number)) => {
            let parsed = u64::from_str_radix(number.as_str(), number.radix());
            parsed.map_err(|_| format!("{name} is {}, not a whole number", number.as_str()))
        }
        (Unit::Time, DeValue::Integer(number)) => microseconds(number.as_str()),
        (Unit::Time, DeValue::Float(number)) => microseconds(number.as_str()),
        (Unit::Time, _) => Err(format!("{name} is no number of microseconds")),
        (Unit::Count | Unit::Bytes | Unit::BytesPerSecond, _) => {
            Err(format!("{name} is no whole number"))
        }
    }
}

/// Reads a time in microseconds. Returns it in nanoseconds.
fn microseconds(number: &str) -> Result<u64, String> {
    let us: f64 = number.parse().map_err(|_| format!("{number} is no number of microseconds"))?;
    Microseconds::try_from(us).map(|time| time.0.as_ns())
}

/// Number of the line of a byte.
pub(super) fn line(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}
