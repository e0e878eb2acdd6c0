//! What can be said on the command line.

mod files;
mod servers;

pub(crate) use files::{
    Cat, Cp, Du, Find, Get, Kind, Layout, LayoutGet, LayoutSet, Ls, MaybeNamed, Mkdir, Mv, Named,
    Put, Rm,
};
pub(crate) use servers::{ALL, AsRoot, Doctor, Hosts, Serve, ServeTold, Start};

use crate::words::count;
use clap::{Args, Parser, Subcommand};
use launch::{Declared, DiskOrder, Replacement, parse_size as size};
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 failed, 2 usage, 3 no instance or server unreachable, 4 data check failed,
5 collective not completed by all clients, 6 out of space, 130 interrupted.
Sizes: 4096, 8KiB, 1MiB, 2GiB. Patterns: ra rn rb rc rnb rbb rbc rcn rcb rcc and the w forms.";

/// Words of a choice as they stand in a help text: "a, b or c".
fn either(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}

/// A parallel file system whose servers direct collective transfers, and its simulated twin.
#[derive(Parser, Debug)]
#[command(name = "unisono", version, after_help = AFTER_HELP, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Start the servers of an instance: on this machine, or on the hosts of a file or a job.
    Start(Start),
    /// Stop the servers of an instance; everything is written back first.
    Stop(InstanceOnly),
    /// Show the servers of an instance.
    Status(InstanceOnly),
    /// Look whether this machine, the hosts of a file or a job, and an instance can do what will be
    /// asked of them.
    Doctor(Doctor),
    /// Copy a local file into an instance.
    Put(Put),
    /// Copy a file out of an instance.
    Get(Get),
    /// Copy files and directories into an instance, out of it, or within it.
    Cp(Cp),
    /// Move files and directories within an instance.
    Mv(Mv),
    /// List a directory of an instance.
    Ls(Ls),
    /// Draw the directories and files of an instance as a tree.
    Tree(MaybeNamed),
    /// Find files and directories of an instance.
    Find(Find),
    /// Show what is known of a file or a directory.
    Stat(Named),
    /// Print files of an instance.
    Cat(Cat),
    /// Make directories in an instance.
    Mkdir(Mkdir),
    /// Remove files and directories of an instance.
    Rm(Rm),
    /// Show how much the files of an instance hold.
    Du(Du),
    /// Show or say how files lie on servers, and how servers buffer them.
    #[command(subcommand)]
    Layout(Layout),
    /// Show the space on the disks of an instance.
    Df(InstanceOnly),
    /// Measure real transfers; every byte is checked.
    Bench(Box<Bench>),
    /// Simulate transfers on a machine made of models.
    Sim(Box<Sim>),
    /// Run published experiments on the simulated machine and compare with what was published.
    Reproduce(Reproduce),
    /// Write and read a real file by every strategy, here and on the simulated 1994 machine.
    Demo(Demo),
    /// A server process; started by `start`.
    #[command(hide = true)]
    Serve(Serve),
    /// A server process that standard input tells what it is; started by a launcher.
    #[command(hide = true)]
    ServeTold(ServeTold),
    /// The process that keeps launchers; started by `start`.
    #[command(hide = true)]
    Keep(InstanceOnly),
    /// A client process of a bench; started by `bench`.
    #[command(hide = true)]
    BenchClient,
    /// A client process of `bench tops`.
    #[command(hide = true)]
    BenchTopsClient,
}

/// Which instance, and how to show results.
#[derive(Args, Debug)]
pub(crate) struct InstanceOnly {
    /// Directory of the instance.
    #[arg(long, value_name = "DIR", env = "UNISONO_INSTANCE")]
    pub(crate) instance: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to transfer; shared by `bench` and `sim`. Lists are crossed.
#[derive(Args, Debug)]
pub(crate) struct Cases {
    /// Patterns as the papers name them, separated by commas (default: wbc,rbc).
    #[arg(long, value_delimiter = ',', conflicts_with = "distribution")]
    pub(crate) pattern: Vec<String>,
    /// A distribution instead of a pattern: one word for each dimension out of none, block, cyclic
    /// and cyclic(k), or all.
    #[arg(long, value_name = "WORDS")]
    pub(crate) distribution: Option<String>,
    /// With --distribution: write instead of read.
    #[arg(long, requires = "distribution", conflicts_with = "pattern")]
    pub(crate) write: bool,
    /// Record sizes, separated by commas (default: 8KiB).
    #[arg(long, value_name = "SIZE", value_parser = size, value_delimiter = ',')]
    pub(crate) record: Vec<u64>,
    /// Strategies, separated by commas: caching, two-phase, disk-directed, or all of these (the
    /// default); or noncollective, which is disk-directed without a collective.
    #[arg(long, value_delimiter = ',')]
    pub(crate) strategy: Vec<String>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) command: Option<BenchCommand>,
    #[command(flatten)]
    pub(crate) cases: Cases,
    #[command(flatten)]
    pub(crate) root: AsRoot,
    /// Number of client processes.
    #[arg(long, default_value = "8", value_parser = count)]
    pub(crate) clients: u32,
    /// Number of servers to start for the bench.
    #[arg(long, default_value = "4", value_parser = count, conflicts_with = "instance")]
    pub(crate) servers: u32,
    /// Measure a running instance instead of starting servers. If they listen by TCP on another
    /// machine, a copy of its directory here will do: instance.json, and key with mode 0600.
    #[arg(long, value_name = "DIR", group = "may_be_tcp")]
    pub(crate) instance: Option<PathBuf>,
    /// Directory that stands for one disk of the servers to start; repeat it for more.
    #[arg(long, value_name = "DIR", conflicts_with = "instance")]
    pub(crate) data: Vec<PathBuf>,
    /// Where the servers to start keep everything else, and their data if no --data is given.
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Bytes of the file.
    #[arg(long, default_value = "256MiB", value_parser = size)]
    pub(crate) size: u64,
    /// Bytes of a block.
    #[arg(long, default_value = launch::DEFAULT_BLOCK, value_parser = size, value_name = "SIZE")]
    pub(crate) block: u64,
    /// Number of transfers of each case.
    #[arg(long, default_value = "3", value_parser = count)]
    pub(crate) repeat: u32,
    /// End writes only when the data is on stable storage.
    #[arg(long)]
    pub(crate) sync: bool,
    /// First measure what a memory copy and dd in the first data directory reach, to compare with.
    #[arg(long)]
    pub(crate) limits: bool,
    /// Requests that one client has under way at one disk (caching and two-phase).
    #[arg(long, default_value = "4", value_parser = count)]
    pub(crate) outstanding: u32,
    /// Block cache of each server to start.
    #[arg(long, default_value = "64MiB", value_parser = size, value_name = "SIZE")]
    pub(crate) cache: u64,
    /// Have the servers to start move data past the page cache of their system (O_DIRECT).
    #[arg(long, conflicts_with = "instance")]
    pub(crate) direct: bool,
    /// Let the servers to start listen by TCP on this host, and the clients for one another too.
    #[arg(long, value_name = "HOST", conflicts_with = "instance", group = "may_be_tcp")]
    pub(crate) tcp: Option<String>,
    /// Where servers listen by TCP: the address of this machine on which clients listen for one
    /// another (default: the one by which they reach server 0).
    #[arg(long, value_name = "HOST", requires = "may_be_tcp")]
    pub(crate) client_host: Option<String>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum BenchCommand {
    /// Measure what clients that work each for itself get of striped files, from buffers and from
    /// disks, next to what the machine can do (Tower of Pizzas, Table 1 and Figures 5 to 10).
    Tops(Tops),
}

#[derive(Args, Debug)]
pub(crate) struct Tops {
    #[command(flatten)]
    pub(crate) root: AsRoot,
    /// Numbers of servers, separated by commas.
    #[arg(long, default_value = "1,2,4,8", value_delimiter = ',', value_parser = count)]
    pub(crate) servers: Vec<u32>,
    /// Numbers of clients, separated by commas.
    #[arg(long, default_value = "1,2,4,8", value_delimiter = ',', value_parser = count)]
    pub(crate) clients: Vec<u32>,
    /// Bytes of a page where all is found in buffers.
    #[arg(long, default_value = "256KiB", value_parser = size, value_name = "SIZE")]
    pub(crate) page: u64,
    /// Bytes of a page where the disks matter.
    #[arg(long, default_value = "8KiB", value_parser = size, value_name = "SIZE")]
    pub(crate) disk_page: u64,
    /// Pages that a client asks for at a time.
    #[arg(long, default_value = "16", value_parser = count)]
    pub(crate) pages: u32,
    /// Milliseconds for which the clients of one point work.
    #[arg(long, default_value = "500", value_parser = count, value_name = "MS")]
    pub(crate) time: u32,
    /// Bytes of the file for each server where the disks matter.
    #[arg(long, default_value = "64MiB", value_parser = size, value_name = "SIZE")]
    pub(crate) disk_size: u64,
    /// Where the servers keep their data meanwhile; the disk there is measured.
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Write tops.csv, and a plot of each figure as SVG, into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Sim {
    #[command(subcommand)]
    pub(crate) command: Option<SimCommand>,
    #[command(flatten)]
    pub(crate) cases: Cases,
    /// Simulate what this file describes; options come before it (docs/scenarios.md explains the
    /// keys).
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Print the scenario that comes of presets, file and options, every key explained, as a file
    /// for --scenario (or as JSON); simulate nothing.
    #[arg(long, conflicts_with_all = ["timeline", "plot"])]
    pub(crate) explain: bool,
    /// The machine to simulate: tr94, tocs97 or ideal-disks (default: tr94).
    #[arg(long)]
    pub(crate) machine: Option<String>,
    /// Change a parameter of the machine, such as queue=cscan; repeat it for more.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Its disks instead of those of the machine: hp97560, hp-c2200a, nvme, analytic, ideal, or a
    /// description in a file FILE.toml (docs/disks has explained examples).
    #[arg(long, value_name = "DISK")]
    pub(crate) disk: Option<String>,
    /// What connects its nodes: torus, exact-torus, crossbar or fat-tree (default: torus).
    #[arg(long)]
    pub(crate) network: Option<String>,
    /// Blocks that a server which directs a transfer holds for each disk (default: 2).
    #[arg(long, value_parser = count, value_name = "COUNT")]
    pub(crate) buffers: Option<u32>,
    /// How blocks lie on its disks: contiguous, random-blocks or random-tracks (default:
    /// contiguous).
    #[arg(long)]
    pub(crate) layout: Option<String>,
    #[arg(long, help = format!(
        "Order in which servers that direct a transfer use their disks: {} (default: sorted)",
        either(DiskOrder::WORDS),
    ))]
    pub(crate) order: Option<String>,
    #[arg(long, value_name = "ACCESS", help = format!(
        "Declared access of the file's users: {} (default: unknown)",
        either(Declared::WORDS),
    ))]
    pub(crate) declare: Option<String>,
    #[arg(long, value_name = "POLICY", help = format!(
        "Replacement policy, which chooses the block that is evicted first from a full cache: \
         declared, {}, or custom:NAME of the program's own (default: declared, which is what \
         suits --declare)",
        Replacement::WORDS.join(", "),
    ))]
    pub(crate) replacement: Option<String>,
    /// What servers read before anyone asks for it: declared, nothing, next or window (default:
    /// declared, which is what suits --declare).
    #[arg(long, value_name = "WHAT")]
    pub(crate) read_ahead: Option<String>,
    /// Number of clients (default: 16).
    #[arg(long, value_parser = count)]
    pub(crate) clients: Option<u32>,
    /// Number of servers (default: 16).
    #[arg(long, value_parser = count)]
    pub(crate) servers: Option<u32>,
    /// Disks of each server, on one bus (default: 1).
    #[arg(long, value_parser = count)]
    pub(crate) disks: Option<u32>,
    /// Bytes of the file (default: 10MiB).
    #[arg(long, value_parser = size)]
    pub(crate) size: Option<u64>,
    /// Bytes of a block (default: 8KiB).
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) block: Option<u64>,
    /// Number of trials, each with a seed of its own (default: 5; 1 with --timeline and --plot).
    #[arg(long, value_parser = count)]
    pub(crate) trials: Option<u32>,
    /// Seed of the first trial (default: 1).
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// End writes only when the data is on the medium; --sync=false takes back what a file says.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) sync: Option<bool>,
    /// What moves: phantom (lengths only) or traced (proves that every byte is in its place)
    /// (default: phantom).
    #[arg(long)]
    pub(crate) payload: Option<String>,
    /// Show how much of the servers' processors the transfer leaves to a computation on them,
    /// without synchronisation and with a barrier every 5 ms.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) availability: Option<bool>,
    /// Write what happens in the one trial of one case into this file, as a Chrome trace: open it
    /// in Perfetto (ui.perfetto.dev) or chrome://tracing.
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// Draw where the head of a disk is over time into this SVG file; one picture for each strategy
    /// of one case, one above the other.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Which disk --plot is about, counted from 0 over all servers.
    #[arg(long, value_name = "DISK", default_value = "0", requires = "plot")]
    pub(crate) plot_disk: u32,
}

#[derive(Subcommand, Debug)]
pub(crate) enum SimCommand {
    /// Replay a trace of a disk on a disk model and compare the service times.
    Demerit(Demerit),
}

#[derive(Args, Debug)]
pub(crate) struct Demerit {
    /// The trace: HP's SRT format, or CSV with the columns arrival_us,op,lbn,sectors,service_us
    /// (op is R or W, lbn and sectors count sectors of the disk).
    pub(crate) trace: PathBuf,
    /// The disk model: hp97560, hp-c2200a, nvme, analytic, ideal, or FILE.toml.
    #[arg(long, default_value = "hp97560", value_name = "DISK")]
    pub(crate) disk: String,
    /// Serve what waits by cyclical scan instead of in the order of arrival.
    #[arg(long)]
    pub(crate) cscan: bool,
    /// Which unit of an SRT trace that has several.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) unit: Option<u32>,
    /// Draw the two distributions into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Reproduce {
    /// tr94-table4, tr94-table3, cai-table2, cai-table3, cai-fig2, cai-fig3, tocs-fig4 to
    /// tocs-fig15, tocs-table3, tocs-layouts, or all.
    #[arg(required = true, value_name = "EXPERIMENT")]
    pub(crate) experiments: Vec<String>,
    /// Number of trials of each case; trial n has seed n in every case.
    #[arg(long, default_value = "5", value_parser = count)]
    pub(crate) trials: u32,
    /// Write EXPERIMENT.csv and EXPERIMENT.parquet, with every trial, and report.html, with plots,
    /// into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Only these rows: patterns, or patterns with bytes of a record such as rc:8192, separated by
    /// commas.
    #[arg(long, value_name = "ROWS", value_delimiter = ',')]
    pub(crate) only: Vec<experiments::Only>,
    /// Trials that run at once (default: one for each processor).
    #[arg(long, value_parser = count)]
    pub(crate) jobs: Option<u32>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Demo {
    #[command(flatten)]
    pub(crate) root: AsRoot,
    /// A file to write and read (default: a large one that is on this machine).
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Where the servers keep their data while the demo runs.
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
