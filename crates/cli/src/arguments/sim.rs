//! Arguments of `sim`.

use super::cases::Cases;
use super::client_cache::ClientCacheArguments;
use super::servers::AsRoot;
use super::value_parsers::{count, either};
use clap::{Args, Subcommand};
use interface::{Declared, DiskOrder, Protection, Replacement, parse_size as size};
use simulate::{DiskName, LayoutName, NetworkName};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Sim {
    #[command(subcommand)]
    pub(crate) command: Option<SimCommand>,
    #[command(flatten)]
    pub(crate) cases: Cases,
    #[command(flatten)]
    pub(crate) base: SimBase,
    /// Print the scenario that results from presets, file and options, and explain every key. The
    /// output is a file for --scenario (or JSON). Nothing is simulated.
    #[arg(long, conflicts_with_all = ["timeline", "plot"])]
    pub(crate) explain: bool,
    #[arg(long, value_name = "DISK", help = format!(
        "Disk model instead of the machine's: {}, custom:NAME of the program's own, or a file \
         FILE.toml with a description (see the examples in docs/disks)",
        DiskName::WORDS.join(", "),
    ))]
    pub(crate) disk: Option<String>,
    #[arg(long, help = format!(
        "Network model: {}, or custom:NAME of the program's own (default: torus)",
        NetworkName::WORDS.join(", "),
    ))]
    pub(crate) network: Option<String>,
    /// Number of block buffers for each disk in a directed transfer (default: 2).
    #[arg(long, value_parser = count, value_name = "COUNT")]
    pub(crate) buffers: Option<u32>,
    #[arg(long, help = format!(
        "Placement of blocks on the disks: {} (default: contiguous)",
        either(LayoutName::WORDS),
    ))]
    pub(crate) layout: Option<String>,
    #[arg(long, help = format!(
        "Order in which servers serve the blocks of a disk in a directed transfer: {} (default: \
         sorted)",
        either(DiskOrder::WORDS),
    ))]
    pub(crate) order: Option<String>,
    #[arg(long, value_name = "ACCESS", help = format!(
        "Declared access of the file's users: {} (default: unknown)",
        either(Declared::WORDS),
    ))]
    pub(crate) declare: Option<String>,
    #[arg(long, value_name = "POLICY", help = format!(
        "Replacement policy, which selects the block to evict from a full cache: declared, {}, or \
         custom:NAME for a policy that the program adds (default: declared, the policy that suits \
         --declare)",
        Replacement::WORDS.join(", "),
    ))]
    pub(crate) replacement: Option<String>,
    /// Prefetching by servers: declared, nothing, next or window (default: declared, which suits
    /// --declare).
    #[arg(long, value_name = "WHAT")]
    pub(crate) read_ahead: Option<String>,
    #[command(flatten)]
    pub(crate) client_cache: ClientCacheArguments,
    /// Clients for each server. The number of clients follows, or that of servers if only that of
    /// clients is given.
    #[arg(long, value_parser = count, value_name = "CLIENTS")]
    pub(crate) clients_per_server: Option<u32>,
    /// Disks of each server, on one bus (default: 1).
    #[arg(long, value_parser = count)]
    pub(crate) disks: Option<u32>,
    /// Number of trials, each with a seed of its own (default: 5; 1 with --timeline and --plot).
    #[arg(long, value_parser = count)]
    pub(crate) trials: Option<u32>,
    /// Seed of the first trial (default: 1).
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Protection of the file against the loss of a server: none, mirror (the next server has a
    /// copy of what a server holds), or parity (each row of blocks has a parity block on a further
    /// server) (default: none).
    #[arg(long, value_name = "PROTECTION")]
    pub(crate) protect: Option<Protection>,
    /// End writes only when the data is on the medium. --sync=false overrides a scenario file.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) sync: Option<bool>,
    /// Kind of payload: phantom (lengths only) or traced (proves that every byte is in its place)
    /// (default: phantom).
    #[arg(long)]
    pub(crate) payload: Option<String>,
    /// Show the share of the servers' processors that the transfer leaves to a computation on them,
    /// without synchronisation and with a barrier every 5 ms.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) availability: Option<bool>,
    /// Write the events of one trial of one case into this file, as a Chrome trace: open it in
    /// Perfetto (ui.perfetto.dev) or chrome://tracing.
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// Draw the position of a disk's head over time into this SVG file, with one panel for each
    /// strategy of one case.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Disk of --plot, counted from 0 over all servers.
    #[arg(long, value_name = "DISK", default_value = "0", requires = "plot")]
    pub(crate) plot_disk: u32,
}

#[derive(Subcommand, Debug)]
pub(crate) enum SimCommand {
    /// Measure this machine and write a scenario that simulates it. Takes two minutes, and four on
    /// a busy machine; keep the machine idle meanwhile.
    Calibrate(Calibrate),
    /// Replay a trace of a disk on a disk model and compare the service times.
    Demerit(Demerit),
    /// Simulate calls on files with and without protection, reads while the data of a server is
    /// lost, and how long it takes to fill a new server in its place. The size of the file is
    /// rounded down to three blocks of each client.
    Protection(SimProtection),
}

/// Scenario of every simulation, and the options that override it most.
#[derive(Args, Debug)]
pub(crate) struct SimBase {
    /// Simulate the scenario in this file, such as one that `unisono sim calibrate` has made.
    /// Options override it; docs/scenarios.md explains the keys.
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Machine to simulate: tr94, tocs97, ideal-disks, this-machine or cluster (default: tr94).
    #[arg(long)]
    pub(crate) machine: Option<String>,
    /// Change a parameter of the machine, such as queue=cscan. Repeat the option for more.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Number of clients (default: 16).
    #[arg(long, value_parser = count)]
    pub(crate) clients: Option<u32>,
    /// Number of servers (default: 16).
    #[arg(long, value_parser = count)]
    pub(crate) servers: Option<u32>,
    /// Size of the file (default: 10MiB).
    #[arg(long, value_parser = size)]
    pub(crate) size: Option<u64>,
    /// Block size (default: 8KiB).
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) block: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct SimProtection {
    #[command(flatten)]
    pub(crate) base: SimBase,
    /// Protections to compare, separated by commas (default: none,mirror,parity).
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) protect: Vec<Protection>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Calibrate {
    /// File for the scenario. Its disk goes to a file beside it.
    #[arg(short, long, default_value = "this-machine.toml", value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Check in about ten seconds that a calibration still fits this machine, and write nothing. It
    /// is refused (exit code 1) if programs take 1.3 times as long as it says, or as short.
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub(crate) check: Option<PathBuf>,
    /// Directory on the disk to describe (default: that of temporary files).
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) root: AsRoot,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Demerit {
    /// Trace: HP's SRT format, or CSV with the columns arrival_us,op,lbn,sectors,service_us (op is
    /// R or W, lbn and sectors count sectors of the disk).
    pub(crate) trace: PathBuf,
    #[arg(long, default_value = "hp97560", value_name = "DISK", help = format!(
        "Disk model: {}, FILE.toml, or custom:NAME of the program's own",
        DiskName::WORDS.join(", "),
    ))]
    pub(crate) disk: String,
    /// Serve queued requests by cyclical scan (CSCAN) instead of in the order of arrival.
    #[arg(long)]
    pub(crate) cscan: bool,
    /// Unit to replay, for an SRT trace that has several.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) unit: Option<u32>,
    /// Draw the two distributions into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
