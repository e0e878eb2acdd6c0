//! `start`, `status`, `doctor`, and the server process itself.

use super::file_systems::{DiskSpace, file_systems};
use super::waiting::until_whole;
use crate::arguments::{ALL, Doctor, Hosts, InstanceOnly, Serve, Start, Status};
use crate::output::format::{plural, show_size};
use crate::output::present;
use crate::output::protection::{protected_words, protection_json};
use client::{
    COPIES_MAX, Direct, Instance, InstanceFile, LostDisk, LostFile, Protection, RefillStatus,
    ServerEntry, ServerState, ServerStatus, Session, WireProtection,
};
use cluster::{
    DataDirectories, Finding, HostOptions, HostPlan, LaunchPlan, LaunchRequest, LostData, Program,
    Rebuilt, ServerOptions, Target,
};
use interface::{Extensions, UserError};
use serde_json::json;

/// Instance of a command.
pub(crate) fn instance(which: &InstanceOnly) -> Instance {
    let directory = which.instance.clone();
    Instance::at(directory.unwrap_or_else(client::default_instance_directory))
}

/// Default number of servers on this machine.
pub(crate) const SERVERS: u32 = 4;

pub(crate) fn start(arguments: &Start) -> Result<(), UserError> {
    arguments.root.check()?;
    let instance = instance(&arguments.which);
    let servers = arguments.servers.or(arguments.servers_per_host);
    check_protection(arguments.protect, servers)?;
    let file = match target(&arguments.hosts, arguments.tcp.is_some())? {
        Target::Here => start_here(&instance, arguments)?,
        Target::Hosts(plan) => start_on_hosts(&instance, &plan, arguments)?,
    };
    let session = Session::new(instance.clone());
    if file.degraded.is_none() {
        session.free_leftovers();
    }
    protect(&session, arguments.protect)?;
    if arguments.which.json {
        let mut shown = json!({
            "schema": "unisono.start/1",
            "instance": instance.directory(),
            "wire": file.wire,
            "servers": file.servers,
        });
        if let Some(lost) = &file.degraded {
            shown["degraded"] = degraded_json(&session, lost)?;
        }
        return present::json(&shown);
    }
    let directory = instance.directory().display();
    let running = match file.servers.len() {
        1 => "1 server is running".to_owned(),
        servers => format!("{servers} servers are running"),
    };
    present::line(&format!("{running}; the instance is {directory}"))?;
    if file.wire.is_some() {
        present::line(&format!("  {}", wire_words(file.wire)))?;
    }
    for server in &file.servers {
        let (whose, pid) = (whose(server), server.pid);
        present::line(&format!("  {whose}  process {pid}  {}", place_of_data(&file, server)))?;
    }
    if arguments.refill {
        show_refill(&session)?;
    }
    file.degraded.map_or(Ok(()), |lost| show_degraded(&session, &file.servers, &lost))
}

/// Says what is being filled, as far as servers know it yet.
fn show_refill(session: &Session) -> Result<(), UserError> {
    for state in session.status()? {
        let refill = state.status.as_ref().map(|status| status.refill).unwrap_or_default();
        let words = refill_words(&refill);
        if !words.is_empty() {
            present::line(&format!("  {}{words}", whose(&state.entry)))?;
        }
    }
    Ok(())
}

/// Refuses a protection that files on one server cannot have, before anything is started.
pub(crate) fn check_protection(
    protection: Option<Protection>,
    servers: Option<u32>,
) -> Result<(), UserError> {
    let checked = protection.unwrap_or_default().validate_on(servers.unwrap_or(SERVERS));
    checked.map_err(|cause| {
        UserError::usage(
            "cannot protect the files",
            cause.to_string(),
            "start more servers, or ask for less protection: --protect",
        )
    })
}

/// Protects new files of an instance that has just been started, if that is asked for.
pub(crate) fn protect(session: &Session, protection: Option<Protection>) -> Result<(), UserError> {
    protection.map_or(Ok(()), |protection| session.protect(protection))
}

/// Where a server keeps the data of files.
fn place_of_data(file: &InstanceFile, server: &ServerEntry) -> String {
    match file.memory_bytes {
        Some(bytes) => format!("memory {}", show_size(bytes)),
        None => {
            let data = server.data.iter().map(|path| format!(" {}", path.display()));
            format!("data{}", data.collect::<String>())
        }
    }
}

/// Maximum number of files that `start --degraded` lists.
const LOST_FILES_MAX: usize = 20;

/// Says what is lost, and which files lack bytes.
fn show_degraded(
    session: &Session,
    servers: &[ServerEntry],
    lost: &[LostDisk],
) -> Result<(), UserError> {
    present::line("nothing can be changed, since it was started with --degraded")?;
    present::lines(lost_lines(servers, lost))?;
    let (files, all) = session.lost_files()?;
    present::line(&format!("{} of {all} files have bytes there", files.len()))?;
    for LostFile { name, bytes, lost_bytes, first } in files.iter().take(LOST_FILES_MAX) {
        let (start, end) = (first.start, first.end);
        present::line(&format!(
            "  {name}: {lost_bytes} of {bytes} bytes, the first of them {start} to {end}"
        ))?;
    }
    match files.len().checked_sub(LOST_FILES_MAX).filter(|more| *more > 0) {
        Some(more) => present::line(&format!("  and {more} more; --json lists all")),
        None => Ok(()),
    }
}

/// Lines that say which data directories are lost.
fn lost_lines(servers: &[ServerEntry], lost: &[LostDisk]) -> Vec<String> {
    let line = |LostDisk { server, disk, cause }: &LostDisk| {
        let server = servers.get(*server as usize)?;
        let directory = server.data.get(*disk as usize)?;
        Some(format!("  {}  lost: {}: {cause}", whose(server), directory.display()))
    };
    lost.iter().filter_map(line).collect()
}

fn degraded_json(session: &Session, lost: &[LostDisk]) -> Result<serde_json::Value, UserError> {
    let (files, all) = session.lost_files()?;
    let file = |file: &LostFile| {
        json!({
            "name": file.name, "bytes": file.bytes, "lost_bytes": file.lost_bytes,
            "first": { "start": file.first.start, "end": file.first.end },
        })
    };
    Ok(json!({
        "lost": lost,
        "files": all,
        "files_with_lost_bytes": files.iter().map(file).collect::<Vec<_>>(),
    }))
}

/// Chooses the machines to run servers on. Explains the choice unless the arguments make it plain.
pub(crate) fn target(hosts: &Hosts, is_here: bool) -> Result<Target, UserError> {
    let (hostfile, launcher) = (hosts.hostfile.as_deref(), Some(hosts.launcher.as_str()));
    let usual = std::env::var("UNISONO_LAUNCHER").ok();
    let request = LaunchRequest { hostfile, launcher, usual_launcher: usual.as_deref(), is_here };
    let LaunchPlan { target, why } = LaunchPlan::make(&request)?;
    if let Some(why) = why {
        present::note(&format!("unisono: {why}"));
    }
    Ok(target)
}

/// Disks that bypass the page cache: all, if one --direct names none.
fn direct(Start { direct, data, .. }: &Start) -> Result<Direct, UserError> {
    match &direct[..] {
        [] => Ok(Direct::None),
        named if named.iter().any(|path| path.as_os_str() == ALL) => Ok(Direct::All),
        named => Direct::in_some(named, data),
    }
}

/// Treatment of data directories that are lost.
fn lost_data(arguments: &Start) -> LostData {
    match arguments {
        Start { degraded: true, .. } => LostData::Degraded,
        Start { refill: true, .. } => LostData::Refill { bytes_per_second: arguments.refill_rate },
        _ => LostData::Refuse,
    }
}

fn start_here(instance: &Instance, arguments: &Start) -> Result<InstanceFile, UserError> {
    let parent = instance.directory().join(cluster::DATA);
    let servers = arguments.servers.or(arguments.servers_per_host).unwrap_or(SERVERS);
    let in_memory = arguments.memory.is_some();
    let data = DataDirectories::share(&arguments.data, servers, &parent, in_memory)?;
    let options = ServerOptions {
        lost_data: lost_data(arguments),
        cache_bytes: arguments.cache,
        dirty_percent: arguments.dirty,
        disk_timeout_s: arguments.disk_timeout_s,
        direct: direct(arguments)?,
        memory_bytes: arguments.memory,
        tcp_host: arguments.tcp.clone(),
        reconnect_s: arguments.reconnect_s.unwrap_or(0),
        cores: arguments.server_cores.clone(),
        wire: arguments.wire,
    };
    if arguments.tcp.is_none() {
        note_unused_wire(arguments.wire);
    }
    if let Some(rebuilt) = (arguments.refill)
        .then(|| cluster::rebuild_lost_catalogue(instance, &data))
        .transpose()?
        .flatten()
    {
        present::note(&format!(
            "unisono: the catalogue was lost, and made again of the copy at server {}",
            rebuilt.server
        ));
    }
    cluster::start(instance, &Program::current()?, &data, &options)
}

/// Says that a protection of connections by TCP changes nothing where there are none.
pub(crate) fn note_unused_wire(wire: Option<WireProtection>) {
    if let Some(wire) = wire {
        present::note(&format!(
            "unisono: --wire {wire} changes nothing: servers and clients use Unix sockets, whose \
             bytes stay in this machine"
        ));
    }
}

fn start_on_hosts(
    instance: &Instance,
    plan: &HostPlan,
    arguments: &Start,
) -> Result<InstanceFile, UserError> {
    let Start { servers, servers_per_host, data, .. } = arguments;
    if arguments.reconnect_s.is_some() {
        return Err(UserError::usage(
            "cannot start servers on hosts again when they end",
            "their launchers end with them, so --restart is only for servers on this machine",
            "leave out --restart, and start a server again with: unisono stop; unisono start",
        ));
    }
    let placements = plan.placements(*servers, *servers_per_host, data)?;
    let options = HostOptions {
        lost_data: lost_data(arguments),
        cache_bytes: arguments.cache,
        dirty_percent: arguments.dirty,
        disk_timeout_s: arguments.disk_timeout_s,
        direct: direct(arguments)?,
        memory_bytes: arguments.memory,
        cores: arguments.server_cores.clone(),
        wire: arguments.wire,
        outlasts_sigterm: false,
        allow_root: arguments.root.allow_root,
        start_timeout_s: arguments.start_timeout_s,
        remote_program: arguments.remote_program.clone(),
    };
    cluster::start_on_hosts(instance, &Program::current()?, &plan.launcher, placements, options)
}

pub(crate) fn status(which: &InstanceOnly, what: &Status) -> Result<(), UserError> {
    let instance = instance(which);
    let InstanceFile { degraded, servers: entries, wire, .. } = instance.read()?;
    let session = Session::new(instance.clone());
    if what.wait && degraded.is_none() {
        until_whole(&session)?;
    }
    let states = session.status()?;
    let protection = session.protection(&states)?;
    if which.json {
        let servers: Vec<_> = states.iter().map(state_json).collect();
        let directory = instance.directory();
        let mut shown = json!({
            "schema": "unisono.status/1", "instance": directory, "wire": wire, "servers": servers,
            "protection": protection_json(protection),
        });
        if let Some(lost) = degraded {
            shown["degraded"] = json!({ "lost": lost });
        }
        present::json(&shown)?;
    } else {
        let (wire, is_degraded) = (wire_words(wire), degraded.is_some());
        present::line(&format!("instance {}  {wire}", instance.directory().display()))?;
        if let Some(lost) = degraded {
            present::line("nothing can be changed, since it was started with --degraded")?;
            present::lines(lost_lines(&entries, &lost))?;
        }
        states.iter().try_for_each(|state| present::line(&state_line(state)))?;
        if let Some(words) = copies_words(&states).filter(|_| !is_degraded) {
            present::line(&words)?;
        }
        if let Some(sum) = protection.filter(|sum| !sum.is_whole()) {
            let (words, size) = (protected_words(sum), show_size(sum.bytes));
            present::line(&format!("  {words} of {size} in files with --protect"))?;
        }
    }
    all_answer(&states)
}

/// Fails if a server did not answer.
pub(crate) fn all_answer(states: &[ServerState]) -> Result<(), UserError> {
    match states.iter().find(|state| state.status.is_err()) {
        None => Ok(()),
        Some(state) => Err(UserError::new(
            interface::ExitCode::NoServer,
            format!("{} does not answer", whose(&state.entry)),
            state.status.clone().err().unwrap_or_default(),
            "see its log in the instance directory, then stop and start the instance",
        )),
    }
}

pub(crate) fn doctor(arguments: &Doctor) -> Result<(), UserError> {
    if arguments.rebuild_catalogue {
        return rebuild_catalogue(arguments);
    }
    arguments.root.check()?;
    client::clean_up_on_signals()?;
    let target = target(&arguments.hosts, false)?;
    let hosts = match &target {
        Target::Here => None,
        Target::Hosts(plan) => Some(plan),
    };
    let as_json = arguments.which.json;
    let (mut failed, mut shown) = (None, Vec::new());
    let mut tell = |finding: &Finding| {
        let Finding { what, found } = finding;
        shown.push(match found {
            Ok(found) => json!({ "what": what, "ok": true, "found": found }),
            Err(error) => json!({
                "what": what, "ok": false, "error": error.error, "cause": error.cause,
                "help": error.help,
            }),
        });
        if let Err(error) = found {
            failed.get_or_insert_with(|| error.clone());
        }
        if !as_json {
            // A reader that has gone does not change the result.
            let _ = present::line(&match found {
                Ok(found) => format!("ok    {what:<18} {found}"),
                Err(error) => format!("FAIL  {what:<18} {}", error.error),
            });
        }
    };
    let (program, instance) = (Program::current()?, instance(&arguments.which));
    cluster::doctor(&program, &instance, arguments.directory.as_deref(), hosts, &mut tell);
    if as_json {
        present::json(&json!({ "schema": "unisono.doctor/1", "findings": shown }))?;
    }
    failed.map_or(Ok(()), Err)
}

/// Makes a lost catalogue again.
fn rebuild_catalogue(arguments: &Doctor) -> Result<(), UserError> {
    let instance = instance(&arguments.which);
    let parent = instance.directory().join(cluster::DATA);
    let data = arguments
        .servers
        .map(|servers| DataDirectories::share(&arguments.data, servers, &parent, false));
    let Rebuilt { server, directory, entries, older } =
        cluster::rebuild_catalogue(&instance, data.transpose()?)?;
    if arguments.which.json {
        return present::json(&json!({
            "schema": "unisono.rebuild/1", "directory": directory, "entries": entries,
            "server": server, "older": older,
        }));
    }
    let directory = directory.display();
    present::line(&format!(
        "{directory} has {entries} files, directories and other entries, of the copy at server \
         {server}"
    ))?;
    if !older.is_empty() {
        let older: Vec<String> = older.iter().map(u32::to_string).collect();
        present::line(&format!("the copies at servers {} are older", older.join(", ")))?;
    }
    Ok(())
}

pub(crate) fn serve(arguments: &Serve, extensions: Extensions) -> Result<(), UserError> {
    let instance = Instance::at(&arguments.instance);
    let lost_data = match arguments.refill {
        true => LostData::Refill { bytes_per_second: None },
        false => LostData::Refuse,
    };
    cluster::serve_process(&instance, arguments.id, arguments.attached, lost_data, extensions)
}

/// Words about the connections of an instance.
pub(crate) fn wire_words(wire: Option<WireProtection>) -> &'static str {
    match wire {
        None => "connections by Unix sockets",
        Some(WireProtection::Plain) => "connections by TCP, plain",
        Some(WireProtection::Integrity) => "connections by TCP, integrity (not encrypted)",
        Some(WireProtection::Private) => "connections by TCP, private (encrypted)",
    }
}

/// Description of a server, with its host if it has one.
pub(super) fn whose(server: &ServerEntry) -> String {
    match &server.host {
        Some(host) => format!("server {} on {host}", server.id),
        None => format!("server {}", server.id),
    }
}

fn state_line(state: &ServerState) -> String {
    let ServerState { entry, status, files } = state;
    let whose = whose(entry);
    match status {
        Ok(status) => {
            // A server alone: which other shares a file system does not matter.
            let disks = file_systems(std::slice::from_ref(state), false);
            let disks = disks.iter().filter(|disk| disk.same_as.is_none());
            let total = |of: fn(&DiskSpace) -> u64| disks.clone().map(of).sum::<u64>();
            let files = files.map_or_else(|| "?".to_owned(), |files| files.to_string());
            format!(
                "  {whose}  running at {}  {} clients  {} requests  {} moved  {} cached  {files} \
                 files  {} of {} free",
                entry.address,
                status.clients.saturating_sub(1),
                status.requests,
                show_size(status.bytes_moved),
                show_size(status.cache_bytes),
                show_size(total(|disk| disk.free_bytes)),
                show_size(total(|disk| disk.size_bytes)),
            ) + &cores_words(entry)
                + &mirrors_words(status)
                + &refill_words(&status.refill)
        }
        Err(cause) => format!("  {whose}  does not answer at {}: {cause}", entry.address),
    }
}

/// Returns words about the copies of the catalogue, if not all of them have its last change.
fn copies_words(states: &[ServerState]) -> Option<String> {
    let current = &states.first()?.status.as_ref().ok()?.copies;
    let all = (states.len() - 1).min(COPIES_MAX);
    let servers: Vec<String> = current.iter().map(|server| server.0.to_string()).collect();
    let at = match &servers[..] {
        [] => "if server 0 is lost now, so are its last changes".to_owned(),
        [server] => format!("that at server {server}"),
        servers => format!("those at servers {}", servers.join(", ")),
    };
    let count = servers.len();
    let have = if count == 1 { "has" } else { "have" };
    (count < all)
        .then(|| format!("  {count} of {all} copies of the catalogue {have} its last change: {at}"))
}

/// Returns words about the cores of a server, if it is pinned.
fn cores_words(server: &ServerEntry) -> String {
    server.cores.as_ref().map_or_else(String::new, |cores| format!("  on cores {cores}"))
}

/// Returns words about mirrored files, if copies are behind or damage was repaired.
fn mirrors_words(status: &ServerStatus) -> String {
    let behind = match status.files_behind {
        0 => String::new(),
        files => format!("  the protection of {} is behind", plural(files, "file")),
    };
    let repaired = match status.repaired {
        0 => String::new(),
        ranges => format!("  {} repaired", plural(ranges, "damaged range")),
    };
    behind + &repaired
}

/// Returns words about data directories that are filled again, if some are.
fn refill_words(refill: &RefillStatus) -> String {
    if refill.unlisted_disks > 0 {
        return "  finds out what its new data directories lack".to_owned();
    }
    let RefillStatus { files, bytes, filled_bytes, elapsed_ms, lost_files, .. } = *refill;
    let lost = match lost_files {
        0 => String::new(),
        _ => {
            let lost = plural(lost_files, "file");
            format!("  {lost} without a copy lost bytes: unisono scrub lists them")
        }
    };
    if files == 0 {
        return lost;
    }
    let all = bytes.max(1) + filled_bytes;
    let percent = filled_bytes * 100 / all;
    let left = match filled_bytes {
        0 => String::new(),
        _ => {
            let ms = u128::from(elapsed_ms) * u128::from(bytes) / u128::from(filled_bytes);
            format!(", about {} s left", ms.div_ceil(1000))
        }
    };
    let (files, size) = (plural(files, "file"), show_size(bytes));
    format!("  fills {files} again: {percent} % done, {size} to fill{left}") + &lost
}

pub(crate) fn state_json(state: &ServerState) -> serde_json::Value {
    let ServerState { entry, status, files } = state;
    match status {
        Ok(status) => json!({
            "id": entry.id, "pid": entry.pid, "host": entry.host, "address": entry.address,
            "cores": entry.cores,
            "user_seconds": status.processor.user_ns as f64 / 1e9,
            "system_seconds": status.processor.system_ns as f64 / 1e9,
            "running": true, "clients": status.clients.saturating_sub(1),
            "requests": status.requests, "bytes_moved": status.bytes_moved,
            "cache_bytes": status.cache_bytes, "dirty_bytes": status.dirty_bytes,
            "collective_bytes": status.collective_bytes,
            "files": files,
            "catalogue_copies": status.copies.iter().map(|server| server.0).collect::<Vec<_>>(),
            "copies_behind_of": status.behind.iter().map(|server| server.0).collect::<Vec<_>>(),
            "files_behind": status.files_behind, "repaired": status.repaired,
            "refill": {
                "unlisted_disks": status.refill.unlisted_disks, "files": status.refill.files,
                "bytes": status.refill.bytes, "filled_bytes": status.refill.filled_bytes,
                "lost_files": status.refill.lost_files,
            },
            "disks": status.disks.iter().map(|(capacity, free)| json!({
                "capacity_bytes": capacity, "free_bytes": free
            })).collect::<Vec<_>>(),
        }),
        Err(cause) => json!({
            "id": entry.id, "pid": entry.pid, "host": entry.host, "address": entry.address,
            "running": false, "cause": cause,
        }),
    }
}
