//! The report of a run on one screen.
//!
//! *Invariant:* it has at most 24 lines of at most 80 columns.

use super::outcome::{Outcome, PlaceOfFiles};
use super::report::CallReport;
use super::what_if::WhatIf;
use crate::format::{plural, show_size};
use std::collections::BTreeSet;

/// Lines and columns of the screen.
const LINES_MAX: usize = 24;
const COLUMNS_MAX: usize = 80;

/// Most rows of calls, lines about hints, and remarks.
const CALLS_MAX: usize = 4;
const HINTS_MAX: usize = 2;
const NOTES_MAX: usize = 3;

/// Lines of the screen.
pub(super) fn lines(outcome: &Outcome<'_>) -> Vec<String> {
    let mut lines = head(outcome);
    lines.push(String::new());
    lines.extend(calls(outcome));
    lines.extend(checks(outcome));
    lines.truncate(LINES_MAX);
    lines.iter().map(|line| fit(line, COLUMNS_MAX)).collect()
}

/// Servers, program, and times.
fn head(outcome: &Outcome<'_>) -> Vec<String> {
    let (ending, report) = (&outcome.ending, &outcome.report);
    let servers = plural(outcome.file.servers.len() as u32, "server");
    let version = env!("CARGO_PKG_VERSION");
    let mut first = format!("unisono {version}  {servers}");
    if !report.processes.is_empty() {
        first += &format!(", {}", plural(report.expected() as u32, "rank"));
    }
    for library in report.libraries() {
        first += &format!(", {library}");
    }
    let ended = match ending.signal {
        Some(signal) => format!("ended by signal {signal}"),
        None => format!("exit code {}", ending.code),
    };
    let data = outcome.data();
    let more = if data.len() > 1 { format!(" and {} more", data.len() - 1) } else { String::new() };
    let first_data = data.first().map_or("", String::as_str);
    let tail = format!("  {ended}, {}", time(ending.seconds));
    let words = fit(&outcome.words().join(" "), COLUMNS_MAX - 10 - tail.len());
    vec![
        first,
        format!("  program {words}{tail}"),
        format!("  data    {}{more}", fit(first_data, COLUMNS_MAX - 10 - more.len())),
    ]
}

/// Calls of the program, and how its time was spent.
fn calls(outcome: &Outcome<'_>) -> Vec<String> {
    let report = &outcome.report;
    if report.processes.is_empty() && report.calls.is_empty() {
        let (moved, requests) = outcome.moved();
        return vec![
            "  calls   no process has left a report: no MPI-IO calls were seen".to_owned(),
            format!("  servers moved {} in {requests} requests", show_size(moved)),
        ];
    }
    let mut lines = vec![format!(
        "  {:<20} {:<5} {:>9} {:>6} {:<11} {:>8} {:>7} {:>5}",
        "file", "op", "size", "calls", "", "time", "MiB/s", "limit"
    )];
    let rows: Vec<_> = report.calls.iter().filter(|calls| calls.bytes > 0).collect();
    for calls in rows.iter().take(CALLS_MAX) {
        lines.push(row(calls, outcome));
    }
    if rows.len() > CALLS_MAX {
        lines.push(format!("  and {} further kinds of calls: see --json", rows.len() - CALLS_MAX));
    }
    lines.extend(transfers(outcome, &rows));
    lines
}

/// How the bytes were moved, and how the time was spent.
fn transfers(outcome: &Outcome<'_>, rows: &[&CallReport]) -> Vec<String> {
    let report = &outcome.report;
    let (moved, requests) = outcome.moved();
    let copied: u64 = report.calls.iter().map(|calls| calls.copied).sum();
    let mut lines = vec![format!(
        "  moved   {} by servers in {requests} requests, {} copied by clients",
        show_size(moved),
        show_size(copied)
    )];
    let methods: BTreeSet<&String> = report.files.values().flat_map(|file| &file.methods).collect();
    if !methods.is_empty() {
        let methods: Vec<&str> = methods.into_iter().map(String::as_str).collect();
        lines.push(format!("  method  {}", methods.join(", ")));
    }
    if let Some(why) =
        rows.iter().find(|calls| calls.form == "independent" && !calls.why.is_empty())
    {
        lines.push(format!("  why     independent: {}", why.why));
    }
    if let Some((in_calls, waited)) = report.shares() {
        lines.push(format!(
            "  time    {} in I/O calls ({} waiting for other ranks), {} elsewhere",
            percent(in_calls),
            percent(waited),
            percent(1.0 - in_calls)
        ));
    }
    if let Some(limits) = outcome.limits {
        lines.push(format!(
            "  limit   a plain file there: write {:.0}, read {:.0} MiB/s (not to stable storage)",
            limits.write_mib_s, limits.read_mib_s
        ));
    }
    let (left, expected) = (report.processes.len() as u64, report.expected());
    if left < expected {
        lines.push(format!("  report  of {left} of {expected} ranks; the others left none"));
    }
    lines
}

fn row(calls: &CallReport, outcome: &Outcome<'_>) -> String {
    let limit = outcome.limits.map(|limits| match calls.op.as_str() {
        "read" => limits.read_mib_s,
        _ => limits.write_mib_s,
    });
    let rate = calls.mib_s();
    let share = rate.zip(limit).map(|(rate, limit)| percent(rate / limit));
    format!(
        "  {:<20} {:<5} {:>9} {:>6} {:<11} {:>8} {:>7} {:>5}",
        fit(&calls.file, 20),
        fit(&calls.op, 5),
        show_size(calls.bytes),
        calls.calls,
        fit(&calls.form, 11),
        time(calls.seconds),
        rate.map_or_else(|| "-".to_owned(), rate_word),
        share.unwrap_or_else(|| "-".to_owned()),
    )
}

/// Check of the files, hints, place of the files, and remarks.
fn checks(outcome: &Outcome<'_>) -> Vec<String> {
    let files = &outcome.files;
    let count = plural(files.names.len() as u32, "file");
    let size = show_size(files.bytes);
    let mut lines = Vec::new();
    lines.push(match (&outcome.checked, &outcome.place) {
        (_, PlaceOfFiles::Discarded) => "  checked nothing, because of --discard".to_owned(),
        (_, PlaceOfFiles::None) => "  checked nothing, because there are no files".to_owned(),
        (Ok(()), _) => format!("  checked every byte of {count}, {size} (crc32c)"),
        (Err(error), _) => format!("  checked {}", error.cause),
    });
    lines.extend(hints(outcome));
    let stopped = match &outcome.stopped {
        Ok(()) => "servers stopped",
        Err(_) => "servers NOT stopped",
    };
    match &outcome.place {
        PlaceOfFiles::None => lines.push(format!("  files   none; {stopped}")),
        PlaceOfFiles::Copied(copied, left_out) => {
            let (files, time) = (plural(copied.files as u32, "file"), time(copied.seconds));
            let more = if *left_out > 0 { format!(", {left_out} left out") } else { String::new() };
            lines.push(format!("  staged  {}", copied.directory.display()));
            let size = show_size(copied.bytes);
            lines.push(format!("          {files}, {size} in {time}{more}; {stopped}"));
        }
        PlaceOfFiles::Data(command) => {
            lines.push(format!("  files   {count}, {size}, in the data directories; {stopped}"));
            lines.push(format!("          {command}"));
        }
        PlaceOfFiles::Discarded => lines.push(format!("  files   {count} discarded; {stopped}")),
    }
    lines.extend(outcome.notes.iter().take(NOTES_MAX).map(|note| format!("  note    {note}")));
    lines.extend(outcome.what_if.as_ref().map(WhatIf::line));
    lines
}

/// Lines about hints.
fn hints(outcome: &Outcome<'_>) -> Vec<String> {
    let files = &outcome.report.files;
    if files.is_empty() {
        return Vec::new();
    }
    let rejected: Vec<_> = files.iter().filter(|(_, file)| !file.rejected.is_empty()).collect();
    if rejected.is_empty() {
        return vec!["  hints   all in force".to_owned()];
    }
    let line = |(name, file): &(&String, &super::report::FileReport)| {
        format!("  hints   {name}: rejected {}", file.rejected)
    };
    rejected.iter().take(HINTS_MAX).map(line).collect()
}

/// Rate in MiB/s; a low one with a decimal.
fn rate_word(mib_s: f64) -> String {
    if mib_s < 10.0 { format!("{mib_s:.1}") } else { format!("{mib_s:.0}") }
}

/// Seconds in a form of at most 8 columns.
fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 0.1 => format!("{:.1} ms", seconds * 1e3),
        seconds if seconds < 100.0 => format!("{seconds:.2} s"),
        seconds => format!("{seconds:.0} s"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share.clamp(-9.99, 99.99))
}

/// Text of at most `most` characters; what is cut out of the middle becomes dots. Control
/// characters become question marks.
fn fit(text: &str, most: usize) -> String {
    let letters: Vec<char> =
        text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
    if letters.len() <= most {
        return letters.into_iter().collect();
    }
    let tail = most.saturating_sub(3) / 2;
    let head = most.saturating_sub(3 + tail);
    let (first, last) = (&letters[..head], &letters[letters.len() - tail..]);
    first.iter().chain(&['.'; 3]).chain(last).collect()
}

#[cfg(test)]
mod tests {
    //! Proves: text is cut to its width, and times keep to eight columns.
    use super::*;

    #[test]
    fn text_fits() {
        assert_eq!(fit("short", 10), "short");
        assert_eq!(fit("a/long/path/name", 10), "a/lo...ame");
        assert_eq!(fit("a\nb", 10), "a?b");
        for seconds in [0.0, 0.0999, 0.1, 99.99, 100.0, 999_999.0] {
            assert!(time(seconds).len() <= 8, "{}", time(seconds));
        }
    }
}
