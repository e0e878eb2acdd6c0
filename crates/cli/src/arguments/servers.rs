//! Arguments about servers and hosts.

use super::instance::InstanceOnly;
use crate::value_parsers::count;
use clap::builder::BoolishValueParser;
use clap::{Args, value_parser};
use client::DIRTY_PERCENT;
use interface::{UserError, parse_size as size};
use std::path::PathBuf;

const START_HELP: &str = "\
Without --hostfile and outside of a job, servers run on this machine and listen on Unix sockets.
A file of hosts has one a line: HOST, HOST slots=N or HOST:N, with # before comments; N servers are
started on each, or one. In a job of Slurm (or with PBS_NODEFILE, LSB_HOSTS and their like) that has
other hosts than this one, a server is started on each of them. Servers on hosts listen by TCP.
Their launchers stay as long as they do; when one is lost, its server writes everything back and
ends. Data is in server-N in each --data directory of a host, or in a directory of the instance's
own in its SLURM_TMPDIR, TMPDIR or /tmp.";

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
    /// Data directory. Each stands for one disk; repeat the option for more (default: inside the
    /// instance). On hosts, each server makes one of its own below it, and the servers of a host
    /// share the directories named.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Vec<PathBuf>,
    /// Size of each server's block cache. The transfers that a server directs take buffers of a
    /// quarter as much besides, or two blocks for each disk. Requests that wait for room in the
    /// cache may hold as much data again as the cache.
    #[arg(long, default_value = "64MiB", value_parser = size, value_name = "SIZE")]
    pub(crate) cache: u64,
    /// Dirty high-water mark, percent of the block cache. Above it, the oldest dirty blocks are
    /// written back down to half the mark. At 100, only blocks to be evicted are written back.
    #[arg(long, default_value_t = DIRTY_PERCENT, value_name = "PERCENT",
          value_parser = value_parser!(u32).range(0..=100))]
    pub(crate) dirty: u32,
    /// Bypass the page cache of the servers' system (O_DIRECT): no data is cached twice, and every
    /// read goes to the device. --direct=DIR, which may be repeated, does so only for the disks in
    /// this --data directory.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true,
          default_missing_value = ALL)]
    pub(crate) direct: Vec<PathBuf>,
    /// Listen by TCP on this host instead of on Unix sockets. Clients then need the instance's key.
    #[arg(long, value_name = "HOST", conflicts_with = "hostfile")]
    pub(crate) tcp: Option<String>,
    /// Path of this program on the hosts (default: its path here).
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_program: Option<PathBuf>,
    /// Time limit for a server on another host to start, and again to serve, in seconds.
    #[arg(long = "patience", default_value = "60", value_parser = count, value_name = "SECONDS")]
    pub(crate) start_timeout_s: u32,
    #[command(flatten)]
    pub(crate) root: AsRoot,
}

/// Permission for root, for each command that starts servers.
#[derive(Args, Debug)]
pub(crate) struct AsRoot {
    /// Start servers even as root, although they could then access every file of this machine.
    #[arg(long, env = "UNISONO_ALLOW_ROOT", value_parser = BoolishValueParser::new())]
    pub(crate) allow_root: bool,
}

impl AsRoot {
    /// Refuses root without this permission.
    pub(crate) fn check(&self) -> Result<(), UserError> {
        if self.allow_root { Ok(()) } else { cluster::refuse_root() }
    }
}

/// Hosts and launcher of the servers.
#[derive(Args, Debug)]
pub(crate) struct Hosts {
    /// File that lists the hosts.
    #[arg(long, value_name = "FILE")]
    pub(crate) hostfile: Option<PathBuf>,
    /// Launcher that starts programs on hosts: auto, local (this machine), ssh, srun, mpiexec, or
    /// another program that takes a host and a command. Options may follow its name, in the same
    /// word. UNISONO_LAUNCHER names the launcher for hosts where this is auto.
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
}

/// Arguments that only identify the process in listings of a host.
#[derive(Args, Debug)]
pub(crate) struct ServeRemote {
    #[arg(long)]
    pub(crate) id: u32,
    #[arg(long)]
    pub(crate) instance: PathBuf,
}
