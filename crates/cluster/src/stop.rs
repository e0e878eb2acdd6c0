//! Stopping the servers of an instance.

use crate::closing::end_generation;
use crate::instance::{forget, lock};
use crate::leftovers::{KEEPER_LOG, end_leftovers, resume};
use crate::process::ProcessEnd;
use crate::process_name::end_of;
use client::{Instance, InstanceFile, ServerEntry, for_each_at_once, server_answers, stop_server};
use interface::{ExitCode, UserError};
use rustix::process::Signal;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
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

/// Time limit of a connection to a server that does not answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval between connections to a server that does not answer: it accepts none of them.
const LISTEN_PAUSE: Duration = Duration::from_secs(1);

/// Interval between requests to servers whose processes are not visible here.
const ASKING_PAUSE: Duration = Duration::from_millis(50);

/// Result of a stop.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// Servers of the instance; none if a start was interrupted.
    pub servers: Vec<ServerEntry>,
    /// Number of servers that have ended.
    pub ended: usize,
    /// Number of processes that an interrupted start had left.
    pub leftovers: usize,
    /// Servers that had ended before or could not be reached, and the evidence.
    pub gone: Vec<(ServerEntry, String)>,
}

/// Asks every running server to end. Waits until all servers and their supervisor have ended. A
/// process that a signal has stopped is continued first. Without an instance, ends what an
/// interrupted start has left.
///
/// # Errors
/// Fails when a server cannot write everything back and so goes on, or does not end. When this is a
/// copy of an instance that runs elsewhere, which is left as it is. When there is no instance, and
/// no start has left anything.
pub fn stop(instance: &Instance) -> Result<Stopped, UserError> {
    if !instance.directory().exists() {
        instance.read().map_err(nothing_to_stop)?;
    }
    instance.refuse_foreign()?;
    let _nobody_starts = lock(instance)?;
    let file = match instance.read() {
        Ok(file) => file,
        Err(no_instance) => {
            return match end_leftovers(instance)? {
                0 => Err(nothing_to_stop(no_instance)),
                leftovers => {
                    Ok(Stopped { servers: Vec::new(), ended: 0, leftovers, gone: Vec::new() })
                }
            };
        }
    };
    let node = instance.client_node(&file)?;
    refuse_copy(instance, &file, &node)?;
    resume_all(instance, &file);
    let asked = for_each_at_once(&file.servers, |server| ask(instance, server, &node));
    let (mut ending, mut silent, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    let mut unresponsive = Vec::new();
    let mut first_error = None;
    for (server, asked) in file.servers.iter().zip(asked) {
        match asked {
            Asked::Ends(end) => ending.push((server, end)),
            Asked::IsSilent(end) => silent.push((server, end)),
            Asked::IsGone(how) => gone.push((server.clone(), how)),
            Asked::IsUnresponsive(how) => unresponsive.push((server, how)),
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
            None => wait_for(deadline, ASKING_PAUSE, || !server_answers(server, node.clone())),
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
    for (server, how) in unresponsive {
        // Without its launcher it ends, if it can.
        match wait_for(Instant::now() + LEAVE_TIMEOUT, LISTEN_PAUSE, || !listens(server)) {
            true => gone.push((server.clone(), how)),
            false => return Err(is_unresponsive(server, how)),
        }
    }
    let leftovers = end_leftovers(instance)?;
    // Without a new generation, the next start finds the directories as they are.
    let _ = end_generation(&file);
    forget(instance)?;
    let ended = ending.len() + silent.len();
    Ok(Stopped { servers: file.servers, ended, leftovers, gone })
}

/// Says what an absent instance means to one who stops it: not that it has to be started.
fn nothing_to_stop(no_instance: UserError) -> UserError {
    let help = "nothing runs there, so nothing has to be stopped; --instance names another one";
    UserError { help: help.to_owned(), ..no_instance }
}

/// Continues the servers and the supervisor, if they are processes of this machine. A signal may
/// have stopped them; then they could not write back.
fn resume_all(instance: &Instance, file: &InstanceFile) {
    resume(instance);
    // Servers that launchers have started on this machine have other logs.
    let servers = file.servers.iter().filter_map(|server| process_of(instance, server));
    servers.for_each(|server| server.signal(Signal::CONT));
}

/// Process of a server, if it runs on this machine.
fn process_of(instance: &Instance, server: &ServerEntry) -> Option<ProcessEnd> {
    ProcessEnd::of(server.pid).filter(|_| instance.is_running(server))
}

fn must(instance: &Instance, has_ended: bool, server: &ServerEntry) -> Result<(), UserError> {
    if has_ended {
        return Ok(());
    }
    let host = server.host.as_ref().map_or_else(String::new, |host| format!(" on {host}"));
    Err(does_not_end(
        &format!("server {}{host}", server.id),
        server.pid,
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

/// True if a process listens at the address of a server.
fn listens(server: &ServerEntry) -> bool {
    let addresses = server.tcp().and_then(|address| address.to_socket_addrs().ok());
    addresses
        .into_iter()
        .flatten()
        .any(|address| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok())
}

fn is_unresponsive(server: &ServerEntry, cause: String) -> UserError {
    let ServerEntry { id, pid, .. } = server;
    let host = server.host.as_deref().unwrap_or("its host");
    UserError::new(
        ExitCode::NoServer,
        format!("server {id} on {host} does not answer, but process {pid} there listens"),
        cause,
        format!(
            "a signal may have stopped it: on {host}, kill -CONT {pid}, and stop again. \
             kill -9 {pid} loses what it has not written"
        ),
    )
}

/// Asks one server to end.
fn ask(instance: &Instance, server: &ServerEntry, node: &NodeConfig) -> Asked {
    let end = process_of(instance, server);
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
        (Err(Fault::ServerLeft { cause, .. }), None) if listens(server) => {
            Asked::IsUnresponsive(cause)
        }
        (Err(Fault::ServerLeft { cause, .. }), None) => Asked::IsGone(cause),
        (Err(fault), _) => Asked::GoesOn(fault),
    }
}

/// Ends the supervisor of the servers, if it runs here. One that holds launchers ends those that
/// are left.
fn end_supervisor(instance: &Instance, file: &InstanceFile) -> Result<(), UserError> {
    let Some((supervisor, end)) =
        file.supervisor.as_ref().and_then(|one| Some((one, end_of(one)?)))
    else {
        return Ok(());
    };
    // That of a run outlasts SIGTERM.
    end.signal(Signal::INT);
    end.signal(Signal::CONT);
    if end.wait_until(Instant::now() + STOP_TIMEOUT + SUPERVISOR_TIMEOUT) {
        return Ok(());
    }
    Err(does_not_end(
        "the supervisor of the servers",
        supervisor.pid,
        &instance.directory().join(KEEPER_LOG),
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
    /// The process of the server listens on another host, and does not answer, for this reason.
    IsUnresponsive(String),
    /// The server cannot end.
    GoesOn(Fault),
}

/// Polls until `is_so` returns true or the deadline has come.
fn wait_for(deadline: Instant, pause: Duration, is_so: impl Fn() -> bool) -> bool {
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(pause);
    }
    true
}

fn does_not_end(who: &str, pid: u32, log: &Path) -> UserError {
    UserError::new(
        ExitCode::Failed,
        format!("{who} does not end"),
        format!("process {pid} still runs after a minute"),
        format!(
            "see {}, and stop again: a server ends when its disks have answered. kill -9 {pid} \
             loses what it has not written",
            log.display()
        ),
    )
}
