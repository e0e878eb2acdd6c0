//! Arguments of `bench compute`.

use super::servers::AsRoot;
use super::value_parsers::{count, memory};
use clap::{Args, value_parser};
use interface::{CoreList, parse_size as size};
use std::path::PathBuf;

const COMPUTE_HELP: &str = "\
A computation runs on the cores of the servers: dense matrix products, in a thread for each server,
at a lower priority. \"left\" is its work during the transfers of a load, in percent of its work in
the same time beside idle servers, before and after them. \"usable\" is the same if all threads wait
for one another after every 5 ms of work. Both are medians, with the least and the most. \"servers\"
is the processor time of the servers without a computation, in percent of the time of their cores.
\"sim\" are the shares on the simulated machine of 1994: 16 servers, 16 clients, a file of 10 MB.";

#[derive(Args, Debug)]
#[command(after_help = COMPUTE_HELP)]
pub(crate) struct Compute {
    #[command(flatten)]
    pub(crate) root: AsRoot,
    /// Patterns, named as in the paper, separated by commas.
    #[arg(long, default_value = "rc,wc,rbc,wbc", value_delimiter = ',')]
    pub(crate) pattern: Vec<String>,
    /// Record sizes, separated by commas (default: 8 bytes for rbc and wbc, 8KiB for others).
    #[arg(long, value_name = "SIZE", value_parser = size, value_delimiter = ',')]
    pub(crate) record: Vec<u64>,
    /// Strategies, separated by commas, as those of bench; or all.
    #[arg(long, default_value = "caching,disk-directed", value_delimiter = ',')]
    pub(crate) strategy: Vec<String>,
    /// Number of client processes.
    #[arg(long, default_value = "4", value_parser = count)]
    pub(crate) clients: u32,
    /// Number of servers (default: one for each of their cores).
    #[arg(long, value_parser = count)]
    pub(crate) servers: Option<u32>,
    /// Cores of the servers and of the computation, such as 0-3,8 (default: the first half of the
    /// cores that this command may use). Clients get the others, or all cores if there are none.
    #[arg(long, value_name = "LIST")]
    pub(crate) server_cores: Option<CoreList>,
    /// Nice value of the computation: 19 leaves the servers before it wherever they want to run, 0
    /// has them share the cores.
    #[arg(long, default_value_t = 19, value_parser = value_parser!(u32).range(0..=19))]
    pub(crate) nice: u32,
    /// Least time of the transfers of each measurement, in milliseconds. Each case has three
    /// measurements, of which two have idle times as long.
    #[arg(long, default_value = "1000", value_parser = count, value_name = "MS")]
    pub(crate) time: u32,
    /// Number of repetitions of each case.
    #[arg(long, default_value = "3", value_parser = count)]
    pub(crate) repeat: u32,
    /// Size of the file. Strategies with a request for each record have at most 262144 records.
    #[arg(long, default_value = "64MiB", value_parser = size)]
    pub(crate) size: u64,
    /// Block size.
    #[arg(long, default_value = interface::DEFAULT_BLOCK, value_parser = size, value_name = "SIZE")]
    pub(crate) block: u64,
    /// Data directory of the servers, which stands for one disk. Repeat the option for more.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Vec<PathBuf>,
    /// Parent directory of the temporary instance, and of its data without --data.
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Size of the block cache of each server.
    #[arg(long, default_value = "64MiB", value_parser = size, value_name = "SIZE")]
    pub(crate) cache: u64,
    /// Bypass the page cache of the servers' system (O_DIRECT).
    #[arg(long)]
    pub(crate) direct: bool,
    /// Keep files in memory, this much at each server.
    #[arg(long, value_parser = memory, value_name = "SIZE",
          conflicts_with_all = ["data", "direct"])]
    pub(crate) memory: Option<u64>,
    /// End writes only when the data is on stable storage.
    #[arg(long)]
    pub(crate) sync: bool,
    /// Requests that one client keeps outstanding at each disk (caching and two-phase).
    #[arg(long, default_value = "4", value_parser = count)]
    pub(crate) outstanding: u32,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
