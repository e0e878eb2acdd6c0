//! Results as every interface shows them: one row for each case.

use crate::availability::Availability;
use crate::limits::Limits;
use serde::{Deserialize, Serialize};

/// Names the form of a report of real runs.
pub const BENCH_SCHEMA: &str = "unisono.bench/1";
/// Names the form of a report of simulated runs.
pub const SIM_SCHEMA: &str = "unisono.sim/1";

/// The results of one command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`BENCH_SCHEMA`] or [`SIM_SCHEMA`].
    pub schema: String,
    /// Limits of the machine without our file system, if they were measured in the same run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limits: Option<Limits>,
    /// One row for each case.
    pub results: Vec<Row>,
}

/// One case: a pattern moved by a strategy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// Strategy of the transfer.
    pub strategy: String,
    /// Access pattern, as the papers name it.
    pub pattern: String,
    /// Bytes of a record.
    pub record_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Number of clients.
    pub clients: u32,
    /// Number of servers.
    pub servers: u32,
    /// Disks of each server.
    pub disks_per_server: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The machine: `this-machine`, or the preset that was simulated.
    pub machine: String,
    /// Simulated: differences from the preset, as lines of a scenario file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changed: Vec<String>,
    /// Layout of blocks on a simulated disk; `as-is` on a real one.
    pub layout: String,
    /// File bytes over seconds, in 2^20 bytes a second: the mean over trials. For pattern `ra`, in
    /// which every client gets the whole file, this is normalised as in the papers' figures.
    pub mib_s: f64,
    /// Bytes that reached or left clients over seconds, in 2^20 bytes a second. Differs from
    /// `mib_s` for `ra`; for it the papers' tables show this rate.
    pub moved_mib_s: f64,
    /// Mean time of a transfer, in seconds.
    pub seconds: f64,
    /// Standard deviation of the throughput over its mean.
    pub coefficient_of_variation: f64,
    /// Number of transfers measured.
    pub trials: u32,
    /// True when written data was on stable storage at the end.
    pub sync: bool,
    /// True when every byte was checked and is in its place.
    pub verified: bool,
    /// Real: the most memory that any client has had so far, in bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client_peak_bytes: Option<u64>,
    /// Real: the most memory that any server has had so far, in bytes; absent where the servers run
    /// on another machine.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server_peak_bytes: Option<u64>,
    /// Simulated: processor time left on the servers, if the scenario asks for it.
    #[serde(flatten)]
    pub availability: Option<Availability>,
    /// Simulated: events of the engine in all trials.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub events: Option<u64>,
    /// Simulated: digest that is equal for equal simulations, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub digest: Option<String>,
    /// Simulated: real seconds of computing, the sum over all trials.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_seconds: Option<f64>,
}

/// Returns a rate in 2^20 bytes a second.
pub fn mib_s(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 / (1u64 << 20) as f64 / seconds
}

impl Row {
    /// Fills in the figures from the time of each trial, in seconds, and the bytes moved in one.
    pub fn measure(&mut self, seconds: &[f64], moved_bytes: u64) {
        let count = seconds.len() as f64;
        let rates: Vec<f64> = seconds.iter().map(|time| mib_s(self.file_bytes, *time)).collect();
        let mean = rates.iter().sum::<f64>() / count;
        let spread = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
        let deviation = if rates.len() > 1 { (spread / (count - 1.0)).sqrt() } else { 0.0 };
        self.mib_s = mean;
        self.moved_mib_s = mean * moved_bytes as f64 / self.file_bytes as f64;
        self.seconds = seconds.iter().sum::<f64>() / count;
        self.coefficient_of_variation = deviation / mean;
        self.trials = seconds.len() as u32;
    }

    /// Returns the rate of `dd` in the direction of this row and to the same end, the page cache or
    /// stable storage.
    pub fn dd_mib_s(&self, limits: &Limits) -> f64 {
        match (self.pattern.starts_with('w'), self.sync) {
            (false, _) => limits.dd_read_mib_s,
            (true, false) => limits.dd_write_mib_s,
            (true, true) => limits.dd_write_fsync_mib_s,
        }
    }
}
