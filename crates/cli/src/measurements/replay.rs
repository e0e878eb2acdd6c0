//! `replay`: carries a recorded program out on real servers.

use crate::arguments::Replay;
use crate::output::present;
use client::{Instance, Strategy};
use cluster::{Program, TemporaryInstance};
use interface::{UserError, parse_size};
use measure::{RankReport, ReplayPlan, ReplayReport, ReplayRun};
use trace::Trace;

pub(crate) fn run(arguments: &Replay) -> Result<(), UserError> {
    let header = Trace::open(&arguments.trace)?.header().clone();
    let recorded = header.instance.as_ref();
    let block = recorded.map(|instance| instance.block_bytes);
    let usual = parse_size(interface::DEFAULT_BLOCK).unwrap_or(1 << 20);
    let strategy = recorded.map(|instance| instance.strategy.clone());
    let strategy =
        arguments.strategy.clone().or(strategy).unwrap_or_else(|| "disk-directed".to_owned());
    strategy.parse::<Strategy>().map_err(|cause| {
        UserError::usage("cannot replay the trace", cause, "choose one of these strategies")
    })?;
    let plan = ReplayPlan {
        trace: arguments.trace.clone(),
        strategy,
        block_bytes: arguments.block.or(block).unwrap_or(usual),
        outstanding_per_disk: arguments.outstanding,
        repeat: arguments.repeat,
    };
    let program = Program::current()?;
    client::clean_up_on_signals()?;
    let report = match &arguments.instance {
        Some(directory) => replay(&Instance::at(directory), &program, &plan, arguments)?,
        None => {
            arguments.root.check()?;
            let servers = recorded.map(|instance| instance.servers);
            let started = TemporaryInstance::start(
                &program,
                arguments.servers.or(servers).unwrap_or(1),
                &arguments.data,
                arguments.directory.as_deref(),
                &arguments.caches.options(),
            )?;
            replay(started.instance(), &program, &plan, arguments)?
        }
    };
    if arguments.json { present::json(&report) } else { Ok(()) }
}

/// Replays the trace. Shows each run as it ends.
fn replay(
    instance: &Instance,
    program: &Program,
    plan: &ReplayPlan,
    arguments: &Replay,
) -> Result<ReplayReport, UserError> {
    let as_json = arguments.json;
    if !as_json {
        present::line(&format!(
            "{:>11} {:>10} {:>10} {:>10} {:>12} {:>12}",
            "seconds", "files", "computing", "messages", "read bytes", "written bytes"
        ))?;
    }
    let progress = |run: &ReplayRun| {
        let shown = row(run);
        if as_json {
            present::note(&shown);
        } else {
            let _ = present::line(&shown);
        }
    };
    let report = measure::replay(instance, program, plan, progress)?;
    if report.runs.len() > 1 && !as_json {
        present::line(&format!("median {:.4} s", report.median_seconds()))?;
    }
    Ok(report)
}

fn row(run: &ReplayRun) -> String {
    let ranks = &run.ranks;
    format!(
        "{:>11.4} {:>10.4} {:>10.4} {:>10.4} {:>12} {:>12}",
        run.seconds,
        RankReport::mean(ranks, RankReport::file_seconds),
        RankReport::mean(ranks, RankReport::computing_seconds),
        RankReport::mean(ranks, RankReport::message_seconds),
        ranks.iter().map(|rank| rank.read_bytes).sum::<u64>(),
        ranks.iter().map(|rank| rank.written_bytes).sum::<u64>(),
    )
}
