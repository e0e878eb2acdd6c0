//! Messages between the command, the supervisor of the launchers, and the servers on their hosts,
//! beside those of every server.

use super::launcher::Launcher;
use super::options::HostOptions;
use super::placement::Placement;
use crate::lost_data::LostData;
use client::{Direct, InstanceFile};
use interface::{CoreList, Failure};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use world_real::WireProtection;

/// First message to the supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SupervisorOrder {
    pub(super) launcher: Launcher,
    /// Path of this program on the hosts.
    pub(super) program: PathBuf,
    #[serde(rename = "seats")]
    pub(super) placements: Vec<Placement>,
    pub(super) options: HostOptions,
}

/// The one answer of the supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum SupervisorAnswer {
    /// All servers run, and `instance.json` lists them.
    Running(InstanceFile),
    /// A server could not start, and all have ended.
    Failed(Failure),
}

/// First message to a server.
#[derive(Serialize, Deserialize)]
pub(super) struct ServerOrder {
    /// Version of the sender. The server's version must be equal.
    pub(super) version: String,
    pub(super) id: u32,
    pub(super) servers: u32,
    /// Name of the server's host.
    pub(super) host: String,
    /// Some of the other hosts.
    pub(super) others: Vec<String>,
    /// Directories in each of which the server makes one of its own, as a disk. Empty: the default
    /// of its host.
    pub(super) data: Vec<PathBuf>,
    /// Name of the instance's data directory, where many instances have theirs.
    pub(super) instance_name: String,
    pub(super) cache_bytes: u64,
    pub(super) dirty_percent: u32,
    pub(super) disk_timeout_s: u32,
    pub(super) direct: Direct,
    pub(super) lost_data: LostData,
    pub(super) memory_bytes: Option<u64>,
    /// Cores that the server may use. `None`: any core.
    pub(super) cores: Option<CoreList>,
    /// Protection of connections by TCP. `None`: the default for the address.
    pub(super) wire: Option<WireProtection>,
    pub(super) outlasts_sigterm: bool,
    /// File whose presence at the end has the server remove data directories that have the default
    /// place: nobody needs them any more.
    pub(super) discard_mark: PathBuf,
    pub(super) allow_root: bool,
    pub(super) key: [u8; 32],
}
