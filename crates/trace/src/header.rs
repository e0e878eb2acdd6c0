//! Header of a trace: the program, its ranks and the machine that it ran on.

use serde::{Deserialize, Serialize};

/// Header of a trace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// Format: [`Header::SCHEMA`].
    pub schema: String,
    /// Command that was recorded, with its arguments.
    pub command: Vec<String>,
    /// Number of ranks in MPI_COMM_WORLD.
    pub ranks: u32,
    /// Name of the host of each rank.
    pub hosts: Vec<String>,
    /// Version of the MPI library, as it says of itself.
    pub mpi: String,
    /// Begin of the recording, in RFC 3339.
    pub started: String,
    /// Where the calls of files came from.
    pub recorded: Recorded,
    /// The instance of Unisono that held the files, if any.
    pub instance: Option<RecordedInstance>,
    /// Share of time in which tasks waited for a processor of the host while the program ran, in
    /// percent; `None` where the system does not tell.
    pub processor_pressure_percent: Option<f64>,
    /// Share of processor time that other virtual machines took while the program ran, in percent.
    pub steal_percent: Option<f64>,
}

impl Header {
    /// Name and version of the format.
    pub const SCHEMA: &str = "unisono.trace/1";
}

/// Origin of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recorded {
    /// All calls of MPI, by `unisono record`.
    Program,
    /// Accesses of files only, from a log of Darshan DXT: no messages, no views. A replay is a bound
    /// and not a prediction.
    DarshanDxt,
}

/// Servers that held the files of a recorded program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecordedInstance {
    /// Number of servers.
    pub servers: u32,
    /// Disks of each server.
    pub disks_per_server: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Strategy of collective transfers.
    pub strategy: String,
}
