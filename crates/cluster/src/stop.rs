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

/// How long a server may take to end after it was asked to.
pub(crate) const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// How much longer a supervisor may take than its servers: it has its own ways to end launchers.
const SUPERVISOR_PATIENCE: Duration = Duration::from_secs(15);

/// How long a server that does not answer may take to end, when nobody knows that it was told to.
const LEAVING_PATIENCE: Duration = Duration::from_secs(10);

/// How often servers whose processes are out of sight are asked whether they are still there.
const ASKING_PAUSE: Duration = Duration::from_millis(50);

/// What a stop has found.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// How many servers have ended.
    pub ended: usize,
    /// Those that had ended before, or could not be reached, and how that showed.
    pub gone: Vec<(ServerEntry, String)>,
}

/// Asks every server that runs to end and waits until all have, with what started them.
///
/// # Errors
/// When a server cannot write everything back, which therefore goes on, or does not end. When
/// this is a copy of an instance that runs elsewhere, which is left as it is.
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
    let deadline = Instant::now() + STOP_PATIENCE;
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
        &format!("process {} is still there after a minute", server.pid),
        &instance.log_path(server.id),
    ))
}

/// Servers that answer and are not of this machine can be stopped from the directory that they
/// were started from, wherever it is, and not from a copy.
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
        format!("it answers at {}, but no process here is it", server.address),
        "stop the instance where it was started: this is a copy of its directory",
    ))
}

/// Asks one server to end.
fn ask(instance: &Instance, server: &ServerEntry, node: &NodeConfig) -> Asked {
    let end = ProcessEnd::of(server.pid).filter(|_| instance.is_running(server));
    if end.is_none() && server.host.is_none() {
        return Asked::IsGone(format!("there is no process {} that is it", server.pid));
    }
    match (stop_server(server, node.clone()), end) {
        (Ok(()), end) => Asked::Ends(end),
        (Err(Fault::ServerLeft { .. }), Some(end)) if server.host.is_some() => Asked::IsSilent(end),
        // One that has left is about to end by itself, unless it only refuses to talk to us.
        (Err(fault @ Fault::ServerLeft { .. }), Some(end)) => {
            match end.wait_until(Instant::now() + LEAVING_PATIENCE) {
                true => Asked::Ends(Some(end)),
                false => Asked::GoesOn(fault),
            }
        }
        (Err(Fault::ServerLeft { cause, .. }), None) => Asked::IsGone(cause),
        (Err(fault), _) => Asked::GoesOn(fault),
    }
}

/// Ends the supervisor of launchers, if there is one here: it ends those that are left.
fn end_supervisor(instance: &Instance, file: &InstanceFile) -> Result<(), UserError> {
    let Some((supervisor, end)) =
        file.supervisor.as_ref().and_then(|one| Some((one, end_of(one)?)))
    else {
        return Ok(());
    };
    if let Some(pid) = Pid::from_raw(supervisor.pid as i32) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::TERM);
    }
    if end.wait_until(Instant::now() + STOP_PATIENCE + SUPERVISOR_PATIENCE) {
        return Ok(());
    }
    Err(does_not_end(
        "the supervisor of the launchers",
        &format!("process {} is still there", supervisor.pid),
        &instance.directory().join("keeper.log"),
    ))
}

/// What came of asking a server to end.
enum Asked {
    /// It ends; its process may be seen from here.
    Ends(Option<ProcessEnd>),
    /// It does not answer, but its process is there: it ends when it loses its launcher.
    IsSilent(ProcessEnd),
    /// It had ended before, as this tells, or it cannot be reached.
    IsGone(String),
    /// It cannot end.
    GoesOn(Fault),
}

/// Asks until it is so, or the deadline has come.
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
    let help = format!("look at {}", log.display());
    UserError::new(ExitCode::Failed, format!("{who} does not end"), cause, help)
}
