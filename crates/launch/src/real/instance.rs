//! An instance: servers that belong together, found through one private directory.
//!
//! ```text
//! DIRECTORY/            0700
//!   instance.json       which servers there are and where
//!   key                 0600, the secret of connections beyond this machine
//!   server-0.sock …     where they listen
//!   server-0.log …      what they say, and the launchers of those on other hosts
//!   keeper.log          what the keeper of such launchers says
//!   origin              tells this directory from a copy, if servers run on other hosts
//!   clients/            sockets of clients that work in groups, if servers listen on sockets
//!   data/server-0/ …    blocks, unless other directories were named
//!   directories.json    which directories these were at the last start on this machine
//! ```
//!
//! Clients on another machine need a copy of the first two, and servers that listen by TCP.

use crate::error::{ExitCode, LaunchError};
use crate::real::origin::Origin;
use crate::real::parallel::for_each_at_once;
use crate::real::process::{Child, ProcessEnd, Program, cannot_start};
use crate::real::process_name::ProcessName;
use crate::real::session::server_answers;
use crate::real::{DataDirectories, Direct, private};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use units::MIB;
use world::Address;
use world_real::NodeConfig;

pub(super) const SCHEMA: &str = "unisono.instance/1";

const DIRECTORIES: &str = "directories.json";

/// How long another command may take to start or stop the servers of an instance …
const LOCK_PATIENCE: Duration = Duration::from_secs(120);

/// … and how often it is asked for.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// How long a server on this machine may take to serve: a large catalogue is read and compared.
const SERVER_PATIENCE: Duration = Duration::from_secs(600);

/// How long servers that have done nothing yet may take to end.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// How long a server may take to end after it was asked to.
pub(super) const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// How much of a server's cache may be dirty if nothing is said, in hundredths. Clients may pin
/// half of a cache; if all the rest were dirty, whoever needs room would wait for a disk.
pub const DIRTY_PERCENT: u32 = 50;

fn usual_dirty_percent() -> u32 {
    DIRTY_PERCENT
}

/// An instance by its directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    directory: PathBuf,
}

/// What `instance.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InstanceFile {
    /// `unisono.instance/1`.
    pub schema: String,
    /// The servers, by number.
    pub servers: Vec<ServerEntry>,
    /// Disks of each server.
    pub disks_per_server: u32,
    /// Room of each server's block cache, in bytes.
    pub cache_bytes: u64,
    /// How much of it may be dirty, in hundredths.
    #[serde(default = "usual_dirty_percent")]
    pub dirty_percent: u32,
    /// Which disks move their data past the page cache.
    pub direct: Direct,
    /// The process that keeps the launchers of servers on other hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<ProcessName>,
    /// How the directory is known that such servers were started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// One server of an instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerEntry {
    /// Its number.
    pub id: u32,
    /// Where it listens.
    pub address: String,
    /// Its process.
    pub pid: u32,
    /// Its data directories.
    pub data: Vec<PathBuf>,
    /// Its host, if it was started by a launcher; its process and its directories are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

impl ServerEntry {
    /// Its host and port, if it listens by TCP.
    pub(crate) fn tcp(&self) -> Option<&str> {
        self.address.strip_prefix("tcp:")
    }
}

/// How the servers of an instance are to work.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Room of each server's block cache, in bytes.
    pub cache_bytes: u64,
    /// How much of it may be dirty, in hundredths; see [`DIRTY_PERCENT`].
    pub dirty_percent: u32,
    /// Which disks move their data past the page cache.
    pub direct: Direct,
    /// The host, by name or number, on which servers listen by TCP, each on a port of its own;
    /// `None` for Unix sockets in the instance directory.
    pub tcp_host: Option<String>,
}

impl Default for ServerOptions {
    /// Private servers on Unix sockets, with a cache of 64 MiB each.
    fn default() -> Self {
        Self {
            cache_bytes: 64 * MIB,
            dirty_percent: DIRTY_PERCENT,
            direct: Direct::None,
            tcp_host: None,
        }
    }
}

/// The directory of the instance that commands use when none is named: `UNISONO_INSTANCE`, or one
/// of this user below `XDG_RUNTIME_DIR` or the system's temporary directory.
pub fn default_instance_directory() -> PathBuf {
    if let Some(named) = std::env::var_os("UNISONO_INSTANCE") {
        return named.into();
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let parent = runtime.filter(|path| path.is_dir()).unwrap_or_else(std::env::temp_dir);
    parent.join(format!("unisono-{}", rustix::process::getuid().as_raw()))
}

/// The right to start and stop the servers of an instance, which one process of a machine has.
pub(super) struct Starting(#[expect(dead_code, reason = "it is locked while it is open")] File);

impl Instance {
    /// The instance of this directory, which need not exist yet. Its servers run wherever they
    /// like, so the path is made absolute.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: absolute(&directory.into()) }
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The socket file on which client `rank` of group `group` listens.
    pub(crate) fn client_address(&self, group: u64, rank: u32) -> Address {
        let socket = self.directory.join(private::CLIENTS).join(format!("{group:x}-{rank}.sock"));
        Address(format!("unix:{}", socket.display()))
    }

    /// What a client of `servers` needs to connect. Unix sockets need no key.
    ///
    /// # Errors
    /// When a server listens by TCP and the key cannot be used.
    pub(crate) fn client_node(&self, servers: &[ServerEntry]) -> Result<NodeConfig, LaunchError> {
        let needs_key = servers.iter().any(|server| server.tcp().is_some());
        let key = needs_key.then(|| self.key()).transpose()?;
        Ok(NodeConfig { key, ..NodeConfig::default() })
    }

    /// The secret of this instance.
    pub(crate) fn key(&self) -> Result<[u8; 32], LaunchError> {
        let path = self.directory.join("key");
        let unreadable = |cause: String| {
            LaunchError::new(
                ExitCode::NoServer,
                format!("cannot use the key {}", path.display()),
                cause,
                "the key must be a file of 32 bytes that only you may read (mode 0600)",
            )
        };
        let mode = fs::metadata(&path).map_err(|error| unreadable(error.to_string()))?.mode();
        if mode & 0o777 != 0o600 {
            return Err(unreadable(format!("its mode is {:o}", mode & 0o777)));
        }
        let bytes = fs::read(&path).map_err(|error| unreadable(error.to_string()))?;
        let length = bytes.len();
        bytes.try_into().map_err(|_| unreadable(format!("it has {length} bytes")))
    }

    /// What its file says.
    ///
    /// # Errors
    /// When nothing was started there.
    pub fn read(&self) -> Result<InstanceFile, LaunchError> {
        let path = self.directory.join("instance.json");
        let none = |cause: String| {
            LaunchError::new(
                ExitCode::NoServer,
                format!("there is no instance at {}", self.directory.display()),
                cause,
                "start one with: unisono start --servers 4   (or name it with --instance)",
            )
        };
        let text = fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => none(format!("{} does not exist", path.display())),
            _ => none(format!("{}: {error}", path.display())),
        })?;
        serde_json::from_slice(&text).map_err(|error| none(format!("{}: {error}", path.display())))
    }

    /// Starts servers that go on when this process ends.
    pub fn start(
        &self,
        program: &Program,
        data: &DataDirectories,
        options: &ServerOptions,
    ) -> Result<InstanceFile, LaunchError> {
        let _starting = self.begin_start()?;
        let mut file = self.prepare(data, options)?;
        let mut started = Vec::new();
        for id in 0..file.servers.len() as u32 {
            let begun = self.start_detached(program, id, |pid| {
                started.push(pid);
                file.servers[id as usize].pid = pid;
                // Should this process be killed now, they can be stopped.
                self.write(&file)
            });
            match begun {
                Ok(address) => file.servers[id as usize].address = address,
                Err(error) => {
                    end_all(&started);
                    self.forget();
                    return Err(error);
                }
            }
        }
        self.write(&file).inspect_err(|_| end_all(&started))?;
        Ok(file)
    }

    /// Starts servers that end with this process.
    pub(crate) fn start_attached(
        &self,
        program: &Program,
        data: &DataDirectories,
        options: &ServerOptions,
    ) -> Result<Vec<Child>, LaunchError> {
        let _starting = self.begin_start()?;
        let mut file = self.prepare(data, options)?;
        let mut children = Vec::new();
        for id in 0..file.servers.len() as u32 {
            let command = program.command(&self.role(id, true));
            let mut child = Child::start(command, self.log(id)?)?;
            let said = child.hear().ok().flatten();
            file.servers[id as usize].address = self.check_ready(id, said)?;
            file.servers[id as usize].pid = child.id();
            children.push(child);
        }
        self.write(&file)?;
        Ok(children)
    }

    /// Whether the process of this server is there and is a server of this instance.
    pub fn is_running(&self, server: &ServerEntry) -> bool {
        let command = fs::read(format!("/proc/{}/cmdline", server.pid)).unwrap_or_default();
        let directory = self.directory.as_os_str().as_encoded_bytes();
        let mut words = command.split(|byte| *byte == 0);
        words.any(|word| word == directory)
    }

    /// What data of this instance is called where many instances have theirs: nothing that tells
    /// its key.
    pub(super) fn data_name(&self) -> Result<String, LaunchError> {
        let digest = Sha256::new_with_prefix("unisono data of ").chain_update(self.key()?);
        let bytes = &digest.finalize()[..8];
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Waits until nobody else starts servers here, or stops them; others wait for this one until
    /// what is returned is dropped. Makes the directory.
    pub(super) fn begin_start(&self) -> Result<Starting, LaunchError> {
        private::make_directory(&self.directory)?;
        let starting = self.lock()?;
        private::make_instance_directory(&self.directory)?;
        Ok(starting)
    }

    /// Waits until nobody else on this machine starts or stops servers here; not for ever.
    pub(super) fn lock(&self) -> Result<Starting, LaunchError> {
        let unusable = |error: std::io::Error| self.cannot_write(&self.directory, &error);
        let directory = File::open(&self.directory).map_err(unusable)?;
        let deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            match directory.try_lock() {
                Ok(()) => return Ok(Starting(directory)),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(LaunchError::new(
                        ExitCode::Failed,
                        format!("the instance at {} is in use", self.directory.display()),
                        "another command starts or stops its servers, for minutes already",
                        "wait for that command, or end it",
                    ));
                }
                Err(TryLockError::Error(error)) => return Err(unusable(error)),
            }
        }
    }

    /// Makes the key, unless an instance runs here.
    pub(super) fn make_ready(&self) -> Result<(), LaunchError> {
        if let Ok(file) = self.read()
            && let Some(cause) = self.why_running(&file)
        {
            return Err(LaunchError::usage(
                format!("an instance is running at {}", self.directory.display()),
                cause,
                "stop it with: unisono stop   (or name another with --instance)",
            ));
        }
        private::make_directory(&self.directory.join(private::CLIENTS))?;
        self.make_key()
    }

    fn why_running(&self, file: &InstanceFile) -> Option<String> {
        if let Some(server) = file.servers.iter().find(|server| self.is_running(server)) {
            return Some(format!("server {} is process {}", server.id, server.pid));
        }
        let keeper = file.keeper.as_ref()?;
        if keeper.end().is_some() {
            return Some(format!("the keeper of its launchers is process {}", keeper.pid));
        }
        let node = self.client_node(&file.servers).ok()?;
        let answer = for_each_at_once(&file.servers, |one| server_answers(one, node.clone()));
        let (server, _) = file.servers.iter().zip(answer).find(|(_, answers)| *answers)?;
        Some(format!("server {} answers at {}", server.id, server.address))
    }

    /// Forgets the servers that were started last.
    pub(super) fn forget(&self) {
        for file in ["instance.json", "origin"] {
            // It may be gone already.
            let _ = fs::remove_file(self.directory.join(file));
        }
    }

    fn prepare(
        &self,
        data: &DataDirectories,
        options: &ServerOptions,
    ) -> Result<InstanceFile, LaunchError> {
        if let Some(host) = &options.tcp_host {
            check_listen(host)?;
        }
        self.make_ready()?;
        let memory = self.directory.join(DIRECTORIES);
        data.refuse_to_forget(&memory)?;
        data.prepare()?;
        data.remember(&memory);
        let servers = data.by_server.iter().enumerate().map(|(id, directories)| ServerEntry {
            id: id as u32,
            address: match &options.tcp_host {
                Some(host) => format!("tcp:{host}:0"),
                None => format!("unix:{}/server-{id}.sock", self.directory.display()),
            },
            pid: 0,
            data: directories.clone(),
            host: None,
        });
        let file = InstanceFile {
            schema: SCHEMA.to_owned(),
            servers: servers.collect(),
            disks_per_server: data.disks_per_server(),
            cache_bytes: options.cache_bytes,
            dirty_percent: options.dirty_percent,
            direct: options.direct.clone(),
            keeper: None,
            origin: None,
        };
        self.write(&file)?;
        Ok(file)
    }

    fn make_key(&self) -> Result<(), LaunchError> {
        let path = self.directory.join("key");
        if path.exists() {
            return self.key().map(|_| ());
        }
        let mut key = [0; 32];
        let made = getrandom::fill(&mut key).map_err(std::io::Error::from).and_then(|()| {
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(&key)
        });
        made.map_err(|error| self.cannot_write(&path, &error))
    }

    /// Replaces `instance.json` in one step, so that nobody reads half of it.
    pub(super) fn write(&self, file: &InstanceFile) -> Result<(), LaunchError> {
        let (path, new) =
            (self.directory.join("instance.json"), self.directory.join("instance.new"));
        let text = serde_json::to_vec_pretty(file).unwrap_or_default();
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| self.cannot_write(&path, &error))
    }

    pub(super) fn cannot_write(&self, path: &Path, error: &std::io::Error) -> LaunchError {
        LaunchError::usage(
            format!("cannot write {}", path.display()),
            error.to_string(),
            "name another instance directory with --instance",
        )
    }

    fn role(&self, id: u32, attached: bool) -> Vec<String> {
        let mut words = vec![
            "serve".to_owned(),
            "--id".to_owned(),
            id.to_string(),
            "--instance".to_owned(),
            self.directory.display().to_string(),
        ];
        if attached {
            words.push("--attached".to_owned());
        }
        words
    }

    /// What a server says, and its launcher.
    pub fn log_path(&self, id: u32) -> PathBuf {
        self.directory.join(format!("server-{id}.log"))
    }

    fn log(&self, id: u32) -> Result<Stdio, LaunchError> {
        let path = self.log_path(id);
        let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        opened.map(Stdio::from).map_err(|error| self.cannot_write(&path, &error))
    }

    /// Starts a server that goes on when this process ends; `begun` hears of its process at once.
    /// Returns where it listens.
    fn start_detached(
        &self,
        program: &Program,
        id: u32,
        begun: impl FnOnce(u32) -> Result<(), LaunchError>,
    ) -> Result<String, LaunchError> {
        let mut command = program.command(&self.role(id, false));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(self.log(id)?).process_group(0);
        let mut child = command.spawn().map_err(|error| cannot_start(&command, &error))?;
        begun(child.id())?;
        let (sender, heard) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                // The server says one line when it serves, or ends without.
                let mut said = String::new();
                let _ = BufReader::new(output).read_line(&mut said);
                let _ = sender.send(said);
            });
        }
        match heard.recv_timeout(SERVER_PATIENCE) {
            Err(RecvTimeoutError::Timeout) => Err(LaunchError::new(
                ExitCode::NoServer,
                format!("server {id} did not start"),
                format!("it does not serve after {} s", SERVER_PATIENCE.as_secs()),
                format!("does its disk answer? Look at {}", self.log_path(id).display()),
            )),
            heard => {
                let said = heard.unwrap_or_default();
                self.check_ready(id, (!said.is_empty()).then(|| said.trim_end().to_owned()))
            }
        }
    }

    /// Where a server listens that said so, or why it did not.
    fn check_ready(&self, id: u32, said: Option<String>) -> Result<String, LaunchError> {
        let address = said.as_deref().and_then(|said| said.strip_prefix(super::server::READY));
        if let Some(address) = address {
            return Ok(address.to_owned());
        }
        let log = fs::read_to_string(self.log_path(id)).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(3).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        Err(LaunchError::new(
            ExitCode::NoServer,
            format!("server {id} did not start"),
            if tail.is_empty() { "it said nothing".to_owned() } else { tail.join("; ") },
            format!("look at {}", self.log_path(id).display()),
        ))
    }
}

/// Refuses a host at which no server can listen here.
fn check_listen(host: &str) -> Result<(), LaunchError> {
    let refused = |cause: String| {
        LaunchError::usage(
            format!("servers cannot listen at {host:?}"),
            cause,
            "name an address of this machine that its clients call, such as 127.0.0.1",
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

/// The same path from the root, without a slash at its end, which would lead through a link; as it
/// is when it is empty.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components().collect()
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Ends servers that have just begun, and waits for that: what they lock is free then.
fn end_all(pids: &[u32]) {
    let ends: Vec<ProcessEnd> = pids.iter().filter_map(|pid| ProcessEnd::of(*pid)).collect();
    pids.iter().for_each(|pid| signal(*pid, rustix::process::Signal::TERM));
    let deadline = Instant::now() + END_PATIENCE;
    ends.iter().for_each(|end| _ = end.wait_until(deadline));
}
