//! The report of a run on one screen.
//!
//! *Invariants:* no number is cut. Only words of the program and names of files are shortened, to
//! lines of 80 columns; texts that must stay whole, such as commands and causes, may be longer.
//! Rows, hints and notes beyond the first few are counted.

use super::outcome::{Outcome, PlaceOfFiles};
use super::processor::ServersUse;
use super::report::CallReport;
use super::staging::from_here;
use super::what_if::WhatIf;
use crate::instances::servers::wire_words;
use crate::output::format::{plural, printable, show_size};
use crate::output::protection::protected_words;
use client::ProtectedBytes;
use measure::PlainRates;
use std::collections::BTreeSet;

/// Columns of the screen.
const COLUMNS_MAX: usize = 80;

/// Most rows of calls, lines about hints, and remarks.
const CALLS_MAX: usize = 4;
const HINTS_MAX: usize = 2;
const NOTES_MAX: usize = 3;

/// Columns of a row of calls after the name of its file, each with its usual width, and whether it
/// is of text and not of numbers.
const COLUMNS: [(&str, usize, bool); 7] = [
    ("op", 5, true),
    ("size", 9, false),
    ("calls", 6, false),
    ("", 11, true),
    ("time", 8, false),
    ("MiB/s", 7, false),
    ("limit", 5, false),
];

/// Least width of the name of a file.
const NAME_MIN: usize = 12;

/// Gain from which on Unisono is faster, and below whose inverse it is slower: less is noise.
const GAIN_MIN: f64 = 1.05;

/// Lines of the screen.
pub(super) fn lines(outcome: &Outcome<'_>) -> Vec<String> {
    let mut lines = head(outcome);
    lines.push(String::new());
    lines.extend(calls(outcome));
    lines.extend(checks(outcome));
    lines.iter().map(|line| printable(line)).collect()
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
    let mut lines = vec![
        first,
        format!("  program {words}{tail}"),
        format!("  data    {}{more}", fit(first_data, COLUMNS_MAX - 10 - more.len())),
    ];
    if outcome.file.wire.is_some() {
        lines.push(format!("  wire    {}", wire_words(outcome.file.wire)));
    }
    lines.extend(protection(outcome));
    lines.extend(outcome.processor.as_ref().map(processor));
    lines
}

/// Line that says what processor time servers took while the program ran.
fn processor(used: &ServersUse) -> String {
    let ServersUse { user_seconds, system_seconds, cores, share } = *used;
    let all = match cores.zip(share) {
        Some((cores, share)) => format!("{} of {}", percent(share), plural(cores as u32, "core")),
        None => format!("{} of processor time", time(user_seconds + system_seconds)),
    };
    let (user, system) = (time(user_seconds), time(system_seconds));
    format!("  servers took {all}: {user} user, {system} system")
}

/// Line that says what the loss of a server would have lost, if there are several.
fn protection(outcome: &Outcome<'_>) -> Option<String> {
    let files = outcome.files.names.len();
    let (mirrored, with_parity) = (outcome.files.mirrored, outcome.files.with_parity);
    let protected = mirrored + with_parity;
    let how = match (mirrored, with_parity) {
        (_, 0) => "twice",
        (0, _) => "with parity",
        _ => "twice or with parity",
    };
    if files == 0 || outcome.file.servers.len() < 2 {
        return None;
    }
    let is_whole = outcome.protection.is_some_and(ProtectedBytes::is_whole);
    let words = match (protected, outcome.files_behind()) {
        (0, _) => "once: a lost data directory loses files (--protect mirror keeps them)".into(),
        (_, 0) if protected == files && is_whole => {
            format!("{how}: the loss of any one server loses nothing")
        }
        (_, 0) if is_whole => {
            format!("{how}: {protected} of {}; others once", plural(files as u64, "file"))
        }
        (_, behind) => {
            let share =
                outcome.protection.map_or_else(|| "how much is unknown".into(), protected_words);
            let lacking = match behind {
                0 => String::new(),
                _ => format!("; the protection of {} lacks changes", plural(behind, "file")),
            };
            format!("{how}, {share}{lacking}")
        }
    };
    Some(format!("  stored  {words}"))
}

/// Calls of the program, and how its time was spent.
fn calls(outcome: &Outcome<'_>) -> Vec<String> {
    let report = &outcome.report;
    if report.processes.is_empty() && report.calls.is_empty() {
        let (moved, requests) = outcome.moved();
        let why = match outcome.ending.code {
            0 => "none of MPI-IO: no process has left a report",
            _ => "not known: the program ended before its processes left a report",
        };
        return vec![
            format!("  calls   {why}"),
            format!("  servers moved {} in {requests} requests", show_size(moved)),
        ];
    }
    let rows: Vec<_> = report.calls.iter().filter(|calls| calls.bytes > 0).collect();
    let mut lines = table(&rows[..rows.len().min(CALLS_MAX)], outcome.limits, &outcome.here);
    if rows.len() > CALLS_MAX {
        lines.push(format!("  and {} further kinds of calls: see --json", rows.len() - CALLS_MAX));
    }
    lines.extend(transfers(outcome, &rows));
    lines
}

/// Ways in which bytes were moved and time was spent.
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
            "  limit   a plain file there: write {:.0}, read {:.0} MiB/s (page cache)",
            limits.write_mib_s, limits.read_mib_s
        ));
    }
    let (left, expected) = (report.processes.len() as u64, report.expected());
    if left < expected {
        lines.push(format!("  report  of {left} of {expected} ranks; the others left none"));
    }
    lines
}

/// The heading and a line for each row. The name of the file has what the numbers leave.
fn table(rows: &[&CallReport], limits: Option<PlainRates>, here: &str) -> Vec<String> {
    let cells: Vec<_> = rows.iter().map(|calls| cells(calls, limits)).collect();
    let widths: [usize; COLUMNS.len()] = std::array::from_fn(|column| {
        let used = cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        used.max(COLUMNS[column].1)
    });
    let used = 2 + widths.iter().map(|width| width + 1).sum::<usize>();
    let name_width = COLUMNS_MAX.saturating_sub(used).max(NAME_MIN);
    let line = |name: &str, cells: [&str; COLUMNS.len()]| {
        let mut line = format!("  {:<name_width$}", fit(name, name_width));
        for ((cell, width), (_, _, is_text)) in cells.into_iter().zip(widths).zip(COLUMNS) {
            line += &match is_text {
                true => format!(" {cell:<width$}"),
                false => format!(" {cell:>width$}"),
            };
        }
        line
    };
    let mut lines = vec![line("file", COLUMNS.map(|(name, ..)| name))];
    let rows = rows.iter().zip(&cells).map(|(calls, cells)| {
        line(from_here(&calls.file, here), cells.each_ref().map(String::as_str))
    });
    lines.extend(rows);
    lines
}

/// Cells of a row, but for the name of its file.
fn cells(calls: &CallReport, limits: Option<PlainRates>) -> [String; COLUMNS.len()] {
    let limit = limits.map(|limits| match calls.op.as_str() {
        "read" => limits.read_mib_s,
        _ => limits.write_mib_s,
    });
    let rate = calls.mib_s();
    let share = rate.zip(limit).map(|(rate, limit)| percent(rate / limit));
    let unknown = || "-".to_owned();
    [
        calls.op.clone(),
        show_size(calls.bytes),
        calls.calls.to_string(),
        calls.form.clone(),
        time(calls.seconds),
        rate.map_or_else(unknown, rate_word),
        share.unwrap_or_else(unknown),
    ]
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
    lines.extend(further(outcome.notes.len(), NOTES_MAX, "notes"));
    lines.extend(outcome.what_if.as_ref().and_then(WhatIf::line));
    lines.extend(compared(outcome));
    lines
}

/// Line that counts what is beyond the first `shown` ones.
fn further(all: usize, shown: usize, what: &str) -> Option<String> {
    (all > shown).then(|| format!("          and {} further {what}: see --json", all - shown))
}

/// Lines on the program without Unisono: its times, and whether Unisono pays.
fn compared(outcome: &Outcome<'_>) -> Vec<String> {
    let Some(compared) = &outcome.compared else { return Vec::new() };
    let (before, after) = (&compared.before, &compared.after);
    let mut lines = vec![format!(
        "  without Unisono: {} before the run and {} after it, on plain files",
        time(before.seconds),
        time(after.seconds)
    )];
    let (Some(plain), Some(plain_stored)) = (compared.seconds(), compared.stored_seconds()) else {
        lines.push(format!("          but exit codes {}, {}", before.exit_code, after.exit_code));
        return lines;
    };
    let (seconds, stored) = outcome.seconds();
    let gain = plain / seconds;
    lines.push(format!(
        "  with    {}: {gain:.2} times as fast as the faster of these",
        time(seconds)
    ));
    let whole = stored.map(|stored| (plain_stored / stored, stored));
    if let Some((gain, stored)) = whole {
        let (stored, plain) = (time(stored), time(plain_stored));
        lines.push(format!(
            "          until files are on disk, {stored} to {plain}: {gain:.2} times as fast"
        ));
    }
    let whole_gain = whole.map_or(gain, |(gain, _)| gain);
    lines.push(
        match (gain >= GAIN_MIN, whole_gain >= GAIN_MIN) {
            _ if gain.max(whole_gain) < 1.0 / GAIN_MIN => {
                "  it does not pay: plain files are faster here"
            }
            (true, true) => "  it pays",
            (true, false) => {
                "  it pays if the files stay in the instance, and not if they are copied out"
            }
            (false, true) => "  it pays by the way of the files to the disk only",
            (false, false) => "  it makes no difference",
        }
        .to_owned(),
    );
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
        format!("  hints   {}: rejected {}", from_here(name, &outcome.here), file.rejected)
    };
    let shown = rejected.iter().take(HINTS_MAX).map(line);
    shown.chain(further(rejected.len(), HINTS_MAX, "files with rejected hints")).collect()
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
    format!("{:.0} %", 100.0 * share)
}

/// Text of at most `most` characters; what is cut out of the middle becomes dots.
fn fit(text: &str, most: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
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
    //! Proves: text is cut to its width, times keep to eight columns, and no number is cut.
    use super::*;

    #[test]
    fn numbers_are_whole_and_names_give_way() {
        let mut calls = CallReport::default();
        calls.file = "runs/of/a/long/campaign/field.dat".to_owned();
        (calls.op, calls.form) = ("write".to_owned(), "independent".to_owned());
        (calls.calls, calls.bytes, calls.seconds) = (123_456_789_012, 1 << 60, 123_456_789.0);
        let limits = PlainRates { write_mib_s: 0.001, read_mib_s: 1.0 };
        let lines = table(&[&calls], Some(limits), "");
        for words in ["123456789012", "123456789 s", "8906", "890604427 %"] {
            assert!(lines[1].contains(words), "{words:?} is missing in {lines:?}");
        }
        assert!(
            lines[1].starts_with("  runs/...") && lines[0].len() == lines[1].len(),
            "{lines:?}"
        );
    }

    #[test]
    fn text_fits() {
        assert_eq!(fit("short", 10), "short");
        assert_eq!(fit("a/long/path/name", 10), "a/lo...ame");
        assert_eq!(printable("a\nb"), "a?b");
        for seconds in [0.0, 0.0999, 0.1, 99.99, 100.0, 999_999.0] {
            assert!(time(seconds).len() <= 8, "{}", time(seconds));
        }
    }
}
