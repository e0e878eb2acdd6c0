//! `bench compute`: the share of the servers' cores that is left to a computation.

use crate::arguments::Compute;
use crate::output::format::{plural, show_size};
use crate::output::present;
use client::Direct;
use cluster::{Program, ServerOptions, TemporaryInstance};
use experiments::{MeasuredLoad, measured_loads};
use interface::{Availability, UserError};
use measure::{BenchPlan, CaseSpec, ComputeCores, ComputePlan, ComputeReport, ComputeRow, Share};
use serde_json::json;
use std::time::Duration;

/// Records of the hard patterns, and of all others (TR94-232, section 3.6).
const HARD_RECORD_BYTES: u64 = 8;
const RECORD_BYTES: u64 = 8192;

/// Source of the published measurement.
const SOURCE: &str = "D. Kotz and T. Cai, Dartmouth PCS-TR94-232 (1994), Table 4";

pub(crate) fn run(arguments: &Compute) -> Result<(), UserError> {
    let plan = plan(arguments)?;
    plan.bench.check()?;
    arguments.root.check()?;
    let published = measured_loads()?;
    let program = Program::current()?;
    client::clean_up_on_signals()?;
    let servers = arguments.servers.unwrap_or(plan.cores.servers.cores().len() as u32);
    let options = ServerOptions {
        cache_bytes: arguments.cache,
        memory_bytes: arguments.memory,
        direct: if arguments.direct { Direct::All } else { Direct::None },
        cores: Some(plan.cores.servers.clone()),
        ..ServerOptions::default()
    };
    let parent = arguments.directory.as_deref();
    let started = TemporaryInstance::start(&program, servers, &arguments.data, parent, &options)?;
    let as_json = arguments.json;
    let progress = |report: &ComputeReport, row: &ComputeRow| {
        if as_json {
            present::note(&line(row));
            return;
        }
        if report.results.is_empty() {
            // A reader that has gone does not change the result.
            let _ = present::lines([head(report), vec![heading()]].concat());
        }
        let _ = present::line(&line(row));
    };
    tell_begin(&plan);
    let report = measure::compute(started.instance(), &program, &plan, progress)?;
    if !as_json {
        return present::lines(published_lines(&published));
    }
    let mut shown = json!(report);
    shown["published"] = json!({ "source": SOURCE, "rows": published });
    present::json(&shown)
}

fn tell_begin(plan: &ComputePlan) {
    let cases = plural(plan.bench.cases.len() as u32, "case");
    let seconds = 5.0 * plan.time.as_secs_f64() * f64::from(plan.repeat);
    present::note(&format!(
        "measuring {cases}, each for {seconds:.0} s or more: a line for each as it ends"
    ));
}

fn plan(arguments: &Compute) -> Result<ComputePlan, UserError> {
    let mut cases = Vec::new();
    for pattern in &arguments.pattern {
        let usual = match pattern.as_str() {
            "rbc" | "wbc" => HARD_RECORD_BYTES,
            _ => RECORD_BYTES,
        };
        let usual = [usual];
        let records = if arguments.record.is_empty() { &usual[..] } else { &arguments.record };
        for &record_bytes in records {
            for strategy in strategies(&arguments.strategy) {
                let case = CaseSpec {
                    strategy,
                    pattern: pattern.clone(),
                    record_bytes,
                    file_bytes: arguments.size,
                    repeat: 1,
                    sync: arguments.sync,
                    outstanding_per_disk: arguments.outstanding,
                    node_group_size: 0,
                };
                cases.push(case.with_few_requests()?);
            }
        }
    }
    Ok(ComputePlan {
        bench: BenchPlan {
            clients: arguments.clients,
            block_bytes: arguments.block,
            cases,
            ..BenchPlan::default()
        },
        cores: ComputeCores::divide(arguments.server_cores.as_ref())?,
        time: Duration::from_millis(arguments.time.into()),
        repeat: arguments.repeat,
        nice: arguments.nice,
    })
}

/// Strategies by name; `all` means each of them.
fn strategies(named: &[String]) -> Vec<String> {
    let expand = |name: &String| match name.as_str() {
        "all" => interface::strategy_names(),
        _ => vec![name.clone()],
    };
    named.iter().flat_map(expand).collect()
}

/// Lines on what computes where.
fn head(report: &ComputeReport) -> Vec<String> {
    let cores: Vec<String> = report.server_cores.iter().map(ToString::to_string).collect();
    let servers = plural(report.servers, "server");
    let mut lines = vec![
        format!("{servers} on cores {}, a computing thread beside each", cores.join(" | ")),
        format!("the servers come first: nice 0, and {} for the computation", report.nice),
        format!("{} on cores {}", plural(report.clients, "client"), report.client_cores),
        format!(
            "barriers: all threads wait for one another after {} rounds of {:.1} us, {} ms",
            report.rounds_per_barrier, report.round_us, report.barrier_ms
        ),
    ];
    if report.shares_client_cores {
        lines.push(
            "clients share cores with the computation: what is left is less by their work".into(),
        );
    }
    if report.servers == 1 {
        lines.push("one thread waits for nobody: barriers make no difference".into());
    }
    lines.push(String::new());
    lines
}

fn heading() -> String {
    format!(
        "{:<7} {:>8} {:<13} {:>9} {:>9} {:>7} {:>5} {:>9} {:>5} {:>6} {:>9} {:>5}",
        "pattern",
        "record",
        "strategy",
        "MiB/s",
        "computing",
        "servers",
        "left",
        "from-to",
        "sim",
        "usable",
        "from-to",
        "sim"
    )
}

fn line(row: &ComputeRow) -> String {
    let percent = |percent: f64| format!("{percent:.0}%");
    let simulated = |of: fn(&Availability) -> f64| {
        row.simulated.as_ref().map_or_else(|| "-".to_owned(), |simulated| percent(of(simulated)))
    };
    let range = |share: &Share| format!("{:.0}-{:.0}", share.least, share.most);
    format!(
        "{:<7} {:>8} {:<13} {:>9.1} {:>9.1} {:>7} {:>5} {:>9} {:>5} {:>6} {:>9} {:>5}",
        row.pattern,
        show_size(row.record_bytes),
        row.strategy,
        row.mib_s,
        row.computing_mib_s,
        percent(row.servers_percent),
        percent(row.left.percent),
        range(&row.left),
        simulated(|it| it.cpu_available_percent),
        percent(row.usable.percent),
        range(&row.usable),
        simulated(|it| it.cpu_usable_with_barriers_percent),
    )
}

/// Lines with the published measurement.
fn published_lines(loads: &[MeasuredLoad]) -> Vec<String> {
    let head = [
        String::new(),
        format!("Published: {SOURCE}:"),
        "LINPACK with barriers on six workstations, one of which serves a file by NFS to a seventh"
            .to_owned(),
    ];
    let line = |load: &MeasuredLoad| {
        let efficiency = load.efficiency_percent.map(|percent| format!("{percent:>6.1}%"));
        format!(
            "  {:<17} {:>6.1} s {}",
            load.io_load.replace('_', " "),
            load.execution_s,
            efficiency.unwrap_or_default()
        )
        .trim_end()
        .to_owned()
    };
    head.into_iter().chain(loads.iter().map(line)).collect()
}
