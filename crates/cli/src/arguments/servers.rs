//! What can be said about servers and where they run.

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

/// What `--direct` alone stands for.
pub(crate) const ALL: &str = "all";

#[derive(Args, Debug)]
#[command(after_help = START_HELP)]
pub(crate) struct Start {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    #[command(flatten)]
    pub(crate) hosts: Hosts,
    /// Number of servers (default: 4 on this machine; on hosts as many as are said of each).
    #[arg(long, value_parser = count)]
    pub(crate) servers: Option<u32>,
    /// Number of servers on each host, whatever is said of it.
    #[arg(long, value_parser = count, conflicts_with_all = ["servers", "tcp"])]
    pub(crate) servers_per_host: Option<u32>,
    /// Directory that stands for one disk; repeat it for more (default: inside the instance). On
    /// hosts, each server has one of its own in it, and the servers of a host share those named.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Vec<PathBuf>,
    /// Block cache of each server. Besides, the transfers that it directs have buffers of a quarter
    /// as much, or of two blocks for each disk; and as much may wait for room in the cache with the
    /// requests that brought it.
    #[arg(long, default_value = "64MiB", value_parser = size, value_name = "SIZE")]
    pub(crate) cache: u64,
    /// How much of the block cache may be dirty; with more, the blocks that have been so longest
    /// are written back until half of that is left. 100: only what must leave.
    #[arg(long, default_value_t = DIRTY_PERCENT, value_name = "PERCENT",
          value_parser = value_parser!(u32).range(0..=100))]
    pub(crate) dirty: u32,
    /// Move data past the page cache of the servers' system (O_DIRECT): nothing is held there
    /// twice, and every read is one of the device. With --direct=DIR, which may be repeated, only
    /// that of the disks in this --data directory.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true,
          default_missing_value = ALL)]
    pub(crate) direct: Vec<PathBuf>,
    /// Listen by TCP on this host instead of on Unix sockets; clients need the instance's key.
    #[arg(long, value_name = "HOST", conflicts_with = "hostfile")]
    pub(crate) tcp: Option<String>,
    /// Where the hosts have this program (default: where it is here).
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_program: Option<PathBuf>,
    /// Seconds that a server on another host may take to begin, and again to serve.
    #[arg(long, default_value = "60", value_parser = count, value_name = "SECONDS")]
    pub(crate) patience: u32,
    #[command(flatten)]
    pub(crate) root: AsRoot,
}

/// Whether root may do it; part of each command that starts servers.
#[derive(Args, Debug)]
pub(crate) struct AsRoot {
    /// Start servers also as root, though they could reach every file of this machine.
    #[arg(long, env = "UNISONO_ALLOW_ROOT", value_parser = BoolishValueParser::new())]
    pub(crate) allow_root: bool,
}

impl AsRoot {
    /// Refuses root, unless it may.
    pub(crate) fn check(&self) -> Result<(), UserError> {
        if self.allow_root { Ok(()) } else { cluster::refuse_root() }
    }
}

/// On which hosts, and by what.
#[derive(Args, Debug)]
pub(crate) struct Hosts {
    /// File that names the hosts.
    #[arg(long, value_name = "FILE")]
    pub(crate) hostfile: Option<PathBuf>,
    /// What starts programs on hosts: auto, local (this machine), ssh, srun, mpiexec, or a program
    /// that is called with a host and a command; options of its own may follow, in one word.
    /// UNISONO_LAUNCHER says what it is on hosts where this is auto.
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
    /// Where the servers of the trial keep their data while it runs.
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

/// Only for those who look at the processes of a host.
#[derive(Args, Debug)]
pub(crate) struct ServeRemote {
    #[arg(long)]
    pub(crate) id: u32,
    #[arg(long)]
    pub(crate) instance: PathBuf,
}
