//! The control protocol between the command, the supervisor of the launchers, and the servers on
//! their hosts: lines of JSON on standard input and output.

use super::launcher::Launcher;
use super::options::HostOptions;
use super::placement::Placement;
use client::{Direct, InstanceFile};
use interface::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Read};
use std::path::PathBuf;

/// Prefix of a server's messages. It tells them from the output of launchers and shells.
pub(super) const MARK: &str = "unisono-server ";

/// Maximum length of a line in bytes.
pub(super) const LINE_BYTES_MAX: u64 = 1 << 20;

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
    pub(super) direct: Direct,
    pub(super) allow_root: bool,
    pub(super) key: [u8; 32],
}

/// Message to a server after all servers have reported what they found.
#[derive(Serialize, Deserialize)]
pub(super) struct Permission {
    /// Identity of the directories that belong together.
    pub(super) set: String,
}

/// Message of a server.
#[derive(Serialize, Deserialize)]
pub(super) enum ServerMessage {
    /// State of the server's data directories.
    Found(Found),
    /// The server serves at this address.
    Listening { address: String, pid: u32 },
    /// The server cannot start.
    Failed(Failure),
}

/// State of a server's data directories.
#[derive(Serialize, Deserialize)]
pub(super) struct Found {
    /// Data directories of the server.
    pub(super) data: Vec<PathBuf>,
    /// Identity of each directory that is already labelled.
    pub(super) sets: Vec<Option<String>>,
    /// True if the first directory has a catalogue.
    pub(super) has_catalogue: bool,
    /// True if any directory holds data of files.
    pub(super) has_objects: bool,
}

/// Encodes a message as a line.
pub(super) fn line(value: &impl Serialize) -> String {
    // These types have no keys that JSON cannot hold.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// Reads the next message.
///
/// # Errors
/// At the end of the input, or for a line that is not such a message.
pub(super) fn receive<T: DeserializeOwned>(input: &mut impl BufRead) -> std::io::Result<T> {
    let mut line = Vec::new();
    if input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}
