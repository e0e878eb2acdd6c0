//! Arguments about servers and hosts.

use super::instance::InstanceOnly;
use super::value_parsers::{count, memory, wire};
use clap::builder::BoolishValueParser;
use clap::{Args, value_parser};
use client::{DIRTY_PERCENT, Direct, WireProtection};
use cluster::ServerOptions;
use interface::{CoreList, Protection, UserError, parse_size as size};
use std::path::PathBuf;

const START_HELP: &str = "\
Without --hostfile, and outside of a job, servers run on this machine and listen on Unix sockets.
A hostfile has one host per line: HOST, HOST slots=N or HOST:N. # begins a comment. Each host gets
N servers (default: 1). In a Slurm job, or with PBS_NODEFILE, LSB_HOSTS or a similar variable, each
host of the job gets one server, if the job has other hosts than this one. Servers on hosts listen
by TCP. Their launchers run as long as the servers. A server whose launcher has ended writes all
dirty data back and ends. A server keeps its data in server-N in each --data directory of its host.
Without --data, a directory of the instance in SLURM_TMPDIR, TMPDIR or /tmp on that host is used.
The default instance of a Slurm job of several hosts is unisono-job-ID in SLURM_SUBMIT_DIR, which
the hosts must share.
A directory of --data or of the instance that belongs to another user, that others may write to, or
that is reached through another user's link, is refused with exit code 2. So is one whose objects/
is a link. A start that is interrupted leaves no server, and its directories can be used again.";

/// Value of `--direct` without a directory.
pub(crate) const ALL: &str = "all";

#[derive(Args, Debug)]
#[command(after_help = START_HELP)]
pub(crate) struct Start {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    #[command(flatten)]
    pub(crate) hosts: Hosts,
    /// Number of servers (default: 4 on this machine; on hosts the number given for each).
    #[arg(long, value_parser = count)]
    pub(crate) servers: Option<u32>,
    /// Number of servers on each host. Overrides the numbers given for the hosts.
    #[arg(long, value_parser = count, conflicts_with_all = ["servers", "tcp"])]
    pub(crate) servers_per_host: Option<u32>,
    /// Data directory, which stands for one disk. Repeat the option for more (default: inside the
    /// instance). On hosts, the servers of a host share the named directories, and each server
    /// makes a directory of its own in them.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Vec<PathBuf>,
    /// Size of each server's block cache. Directed transfers take further buffers: a quarter of
    /// this size, or two blocks for each disk. Requests that wait for room in the cache may hold
    /// further data, up to this size.
    #[arg(long, default_value = "64MiB", value_parser = size, value_name = "SIZE")]
    pub(crate) cache: u64,
    /// Dirty high-water mark, percent of the block cache. Above it, the oldest dirty blocks are
    /// written back down to half the mark. At 100, only blocks to be evicted are written back.
    #[arg(long, default_value_t = DIRTY_PERCENT, value_name = "PERCENT",
          value_parser = value_parser!(u32).range(0..=100))]
    pub(crate) dirty: u32,
    /// Bypass the page cache of the servers' operating system (O_DIRECT). No data is cached twice,
    /// and every read goes to the device. --direct=DIR, which may be repeated, bypasses it only for
    /// the disks in this --data directory.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true,
          default_missing_value = ALL)]
    pub(crate) direct: Vec<PathBuf>,
    /// Keep files in memory, this much at each server, which is taken at the start. The memory
    /// outlives its server: after a crash or a stop, the next start with this option has the files.
    #[arg(long, value_parser = memory, value_name = "SIZE",
          conflicts_with_all = ["data", "direct", "degraded"])]
    pub(crate) memory: Option<u64>,
    /// Protection of new files against the loss of a server: none, mirror (the next server of a
    /// file has a copy of what a server holds, which takes twice the space), or parity (each row of
    /// blocks has a parity block on a further server; parity:4 has rows of 4 blocks). Default: as
    /// at the last start.
    #[arg(long, value_name = "PROTECTION", conflicts_with = "degraded")]
    pub(crate) protect: Option<Protection>,
    /// Cores for the servers of each host, such as 0-3,8. Each server runs on a part of the list of
    /// its own, or on one core of it if there are more servers than cores (default: any core).
    #[arg(long, value_name = "LIST")]
    pub(crate) server_cores: Option<CoreList>,
    /// Listen by TCP on this address instead of Unix sockets. Clients then need the instance's key.
    #[arg(long, value_name = "HOST", conflicts_with = "hostfile")]
    pub(crate) tcp: Option<String>,
    /// Protection of connections by TCP: plain (none), integrity (changes on the way end the
    /// connection) or private (also encrypted). Default: private, or plain on a loopback address.
    #[arg(long, value_name = "PROTECTION", value_parser = wire)]
    pub(crate) wire: Option<WireProtection>,
    /// Time in seconds after which the requests of a disk fail when none of them has ended; they
    /// fail until one does. 0 waits without end.
    #[arg(long = "disk-timeout", value_name = "SECONDS", default_value_t = client::DISK_TIMEOUT_S)]
    pub(crate) disk_timeout_s: u32,
    /// Start without data directories that are lost, are older copies, or have no label. What lies
    /// on the others can be read; nothing can be changed.
    #[arg(long)]
    pub(crate) degraded: bool,
    /// Take empty data directories in the places of lost ones, and fill them from the copies of
    /// mirrored files while the instance is used. Files without a copy have lost what was there.
    #[arg(long, conflicts_with_all = ["degraded", "memory"])]
    pub(crate) refill: bool,
    /// Maximum number of bytes that each server fills in a second. A later start that goes on with
    /// it has no limit unless it is given again.
    #[arg(long, value_parser = size, value_name = "SIZE", requires = "refill")]
    pub(crate) refill_rate: Option<u64>,
    /// Start servers again that end by themselves or are killed. Programs wait for each this many
    /// seconds (default: 120), connect again, and go on; what a server had not stored is lost, and
    /// whoever wrote it gets an error. With --refill, also where data directories are lost. Only
    /// for servers on this machine.
    #[arg(long = "restart", value_name = "SECONDS", num_args = 0..=1, require_equals = true,
          default_missing_value = "120", value_parser = count,
          conflicts_with_all = ["degraded", "memory", "hostfile"])]
    pub(crate) reconnect_s: Option<u32>,
    /// Path of this program on the hosts (default: its path on this machine).
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_program: Option<PathBuf>,
    /// Time limit in seconds for a server on another host to start, and again to be ready.
    #[arg(long = "patience", default_value = "60", value_parser = count, value_name = "SECONDS")]
    pub(crate) start_timeout_s: u32,
    #[command(flatten)]
    pub(crate) root: AsRoot,
}

/// Permission for root, for each command that starts servers.
#[derive(Args, Debug)]
pub(crate) struct AsRoot {
    /// Start servers even as root. They can then access every file of this machine.
    #[arg(long, env = "UNISONO_ALLOW_ROOT", value_parser = BoolishValueParser::new())]
    pub(crate) allow_root: bool,
}

impl AsRoot {
    /// Refuses root without this permission.
    pub(crate) fn check(&self) -> Result<(), UserError> {
        if self.allow_root { Ok(()) } else { cluster::refuse_root() }
    }
}

/// Caches on the way to the disks, for each command that measures servers of its own.
#[derive(Args, Debug)]
pub(crate) struct Caches {
    /// Size of the block cache of each server to start.
    #[arg(long, default_value = "64MiB", value_parser = size, value_name = "SIZE")]
    cache: u64,
    /// Bypass the page cache of the servers' system (O_DIRECT).
    #[arg(long, conflicts_with = "instance")]
    direct: bool,
    /// Keep files in memory, this much at each server to start.
    #[arg(long, value_parser = memory, value_name = "SIZE",
          conflicts_with_all = ["instance", "data", "direct"])]
    memory: Option<u64>,
}

impl Caches {
    /// Returns options of servers with these caches.
    pub(crate) fn options(&self) -> ServerOptions {
        ServerOptions {
            cache_bytes: self.cache,
            memory_bytes: self.memory,
            direct: if self.direct { Direct::All } else { Direct::None },
            ..ServerOptions::default()
        }
    }
}

/// Hosts and launcher of the servers.
#[derive(Args, Debug)]
pub(crate) struct Hosts {
    /// File that lists the hosts.
    #[arg(long, value_name = "FILE")]
    pub(crate) hostfile: Option<PathBuf>,
    /// Launcher that starts programs on hosts: auto, local (this machine), ssh, srun, mpiexec, or
    /// another program that takes a host and a command. Quote a name with options as one word. With
    /// auto, UNISONO_LAUNCHER names the launcher for hosts.
    #[arg(long, default_value = "auto")]
    pub(crate) launcher: String,
}

#[derive(Args, Debug)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    #[command(flatten)]
    pub(crate) root: AsRoot,
    #[command(flatten)]
    pub(crate) hosts: Hosts,
    /// Directory for the data of the servers that the check starts.
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Check nothing, and make the catalogue of an instance that has lost it again: of the newest
    /// copy that another server has. The servers must have ended.
    #[arg(long)]
    pub(crate) rebuild_catalogue: bool,
    /// With --rebuild-catalogue: number of servers of the instance, if its directory does not say.
    #[arg(long, value_parser = count, requires_all = ["rebuild_catalogue", "data"])]
    pub(crate) servers: Option<u32>,
    /// With --rebuild-catalogue: data directories, as at the start.
    #[arg(long, value_name = "DIR", requires_all = ["rebuild_catalogue", "servers"])]
    pub(crate) data: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Stop {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// Remove the files of an instance that has them in memory. Without this option they remain
    /// there, and the memory remains in use, until the next start.
    #[arg(long)]
    pub(crate) discard: bool,
}

#[derive(Args, Debug)]
pub(crate) struct KeepMemory {
    #[arg(long)]
    pub(crate) directory: PathBuf,
    #[arg(long)]
    pub(crate) outlasts_sigterm: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Status {
    /// First wait until lost data directories are filled again, and all copies and parity are equal
    /// to what they are of. On a terminal, a bar shows the progress. A server that does not answer
    /// for a minute ends the wait.
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Serve {
    #[arg(long)]
    pub(crate) id: u32,
    #[arg(long)]
    pub(crate) instance: PathBuf,
    /// End when standard input ends.
    #[arg(long)]
    pub(crate) attached: bool,
    /// Take empty data directories in the places of lost ones, and fill them from copies.
    #[arg(long)]
    pub(crate) refill: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RestartServers {
    #[arg(long)]
    pub(crate) instance: PathBuf,
    /// Let empty data directories take the places of lost ones.
    #[arg(long)]
    pub(crate) refill: bool,
}

/// Arguments that only identify the process in listings of a host.
#[derive(Args, Debug)]
pub(crate) struct ServeRemote {
    #[arg(long)]
    pub(crate) id: u32,
    #[arg(long)]
    pub(crate) instance: PathBuf,
}
