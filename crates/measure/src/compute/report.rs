//! Results of a computation beside servers.

use crate::accuracy::median;
use interface::{Availability, CoreList};
use serde::Serialize;

/// Schema name of a report.
pub const COMPUTE_SCHEMA: &str = "unisono.compute/1";

/// Results of all loads.
#[derive(Clone, Debug, Serialize)]
pub struct ComputeReport {
    /// [`COMPUTE_SCHEMA`].
    pub schema: &'static str,
    /// Number of servers; as many threads compute.
    pub servers: u32,
    /// Cores of each server, and of the computation beside it.
    pub server_cores: Vec<CoreList>,
    /// Number of clients.
    pub clients: u32,
    /// Cores that the clients share.
    pub client_cores: CoreList,
    /// True if clients share cores with the computation, and so take time from it too.
    pub shares_client_cores: bool,
    /// Nice value of the computation; that of servers is 0.
    pub nice: u32,
    /// Computing time between two barriers, in milliseconds.
    pub barrier_ms: u32,
    /// Length of one round of the computation alone, in microseconds.
    pub round_us: f64,
    /// Rounds between two barriers.
    pub rounds_per_barrier: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Rows, in the order of their measurement.
    pub results: Vec<ComputeRow>,
}

/// Result of one load.
#[derive(Clone, Debug, Serialize)]
pub struct ComputeRow {
    /// Access pattern.
    pub pattern: String,
    /// Bytes of a record.
    pub record_bytes: u64,
    /// Strategy of the transfers.
    pub strategy: String,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Transfers of each measurement.
    pub transfers: u32,
    /// Throughput without a computation, in 2^20 bytes a second.
    pub mib_s: f64,
    /// Throughput beside the computation without barriers.
    pub computing_mib_s: f64,
    /// Throughput beside the computation with barriers.
    pub barriers_mib_s: f64,
    /// Processor time of the servers without a computation, in percent of the time of their cores.
    pub servers_percent: f64,
    /// Share left to a computation without barriers.
    pub left: Share,
    /// Share usable by a computation with barriers.
    pub usable: Share,
    /// The same load on the simulated machine of 1994.
    pub simulated: Option<Availability>,
}

/// Work during a load, in percent of the work in the same time beside idle servers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Share {
    /// Median of all repetitions.
    pub percent: f64,
    /// Least of them.
    pub least: f64,
    /// Most of them.
    pub most: f64,
}

impl Share {
    /// Returns the median and the extremes of shares, of which there is at least one.
    pub(super) fn of(shares: &[f64]) -> Self {
        let percent = shares.iter().map(|share| 100.0 * share);
        Self {
            percent: median(percent.clone().collect()),
            least: percent.clone().fold(f64::INFINITY, f64::min),
            most: percent.fold(0.0, f64::max),
        }
    }
}
