//! Starting the servers of an instance on this machine.

use crate::data::DataDirectories;
use crate::instance::{begin_start, cannot_write, forget, make_ready, write};
use crate::process::{Child, ProcessEnd, Program, cannot_start};
use crate::server::READY;
use client::{DIRTY_PERCENT, Direct, INSTANCE_SCHEMA, Instance, InstanceFile, ServerEntry};
use interface::{ExitCode, UserError};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use units::MIB;

/// File that lists the data directories of the last start on this machine.
const DIRECTORIES: &str = "directories.json";

/// Time limit of a server on this machine to start: it reads and compares a large catalogue.
const SERVER_TIMEOUT: Duration = Duration::from_secs(600);

/// Time limit of servers that have not served yet to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of the servers of an instance.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Size of each server's block cache, in bytes.
    pub cache_bytes: u64,
    /// Dirty high-water mark, percent of the cache; see [`DIRTY_PERCENT`].
    pub dirty_percent: u32,
    /// Disks that bypass the page cache.
    pub direct: Direct,
    /// Host, by name or address, on which servers listen by TCP, each on a port of its own. `None`
    /// uses Unix sockets in the instance directory.
    pub tcp_host: Option<String>,
}

impl Default for ServerOptions {
    /// Servers on Unix sockets, with a cache of 64 MiB each.
    fn default() -> Self {
        Self {
            cache_bytes: 64 * MIB,
            dirty_percent: DIRTY_PERCENT,
            direct: Direct::None,
            tcp_host: None,
        }
    }
}

/// Starts servers that outlive this process.
pub fn start(
    instance: &Instance,
    program: &Program,
    data: &DataDirectories,
    options: &ServerOptions,
) -> Result<InstanceFile, UserError> {
    let _starting = begin_start(instance)?;
    let mut file = prepare(instance, data, options)?;
    let mut started = Vec::new();
    for id in 0..file.servers.len() as u32 {
        let begun = start_detached(instance, program, id, |pid| {
            started.push(pid);
            file.servers[id as usize].pid = pid;
            // If this process is killed from here on, the servers can still be stopped.
            write(instance, &file)
        });
        match begun {
            Ok(address) => file.servers[id as usize].address = address,
            Err(error) => {
                end_all(&started);
                forget(instance);
                return Err(error);
            }
        }
    }
    write(instance, &file).inspect_err(|_| end_all(&started))?;
    Ok(file)
}

/// Starts servers that end with this process.
pub(crate) fn start_attached(
    instance: &Instance,
    program: &Program,
    data: &DataDirectories,
    options: &ServerOptions,
) -> Result<Vec<Child>, UserError> {
    let _starting = begin_start(instance)?;
    let mut file = prepare(instance, data, options)?;
    let mut children = Vec::new();
    for id in 0..file.servers.len() as u32 {
        let command = program.command(&role(instance, id, true));
        let mut child = Child::start(command, log(instance, id)?)?;
        let first_line = child.read_line().ok().flatten();
        file.servers[id as usize].address = check_ready(instance, id, first_line)?;
        file.servers[id as usize].pid = child.id();
        children.push(child);
    }
    write(instance, &file)?;
    Ok(children)
}

fn prepare(
    instance: &Instance,
    data: &DataDirectories,
    options: &ServerOptions,
) -> Result<InstanceFile, UserError> {
    if let Some(host) = &options.tcp_host {
        check_listen(host)?;
    }
    make_ready(instance)?;
    let memory = instance.directory().join(DIRECTORIES);
    data.refuse_to_forget(&memory)?;
    data.prepare()?;
    data.remember(&memory);
    let servers = data.by_server.iter().enumerate().map(|(id, directories)| ServerEntry {
        id: id as u32,
        address: match &options.tcp_host {
            Some(host) => format!("tcp:{host}:0"),
            None => format!("unix:{}/server-{id}.sock", instance.directory().display()),
        },
        pid: 0,
        data: directories.clone(),
        host: None,
    });
    let file = InstanceFile {
        schema: INSTANCE_SCHEMA.to_owned(),
        servers: servers.collect(),
        disks_per_server: data.disks_per_server(),
        cache_bytes: options.cache_bytes,
        dirty_percent: options.dirty_percent,
        direct: options.direct.clone(),
        supervisor: None,
        origin: None,
    };
    write(instance, &file)?;
    Ok(file)
}

fn role(instance: &Instance, id: u32, attached: bool) -> Vec<String> {
    let mut words = vec![
        "serve".to_owned(),
        "--id".to_owned(),
        id.to_string(),
        "--instance".to_owned(),
        instance.directory().display().to_string(),
    ];
    if attached {
        words.push("--attached".to_owned());
    }
    words
}

fn log(instance: &Instance, id: u32) -> Result<Stdio, UserError> {
    let path = instance.log_path(id);
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    opened.map(Stdio::from).map_err(|error| cannot_write(&path, &error))
}

/// Starts a server that outlives this process. Calls `begun` with its process as soon as it runs.
/// Returns the address on which the server listens.
fn start_detached(
    instance: &Instance,
    program: &Program,
    id: u32,
    begun: impl FnOnce(u32) -> Result<(), UserError>,
) -> Result<String, UserError> {
    let mut command = program.command(&role(instance, id, false));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log(instance, id)?).process_group(0);
    let mut child = command.spawn().map_err(|error| cannot_start(&command, &error))?;
    begun(child.id())?;
    let (sender, heard) = channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            // The server prints one line when it serves, or ends without.
            let mut said = String::new();
            let _ = BufReader::new(output).read_line(&mut said);
            let _ = sender.send(said);
        });
    }
    match heard.recv_timeout(SERVER_TIMEOUT) {
        Err(RecvTimeoutError::Timeout) => Err(UserError::new(
            ExitCode::NoServer,
            format!("server {id} did not start"),
            format!("it is not ready after {} s", SERVER_TIMEOUT.as_secs()),
            format!("check its disk, and see {}", instance.log_path(id).display()),
        )),
        heard => {
            let said = heard.unwrap_or_default();
            check_ready(instance, id, (!said.is_empty()).then(|| said.trim_end().to_owned()))
        }
    }
}

/// Returns the server's address from the line that it printed, or the reason for its failure.
fn check_ready(instance: &Instance, id: u32, said: Option<String>) -> Result<String, UserError> {
    let address = said.as_deref().and_then(|said| said.strip_prefix(READY));
    if let Some(address) = address {
        return Ok(address.to_owned());
    }
    let log = fs::read_to_string(instance.log_path(id)).unwrap_or_default();
    let tail: Vec<&str> = log.lines().rev().take(3).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    Err(UserError::new(
        ExitCode::NoServer,
        format!("server {id} did not start"),
        if tail.is_empty() { "it printed nothing".to_owned() } else { tail.join("; ") },
        format!("see {}", instance.log_path(id).display()),
    ))
}

/// Refuses a host on which no server can listen here.
fn check_listen(host: &str) -> Result<(), UserError> {
    let refused = |cause: String| {
        UserError::usage(
            format!("servers cannot listen at {host:?}"),
            cause,
            "name an address of this machine that its clients can reach, such as 127.0.0.1",
        )
    };
    let listener = std::net::TcpListener::bind(format!("{host}:0"));
    let address = listener.and_then(|listener| listener.local_addr());
    match address.map_err(|error| refused(error.to_string()))? {
        all if all.ip().is_unspecified() => {
            Err(refused("it stands for all addresses of this machine".to_owned()))
        }
        _ => Ok(()),
    }
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
        // The server may have ended already.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Ends servers that have just begun and waits for their end, which releases their locks.
fn end_all(pids: &[u32]) {
    let ends: Vec<ProcessEnd> = pids.iter().filter_map(|pid| ProcessEnd::of(*pid)).collect();
    pids.iter().for_each(|pid| signal(*pid, rustix::process::Signal::TERM));
    let deadline = Instant::now() + END_TIMEOUT;
    ends.iter().for_each(|end| _ = end.wait_until(deadline));
}
