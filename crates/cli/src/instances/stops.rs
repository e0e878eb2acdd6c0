//! `stop`.

use super::servers::{instance, whose};
use crate::arguments::Stop;
use crate::output::format::plural;
use crate::output::present;
use client::{Instance, ServerEntry, Session};
use cluster::Stopped;
use interface::{ExitCode, UserError, size_word};
use serde_json::json;
use std::path::PathBuf;

pub(crate) fn stop(arguments: &Stop) -> Result<(), UserError> {
    let instance = instance(&arguments.which);
    let memory_bytes = instance.read().ok().and_then(|file| file.memory_bytes);
    let has_instance = instance.read().is_ok();
    let mut removed = Ok(());
    if memory_bytes.is_some() && arguments.discard {
        // Servers give back memory without files. Where this fails, here it goes below.
        removed = Session::new(instance.clone()).remove_tree("").map(|_| ());
    }
    let stopped = cluster::stop(&instance);
    // While servers run, their memory stays.
    let may_discard = arguments.discard && (stopped.is_ok() || !has_instance);
    let discarded = if may_discard { cluster::discard_memory(&instance).unwrap_or(0) } else { 0 };
    let Stopped { servers, ended, leftovers, gone } = match stopped {
        Err(_) if discarded > 0 => {
            if arguments.which.json {
                return present::json(&json!({
                    "schema": "unisono.stop/1", "stopped": 0, "gone": [], "data": [],
                }));
            }
            let servers = plural(discarded as u32, "server");
            return present::line(&format!("the memory of {servers} is free again"));
        }
        stopped => stopped?,
    };
    if let Err(error) = removed.as_ref().map_err(|error| &error.cause)
        && servers.iter().any(|server| server.host.is_some())
    {
        present::note(&format!("unisono: files may remain in the memory of hosts: {error}"));
    }
    for (server, how) in &gone {
        let (whose, log) = (whose(server), instance.log_path(server.id));
        let log = log.display();
        present::note(&format!("unisono: {whose} had already ended: {how}; see {log}"));
    }
    if leftovers > 0 {
        let left = plural(leftovers as u32, "process");
        present::note(&format!("unisono: {left} of an interrupted start ended"));
    }
    if arguments.which.json {
        let gone: Vec<u32> = gone.iter().map(|(server, _)| server.id).collect();
        let data = servers.iter().map(|one| json!({ "host": one.host, "directories": one.data }));
        // The directories of memory that was discarded are gone.
        let data: Vec<_> =
            data.filter(|_| !(arguments.discard && memory_bytes.is_some())).collect();
        return present::json(&json!({
            "schema": "unisono.stop/1", "stopped": ended, "gone": gone, "data": data,
        }));
    }
    let stopped = format!("{} stopped", plural(ended as u32, "server"));
    if servers.is_empty() {
        return present::line(&stopped);
    }
    if memory_bytes.is_some() {
        refuse_lost(&instance)?;
    }
    if let Some(bytes) = memory_bytes.filter(|_| !arguments.discard) {
        return present::lines(memory_lines(&instance, &stopped, &servers, bytes));
    }
    if memory_bytes.is_some() {
        return present::line(&format!("{stopped}; the memory is free again"));
    }
    present::line(&format!("{stopped}; the data remains:"))?;
    present::lines(data_lines(&instance, &servers))
}

/// Maximum number of data directories that `stop` lists.
const LISTED_MAX: usize = 16;

/// Lines that say where the data of an instance is, and how to remove it.
fn data_lines(instance: &Instance, servers: &[ServerEntry]) -> Vec<String> {
    let of = |server: &ServerEntry| {
        let host = server.host.as_ref().map_or_else(String::new, |host| format!("{host}:"));
        let shown = |path: &PathBuf| format!("{host}{}", path.display());
        server.data.iter().map(shown).collect::<Vec<String>>()
    };
    let all: Vec<String> = servers.iter().flat_map(of).collect();
    let mut lines: Vec<String> =
        all.iter().take(LISTED_MAX).map(|one| format!("  {one}")).collect();
    if all.len() > LISTED_MAX {
        lines.push(format!("  and {} more", all.len() - LISTED_MAX));
    }
    let is_inside = |server: &ServerEntry| {
        server.host.is_none() && server.data.iter().all(|one| one.starts_with(instance.directory()))
    };
    lines.push(match servers.iter().all(is_inside) {
        true => format!("to remove it: rm -r {}", instance.directory().display()),
        false => {
            format!("to remove it, remove these directories and {}", instance.directory().display())
        }
    });
    lines
}

/// Fails if servers have lost their files with their memory.
fn refuse_lost(instance: &Instance) -> Result<(), UserError> {
    match cluster::count_memories(instance).lost {
        0 => Ok(()),
        lost => Err(UserError::new(
            ExitCode::NoServer,
            format!("the files in the memory of {} are lost", plural(lost as u32, "server")),
            "the servers have ended, and the processes that held their memory had ended before",
            "to begin again: unisono stop --discard, then start",
        )),
    }
}

/// Lines that say what became of the files of an instance that had them in memory.
fn memory_lines(
    instance: &Instance,
    stopped: &str,
    servers: &[ServerEntry],
    bytes: u64,
) -> Vec<String> {
    if servers.iter().any(|server| server.host.is_some()) {
        return vec![
            format!("{stopped}; files that were there remain in the memory of the hosts"),
            format!(
                "to use them: start again on the same hosts, with --memory {}",
                size_word(bytes)
            ),
            "to remove them: start again, and stop with --discard".to_owned(),
        ];
    }
    if cluster::count_memories(instance).held == 0 {
        return vec![format!("{stopped}; the memory is free again")];
    }
    let place = format!("--instance {}", instance.directory().display());
    let (count, size) = (servers.len(), size_word(bytes));
    vec![
        format!("{stopped}; the files remain in memory:"),
        format!("to use them: unisono start --memory {size} --servers {count} {place}"),
        format!("to remove them: unisono stop --discard {place}"),
    ]
}
