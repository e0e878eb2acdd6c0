//! `what-if`: simulates a recorded program at every combination of what the user lists.

mod worth;

use crate::arguments::WhatIf;
use crate::output::file::{OutputFile, cannot_write};
use crate::output::present;
use ::simulate::{Axis, OwnModels, Point, Program, ProgramOutcome, RankReport, Setting};
use interface::{ReplacementPolicies, UserError};
use measure::Kind;
use plot::{BarSeries, Bars, styles};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use trace::{Header, RankTrace, Trace};
use worth::Worth;

/// Name and version of the form of `--json`.
const SCHEMA: &str = "unisono.what-if/2";

/// Calibration that is used if it lies in the current directory.
pub(crate) const CALIBRATION: &str = "this-machine.toml";

/// Machine that is used otherwise: one of today.
pub(crate) const MACHINE: &str = "this-machine";

/// Result of a what-if, as `--json` prints it.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    command: Vec<String>,
    ranks: u32,
    events: u64,
    /// Shares of calls and of recorded time that depend on timing, in percent.
    timing_dependent_calls_percent: f64,
    timing_dependent_time_percent: f64,
    /// Machine of the points, in words.
    machine: String,
    /// Seconds of the rank that took longest when the program was recorded, if the trace has times.
    recorded_seconds: Option<f64>,
    /// Statement about the error of these predictions.
    error: String,
    /// Points, the fastest first.
    points: Vec<Row>,
}

/// One point.
#[derive(Serialize)]
struct Row {
    /// Values of the listed keys.
    values: BTreeMap<String, String>,
    seconds: f64,
    /// Times as fast as the first point of the lists.
    gain: f64,
    /// Kind of the program at this point, which decides about the error.
    kind: Kind,
    /// Begin and end of the range that holds the program's seconds with a probability of 80 %; null
    /// where it is not known.
    range: Option<[f64; 2]>,
    /// Mean seconds of a rank in calls of files, including those that wait.
    files_seconds: f64,
    /// Mean seconds of a rank in computations.
    computing_seconds: f64,
    /// Mean seconds of a rank in messages.
    messages_seconds: f64,
    /// Seconds of processor time of all servers, without the threads of their disks.
    server_processor_seconds: f64,
    /// Seconds of processor time of all ranks.
    rank_processor_seconds: f64,
    digest: String,
}

pub(crate) fn run(
    arguments: &WhatIf,
    policies: &ReplacementPolicies,
    models: &OwnModels,
) -> Result<(), UserError> {
    let trace = Trace::open(&arguments.trace)?;
    let share = trace.check()?;
    let header = trace.header().clone();
    let file = scenario(arguments);
    let is_usual = file.is_none() && arguments.machine.is_empty();
    let axes = axes(arguments, file, &header)?;
    let seed = arguments.seed.iter().map(|seed| Setting::option("seed", &seed.to_string()));
    let machine = is_usual.then(|| Setting::option("machine", MACHINE));
    let fixed: Vec<Setting> = machine.into_iter().chain(seed).collect();
    let points = ::simulate::points(file, &fixed, &axes, policies, models)?;
    let picture = arguments.plot.as_deref().map(OutputFile::create).transpose()?;
    let timeline = arguments.timeline.as_deref().map(OutputFile::create).transpose()?;
    let recorded_seconds = recorded_seconds(&trace.ranks);
    let program = Program::of_trace(trace)?.with_compute_speed(arguments.compute_speed)?;
    let program = Arc::new(match arguments.warm_files {
        true => program.with_warm_files(),
        false => program,
    });
    let outcomes =
        ::simulate::simulate_points(&points, &program, None, &|_| ControlFlow::Continue(()))?;
    if let Some(output) = timeline {
        write_timeline(&points[0], &program, output)?;
    }
    let worth = Worth::of(&axes, &points, &program, &header, share)?;
    let rows = rows(&axes, &points, &outcomes, &worth);
    let kinds: Vec<Kind> = rows.iter().map(|row| row.kind).collect();
    let report = Report {
        schema: SCHEMA,
        command: header.command,
        ranks: program.ranks(),
        events: program.events(),
        timing_dependent_calls_percent: share.calls_percent(),
        timing_dependent_time_percent: share.time_percent(),
        machine: machine_in_words(file, arguments, &points),
        recorded_seconds,
        error: worth.statement(&kinds),
        points: rows,
    };
    if let Some(output) = picture {
        output.write(&draw(&report, &axes))?;
    }
    if arguments.json { present::json(&report) } else { show(&report, &axes) }
}

/// Scenario file that the user names, or the calibration in the current directory if nothing is
/// said about the machine.
fn scenario(arguments: &WhatIf) -> Option<&Path> {
    let calibration = Some(Path::new(CALIBRATION)).filter(|path| path.is_file());
    arguments.scenario.as_deref().or(calibration.filter(|_| arguments.machine.is_empty()))
}

/// Machine of the points, for people.
fn machine_in_words(file: Option<&Path>, arguments: &WhatIf, points: &[Point]) -> String {
    let measured = match points.iter().all(|point| point.scenario.machine.is_calibrated()) {
        true => "measured",
        false => "not measured here; `unisono sim calibrate` measures this machine",
    };
    match (file, &arguments.machine[..]) {
        (Some(file), _) => format!("{}, {measured}", file.display()),
        (None, []) => format!("{MACHINE}, {measured}"),
        (None, machines) => format!("{}, {measured}", machines.join(", ")),
    }
}

/// Seconds of the rank that took longest when a program was recorded. `None` for a trace without
/// times of calls, which no program has left.
fn recorded_seconds(ranks: &[RankTrace]) -> Option<f64> {
    let has_times = ranks.iter().flat_map(|rank| &rank.events).any(|event| event.took_ns > 0);
    let of_rank = |rank: &RankTrace| {
        let times = rank.events.iter().flat_map(|it| [it.computed_ns, it.blocked_ns, it.took_ns]);
        times.map(|ns| ns as f64 / 1e9).sum()
    };
    has_times.then(|| ranks.iter().map(of_rank).fold(0.0, f64::max))
}

/// Lists that the user gave, as axes. Servers and strategy are those of the recorded instance where
/// no list says otherwise.
fn axes(arguments: &WhatIf, file: Option<&Path>, header: &Header) -> Result<Vec<Axis>, UserError> {
    let recorded = header.instance.as_ref();
    let servers = recorded.map(|instance| instance.servers.to_string());
    let strategy = recorded.map(|instance| instance.strategy.clone());
    let block = recorded.map(|instance| instance.block_bytes.to_string());
    let or = |said: &[String], otherwise: Option<String>| match said {
        [] => otherwise.into_iter().collect(),
        said => said.to_vec(),
    };
    let has_file = file.is_some();
    let usual = |value: &str| Some(value.to_owned()).filter(|_| !has_file);
    let lists = [
        ("machine", arguments.machine.clone()),
        ("servers", or(&arguments.servers, servers.or(usual("1")))),
        ("disks-per-server", arguments.disks.clone()),
        ("strategy", or(&arguments.strategy, strategy.or(Some("disk-directed".to_owned())))),
        ("disk", arguments.disk.clone()),
        ("network", arguments.network.clone()),
        ("block", or(&arguments.block, block)),
        ("layout", arguments.layout.clone()),
        ("order", arguments.order.clone()),
        ("protect", arguments.protect.clone()),
        ("cache-blocks-per-client-and-disk", arguments.cache.clone()),
    ];
    let axis = |(key, values): (&str, Vec<String>)| Axis { key: key.to_owned(), values };
    let mut axes: Vec<Axis> =
        lists.into_iter().map(axis).filter(|axis| !axis.values.is_empty()).collect();
    for assignment in &arguments.set {
        // Refuses what is no parameter.
        Setting::parameter(assignment)?;
        let (key, values) = assignment.split_once('=').unwrap_or((assignment, ""));
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        let key = key.trim().to_owned();
        if axes.iter().any(|axis| axis.key == key) {
            return Err(UserError::usage(
                format!("{key} is given twice"),
                "its values are one list",
                format!("give one list, such as --set {key}=A,B"),
            ));
        }
        axes.push(Axis { key, values });
    }
    Ok(axes)
}

fn rows(axes: &[Axis], points: &[Point], outcomes: &[ProgramOutcome], worth: &Worth) -> Vec<Row> {
    let first = outcomes.first().map_or(0.0, |outcome| outcome.seconds);
    let mut rows: Vec<Row> = points
        .iter()
        .zip(outcomes)
        .map(|(point, outcome)| {
            let names = axes.iter().map(|axis| axis.key.clone());
            let files_seconds = RankReport::mean(&outcome.ranks, RankReport::file_seconds);
            let computing_seconds = RankReport::mean(&outcome.ranks, RankReport::computing_seconds);
            let kind = worth.kind(computing_seconds, files_seconds, point);
            Row {
                values: names.zip(point.values.iter().cloned()).collect(),
                seconds: outcome.seconds,
                gain: first / outcome.seconds.max(f64::MIN_POSITIVE),
                kind,
                range: worth.range(kind, outcome.seconds),
                files_seconds,
                computing_seconds,
                messages_seconds: RankReport::mean(&outcome.ranks, RankReport::message_seconds),
                server_processor_seconds: outcome.server_processor_seconds,
                rank_processor_seconds: outcome.rank_processor_seconds,
                digest: format!("{:016x}", outcome.digest),
            }
        })
        .collect();
    rows.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    rows
}

/// Axes of which points differ.
fn varied(axes: &[Axis]) -> Vec<&Axis> {
    axes.iter().filter(|axis| axis.values.len() > 1).collect()
}

fn label(row: &Row, axes: &[&Axis]) -> String {
    let of = |axis: &&Axis| format!("{} {}", axis.key, row.values[&axis.key]);
    axes.iter().map(of).collect::<Vec<_>>().join(", ")
}

fn show(report: &Report, axes: &[Axis]) -> Result<(), UserError> {
    let varied = varied(axes);
    let Some(best) = report.points.first() else { return Ok(()) };
    let chosen = match varied.is_empty() {
        true => String::new(),
        false => {
            format!(" with {}: {:.2} times as fast as the first", label(best, &varied), best.gain)
        }
    };
    present::line(&format!("best: {:.4} s{chosen}", best.seconds))?;
    if let Some(seconds) = report.recorded_seconds {
        present::line(&format!("recorded: {seconds:.4} s, when the program ran"))?;
    }
    present::line(&format!("machine: {}", report.machine))?;
    if !report.error.is_empty() {
        present::line(&format!("accuracy: {}", report.error))?;
    }
    let widths: Vec<usize> = varied
        .iter()
        .map(|axis| axis.values.iter().map(String::len).max().unwrap_or(0).max(axis.key.len()))
        .collect();
    let cells = |cells: Vec<&str>| -> String {
        cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  ")).collect()
    };
    let names = cells(varied.iter().map(|axis| axis.key.as_str()).collect());
    present::line(&format!(
        "{names}{:>11} {:>18} {:>6} {:>10} {:>10} {:>10}",
        "seconds", "80 % range", "gain", "files", "computing", "messages"
    ))?;
    for row in &report.points {
        let values = cells(varied.iter().map(|axis| row.values[&axis.key].as_str()).collect());
        let range = match row.range {
            Some([low, high]) => format!("{low:.3} to {high:.3}"),
            None => "not known".to_owned(),
        };
        present::line(&format!(
            "{values}{:>11.4} {range:>18} {:>6.2} {:>10.4} {:>10.4} {:>10.4}",
            row.seconds, row.gain, row.files_seconds, row.computing_seconds, row.messages_seconds
        ))?;
    }
    Ok(())
}

/// Draws the seconds of all points, in groups by the first axis that varies.
fn draw(report: &Report, axes: &[Axis]) -> String {
    let varied = varied(axes);
    let (groups, rest) = match varied.split_first() {
        Some((first, rest)) => (first.values.clone(), rest.to_vec()),
        None => (vec!["the program".to_owned()], Vec::new()),
    };
    let mut names: Vec<String> = Vec::new();
    let mut seconds: BTreeMap<(String, String), f64> = BTreeMap::new();
    let mut ranges: BTreeMap<(String, String), Option<[f64; 2]>> = BTreeMap::new();
    for row in &report.points {
        let name = label(row, &rest);
        let group = varied.first().map_or(groups[0].clone(), |axis| row.values[&axis.key].clone());
        if !names.contains(&name) {
            names.push(name.clone());
        }
        ranges.insert((group.clone(), name.clone()), row.range);
        seconds.insert((group, name), row.seconds);
    }
    names.sort();
    let styles = styles(names.iter().map(String::as_str));
    let of = |group: &String, name: &String| (group.clone(), name.clone());
    let series = names.iter().zip(styles).map(|(name, style)| BarSeries {
        name: if name.is_empty() { "seconds".to_owned() } else { name.clone() },
        style,
        values: groups.iter().map(|group| seconds.get(&of(group, name)).copied()).collect(),
        ranges: groups
            .iter()
            .map(|group| ranges.get(&of(group, name)).copied().flatten())
            .collect(),
        published: vec![None; groups.len()],
    });
    Bars {
        title: format!("{} on {} ranks", report.command.join(" "), report.ranks),
        x_name: varied.first().map_or("", |axis| axis.key.as_str()),
        y_name: "seconds",
        series: series.collect(),
        groups,
    }
    .draw()
}

fn write_timeline(
    point: &Point,
    program: &Arc<Program>,
    output: OutputFile<'_>,
) -> Result<(), UserError> {
    let writer = output.file.writer().map_err(|error| cannot_write(output.path, &error))?;
    let (_, summary) = ::simulate::trace_program(&point.scenario, program, writer)?;
    output.finish(&format!(": {} events", summary.events))?;
    if summary.events_left_out > 0 {
        present::note(&format!("note: {} later events were left out", summary.events_left_out));
    }
    Ok(())
}
