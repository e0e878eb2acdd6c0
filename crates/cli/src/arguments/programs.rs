//! Arguments of `replay` and `what-if`.

use super::servers::{AsRoot, Caches};
use super::value_parsers::count;
use clap::Args;
use interface::parse_size as size;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Replay {
    /// Trace of a program, made by `unisono record`.
    pub(crate) trace: PathBuf,
    #[command(flatten)]
    pub(crate) root: AsRoot,
    /// Replay on a running instance instead of starting servers.
    #[arg(long, value_name = "DIR")]
    pub(crate) instance: Option<PathBuf>,
    /// Number of servers to start (default: as recorded, or 1).
    #[arg(long, value_parser = count, conflicts_with = "instance")]
    pub(crate) servers: Option<u32>,
    /// Data directory of the servers to start, which stands for one disk. Repeat the option for
    /// more.
    #[arg(long, value_name = "DIR", conflicts_with = "instance")]
    pub(crate) data: Vec<PathBuf>,
    /// Parent directory of the temporary instance, and of its data without --data.
    #[arg(long, value_name = "DIR", conflicts_with = "instance")]
    pub(crate) directory: Option<PathBuf>,
    /// Strategy of collective transfers (default: as recorded, or disk-directed).
    #[arg(long)]
    pub(crate) strategy: Option<String>,
    /// Block size of the files (default: as recorded, or 1MiB).
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) block: Option<u64>,
    /// Requests that one rank keeps outstanding at each disk (caching and two-phase).
    #[arg(long, default_value = "4", value_parser = count)]
    pub(crate) outstanding: u32,
    #[command(flatten)]
    pub(crate) caches: Caches,
    /// Number of times to carry the program out.
    #[arg(long, default_value = "1", value_parser = count)]
    pub(crate) repeat: u32,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct WhatIf {
    /// Trace of a program, made by `unisono record`.
    pub(crate) trace: PathBuf,
    /// Machine in a scenario file, such as one that `unisono sim calibrate` has made (default:
    /// ./this-machine.toml if it is there and --machine is not given). Options override it;
    /// docs/scenarios.md explains the keys.
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Machines (default: this-machine, with constants of a machine of today). All lists are
    /// crossed: each combination of their values is a point.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) machine: Vec<String>,
    /// Numbers of servers.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) servers: Vec<String>,
    /// Numbers of disks of each server.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) disks: Vec<String>,
    /// Strategies of collective transfers.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) strategy: Vec<String>,
    /// Disk models: see `unisono sim --help`.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) disk: Vec<String>,
    /// Network models: see `unisono sim --help`.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) network: Vec<String>,
    /// Block sizes.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) block: Vec<String>,
    /// Placements of blocks on the disks.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) layout: Vec<String>,
    /// Orders in which servers serve the blocks of a disk in a directed transfer.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) order: Vec<String>,
    /// Protections of files against the loss of a server: none, mirror, parity.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) protect: Vec<String>,
    /// Blocks in a server's cache for each pair of a rank and a disk.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) cache: Vec<String>,
    /// Change a parameter of the machine, such as queue=cscan; or give a list, such as
    /// queue=cscan,fcfs. Repeat the option for more.
    #[arg(long, value_name = "KEY=LIST")]
    pub(crate) set: Vec<String>,
    /// Speed of the program's computations, relative to the recorded machine.
    #[arg(long, default_value = "1", value_name = "FACTOR")]
    pub(crate) compute_speed: f64,
    /// Let caches hold the files that the program expects, as after `unisono replay` has made them.
    /// Without this option they are on the disks only.
    #[arg(long)]
    pub(crate) warm_files: bool,
    /// Seed of everything that varies.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Draw the seconds of all points into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Write the events of the first point into this file, with lanes of the ranks above those of
    /// the machine: open it in Perfetto (ui.perfetto.dev) or chrome://tracing.
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
