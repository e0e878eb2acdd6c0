//! `bench`: measures real transfers.

use super::bench_plot;
use crate::arguments::{Bench, BenchCommand};
use crate::output::file::OutputFile;
use crate::output::format::plural;
use crate::output::present;
use client::Instance;
use cluster::{Program, ServerOptions, TemporaryInstance};
use interface::{Limits, Report, Row, UserError, parse_size};
use measure::{BenchPlan, CaseSpec};
use std::path::{Path, PathBuf};

/// Default patterns.
const PATTERNS: [&str; 2] = ["wbc", "rbc"];
const RECORD_BYTES: u64 = 8192;

pub(crate) fn run(arguments: &Bench) -> Result<(), UserError> {
    match &arguments.command {
        Some(BenchCommand::Tops(tops)) => return super::tops::run(tops),
        Some(BenchCommand::Compute(compute)) => return super::compute::run(compute),
        None => {}
    }
    let plan = plan(arguments)?;
    plan.check()?;
    let plot = arguments.plot.as_deref().map(OutputFile::create).transpose()?;
    let program = Program::current()?;
    client::clean_up_on_signals()?;
    let report = match &arguments.instance {
        Some(directory) => measure(&Instance::at(directory), &program, &plan, arguments)?,
        None => {
            arguments.root.check()?;
            let caches = arguments.caches.options();
            let (tcp_host, cores) = (arguments.tcp.clone(), arguments.server_cores.clone());
            let options = ServerOptions { tcp_host, cores, wire: arguments.wire, ..caches };
            let started = TemporaryInstance::start(
                &program,
                arguments.servers,
                &arguments.data,
                arguments.directory.as_deref(),
                &options,
            )?;
            measure(started.instance(), &program, &plan, arguments)?
        }
    };
    if let Some(plot) = plot {
        plot.write(&bench_plot::picture(&report.results).draw())?;
    }
    if arguments.cases.json { present::json(&report) } else { Ok(()) }
}

/// Measures the limits of this machine, if wanted, and then the cases. Shows each row as it comes.
fn measure(
    instance: &Instance,
    program: &Program,
    plan: &BenchPlan,
    arguments: &Bench,
) -> Result<Report, UserError> {
    let as_json = arguments.cases.json;
    let limits =
        arguments.limits.then(|| measure::measure_limits(instance, arguments.size)).transpose()?;
    if let (Some(limits), false) = (&limits, as_json) {
        show_limits(limits)?;
    }
    if !as_json {
        let of = |spec: &CaseSpec| format!("{} by {}", spec.pattern, spec.strategy);
        let first = plan.cases.first().map(of).unwrap_or_default();
        let cases = plural(plan.cases.len() as u32, "case");
        if let Some(directory) = &plan.in_place {
            let (directory, bytes) = (directory.display(), plan.block_bytes);
            present::note(&format!("ordinary files in {directory}, in blocks of {bytes} bytes"));
        }
        present::note(&format!("measuring {cases}, first {first}: a line for each as it ends"));
    }
    let mut header_shown = false;
    let progress = |row: &Row| {
        let shown = present::table_row(row, limits.as_ref());
        if as_json {
            present::note(&shown);
            return;
        }
        if !header_shown {
            header_shown = true;
            let _ = present::line(&present::table_header(limits.is_some()));
        }
        let _ = present::line(&shown);
    };
    let report = measure::bench(instance, program, plan, progress)?;
    Ok(Report { limits, ..report })
}

fn show_limits(limits: &Limits) -> Result<(), UserError> {
    let Limits { memory_copy_mib_s, dd_write_mib_s, dd_write_fsync_mib_s, dd_read_mib_s } = limits;
    present::line(&format!(
        "limits, MiB/s: memory copy {memory_copy_mib_s:.1}; dd bs=1M: write {dd_write_mib_s:.1}, \
         write and fsync {dd_write_fsync_mib_s:.1}, read {dd_read_mib_s:.1}"
    ))?;
    present::line(
        "/copy, /dd: MiB/s over MiB/s of the memory copy, and of dd in the same direction",
    )
}

/// Returns `said`, or `otherwise` if that is empty.
fn or<T: Clone>(said: Vec<T>, otherwise: &[T]) -> Vec<T> {
    if said.is_empty() { otherwise.to_vec() } else { said }
}

fn plan(arguments: &Bench) -> Result<BenchPlan, UserError> {
    let cases = &arguments.cases;
    let patterns = or(cases.patterns(), &PATTERNS.map(str::to_owned));
    let mut specs = Vec::new();
    for pattern in &patterns {
        for &record_bytes in &or(cases.record.clone(), &[RECORD_BYTES]) {
            for strategy in cases.strategies() {
                specs.push(CaseSpec {
                    strategy,
                    pattern: pattern.clone(),
                    record_bytes,
                    file_bytes: arguments.size,
                    repeat: arguments.repeat,
                    sync: arguments.sync,
                    outstanding_per_disk: arguments.outstanding,
                    node_group_size: cases.node_group_size.unwrap_or(0),
                });
            }
        }
    }
    let in_place = arguments.in_place.as_deref().map(ordinary_files).transpose()?;
    let usual = match &in_place {
        Some((_, liked)) => *liked,
        None => parse_size(interface::DEFAULT_BLOCK).unwrap_or(1 << 20),
    };
    Ok(BenchPlan {
        clients: arguments.clients,
        client_host: arguments.client_host.clone(),
        client_cores: None,
        block_bytes: arguments.block.unwrap_or(usual),
        in_place: in_place.map(|(directory, _)| directory),
        cases: specs,
    })
}

/// Returns the path of a directory for ordinary files without links, and the size of blocks that
/// its file system likes.
fn ordinary_files(directory: &Path) -> Result<(PathBuf, u64), UserError> {
    let found = directory.canonicalize().and_then(|path| {
        let liked = client::in_place_block_bytes(&path)?;
        let is_directory = path.is_dir().then_some((path, liked));
        is_directory.ok_or_else(|| std::io::Error::other("it is no directory"))
    });
    found.map_err(|error| {
        let (what, cause) = (format!("cannot work in place in {directory:?}"), error.to_string());
        UserError::usage(what, cause, "name a directory that this host and the servers find there")
    })
}
