//! Scenario files: from text to settings, each with its line.

use super::key::{Key, PARAMETERS, Table};
use super::keys::keys;
use super::origin::Origin;
use super::setting::{Setting, help_with_key};
use super::value::Value;
use interface::UserError;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The largest scenario file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Letters of a value that an error shows.
const SHOWN_MAX: usize = 40;

/// Reads the settings of a scenario file.
pub(super) fn read(path: &Path) -> Result<Vec<Setting>, UserError> {
    let text = text_of(path).map_err(|cause| {
        UserError::usage(
            format!("cannot read the scenario file {}", path.display()),
            cause,
            "name a TOML file; `unisono sim --explain` prints one to start from",
        )
    })?;
    let mut settings = settings(&path.display().to_string(), &text)?;
    for setting in &mut settings {
        find_beside(path, setting);
    }
    Ok(settings)
}

/// Lets a model that lies beside the scenario file, and is named without a folder, be found there.
fn find_beside(scenario: &Path, setting: &mut Setting) {
    let Value::Word(name) = &setting.value else { return };
    let is_file = ["disk", "network"].contains(&setting.key.name) && name.ends_with(".toml");
    let beside = scenario.with_file_name(name);
    if is_file && !name.contains('/') && beside.is_file() {
        setting.value = Value::Word(beside.display().to_string());
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let bounded = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    match bounded.map_err(|error| error.to_string())? {
        bytes if bytes as u64 > FILE_BYTES_MAX => {
            Err(format!("it has more than {FILE_BYTES_MAX} bytes"))
        }
        _ => Ok(text),
    }
}

/// Parses the text of a scenario file into settings, in the order of its lines.
pub(super) fn settings(file: &str, text: &str) -> Result<Vec<Setting>, UserError> {
    let source = Source { file, text };
    let table = DeTable::parse(text).map_err(|error| {
        UserError::usage(
            source.place(error.span().map_or(0, |span| span.start), "this is not TOML"),
            error.message().trim().to_owned(),
            "write lines such as: clients = 16, and strings in quotes",
        )
    })?;
    let mut settings = source.settings(table.get_ref(), Table::Top)?;
    settings.sort_by_key(|setting| match setting.origin {
        Origin::File { line, .. } => line,
        Origin::Option(_) => usize::MAX,
    });
    Ok(settings)
}

struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn settings(&self, said: &DeTable<'_>, table: Table) -> Result<Vec<Setting>, UserError> {
        let mut settings = Vec::new();
        let mut entries: Vec<_> = said.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in entries {
            match value.get_ref() {
                DeValue::Table(inner) if table == Table::Top && name.get_ref() == PARAMETERS => {
                    settings.extend(self.settings(inner, Table::Parameters)?);
                }
                _ => settings.push(self.setting(name.get_ref(), name.span(), value, table)?),
            }
        }
        Ok(settings)
    }

    fn setting(
        &self,
        name: &str,
        place: Range<usize>,
        value: &Spanned<DeValue<'_>>,
        table: Table,
    ) -> Result<Setting, UserError> {
        let key = keys().find(|key| key.name == name && key.table == table);
        let key = key.ok_or_else(|| self.unknown(name, place.start, table))?;
        let origin = Origin::File { file: self.file.to_owned(), line: self.line(place.start) };
        let said = self.text.get(value.span()).unwrap_or_default();
        let mut shown: String = said.lines().next().unwrap_or_default().to_owned();
        if shown.chars().count() > SHOWN_MAX || shown.len() < said.len() {
            shown = shown.chars().take(SHOWN_MAX).collect::<String>() + " ...";
        }
        Ok(Setting { key, value: value_of(value.get_ref()), said: shown, origin })
    }

    fn unknown(&self, name: &str, at: usize, table: Table) -> UserError {
        let elsewhere = keys().find(|key| key.name == name);
        let of_table = |key: &&'static Key| key.table == table;
        let (cause, help) = match (table, elsewhere) {
            (Table::Top, Some(_)) => (
                "it is a parameter of the machine".to_owned(),
                format!("put it below a line [{PARAMETERS}]"),
            ),
            (Table::Parameters, Some(_)) => (
                format!("it is not a key of [{PARAMETERS}]"),
                format!("put it above the line [{PARAMETERS}]"),
            ),
            (Table::Top, None) if name == PARAMETERS => (
                "[{PARAMETERS}] is a table, and this is not a table".to_owned(),
                format!("write a line [{PARAMETERS}], and the keys of the table below it"),
            ),
            (Table::Top, None) => (
                format!(
                    "no key at the top of a scenario, and no table but [{PARAMETERS}], has \
                         this name"
                ),
                help_with_key(name, keys().map(|key| key.name).chain([PARAMETERS])),
            ),
            (Table::Parameters, None) => (
                "no parameter of a machine has this name".to_owned(),
                help_with_key(name, keys().filter(of_table).map(|key| key.name)),
            ),
        };
        UserError::usage(self.place(at, &format!("there is no key {name:?} here")), cause, help)
    }

    fn line(&self, at: usize) -> usize {
        self.text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
    }

    fn place(&self, at: usize, what: &str) -> String {
        format!("{}, line {}: {what}", self.file, self.line(at))
    }
}

fn value_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(word) => Value::Word(word.to_string()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Integer(number) => {
            let parsed = u64::from_str_radix(number.as_str(), number.radix());
            parsed.map_or(Value::Other, Value::Number)
        }
        DeValue::Array(values) => {
            Value::List(values.iter().map(|value| value_of(value.get_ref())).collect())
        }
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => Value::Other,
    }
}
