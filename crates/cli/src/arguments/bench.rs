//! What can be said about measurements.

use super::cases::Cases;
use super::servers::AsRoot;
use crate::value_parsers::count;
use clap::{Args, Subcommand};
use interface::parse_size as size;
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
    #[arg(long, default_value = interface::DEFAULT_BLOCK, value_parser = size, value_name = "SIZE")]
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
