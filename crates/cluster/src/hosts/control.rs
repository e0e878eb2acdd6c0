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

/// What stands before what a server says: launchers and shells say things of their own there.
pub(super) const MARK: &str = "unisono-server ";

/// The most bytes of a line.
pub(super) const LINE_BYTES_MAX: u64 = 1 << 20;

/// What the supervisor is told first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SupervisorOrder {
    pub(super) launcher: Launcher,
    /// This program, as the hosts have it.
    pub(super) program: PathBuf,
    #[serde(rename = "seats")]
    pub(super) placements: Vec<Placement>,
    pub(super) options: HostOptions,
}

/// What the supervisor answers, once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum SupervisorAnswer {
    /// All servers run; the instance's file says so.
    Running(InstanceFile),
    /// One could not begin, and all have ended.
    Failed(Failure),
}

/// What a server is told first.
#[derive(Serialize, Deserialize)]
pub(super) struct ServerOrder {
    /// The version of who tells it: that of the server must be the same.
    pub(super) version: String,
    pub(super) id: u32,
    pub(super) servers: u32,
    /// What its host is called.
    pub(super) host: String,
    /// Some of the others.
    pub(super) others: Vec<String>,
    /// Directories in which it makes one of its own for each disk; none for what is usual there.
    pub(super) data: Vec<PathBuf>,
    /// What the instance is called where many have their data.
    pub(super) instance_name: String,
    pub(super) cache_bytes: u64,
    pub(super) dirty_percent: u32,
    pub(super) direct: Direct,
    pub(super) allow_root: bool,
    pub(super) key: [u8; 32],
}

/// What a server is told when all have said what they found.
#[derive(Serialize, Deserialize)]
pub(super) struct Permission {
    /// The identity of the directories that belong together.
    pub(super) set: String,
}

/// What a server says.
#[derive(Serialize, Deserialize)]
pub(super) enum Said {
    /// What it finds on its host.
    Found(Found),
    /// It serves.
    Listening { address: String, pid: u32 },
    /// It cannot.
    Failed(Failure),
}

/// What a server finds on its host.
#[derive(Serialize, Deserialize)]
pub(super) struct Found {
    /// Its directories …
    pub(super) data: Vec<PathBuf>,
    /// … and the identity of each that has one already.
    pub(super) sets: Vec<Option<String>>,
    /// Whether the first of them has a catalogue.
    pub(super) has_catalogue: bool,
    /// Whether any of them holds data of files.
    pub(super) has_objects: bool,
}

/// A line that says this.
pub(super) fn line(value: &impl Serialize) -> String {
    // These types have no keys that JSON cannot hold.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// What the next line says.
///
/// # Errors
/// When there is none, or it says something else.
pub(super) fn hear<T: DeserializeOwned>(input: &mut impl BufRead) -> std::io::Result<T> {
    let mut line = Vec::new();
    if input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}
