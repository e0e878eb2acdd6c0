//! Starting the servers of an instance on this machine.

use crate::agreement::{lost_disks, permissions};
use crate::control::{Commit, Found, ServerMessage, line, parse_message};
use crate::cores::check_cores;
use crate::data::DataDirectories;
use crate::instance::{begin_start, directories, forget, make_ready, write};
use crate::labels::FoundLabel;
use crate::leftovers::open_log;
use crate::local_server::LocalOrder;
use crate::lost_data::LostData;
use crate::memories::discard_unused;
use crate::process::{Child, Program};
use crate::restarts::begin_restarts;
use crate::server::raise_descriptors;
use crate::stop::stop;
use client::{
    DIRTY_PERCENT, DISK_TIMEOUT_S, Direct, INSTANCE_SCHEMA, Instance, InstanceFile, ServerEntry,
    WireProtection, wire_protection,
};
use interface::{CoreList, ExitCode, UserError};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use units::MIB;

/// Time limit of a server on this machine for each step of its start: it reads and compares a large
/// catalogue.
const SERVER_TIMEOUT: Duration = Duration::from_secs(600);

/// Number of last log lines quoted in an error.
const TAIL_LINES_MAX: usize = 3;

/// Options of the servers of an instance.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Size of each server's block cache, in bytes.
    pub cache_bytes: u64,
    /// Dirty high-water mark, percent of the cache; see [`DIRTY_PERCENT`].
    pub dirty_percent: u32,
    /// Time for which no request to a disk ends, after which its requests fail, in seconds; 0 to
    /// wait without end.
    pub disk_timeout_s: u32,
    /// Disks that bypass the page cache.
    pub direct: Direct,
    /// Host, by name or address, on which servers listen by TCP, each on a port of its own. `None`
    /// uses Unix sockets in the instance directory.
    pub tcp_host: Option<String>,
    /// Treatment of data directories that are lost.
    pub lost_data: LostData,
    /// Memory of each server, in bytes, in which its files are. `None`: in the data directories.
    pub memory_bytes: Option<u64>,
    /// Time for which clients wait for a lost server, in seconds. Above 0, servers that end are
    /// started again, if they outlive the process that starts them.
    pub reconnect_s: u32,
    /// Cores that the servers share, each with its own part. `None`: any core.
    pub cores: Option<CoreList>,
    /// Protection of connections by TCP. `None`: the default for the address.
    pub wire: Option<WireProtection>,
}

impl Default for ServerOptions {
    /// Servers on Unix sockets, with a cache of 64 MiB each.
    fn default() -> Self {
        Self {
            cache_bytes: 64 * MIB,
            dirty_percent: DIRTY_PERCENT,
            disk_timeout_s: DISK_TIMEOUT_S,
            direct: Direct::None,
            tcp_host: None,
            lost_data: LostData::Refuse,
            memory_bytes: None,
            reconnect_s: 0,
            cores: None,
            wire: None,
        }
    }
}

/// Starts servers that outlive this process.
///
/// # Errors
/// Fails when a server does not start. Nothing is left then.
pub fn start(
    instance: &Instance,
    program: &Program,
    data: &DataDirectories,
    options: &ServerOptions,
) -> Result<InstanceFile, UserError> {
    // Two descriptors for each server.
    raise_descriptors();
    let (file, servers) = start_all(instance, program, data, options, false)?;
    servers.into_iter().for_each(Child::detach);
    if options.reconnect_s == 0 {
        return Ok(file);
    }
    let begun = begin_restarts(instance, program, options.lost_data.refills());
    begun.inspect_err(|_| {
        // The first error is the one to report.
        let _ = stop(instance);
    })
}

/// Starts servers that end with this process.
pub(crate) fn start_attached(
    instance: &Instance,
    program: &Program,
    data: &DataDirectories,
    options: &ServerOptions,
) -> Result<Vec<Child>, UserError> {
    start_all(instance, program, data, options, true).map(|(_, servers)| servers)
}

/// Starts servers, all at once. Whatever ends this process, they end too, until `instance.json`
/// names them: then the start is complete.
fn start_all(
    instance: &Instance,
    program: &Program,
    data: &DataDirectories,
    options: &ServerOptions,
    attached: bool,
) -> Result<(InstanceFile, Vec<Child>), UserError> {
    let _starting = begin_start(instance)?;
    if let Some(host) = &options.tcp_host {
        check_listen(host)?;
    }
    options.cores.as_ref().map_or(Ok(()), check_cores)?;
    make_ready(instance)?;
    data.refuse_to_forget(&directories(instance))?;
    let started = start_ready(instance, program, data, options, attached);
    if started.is_err() && options.memory_bytes.is_some() {
        discard_unused(instance);
    }
    started
}

/// Starts servers in an instance that is ready.
fn start_ready(
    instance: &Instance,
    program: &Program,
    data: &DataDirectories,
    options: &ServerOptions,
    attached: bool,
) -> Result<(InstanceFile, Vec<Child>), UserError> {
    let mut file = planned(instance, data, options);
    let lost_data = options.lost_data;
    let ids = 0..file.servers.len() as u32;
    let begin = |id| Starting::begin(instance, program, (&file, lost_data), id, attached);
    let mut servers = ids.map(begin).collect::<Result<Vec<_>, _>>()?;
    let found = servers.iter_mut().map(Starting::found).collect::<Result<Vec<_>, _>>()?;
    let permissions = permissions(&found, labels(&found), lost_data)?;
    file.degraded = file.degraded.map(|_| lost_disks(&permissions));
    servers.iter_mut().zip(&permissions).for_each(|(server, permission)| server.send(permission));
    for (server, entry) in servers.iter_mut().zip(&mut file.servers) {
        (entry.address, entry.pid) = server.listening()?;
    }
    file.wire = wire_protection(file.wire, &file.servers);
    write(instance, &file)?;
    servers.iter_mut().for_each(|server| server.send(&Commit::of(&file)));
    for server in &mut servers {
        server.serving().inspect_err(|_| {
            // A server that ends now says the same.
            let _ = forget(instance);
        })?;
    }
    Ok((file, servers.into_iter().map(|server| server.process).collect()))
}

/// Name and label of each directory that servers have found.
fn labels(found: &[Found]) -> Vec<(String, Option<FoundLabel>)> {
    let of_server = |found: &Found| {
        let names = found.data.iter().map(|path| path.display().to_string());
        names.zip(found.labels.iter().cloned()).collect::<Vec<_>>()
    };
    found.iter().flat_map(of_server).collect()
}

/// Content of `instance.json`, but for the addresses and processes of the servers.
fn planned(instance: &Instance, data: &DataDirectories, options: &ServerOptions) -> InstanceFile {
    let number = data.by_server.len() as u32;
    let servers = data.by_server.iter().enumerate().map(|(id, directories)| ServerEntry {
        id: id as u32,
        address: match &options.tcp_host {
            Some(host) => format!("tcp:{host}:0"),
            None => format!("unix:{}/server-{id}.sock", instance.directory().display()),
        },
        pid: 0,
        data: directories.clone(),
        host: None,
        cores: options.cores.as_ref().map(|cores| cores.part(id as u32, number)),
    });
    InstanceFile {
        schema: INSTANCE_SCHEMA.to_owned(),
        servers: servers.collect(),
        disks_per_server: data.disks_per_server(),
        cache_bytes: options.cache_bytes,
        dirty_percent: options.dirty_percent,
        disk_timeout_s: options.disk_timeout_s,
        direct: options.direct.clone(),
        degraded: options.lost_data.is_degraded().then(Vec::new),
        memory_bytes: options.memory_bytes,
        reconnect_s: options.reconnect_s,
        wire: options.wire,
        supervisor: None,
        origin: None,
    }
}

/// A server that does not serve yet. When this is dropped, it ends.
struct Starting {
    id: u32,
    log: PathBuf,
    process: Child,
}

impl Starting {
    /// Starts the process of server `id` and sends it its order.
    fn begin(
        instance: &Instance,
        program: &Program,
        (file, lost_data): (&InstanceFile, LostData),
        id: u32,
        attached: bool,
    ) -> Result<Self, UserError> {
        let (order, log) = (LocalOrder::of(file, id, lost_data)?, instance.log_path(id));
        let command = program.command(&role(instance, id, attached));
        let process = Child::start(command, open_log(&log)?.into())?;
        let mut server = Self { id, log, process };
        server.send(&order);
        Ok(server)
    }

    /// Sends the server a message.
    fn send(&mut self, message: &impl Serialize) {
        // If the server has ended, its output tells the reason.
        let _ = self.process.send_line(line(message).trim_end());
    }

    fn found(&mut self) -> Result<Found, UserError> {
        match self.receive()? {
            ServerMessage::Found(found) => Ok(found),
            other => Err(self.failed(&format!("it sent an unexpected message: {other:?}"))),
        }
    }

    /// Address and process id of the server when it listens.
    fn listening(&mut self) -> Result<(String, u32), UserError> {
        match self.receive()? {
            ServerMessage::Listening { address, pid } => Ok((address, pid)),
            other => Err(self.failed(&format!("it sent an unexpected message: {other:?}"))),
        }
    }

    fn serving(&mut self) -> Result<(), UserError> {
        match self.receive()? {
            ServerMessage::Serving => Ok(()),
            other => Err(self.failed(&format!("it sent an unexpected message: {other:?}"))),
        }
    }

    /// Waits for the next message of the server.
    fn receive(&mut self) -> Result<ServerMessage, UserError> {
        let deadline = Instant::now() + SERVER_TIMEOUT;
        loop {
            if !self.process.has_output_by(deadline) {
                let limit = SERVER_TIMEOUT.as_secs();
                return Err(self.failed(&format!("it is not ready after {limit} s")));
            }
            let said = self.process.read_line().ok().flatten();
            match said.as_deref().map(parse_message) {
                Some(Some(ServerMessage::Failed(failure))) => return Err(failure.into()),
                Some(Some(message)) => return Ok(message),
                // A program that brings policies along may print something itself.
                Some(None) => {}
                None => {
                    let tail = last_lines(&self.log);
                    let nothing = "it printed nothing".to_owned();
                    return Err(self.failed(if tail.is_empty() { &nothing } else { &tail }));
                }
            }
        }
    }

    fn failed(&self, cause: &str) -> UserError {
        UserError::new(
            ExitCode::NoServer,
            format!("server {} did not start", self.id),
            cause,
            format!("check its disk, and see {}", self.log.display()),
        )
    }
}

/// Last lines of a log, on one line.
fn last_lines(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES_MAX)..].join("; ")
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
