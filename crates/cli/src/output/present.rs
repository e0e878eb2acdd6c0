//! Presentation of results and errors.

use super::format::show_size;
use clap::error::ErrorKind;
use interface::{Availability, ExitCode, Limits, Report, Row, UserError};
use serde::Serialize;
use std::io::{BufWriter, Write};

/// Prints one JSON object on a line of its own. Streams it, because it may be long.
pub(crate) fn json(value: &impl Serialize) -> Result<(), UserError> {
    print(|output| {
        serde_json::to_writer(&mut *output, value)?;
        writeln!(output)
    })
}

/// Prints lines of the result. Streams them: there may be a million.
pub(crate) fn lines(lines: impl IntoIterator<Item = String>) -> Result<(), UserError> {
    print(|output| lines.into_iter().try_for_each(|line| writeln!(output, "{line}")))
}

/// Size of the output buffer, in bytes.
const PRINTED_BYTES: usize = 1 << 16;

fn print(say: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), UserError> {
    let mut output = BufWriter::with_capacity(PRINTED_BYTES, std::io::stdout().lock());
    match say(&mut output).and_then(|()| output.flush()) {
        Ok(()) => Ok(()),
        Err(error) => output_failed(&error),
    }
}

/// Converts a failure to write to standard output. A closed pipe is no failure.
fn output_failed(error: &std::io::Error) -> Result<(), UserError> {
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return Ok(());
    }
    Err(UserError::new(
        ExitCode::Failed,
        "cannot write the result",
        error.to_string(),
        "check the file or pipe that standard output goes to",
    ))
}

/// Prints a line of the result.
pub(crate) fn line(text: &str) -> Result<(), UserError> {
    let mut output = std::io::stdout().lock();
    match writeln!(output, "{text}") {
        Ok(()) => Ok(()),
        Err(error) => output_failed(&error),
    }
}

/// Prints a note to standard error.
pub(crate) fn note(text: &str) {
    // The reader may be gone.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints a report as JSON or as a table.
pub(crate) fn report(report: &Report, as_json: bool) -> Result<(), UserError> {
    if as_json {
        return json(report);
    }
    let is_about_processors = report.results.iter().any(|row| row.availability.is_some());
    line(&if is_about_processors { availability_header() } else { table_header(false) })?;
    let row = |row: &Row| match row.availability {
        Some(left) => availability_row(row, left),
        None => table_row(row, None),
    };
    report.results.iter().try_for_each(|it| line(&row(it)))
}

/// Width of a table whose last column is padded.
const TABLE_WIDTH: usize = 86;

/// Header of a table that also shows the availability of the servers' processors.
fn availability_header() -> String {
    format!("{:<TABLE_WIDTH$}  cpu available  with barriers", table_header(false))
}

fn availability_row(row: &Row, left: Availability) -> String {
    format!(
        "{:<TABLE_WIDTH$}  {:>12.1}%  {:>12.1}%",
        table_row(row, None),
        left.cpu_available_percent,
        left.cpu_usable_with_barriers_percent,
    )
}

/// Column names of [`table_row`], with or without those of ratios to limits.
pub(crate) fn table_header(with_limits: bool) -> String {
    let ratios = if with_limits { format!(" {:>6} {:>6}", "/copy", "/dd") } else { String::new() };
    format!(
        "{:<8} {:>9} {:>10}  {:<14} {:>10}{ratios} {:>10} {:>6}  {}",
        "pattern", "record", "file", "strategy", "MiB/s", "seconds", "cv", "checked"
    )
}

pub(crate) fn table_row(row: &Row, limits: Option<&Limits>) -> String {
    let ratios = limits.map(|limits| {
        let (copy, dd) = (limits.memory_copy_mib_s, row.dd_mib_s(limits));
        format!(" {:>6.3} {:>6.3}", row.mib_s / copy, row.mib_s / dd)
    });
    format!(
        "{:<8} {:>9} {:>10}  {:<14} {:>10.1}{} {:>10.4} {:>6.3}  {}",
        row.pattern,
        show_size(row.record_bytes),
        show_size(row.file_bytes),
        row.strategy,
        row.mib_s,
        ratios.unwrap_or_default(),
        row.seconds,
        row.coefficient_of_variation,
        if row.verified { "every byte" } else { "-" },
    )
}

/// Converts an error of the command line into three parts.
pub(crate) fn usage_error(error: &clap::Error) -> UserError {
    let help = "`unisono --help` lists the commands, `unisono COMMAND --help` their options";
    let (what, cause) = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            ("no command was given".to_owned(), "a command is required".to_owned())
        }
        _ => what_and_cause(error),
    };
    UserError::usage(what, cause, help)
}

fn what_and_cause(error: &clap::Error) -> (String, String) {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("the command line is not valid");
    let first = first.strip_prefix("error: ").unwrap_or(first);
    // Lines after one about usage are about usage too.
    let mut lines = lines.take_while(|line| !line.starts_with("Usage:"));
    let detail = lines.find(|line| !line.starts_with("For more"));
    let detail = detail.map(|line| line.strip_prefix("tip: ").unwrap_or(line));
    match (first.split_once("': "), detail) {
        (Some((what, cause)), _) => (format!("{what}'"), cause.to_owned()),
        (None, Some(detail)) => (first.trim_end_matches(':').to_owned(), detail.to_owned()),
        (None, None) if error.kind() == ErrorKind::ArgumentConflict => {
            (first.to_owned(), "the two options exclude each other".to_owned())
        }
        (None, None) => (first.to_owned(), "this word is not accepted here".to_owned()),
    }
}
