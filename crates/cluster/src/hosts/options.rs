//! Options of servers on hosts.

use crate::lost_data::LostData;
use client::Direct;
use interface::CoreList;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use world_real::WireProtection;

/// Options of servers on hosts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostOptions {
    /// Size of each server's block cache, in bytes.
    pub cache_bytes: u64,
    /// Dirty high-water mark, percent of the cache.
    pub dirty_percent: u32,
    /// Time for which no request to a disk ends, after which its requests fail, in seconds; 0 to
    /// wait without end.
    pub disk_timeout_s: u32,
    /// Disks that bypass the page cache.
    pub direct: Direct,
    /// Treatment of data directories that are lost.
    pub lost_data: LostData,
    /// Memory of each server, in bytes, in which its files are. `None`: in the data directories.
    pub memory_bytes: Option<u64>,
    /// Cores that the servers of each host share, each with its own part. `None`: any core.
    pub cores: Option<CoreList>,
    /// Protection of connections by TCP. `None`: the default for the address.
    pub wire: Option<WireProtection>,
    /// True if servers go on after SIGTERM, and their supervisor: as those of one run, which stops
    /// them. A batch system sends SIGTERM to all processes of a job that it ends, but the program
    /// still writes then, and its files are still to be copied out.
    pub outlasts_sigterm: bool,
    /// True if servers may run as root.
    pub allow_root: bool,
    /// Time limit for each server to start, and again to serve, in seconds.
    #[serde(rename = "patience_s")]
    pub start_timeout_s: u32,
    /// Path of this program on the hosts, if it differs from the path here.
    pub remote_program: Option<PathBuf>,
}
