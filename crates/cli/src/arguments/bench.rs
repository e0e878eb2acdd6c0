//! Arguments of `bench`.

use super::cases::Cases;
use super::compute::Compute;
use super::servers::{AsRoot, Caches};
use super::value_parsers::{count, wire};
use clap::{Args, Subcommand};
use client::WireProtection;
use interface::{CoreList, parse_size as size};
use std::path::PathBuf;

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
    /// Measure a running instance instead of starting servers. If its servers listen by TCP on
    /// another machine, copy its files instance.json and key (mode 0600) to a directory here and
    /// name that.
    #[arg(long, value_name = "DIR", group = "may_be_tcp")]
    pub(crate) instance: Option<PathBuf>,
    /// Data directory of the servers to start, which stands for one disk. Repeat the option for
    /// more.
    #[arg(long, value_name = "DIR", conflicts_with = "instance")]
    pub(crate) data: Vec<PathBuf>,
    /// Parent directory of the temporary instance, and of its data without --data.
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Size of the file.
    #[arg(long, default_value = "256MiB", value_parser = size)]
    pub(crate) size: u64,
    /// Block size [default: 1MiB, or with --in-place what the file system likes].
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) block: Option<u64>,
    /// Measure ordinary files in this directory, on which the servers work in place, instead of
    /// files of the instance. The servers must find the directory at the same path.
    #[arg(long, value_name = "DIR", conflicts_with = "memory")]
    pub(crate) in_place: Option<PathBuf>,
    /// Number of transfers of each case.
    #[arg(long, default_value = "3", value_parser = count)]
    pub(crate) repeat: u32,
    /// End writes only when the data is on stable storage.
    #[arg(long)]
    pub(crate) sync: bool,
    /// First measure the throughput of a memory copy, and of dd in the first data directory, for
    /// comparison.
    #[arg(long)]
    pub(crate) limits: bool,
    /// Plot the throughput of each pattern and strategy over the record size, and write the picture
    /// as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Requests that one client keeps outstanding at each disk (caching and two-phase).
    #[arg(long, default_value = "4", value_parser = count)]
    pub(crate) outstanding: u32,
    #[command(flatten)]
    pub(crate) caches: Caches,
    /// Cores for the servers to start, such as 0-3,8. Each server runs on a part of the list of
    /// its own, or on one core of it if there are more servers than cores (default: any core).
    #[arg(long, value_name = "LIST", conflicts_with = "instance")]
    pub(crate) server_cores: Option<CoreList>,
    /// Listen by TCP on this address. Clients also listen on it for one another.
    #[arg(long, value_name = "HOST", conflicts_with = "instance", group = "may_be_tcp")]
    pub(crate) tcp: Option<String>,
    /// Protection of connections by TCP: plain (none), integrity (changes on the way end the
    /// connection) or private (also encrypted). Default: private, or plain on a loopback address.
    #[arg(long, value_name = "PROTECTION", value_parser = wire, requires = "tcp")]
    pub(crate) wire: Option<WireProtection>,
    /// Address of this machine on which clients listen for one another, if servers listen by TCP
    /// (default: the address of the route to server 0).
    #[arg(long, value_name = "HOST", requires = "may_be_tcp")]
    pub(crate) client_host: Option<String>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum BenchCommand {
    /// Measure the throughput of independent clients that read and write striped files, in buffers
    /// and on disks. Compare it with the limits of the machine (Tower of Pizzas, Table 1 and
    /// Figures 5 to 10).
    Tops(Tops),
    /// Measure the share of the servers' cores that loads leave to a computation beside them (Kotz
    /// and Cai 1994). Compare it with that of the simulated machine.
    Compute(Box<Compute>),
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
    /// Page size of the cases that run from buffers.
    #[arg(long, default_value = "256KiB", value_parser = size, value_name = "SIZE")]
    pub(crate) page: u64,
    /// Page size of the cases that run from disks.
    #[arg(long, default_value = "8KiB", value_parser = size, value_name = "SIZE")]
    pub(crate) disk_page: u64,
    /// Pages that a client requests at a time.
    #[arg(long, default_value = "16", value_parser = count)]
    pub(crate) pages: u32,
    /// Duration of each measured point, in milliseconds.
    #[arg(long, default_value = "500", value_parser = count, value_name = "MS")]
    pub(crate) time: u32,
    /// File size for each server of the cases that run from disks.
    #[arg(long, default_value = "64MiB", value_parser = size, value_name = "SIZE")]
    pub(crate) disk_size: u64,
    /// Directory for the servers' data during the measurement. Its disk is measured.
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Write tops.csv, and a plot of each figure as SVG, into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
