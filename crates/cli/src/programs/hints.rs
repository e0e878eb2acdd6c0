//! `hints`: the table of hints, and what becomes of given ones.

use crate::arguments::{Explain, Hints, HintsCommand};
use crate::output::present;
use client::{HINTS, Hint, HintSite, Instance, Verdict, default_instance_directory};
use interface::{ExitCode, UserError};
use serde_json::{Value, json};
use std::path::Path;

/// Most bytes of a file of hints.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A hint as it was given: key, and value or the reason for which there is none.
type Given = (String, Result<String, String>);

pub(crate) fn run(arguments: &Hints) -> Result<(), UserError> {
    match &arguments.command {
        None => list(arguments.json),
        Some(HintsCommand::List(more)) => list(arguments.json || more.json),
        Some(HintsCommand::Explain(explain)) => self::explain(explain),
    }
}

fn list(as_json: bool) -> Result<(), UserError> {
    let row = |hint: &Hint| {
        json!({
            "name": hint.name, "form": hint.form.word(), "acts_on": hint.site.word(),
            "line": hint.line,
        })
    };
    if as_json {
        let hints: Vec<Value> = HINTS.iter().map(row).collect();
        return present::json(&json!({ "schema": "unisono.hints/1", "hints": hints }));
    }
    present::line(&format!("{:<23} {:<12} {}", "hint", "in force for", "meaning and values"))?;
    for hint in HINTS.iter().filter(|hint| hint.site != HintSite::Nowhere) {
        present::line(&format!("{:<23} {:<12} {}", hint.name, hint.site.word(), hint.line))?;
        for values in broken(&hint.form.word()) {
            present::line(&format!("{:<36} {values}", ""))?;
        }
    }
    present::line("\nknown, but without effect, so rejected")?;
    for hint in HINTS.iter().filter(|hint| hint.site == HintSite::Nowhere) {
        present::line(&format!("{:<27} {}", hint.name, hint.line))?;
    }
    Ok(())
}

/// Columns for the values of a hint, in lines of 80.
const VALUE_COLUMNS: usize = 43;

/// Breaks a list of values, with bars between them, into lines.
fn broken(values: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for value in values.split_inclusive('|') {
        if let Some(line) = lines.last_mut()
            && (line.is_empty() || line.len() + value.len() <= VALUE_COLUMNS)
        {
            line.push_str(value);
        } else {
            lines.push(value.to_owned());
        }
    }
    lines
}

fn explain(arguments: &Explain) -> Result<(), UserError> {
    let given = given(arguments)?;
    let directory = arguments.instance.clone().unwrap_or_else(default_instance_directory);
    let servers = Instance::at(directory).read().ok().map(|file| file.servers.len() as u32);
    let mut hints = client::Hints::new(servers);
    let mut rejected = 0;
    let mut rows = Vec::new();
    for (key, value) in &given {
        let verdict = match value {
            Ok(value) => hints.set(key, value)?,
            Err(why) => Verdict::Rejected(why.clone()),
        };
        rejected += usize::from(matches!(verdict, Verdict::Rejected(_)));
        rows.push((key, value.as_deref().unwrap_or(""), verdict));
    }
    if arguments.json {
        let all: Vec<Value> =
            rows.iter().map(|(key, value, verdict)| row_json(key, value, verdict)).collect();
        let object = json!({ "schema": "unisono.hints-explain/1", "hints": all,
                             "rejected": rejected });
        present::json(&object)?;
    } else {
        for (key, value, verdict) in &rows {
            present::line(&row_line(key, value, verdict))?;
        }
    }
    if arguments.strict && rejected > 0 {
        return Err(UserError::usage(
            format!("{rejected} of {} hints are rejected", rows.len()),
            "--strict was given",
            "correct or remove them; `unisono hints` lists all hints",
        ));
    }
    Ok(())
}

fn row_json(key: &str, value: &str, verdict: &Verdict) -> Value {
    let (in_force, reason) = match verdict {
        Verdict::InForce(shown) => (Some(shown), None),
        Verdict::Rejected(why) => (None, Some(why)),
    };
    json!({ "key": key, "value": value, "in_force": in_force.is_some(), "as": in_force,
            "reason": reason })
}

fn row_line(key: &str, value: &str, verdict: &Verdict) -> String {
    let hint = if value.is_empty() { key.to_owned() } else { format!("{key}={value}") };
    match verdict {
        Verdict::InForce(shown) if shown == value => format!("{hint:<32} in force"),
        Verdict::InForce(shown) => format!("{hint:<32} in force  as {shown}"),
        Verdict::Rejected(why) => format!("{hint:<32} rejected  {why}"),
    }
}

/// Hints of the arguments, or of the environment when there are none.
fn given(arguments: &Explain) -> Result<Vec<Given>, UserError> {
    if arguments.words.is_empty() {
        return Ok(client::hints_of_environment(&arguments.file));
    }
    let mut given = Vec::new();
    for word in &arguments.words {
        match word.split_once('=') {
            Some((key, value)) if !Path::new(word).exists() => {
                given.push((key.to_owned(), Ok(value.to_owned())));
            }
            _ => given.extend(of_file(Path::new(word))?),
        }
    }
    Ok(given)
}

/// Hints of a file in ROMIO's form: a key and a value a line.
fn of_file(path: &Path) -> Result<Vec<Given>, UserError> {
    let failed = |cause: String| {
        UserError::new(
            ExitCode::Failed,
            format!("cannot read the hints in {}", path.display()),
            cause,
            "name a file with one hint a line, KEY VALUE, or write hints as KEY=VALUE",
        )
    };
    let bytes = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(failed(format!("it has {bytes} bytes, more than {FILE_BYTES_MAX}")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    let hint = |line: &str| match line.split_once([' ', '\t']) {
        Some((key, value)) => (key.to_owned(), Ok(value.trim().to_owned())),
        None => (line.to_owned(), Err("has no value".to_owned())),
    };
    Ok(lines.filter(|line| !line.is_empty()).map(hint).collect())
}
