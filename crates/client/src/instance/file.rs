//! `instance.json`: which servers an instance has, where they listen, and how they work.

use super::{Direct, Origin, ProcessName};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Names the form of `instance.json`.
pub const INSTANCE_SCHEMA: &str = "unisono.instance/1";

/// How much of a server's cache may be dirty if nothing is said, in hundredths. Clients may pin
/// half of a cache; if all the rest were dirty, whoever needs room would wait for a disk.
pub const DIRTY_PERCENT: u32 = 50;

fn usual_dirty_percent() -> u32 {
    DIRTY_PERCENT
}

/// What `instance.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InstanceFile {
    /// `unisono.instance/1`.
    pub schema: String,
    /// The servers, by number.
    pub servers: Vec<ServerEntry>,
    /// Disks of each server.
    pub disks_per_server: u32,
    /// Room of each server's block cache, in bytes.
    pub cache_bytes: u64,
    /// How much of it may be dirty, in hundredths.
    #[serde(default = "usual_dirty_percent")]
    pub dirty_percent: u32,
    /// Which disks move their data past the page cache.
    pub direct: Direct,
    /// The process that keeps the launchers of servers on other hosts.
    #[serde(rename = "keeper", default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<ProcessName>,
    /// How the directory is known that such servers were started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// One server of an instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerEntry {
    /// Its number.
    pub id: u32,
    /// Where it listens.
    pub address: String,
    /// Its process.
    pub pid: u32,
    /// Its data directories.
    pub data: Vec<PathBuf>,
    /// Its host, if it was started by a launcher; its process and its directories are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

impl ServerEntry {
    /// Its host and port, if it listens by TCP.
    pub fn tcp(&self) -> Option<&str> {
        self.address.strip_prefix("tcp:")
    }
}
