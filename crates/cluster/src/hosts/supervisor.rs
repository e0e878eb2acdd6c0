//! The process that starts the launchers of an instance and stays as long as they do.
//!
//! Invariants: it answers once, when all servers serve or none is left; whatever ends it ends its
//! servers, because they lose their input; it outlives the command that started it only after it
//! has answered.

use super::control::{ServerOrder, SupervisorAnswer, SupervisorOrder};
use super::launched::Launched;
use super::placement::Placement;
use crate::agreement::{lost_disks, permissions};
use crate::control::{Commit, Found, ServerMessage, line, receive};
use crate::durable::cannot_write;
use crate::instance::{data_name, discard_mark, forget, write};
use crate::labels::FoundLabel;
use crate::process::on_stdin_closed;
use crate::process_name::own_name;
use crate::stop::STOP_TIMEOUT;
use client::{INSTANCE_SCHEMA, Instance, InstanceFile, Origin, ServerEntry, wire_protection};
use futures_util::future::{join_all, try_join_all};
use interface::{CoreList, ExitCode, UserError};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use units::GIB;

/// Time limit of launchers to end after a failed start.
const FAILED_START_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum number of servers that start at once.
const STARTS_MAX: usize = 64;

/// Maximum number of servers that start at once on one host. An `sshd` refuses more than 10
/// connections that have not authenticated yet.
const STARTS_PER_HOST_MAX: usize = 4;

/// Time for each GiB of memory that a server takes at its start.
const MEMORY_TIMEOUT_PER_GIB: Duration = Duration::from_secs(3);

/// Maximum number of other hosts in the first message to a server.
const OTHERS_MAX: usize = 3;

/// Starts the servers that standard input names and answers on standard output. Waits until all
/// have ended, or a signal asks to end them.
///
/// # Errors
/// Fails when it cannot begin. Errors of servers are part of the answer.
pub fn supervise(instance: &Instance) -> Result<(), UserError> {
    let failed = |cause: String| {
        UserError::new(
            ExitCode::Failed,
            "cannot supervise the launchers of servers",
            cause,
            "start servers with: unisono start",
        )
    };
    // From here on, neither Ctrl-C nor the end of the terminal reaches this process or its
    // launchers.
    rustix::process::setsid().map_err(|error| failed(error.to_string()))?;
    let order: SupervisorOrder =
        receive(&mut std::io::stdin().lock()).map_err(|error| failed(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| failed(error.to_string()))?.block_on(supervise_all(instance, &order))
}

async fn supervise_all(instance: &Instance, order: &SupervisorOrder) -> Result<(), UserError> {
    let (sender, asker_gone) = oneshot::channel();
    on_stdin_closed(|| {
        // It may have been answered.
        let _ = sender.send(());
    });
    let mut end_requested = std::pin::pin!(end_requested(order.options.outlasts_sigterm));
    let mut launched = Vec::new();
    let mut begun = tokio::select! {
        begun = begin(instance, order, &mut launched) => begun,
        _ = asker_gone => Err(given_up()),
        () = &mut end_requested => Err(given_up()),
    };
    // From here on the instance is there, also for others than the command.
    if let Ok(file) = &begun {
        let commit = Commit::of(file);
        let completed = tokio::select! {
            completed = complete(order, &commit, &mut launched) => completed,
            () = &mut end_requested => Err(given_up()),
        };
        begun = completed.and(begun);
    }
    match begun {
        Ok(file) => answer(&SupervisorAnswer::Running(file)),
        Err(error) => {
            // First, so that the next start waits for the end of this one.
            if let Err(error) = forget(instance) {
                note(&error.to_string());
            }
            end_all(&mut launched, FAILED_START_TIMEOUT).await;
            answer(&SupervisorAnswer::Failed(error.into()));
            return Ok(());
        }
    }
    let all_ended = join_all(launched.iter_mut().map(async |one| {
        one.stay().await;
        note(&format!("the launcher of server {} on {} has ended", one.id, one.host));
    }));
    tokio::select! {
        _ = all_ended => return Ok(()),
        () = end_requested => note("a signal asks to end all servers"),
    }
    end_all(&mut launched, STOP_TIMEOUT).await;
    Ok(())
}

/// Starts all servers. Adds each to `launched` as soon as its launcher runs. Returns the content of
/// `instance.json`, which has been written.
async fn begin<'a>(
    instance: &Instance,
    order: &'a SupervisorOrder,
    launched: &mut Vec<Launched<'a>>,
) -> Result<InstanceFile, UserError> {
    let timeout = Duration::from_secs(order.options.start_timeout_s.into());
    let found = launch_all(instance, order, launched, timeout).await?;
    let permissions = permissions(&found, labels(order, &found), order.options.lost_data)?;
    let permitted = launched.iter_mut().zip(found).zip(&permissions);
    let memory_gib = order.options.memory_bytes.unwrap_or(0) / GIB;
    let timeout = timeout + MEMORY_TIMEOUT_PER_GIB * u32::try_from(memory_gib).unwrap_or(u32::MAX);
    let servers = try_join_all(permitted.map(async |((one, found), permission)| {
        one.send(permission).await;
        let ServerMessage::Listening { address, pid } = one.receive(timeout).await? else {
            return Err(unexpected_message(one.id));
        };
        let (id, host, data) = (one.id, Some(one.host.to_owned()), found.data);
        let cores = cores_of(order.options.cores.as_ref(), &order.placements, id);
        Ok::<_, UserError>(ServerEntry { id, address, pid, data, host, cores })
    }));
    let servers = servers.await?;
    let origin = Origin::mark(instance.directory());
    let wire = wire_protection(order.options.wire, &servers);
    let file = InstanceFile {
        schema: INSTANCE_SCHEMA.to_owned(),
        disks_per_server: servers.first().map_or(0, |one| one.data.len() as u32),
        servers,
        cache_bytes: order.options.cache_bytes,
        dirty_percent: order.options.dirty_percent,
        disk_timeout_s: order.options.disk_timeout_s,
        direct: order.options.direct.clone(),
        degraded: order.options.lost_data.is_degraded().then(|| lost_disks(&permissions)),
        memory_bytes: order.options.memory_bytes,
        reconnect_s: 0,
        wire,
        supervisor: own_name(),
        origin: Some(origin.map_err(|error| cannot_write("origin".as_ref(), &error))?),
    };
    write(instance, &file)?;
    Ok(file)
}

/// Tells all servers that the start is complete. Returns when they serve.
async fn complete(
    order: &SupervisorOrder,
    commit: &Commit,
    launched: &mut [Launched<'_>],
) -> Result<(), UserError> {
    let timeout = Duration::from_secs(order.options.start_timeout_s.into());
    let servers = launched.iter_mut().map(async |one| {
        one.send(commit).await;
        match one.receive(timeout).await? {
            ServerMessage::Serving => Ok(()),
            _ => Err(unexpected_message(one.id)),
        }
    });
    try_join_all(servers).await.map(|_| ())
}

/// Starts the launchers in waves, and sends each server its first message. Returns what the servers
/// found.
async fn launch_all<'a>(
    instance: &Instance,
    order: &'a SupervisorOrder,
    launched: &mut Vec<Launched<'a>>,
    timeout: Duration,
) -> Result<Vec<Found>, UserError> {
    let (key, instance_name) = (instance.key()?, data_name(instance)?);
    let mut found = Vec::new();
    let numbered: Vec<(u32, &Placement)> = (0..).zip(&order.placements).collect();
    for some in waves(&numbered) {
        let first = launched.len();
        for (id, placement) in some {
            let command = server_command(&order.program, instance, *id);
            let log = instance.log_path(*id);
            launched.push(Launched::start(*id, &placement.host, &order.launcher, &command, log)?);
        }
        let starts = launched[first..].iter_mut().zip(some).map(async |(one, (id, placement))| {
            let order = server_order(order, *id, placement, (instance, &instance_name, key));
            one.send(&order).await;
            match one.receive(timeout).await? {
                ServerMessage::Found(found) => Ok(found),
                _ => Err(unexpected_message(*id)),
            }
        });
        found.extend(try_join_all(starts).await?);
    }
    Ok(found)
}

/// Waves of placements that start at once.
fn waves<'w, 'a>(mut left: &'w [(u32, &'a Placement)]) -> Vec<&'w [(u32, &'a Placement)]> {
    let mut waves = Vec::new();
    while !left.is_empty() {
        let mut starts: BTreeMap<&str, usize> = BTreeMap::new();
        let has_room = |(_, placement): &&(u32, &'a Placement)| {
            let starts = starts.entry(&placement.host).or_default();
            *starts += 1;
            *starts <= STARTS_PER_HOST_MAX
        };
        let length = left.iter().take(STARTS_MAX).take_while(has_room).count();
        let (wave, rest) = left.split_at(length);
        waves.push(wave);
        left = rest;
    }
    waves
}

fn server_order(
    order: &SupervisorOrder,
    id: u32,
    placement: &Placement,
    (instance, instance_name, key): (&Instance, &str, [u8; 32]),
) -> ServerOrder {
    let others = order
        .placements
        .iter()
        .map(|placement| &placement.host)
        .filter(|other| **other != placement.host);
    ServerOrder {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        id,
        servers: order.placements.len() as u32,
        host: placement.host.clone(),
        others: others.take(OTHERS_MAX).cloned().collect(),
        data: placement.data.clone(),
        instance_name: instance_name.to_owned(),
        cache_bytes: order.options.cache_bytes,
        dirty_percent: order.options.dirty_percent,
        disk_timeout_s: order.options.disk_timeout_s,
        direct: order.options.direct.clone(),
        lost_data: order.options.lost_data,
        memory_bytes: order.options.memory_bytes,
        cores: cores_of(order.options.cores.as_ref(), &order.placements, id),
        wire: order.options.wire,
        outlasts_sigterm: order.options.outlasts_sigterm,
        discard_mark: discard_mark(instance),
        allow_root: order.options.allow_root,
        key,
    }
}

/// Cores of server `id`: its part of a list that the servers of each host share.
fn cores_of(cores: Option<&CoreList>, placements: &[Placement], id: u32) -> Option<CoreList> {
    let host = &placements.get(id as usize)?.host;
    let of_host = |placements: &[Placement]| {
        placements.iter().filter(|placement| placement.host == *host).count() as u32
    };
    let (before, all) = (of_host(&placements[..id as usize]), of_host(placements));
    cores.map(|cores| cores.part(before, all))
}

/// Name and label of each directory that servers have found.
fn labels(order: &SupervisorOrder, found: &[Found]) -> Vec<(String, Option<FoundLabel>)> {
    let named = order.placements.iter().zip(found).flat_map(|(placement, found)| {
        let name = |path: &PathBuf| format!("{} of {}", path.display(), placement.host);
        found.data.iter().map(name).zip(found.labels.iter().cloned())
    });
    named.collect()
}

/// Command line of a server. All words but its number are only for listings of processes.
fn server_command(program: &Path, instance: &Instance, id: u32) -> Vec<String> {
    let directory = instance.directory().display().to_string();
    let words =
        ["serve-told", "--id", &id.to_string(), "--instance", &directory].map(str::to_owned);
    [program.display().to_string()].into_iter().chain(words).collect()
}

async fn end_all(launched: &mut [Launched<'_>], timeout: Duration) {
    join_all(launched.iter_mut().map(|one| one.end(timeout))).await;
}

/// Returns when a signal asks this process to end: SIGINT, as a stop does, SIGHUP, or SIGTERM
/// unless it `outlasts_sigterm`.
async fn end_requested(outlasts_sigterm: bool) {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let caught = kinds.into_iter().filter_map(|kind| Some((kind, signal(kind).ok()?)));
    let caught = caught.map(|(kind, mut signals)| {
        Box::pin(async move {
            signals.recv().await;
            if kind == SignalKind::terminate() && outlasts_sigterm {
                std::future::pending::<()>().await;
            }
        })
    });
    futures_util::future::select_all(caught).await;
}

fn answer(answer: &SupervisorAnswer) {
    let mut output = std::io::stdout().lock();
    // If the command is gone, the user sees `instance.json`.
    let _ = output.write_all(line(answer).as_bytes()).and_then(|()| output.flush());
}

/// Writes to the supervisor's log.
fn note(text: &str) {
    // A log that cannot be written is no reason to end servers.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn given_up() -> UserError {
    UserError::new(
        ExitCode::Failed,
        "the start of the servers was cancelled",
        "the start command has ended, or a signal asked the supervisor to end",
        "start the instance again",
    )
}

fn unexpected_message(id: u32) -> UserError {
    UserError::new(
        ExitCode::NoServer,
        format!("server {id} did not start"),
        "it sent an unexpected message",
        "check that all hosts have the same version of unisono",
    )
}

#[cfg(test)]
mod tests {
    //! Proves: servers start in waves that are small enough for every host, and those of a host
    //! share its cores.
    use super::*;

    #[test]
    fn servers_of_a_host_share_its_cores() {
        let placement = |host: &&str| Placement { host: (*host).to_owned(), data: Vec::new() };
        let placements: Vec<Placement> = ["a", "b", "a", "c", "a"].iter().map(placement).collect();
        let cores = "0-3,8-9".parse::<CoreList>().unwrap();
        let own = |id| cores_of(Some(&cores), &placements, id).unwrap().to_string();
        assert_eq!([0, 2, 4].map(own), ["0-1", "2-3", "8-9"]);
        assert_eq!([1, 3].map(own), ["0-3,8-9", "0-3,8-9"]);
        assert_eq!(cores_of(None, &placements, 0), None);
    }

    #[test]
    fn waves_are_small() {
        let lengths = |hosts: &[&str]| {
            let placement = |host: &&str| Placement { host: (*host).to_owned(), data: Vec::new() };
            let placements: Vec<Placement> = hosts.iter().map(placement).collect();
            let numbered: Vec<(u32, &Placement)> = (0..).zip(&placements).collect();
            let waves = waves(&numbered);
            assert_eq!(waves.concat().len(), hosts.len());
            waves.into_iter().map(<[_]>::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths(&["a"; 9]), [4, 4, 1]);
        assert_eq!(lengths(&["a", "b", "a", "b", "a", "b", "a", "b", "a"]), [8, 1]);
        let many: Vec<String> = (0..100).map(|host| host.to_string()).collect();
        assert_eq!(lengths(&many.iter().map(String::as_str).collect::<Vec<_>>()), [64, 36]);
    }
}
