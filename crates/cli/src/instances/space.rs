//! `df`: space on the disks of an instance. Each file system counts once.

use super::file_systems::{DiskSpace, file_systems};
use super::servers::{all_answer, instance, state_json};
use crate::arguments::InstanceOnly;
use crate::output::format::show_size;
use crate::output::present;
use client::{ServerState, Session};
use interface::UserError;
use serde_json::{Value, json};

pub(crate) fn show(arguments: &InstanceOnly) -> Result<(), UserError> {
    let instance = instance(arguments);
    let in_memory = instance.read()?.memory_bytes.is_some();
    let session = Session::new(instance);
    session.free_leftovers();
    let states = session.status()?;
    let disks = file_systems(&states, in_memory);
    if arguments.json {
        let servers: Vec<Value> = states.iter().map(|state| server_json(state, &disks)).collect();
        present::json(&json!({ "schema": "unisono.df/1", "servers": servers }))?;
        return all_answer(&states);
    }
    present::line(&format!(
        "{:<8} {:<6} {:>10} {:>10} {:>10}  {:>4}  directory",
        "server", "disk", "size", "used", "free", "use%"
    ))?;
    for ServerState { entry, status, .. } in &states {
        if status.is_err() {
            present::line(&format!("{:<8} does not answer", entry.id))?;
        }
        let own = disks.iter().filter(|disk| disk.place.0 == entry.id);
        for (disk, directory) in own.zip(&entry.data) {
            let (server, number) = disk.place;
            let space = space_columns(disk);
            present::line(&format!("{server:<8} {number:<6} {space}  {}", directory.display()))?;
        }
    }
    all_answer(&states)
}

/// Columns of size, used and free space; or the disk whose file system this one shares.
fn space_columns(disk: &DiskSpace) -> String {
    if let Some((server, number)) = disk.same_as {
        return format!("{:<38}", format!("on the file system of server {server} disk {number}"));
    }
    let (size, free) = (disk.size_bytes, disk.free_bytes);
    let used = size.saturating_sub(free);
    format!(
        "{:>10} {:>10} {:>10}  {:>3}%",
        show_size(size),
        show_size(used),
        show_size(free),
        (used * 100).checked_div(size).unwrap_or(0),
    )
}

/// State of a server, whose disks say which earlier disk has the same file system.
fn server_json(state: &ServerState, disks: &[DiskSpace]) -> Value {
    let mut server = state_json(state);
    let own = disks.iter().filter(|disk| disk.place.0 == state.entry.id);
    if let Some(shown) = server["disks"].as_array_mut() {
        for (shown, disk) in shown.iter_mut().zip(own) {
            shown["same_file_system_as"] = match disk.same_as {
                Some((server, disk)) => json!({ "server": server, "disk": disk }),
                None => Value::Null,
            };
        }
    }
    server
}
