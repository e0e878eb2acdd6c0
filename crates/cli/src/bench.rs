//! `bench`: measures real transfers.

use crate::arguments::Bench;
use crate::present;
use crate::words;
use launch::{
    BenchPlan, CaseSpec, Instance, LaunchError, Limits, Program, Row, ServerOptions,
    TemporaryInstance,
};

pub(crate) fn run(arguments: &Bench) -> Result<(), LaunchError> {
    let plan = plan(arguments)?;
    plan.check()?;
    let program = Program::current()?;
    launch::clean_up_on_signals()?;
    let as_json = arguments.cases.json;
    let limits = limits(arguments)?;
    let mut header_shown = false;
    let progress = |row: &Row| {
        if as_json {
            present::note(&present::table_row(row));
            return;
        }
        if !header_shown {
            header_shown = true;
            let _ = present::line(&present::table_header());
        }
        let _ = present::line(&present::table_row(row));
    };
    let mut report = match &arguments.instance {
        Some(directory) => launch::bench(&Instance::at(directory), &program, &plan, progress)?,
        None => {
            let options =
                ServerOptions { cache_bytes: arguments.cache, tcp_host: arguments.tcp.clone() };
            let started = TemporaryInstance::start(
                &program,
                arguments.servers,
                &arguments.data,
                arguments.directory.as_deref(),
                &options,
            )?;
            launch::bench(started.instance(), &program, &plan, progress)?
        }
    };
    report.limits = limits;
    if as_json { present::json(&report) } else { Ok(()) }
}

/// What this machine can do without us, if that is wanted, on the disk of the first data directory.
fn limits(arguments: &Bench) -> Result<Option<Limits>, LaunchError> {
    if !arguments.limits {
        return Ok(None);
    }
    let default = std::env::temp_dir();
    let named = arguments.data.first().or(arguments.directory.as_ref());
    let limits = Limits::measure(named.unwrap_or(&default), arguments.size)?;
    if !arguments.cases.json {
        present::line(&format!(
            "limits, MiB/s: memory copy {:.0}; one plain file: write {:.0}, write and fsync {:.0}, \
             read {:.0}",
            limits.memory_copy_mib_s,
            limits.file_write_mib_s,
            limits.file_write_sync_mib_s,
            limits.file_read_mib_s,
        ))?;
    }
    Ok(Some(limits))
}

fn plan(arguments: &Bench) -> Result<BenchPlan, LaunchError> {
    let cases = &arguments.cases;
    let patterns = words::patterns(&cases.pattern, cases.distribution.as_deref(), cases.write)?;
    let mut specs = Vec::new();
    for pattern in &patterns {
        for &record_bytes in &cases.record {
            for strategy in words::strategies(&cases.strategy) {
                specs.push(CaseSpec {
                    strategy,
                    pattern: pattern.clone(),
                    record_bytes,
                    file_bytes: arguments.size,
                    repeat: arguments.repeat,
                    sync: arguments.sync,
                    outstanding_per_disk: arguments.outstanding,
                });
            }
        }
    }
    Ok(BenchPlan {
        clients: arguments.clients,
        client_host: arguments.client_host.clone(),
        block_bytes: arguments.block,
        cases: specs,
    })
}
