//! `trace info`: a summary of a trace.

use super::table::{bytes_of, part_sizes};
use crate::arguments::TraceInfo;
use crate::output::format::{plural, show_size};
use crate::output::present;
use interface::UserError;
use serde::Serialize;
use std::collections::BTreeMap;
use trace::{Direction, Header, Operation, RankTrace, Recorded, Trace, timing_share};

/// Name and version of the JSON object.
const SCHEMA: &str = "unisono.trace-info/1";

/// Summary of a trace. Times are in seconds.
#[derive(Serialize)]
struct Info<'a> {
    schema: &'static str,
    trace: String,
    header: &'a Header,
    events: u64,
    stream_bytes: u64,
    bytes_per_event: f64,
    parts: u64,
    files: u64,
    read_bytes: u64,
    written_bytes: u64,
    depends_on_timing: Timing,
    cut_ranks: Vec<u32>,
    /// True when a replay is a bound and not a prediction.
    is_bound: bool,
    /// Reason that the trace cannot be replayed.
    refused: Option<Refusal>,
    operations: Vec<OfCall>,
    ranks: Vec<OfRank<'a>>,
}

#[derive(Serialize)]
struct Timing {
    calls_percent: f64,
    time_percent: f64,
}

#[derive(Serialize)]
struct Refusal {
    error: String,
    cause: String,
    help: String,
}

/// Calls of one name.
#[derive(Serialize, Default)]
struct OfCall {
    call: &'static str,
    calls: u64,
    seconds: f64,
    bytes: u64,
}

#[derive(Serialize)]
struct OfRank<'a> {
    rank: u32,
    host: &'a str,
    events: u64,
    stream_bytes: u64,
    computing_s: f64,
    blocked_s: f64,
    in_calls_s: f64,
    read_bytes: u64,
    written_bytes: u64,
    is_cut: bool,
}

pub(super) fn run(arguments: &TraceInfo) -> Result<(), UserError> {
    let trace = Trace::open(&arguments.trace)?;
    let info = summary(&trace, arguments.trace.display().to_string());
    match arguments.json {
        true => present::json(&info),
        false => present::lines(lines(&info)),
    }
}

/// Ranks whose streams are cut.
pub(super) fn cut_ranks(trace: &Trace) -> impl Iterator<Item = u32> {
    (0_u32..).zip(&trace.ranks).filter(|(_, rank)| rank.is_cut).map(|(rank, _)| rank)
}

fn summary(trace: &Trace, name: String) -> Info<'_> {
    let header = trace.header();
    let mut calls: BTreeMap<&'static str, OfCall> = BTreeMap::new();
    let places = (0_u32..).zip(&header.hosts).zip(trace.bytes());
    let ranks: Vec<OfRank<'_>> = places
        .zip(&trace.ranks)
        .map(|(((rank, host), bytes), trace)| of_rank(rank, host, *bytes, trace, &mut calls))
        .collect();
    let events = ranks.iter().map(|rank| rank.events).sum();
    let stream_bytes = ranks.iter().map(|rank| rank.stream_bytes).sum();
    let share = timing_share(&trace.ranks);
    let mut operations: Vec<OfCall> = calls.into_values().collect();
    operations.sort_by(|one, other| other.calls.cmp(&one.calls).then(one.call.cmp(other.call)));
    Info {
        schema: SCHEMA,
        trace: name,
        header,
        events,
        stream_bytes,
        bytes_per_event: if events == 0 { 0.0 } else { stream_bytes as f64 / events as f64 },
        parts: trace.ranks.iter().map(|rank| rank.parts.len() as u64).sum(),
        files: trace.ranks.iter().map(|rank| rank.files.len() as u64).sum(),
        read_bytes: ranks.iter().map(|rank| rank.read_bytes).fold(0, u64::saturating_add),
        written_bytes: ranks.iter().map(|rank| rank.written_bytes).fold(0, u64::saturating_add),
        depends_on_timing: Timing {
            calls_percent: share.calls_percent(),
            time_percent: share.time_percent(),
        },
        cut_ranks: cut_ranks(trace).collect(),
        is_bound: header.recorded == Recorded::DarshanDxt,
        refused: trace.check().err().map(|UserError { error, cause, help, .. }| Refusal {
            error,
            cause,
            help,
        }),
        operations,
        ranks,
    }
}

fn of_rank<'a>(
    rank: u32,
    host: &'a str,
    stream_bytes: u64,
    trace: &RankTrace,
    calls: &mut BTreeMap<&'static str, OfCall>,
) -> OfRank<'a> {
    let parts = part_sizes(trace);
    let (mut computing, mut blocked, mut in_calls) = (0.0, 0.0, 0.0);
    let (mut read_bytes, mut written_bytes) = (0_u64, 0_u64);
    for event in &trace.events {
        computing += seconds(event.computed_ns);
        blocked += seconds(event.blocked_ns);
        in_calls += seconds(event.took_ns);
        let bytes = match event.operation {
            Operation::Send { message, .. } | Operation::Receive { message, .. } => message.bytes,
            Operation::Collective { bytes, .. } => bytes,
            Operation::Transfer { part: Some(part), direction, .. } => {
                let bytes = bytes_of(&parts, part);
                let sum = match direction {
                    Direction::Read => &mut read_bytes,
                    Direction::Write => &mut written_bytes,
                };
                *sum = sum.saturating_add(bytes);
                bytes
            }
            _ => 0,
        };
        let call = event.operation.name();
        let of_call = calls.entry(call).or_insert_with(|| OfCall { call, ..OfCall::default() });
        of_call.calls += 1;
        of_call.seconds += seconds(event.took_ns);
        of_call.bytes = of_call.bytes.saturating_add(bytes);
    }
    OfRank {
        rank,
        host,
        events: trace.events.len() as u64,
        stream_bytes,
        computing_s: computing,
        blocked_s: blocked,
        in_calls_s: in_calls,
        read_bytes,
        written_bytes,
        is_cut: trace.is_cut,
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn lines(info: &Info<'_>) -> Vec<String> {
    let mut lines = head(info);
    lines.push(String::new());
    lines.push(format!("{:<24} {:>12} {:>12} {:>12}", "call", "calls", "seconds", "data"));
    lines.extend(info.operations.iter().map(|of| {
        let data = if of.bytes > 0 { show_size(of.bytes) } else { "-".to_owned() };
        format!("{:<24} {:>12} {:>12.6} {data:>12}", of.call, of.calls, of.seconds)
    }));
    lines.push(String::new());
    lines.push(format!(
        "{:>6} {:>10} {:>12} {:>12} {:>12} {:>12} {:>12}  host",
        "rank", "calls", "computing s", "blocked s", "in calls s", "read", "written"
    ));
    lines.extend(info.ranks.iter().map(|of| {
        format!(
            "{:>6} {:>10} {:>12.6} {:>12.6} {:>12.6} {:>12} {:>12}  {}{}",
            of.rank,
            of.events,
            of.computing_s,
            of.blocked_s,
            of.in_calls_s,
            show_size(of.read_bytes),
            show_size(of.written_bytes),
            of.host,
            if of.is_cut { "  cut" } else { "" },
        )
    }));
    lines
}

/// Lines about the whole trace.
fn head(info: &Info<'_>) -> Vec<String> {
    let header = info.header;
    let line = |name: &str, value: String| format!("{name:<10} {value}");
    let hosts: std::collections::BTreeSet<&String> = header.hosts.iter().collect();
    let recorded = match header.recorded {
        Recorded::Program => "by unisono record",
        Recorded::Pattern => "no program: made by unisono trace",
        Recorded::DarshanDxt => {
            "imported from Darshan DXT: a replay is a bound and not a prediction"
        }
    };
    let (ranks, hosts) = (plural(header.ranks, "rank"), plural(hosts.len() as u32, "host"));
    let mut lines = vec![
        line("trace", format!("{} ({})", info.trace, header.schema)),
        line("recorded", recorded.to_owned()),
        line("command", header.command.join(" ")),
        line("started", header.started.clone()),
        line("mpi", header.mpi.clone()),
        line("ranks", format!("{ranks} on {hosts}")),
    ];
    // Imported logs may not tell when or how the program began.
    lines.retain(|line| !line.ends_with(' '));
    if let Some(instance) = &header.instance {
        let (servers, disks) = (instance.servers, instance.disks_per_server);
        let (servers, disks) = (plural(servers, "server"), plural(disks, "disk"));
        let (block, strategy) = (show_size(instance.block_bytes), &instance.strategy);
        let value = format!("{servers} with {disks} each, blocks of {block}, {strategy}");
        lines.push(line("instance", value));
    }
    if let Some(percent) = header.processor_pressure_percent {
        let value = format!("tasks waited for a processor {percent:.1} % of the time");
        lines.push(line("pressure", value));
    }
    if let Some(percent) = header.steal_percent {
        lines.push(line("steal", format!("{percent:.1} % of processor time")));
    }
    let (events, size) = (info.events, show_size(info.stream_bytes));
    lines.push(line("calls", format!("{events} in {size}: {:.2} B each", info.bytes_per_event)));
    let (read, written) = (show_size(info.read_bytes), show_size(info.written_bytes));
    let tables = format!("{} files opened, {} parts", info.files, info.parts);
    lines.push(line("data", format!("{read} read, {written} written; {tables}")));
    let Timing { calls_percent, time_percent } = info.depends_on_timing;
    let share = format!("{calls_percent:.2} % of calls, {time_percent:.2} % of time");
    lines.push(line("timing", format!("{share} depend on it")));
    if !info.cut_ranks.is_empty() {
        let cut: Vec<String> = info.cut_ranks.iter().map(u32::to_string).collect();
        lines.push(line("cut", format!("ranks {}", cut.join(", "))));
    }
    let replay = match &info.refused {
        None => "possible".to_owned(),
        Some(refusal) => format!("not possible: {}", refusal.cause),
    };
    lines.push(line("replay", replay));
    lines
}
