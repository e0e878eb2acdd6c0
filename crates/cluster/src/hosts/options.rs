//! How servers on hosts are to work.

use client::Direct;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How the servers on hosts are to work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostOptions {
    /// Room of each server's block cache, in bytes.
    pub cache_bytes: u64,
    /// How much of it may be dirty, in hundredths.
    pub dirty_percent: u32,
    /// Which disks move their data past the page cache.
    pub direct: Direct,
    /// Whether servers may run as root.
    pub allow_root: bool,
    /// Seconds that each server may take to begin, and again to serve.
    pub patience_s: u32,
    /// Where the hosts have this program, if not where it is here.
    pub remote_program: Option<PathBuf>,
}
