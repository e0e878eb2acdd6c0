//! `instance.json`: which servers an instance has, where they listen, and how they work.

use super::{Direct, Origin, ProcessName};
use interface::CoreList;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use world::Address;
use world_real::WireProtection;

/// Schema name of `instance.json`.
pub const INSTANCE_SCHEMA: &str = "unisono.instance/1";

/// Default time for which no request to a disk ends, after which its requests fail, in seconds.
/// Less than a kernel may take to give up a device, and more than one sync of much data should
/// take.
pub const DISK_TIMEOUT_S: u32 = 120;

/// Default dirty high-water mark, percent of a server's cache. Clients may pin half of a cache. If
/// all the rest were dirty, a request that needs room would wait for a disk.
pub const DIRTY_PERCENT: u32 = 50;

fn usual_disk_timeout() -> u32 {
    DISK_TIMEOUT_S
}

fn usual_dirty_percent() -> u32 {
    DIRTY_PERCENT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Content of `instance.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InstanceFile {
    /// `unisono.instance/1`.
    pub schema: String,
    /// Servers, by number.
    pub servers: Vec<ServerEntry>,
    /// Number of disks of each server.
    pub disks_per_server: u32,
    /// Size of each server's block cache, in bytes.
    pub cache_bytes: u64,
    /// Dirty high-water mark, percent of the cache.
    #[serde(default = "usual_dirty_percent")]
    pub dirty_percent: u32,
    /// Time for which no request to a disk ends, after which its requests fail, in seconds; 0 to
    /// wait without end.
    #[serde(default = "usual_disk_timeout")]
    pub disk_timeout_s: u32,
    /// Disks that bypass the page cache.
    pub direct: Direct,
    /// Data directories that are lost, if it was started with `--degraded`. Then nothing can be
    /// changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<Vec<LostDisk>>,
    /// Memory of each server, in bytes, in which its files are. `None`: in the data directories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Time for which clients wait for a lost server, in seconds; 0 where nobody starts it again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reconnect_s: u32,
    /// Protection of all connections, if servers listen by TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireProtection>,
    /// Process that holds the launchers of servers on other hosts, or starts lost servers of this
    /// machine again.
    #[serde(rename = "keeper", default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<ProcessName>,
    /// Mark of the directory from which servers on other hosts were started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// Returns the protection of all connections of an instance with these servers: that which was
/// `asked` for, or the strongest default of their addresses. `None` if none listens by TCP.
pub fn wire_protection(
    asked: Option<WireProtection>,
    servers: &[ServerEntry],
) -> Option<WireProtection> {
    let by_tcp = servers.iter().filter(|server| server.tcp().is_some());
    let default =
        |server: &ServerEntry| WireProtection::default_at(&Address(server.address.clone()));
    let strongest = by_tcp.map(default).max()?;
    Some(asked.unwrap_or(strongest))
}

/// A data directory that is lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LostDisk {
    /// Number of its server.
    pub server: u32,
    /// Number of the disk among those of the server.
    pub disk: u32,
    /// Cause of the loss, as far as it is known.
    pub cause: String,
}

/// One server of an instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerEntry {
    /// Number of the server.
    pub id: u32,
    /// Address on which the server listens.
    pub address: String,
    /// Process id of the server.
    pub pid: u32,
    /// Data directories of the server.
    pub data: Vec<PathBuf>,
    /// Host of the server, if a launcher started it. `pid` and `data` are of that host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Cores that the server may use, if it is pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<CoreList>,
}

impl ServerEntry {
    /// Host and port of the server, if it listens by TCP.
    pub fn tcp(&self) -> Option<&str> {
        self.address.strip_prefix("tcp:")
    }
}
