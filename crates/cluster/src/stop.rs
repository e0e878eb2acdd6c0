//! Stopping the servers of an instance.

use crate::instance::{forget, lock};
use crate::process::ProcessEnd;
use crate::process_name::end_of;
use client::{Instance, InstanceFile, ServerEntry, for_each_at_once, server_answers, stop_server};
use interface::{ExitCode, UserError};
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};
use wire::Fault;
use world_real::NodeConfig;

/// Time limit of a server to end after it was asked to.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// Extra time of a supervisor, beyond that of its servers: it first tries gentler ways to end
/// launchers.
const SUPERVISOR_TIMEOUT: Duration = Duration::from_secs(15);

/// Time limit to end for a server that does not answer, and may not know of the request.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between requests to servers whose processes are not visible here.
const ASKING_PAUSE: Duration = Duration::from_millis(50);

/// Result of a stop.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// Number of servers that have ended.
    pub ended: usize,
    /// Servers that had ended before or could not be reached, and the evidence.
    pub gone: Vec<(ServerEntry, String)>,
}

/// Asks every running server to end. Waits until all servers and their supervisor have ended.
///
/// # Errors
/// Fails when a server cannot write everything back and so goes on, or does not end. When this is a
/// copy of an instance that runs elsewhere, which is left as it is.
pub fn stop(instance: &Instance) -> Result<Stopped, UserError> {
    instance.read()?;
    let _nobody_starts = lock(instance)?;
    let file = instance.read()?;
    let node = instance.client_node(&file.servers)?;
    refuse_copy(instance, &file, &node)?;
    let asked = for_each_at_once(&file.servers, |server| ask(instance, server, &node));
    let (mut ending, mut silent, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    let mut first_error = None;
    for (server, asked) in file.servers.iter().zip(asked) {
        match asked {
            Asked::Ends(end) => ending.push((server, end)),
            Asked::IsSilent(end) => silent.push((server, end)),
            Asked::IsGone(how) => gone.push((server.clone(), how)),
            Asked::GoesOn(fault) => {
                let what = format!("cannot stop server {}", server.id);
                first_error.get_or_insert(UserError::of_fault(&what, &fault));
            }
        }
    }
    let deadline = Instant::now() + STOP_TIMEOUT;
    for (server, end) in &ending {
        let has_ended = match end {
            Some(end) => end.wait_until(deadline),
            None => wait_for(deadline, || !server_answers(server, node.clone())),
        };
        must(instance, has_ended, server)?;
    }
    if let Some(error) = first_error {
        return Err(error);
    }
    end_supervisor(instance, &file)?;
    for (server, end) in &silent {
        must(instance, end.wait_until(deadline), server)?;
    }
    forget(instance);
    Ok(Stopped { ended: ending.len() + silent.len(), gone })
}

fn must(instance: &Instance, has_ended: bool, server: &ServerEntry) -> Result<(), UserError> {
    if has_ended {
        return Ok(());
    }
    Err(does_not_end(
        &format!("server {}", server.id),
        &format!("process {} still runs after a minute", server.pid),
        &instance.log_path(server.id),
    ))
}

/// Refuses to stop servers of other machines from a copy of the instance's directory. Only the
/// directory that they were started from may stop them, on any machine.
fn refuse_copy(
    instance: &Instance,
    file: &InstanceFile,
    node: &NodeConfig,
) -> Result<(), UserError> {
    if file.origin.as_ref().is_some_and(|origin| origin.is(instance.directory())) {
        return Ok(());
    }
    let is_elsewhere = |server: &&ServerEntry| {
        server.tcp().is_some()
            && !instance.is_running(server)
            && server_answers(server, node.clone())
    };
    let Some(server) = file.servers.iter().find(is_elsewhere) else { return Ok(()) };
    Err(UserError::usage(
        format!("server {} was not started from {}", server.id, instance.directory().display()),
        format!("it answers at {}, but it is not a process of this machine", server.address),
        "stop the instance on the machine that started it: this is a copy of its directory",
    ))
}

/// Asks one server to end.
fn ask(instance: &Instance, server: &ServerEntry, node: &NodeConfig) -> Asked {
    let end = ProcessEnd::of(server.pid).filter(|_| instance.is_running(server));
    if end.is_none() && server.host.is_none() {
        return Asked::IsGone(format!("process {} is not this server", server.pid));
    }
    match (stop_server(server, node.clone()), end) {
        (Ok(()), end) => Asked::Ends(end),
        (Err(Fault::ServerLeft { .. }), Some(end)) if server.host.is_some() => Asked::IsSilent(end),
        // The server is about to end by itself, unless it only refuses this connection.
        (Err(fault @ Fault::ServerLeft { .. }), Some(end)) => {
            match end.wait_until(Instant::now() + LEAVE_TIMEOUT) {
                true => Asked::Ends(Some(end)),
                false => Asked::GoesOn(fault),
            }
        }
        (Err(Fault::ServerLeft { cause, .. }), None) => Asked::IsGone(cause),
        (Err(fault), _) => Asked::GoesOn(fault),
    }
}

/// Ends the supervisor of launchers, if it runs here. It ends the launchers that are left.
fn end_supervisor(instance: &Instance, file: &InstanceFile) -> Result<(), UserError> {
    let Some((supervisor, end)) =
        file.supervisor.as_ref().and_then(|one| Some((one, end_of(one)?)))
    else {
        return Ok(());
    };
    if let Some(pid) = Pid::from_raw(supervisor.pid as i32) {
        // The supervisor may have ended already.
        let _ = kill_process(pid, Signal::TERM);
    }
    if end.wait_until(Instant::now() + STOP_TIMEOUT + SUPERVISOR_TIMEOUT) {
        return Ok(());
    }
    Err(does_not_end(
        "the supervisor of the launchers",
        &format!("process {} still runs", supervisor.pid),
        &instance.directory().join("keeper.log"),
    ))
}

/// Outcome of asking a server to end.
enum Asked {
    /// The server is ending. Its process may be visible here.
    Ends(Option<ProcessEnd>),
    /// The server does not answer, but its process exists. It ends when it loses its launcher.
    IsSilent(ProcessEnd),
    /// The server had ended before, with this evidence, or cannot be reached.
    IsGone(String),
    /// The server cannot end.
    GoesOn(Fault),
}

/// Polls until `is_so` returns true or the deadline has come.
fn wait_for(deadline: Instant, is_so: impl Fn() -> bool) -> bool {
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(ASKING_PAUSE);
    }
    true
}

fn does_not_end(who: &str, cause: &str, log: &std::path::Path) -> UserError {
    let help = format!("see {}", log.display());
    UserError::new(ExitCode::Failed, format!("{who} does not end"), cause, help)
}
