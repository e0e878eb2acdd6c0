//! The page docs/accuracy.md.

use crate::cases::RANKS;
use measure::{CONFIDENCE, Kind, Residuals, Row, median};
use std::fmt::Write as _;

/// Relative width of an interval above which a case is shown and not counted.
const WIDTH_MAX: f64 = 0.1;

/// Processors of this machine, in words.
pub(crate) fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let built = mpi::built();
    let profile = built.file_name().unwrap_or_default().to_string_lossy();
    let name = name.map_or("unknown", |(_, name)| name);
    format!("{cores} cores, {name}; programs of the profile {profile}")
}

/// A row in one line.
pub(crate) fn line(row: &Row) -> String {
    format!(
        "{} servers, {}: program {:.3} s, replay {:.3} s ({:+.0} %), simulated {:.3} s ({:+.0} %)",
        row.servers,
        row.strategy,
        row.program_seconds.median,
        row.replay_seconds.median,
        row.replay_error() * 100.0,
        row.simulated_seconds,
        row.model_error() * 100.0,
    )
}

/// The residuals, with a line for each row.
pub(crate) fn lines(residuals: &Residuals) -> String {
    let rows: Vec<String> =
        residuals.rows.iter().filter_map(|row| serde_json::to_string(row).ok()).collect();
    format!(
        "{{\"schema\":{:?},\"machine\":{:?},\"ranks\":{},\"rows\":[\n{}\n]}}\n",
        residuals.schema,
        residuals.machine,
        residuals.ranks,
        rows.join(",\n")
    )
}

/// Median and 90th percentile of errors, without their signs, in percent.
fn spread(errors: impl Iterator<Item = f64>) -> String {
    let mut errors: Vec<f64> = errors.map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    let last = errors.len().saturating_sub(1);
    let tenth = errors.get((last as f64 * 0.9).round() as usize).copied().unwrap_or_default();
    let count = errors.len();
    format!("{:.0} | {:.0} | {count}", median(errors) * 100.0, tenth * 100.0)
}

/// Pairs whose real seconds differ by more than a fifth, and how many of them are in the right
/// order.
fn ordered(pairs: &[(f64, f64)]) -> (usize, usize) {
    let (mut right, mut all) = (0, 0);
    for (index, (real, simulated)) in pairs.iter().enumerate() {
        for (other, other_simulated) in &pairs[..index] {
            if real.max(*other) > 1.2 * real.min(*other) {
                all += 1;
                right += usize::from((real > other) == (simulated > other_simulated));
            }
        }
    }
    (right, all)
}

fn summary(residuals: &Residuals) -> String {
    let rows = || residuals.rows.iter();
    let steady = |row: &&Row| row.program_seconds.width() <= WIDTH_MAX;
    let mut text = String::from(
        "| prediction | median error, % | 90th percentile, % | cases |\n|---|---:|---:|---:|\n",
    );
    let mut add = |name: &str, spread: String| _ = writeln!(text, "| {name} | {spread} |");
    add("program by real replay", spread(rows().map(Row::replay_error)));
    add("real replay by simulation", spread(rows().map(Row::model_error)));
    add("program by simulation", spread(rows().map(Row::error)));
    let same = rows().filter(|row| !row.is_what_if);
    add("the same, servers and strategy as recorded", spread(same.map(Row::error)));
    let what_if = rows().filter(|row| row.is_what_if);
    add("the same, other servers or strategy", spread(what_if.map(Row::error)));
    add(
        "the same, interval of the program at most 10 %",
        spread(rows().filter(steady).map(Row::error)),
    );
    let kinds = [Kind::Directed, Kind::Exchanged, Kind::Independent, Kind::Computing];
    for kind in kinds {
        let of_kind = rows().filter(|row| row.kind == kind);
        add(&format!("the same, {kind}"), spread(of_kind.map(Row::error)));
    }
    text.push_str("\n| kind | cases of the interval | 80 % interval, times the prediction |\n|---|---:|---|\n");
    for kind in kinds {
        if let Some(interval) = residuals.interval(kind, None) {
            let _ = writeln!(
                text,
                "| {kind} | {} | {:.2} to {:.2} |",
                interval.cases, interval.low, interval.high
            );
        }
    }
    let (inside, all) = residuals.held_out();
    let _ = writeln!(
        text,
        "\nThe interval of {:.0} % that the other programs state holds {inside} of {all} cases \
         ({:.0} %).",
        CONFIDENCE * 100.0,
        100.0 * inside as f64 / all.max(1) as f64
    );
    // The order of servers and strategies matters within a program.
    let (mut right, mut all) = (0, 0);
    let mut names: Vec<&str> = rows().map(|row| row.program.as_str()).collect();
    names.dedup();
    for name in names {
        let pairs: Vec<(f64, f64)> = rows()
            .filter(|row| row.program == name)
            .map(|row| (row.program_seconds.median, row.simulated_seconds))
            .collect();
        let counted = ordered(&pairs);
        (right, all) = (right + counted.0, all + counted.1);
    }
    let _ = writeln!(
        text,
        "Of the pairs of settings of a program that differ by more than 20 %, {right} of {all} are \
         predicted in the right order."
    );
    text
}

fn patterns_section(patterns: &[Row]) -> String {
    if patterns.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "## Patterns\n\n\
         Programs that only move an access pattern of a file of 64 MiB, as `unisono bench` does, on \
         two servers.\n\n\
         | pattern, record, transfers | strategy | real s | interval | simulated s | error, % |\n\
         |---|---|---:|---|---:|---:|\n",
    );
    for row in patterns {
        let (real, simulated) = (row.program_seconds, row.simulated_seconds);
        let _ = writeln!(
            text,
            "| {} | {} | {:.3} | {:.3} to {:.3} | {simulated:.3} | {:+.0} |",
            row.program,
            row.strategy,
            real.median,
            real.interval[0],
            real.interval[1],
            (simulated / real.median - 1.0) * 100.0
        );
    }
    let counted: Vec<&Row> =
        patterns.iter().filter(|row| row.program_seconds.width() <= WIDTH_MAX).collect();
    let errors = |rows: &[&Row]| spread(rows.iter().map(|row| row.error()));
    let pairs: Vec<(f64, f64)> =
        patterns.iter().map(|row| (row.program_seconds.median, row.simulated_seconds)).collect();
    let (right, all) = ordered(&pairs);
    let _ = writeln!(
        text,
        "\nMedian error, 90th percentile and cases: {} of all; {} of those whose interval is at most \
         10 % wide, which count. Pairs in the right order: {right} of {all}.\n",
        errors(&patterns.iter().collect::<Vec<_>>()).replace(" |", ","),
        errors(&counted).replace(" |", ",")
    );
    text
}

fn rows_table(residuals: &Residuals) -> String {
    let mut text = String::from(
        "| program | servers | strategy | program s | interval | replay s | simulated s | replay, % \
         | model, % | whole, % |\n|---|---:|---|---:|---|---:|---:|---:|---:|---:|\n",
    );
    for row in &residuals.rows {
        let mark = if row.is_what_if { "" } else { " (recorded)" };
        let _ = writeln!(
            text,
            "| {}{mark} | {} | {} | {:.3} | {:.3} to {:.3} | {:.3} | {:.3} | {:+.0} | {:+.0} | \
             {:+.0} |",
            row.program,
            row.servers,
            row.strategy,
            row.program_seconds.median,
            row.program_seconds.interval[0],
            row.program_seconds.interval[1],
            row.replay_seconds.median,
            row.simulated_seconds,
            row.replay_error() * 100.0,
            row.model_error() * 100.0,
            row.error() * 100.0,
        );
    }
    text
}

/// The page.
pub(crate) fn page(
    residuals: &Residuals,
    patterns: &[Row],
    [pattern_repeats, repeats]: [u32; 2],
) -> String {
    format!(
        "# Accuracy of predictions\n\n\
         Made by `make accuracy ARGS=--publish`: do not edit. The machine: {machine}. {RANKS} ranks; \
         medians of {repeats} runs of programs and {pattern_repeats} of patterns, whose settings took \
         turns; intervals are those of the median, by the bootstrap, with 95 %. Servers kept their \
         files in the page cache, but for the cases named direct. Each program was recorded once; its \
         trace was then carried out on real servers (`unisono replay`) and on simulated ones \
         (`unisono what-if`, on a calibration made just before), as the program itself was under the \
         other servers and strategies.\n\n\
         ## Programs\n\n{summary}\n\
         {patterns}\
         ## All cases\n\n\
         Errors: of the real replay as a prediction of the program (replay), of the simulation as one \
         of the real replay (model) and of the program (whole). Names are arguments of \
         [kernels.c](../mpi/bench/accuracy/kernels.c) and [kernels.py](../mpi/bench/accuracy/kernels.py).\n\n\
         {rows}",
        machine = residuals.machine,
        summary = summary(residuals),
        patterns = patterns_section(patterns),
        rows = rows_table(residuals),
    )
}
