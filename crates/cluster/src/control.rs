//! The control protocol between the start of an instance and its servers: lines of JSON on the
//! standard input and output of each server.
//!
//! ```text
//!  start or supervisor                         server
//!      │ order ──────────────────────────────────▶ │  locks its directories
//!      │ ◀───────────────────────── Found: labels  │
//!      │ Permission: identity ───────────────────▶ │  labels them provisionally, opens its disks
//!      │ ◀──────────────────── Listening: address  │
//!      ▼ instance.json appears: the start is complete
//!      │ Commit ─────────────────────────────────▶ │  makes its labels final
//!      │ ◀───────────────────────────────  Serving │
//! ```
//!
//! Invariant: a server whose input ends before `instance.json` names it ends by itself, and has
//! served no client.

use crate::generations::{FoundDisk, Step};
use crate::labels::FoundLabel;
use client::InstanceFile;
use interface::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Read, Write};
use std::path::PathBuf;
use world_real::Generations;

/// Prefix of a server's messages. It tells them from the output of launchers and shells.
pub(crate) const MARK: &str = "unisono-server ";

/// Maximum length of a line in bytes.
pub(crate) const LINE_BYTES_MAX: u64 = 1 << 20;

/// Message to a server after all servers have reported what they found.
#[derive(Serialize, Deserialize)]
pub(crate) struct Permission {
    /// Identity of the directories that belong together.
    pub(crate) set: String,
    /// Change of generation, if there is one.
    pub(crate) step: Option<Step>,
    /// Number of the generation.
    pub(crate) generation: u32,
    /// Cause of the loss of each data directory that is lost.
    pub(crate) lost: Vec<Option<String>>,
}

/// Message to a server after all servers listen: the start is complete.
#[derive(Serialize, Deserialize)]
pub(crate) struct Commit {
    /// Address of each server.
    pub(crate) addresses: Vec<String>,
}

impl Commit {
    /// The message to the servers of an instance.
    pub(crate) fn of(file: &InstanceFile) -> Self {
        Self { addresses: file.servers.iter().map(|server| server.address.clone()).collect() }
    }
}

/// Message of a server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ServerMessage {
    /// State of the server's data directories.
    Found(Found),
    /// The server listens at this address.
    Listening { address: String, pid: u32 },
    /// The server serves clients.
    Serving,
    /// The server cannot start.
    Failed(Failure),
}

/// State of a server's data directories.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Data directories of the server.
    pub(crate) data: Vec<PathBuf>,
    /// Label of each directory that has one.
    pub(crate) labels: Vec<Option<FoundLabel>>,
    /// State of each directory.
    pub(crate) disks: Vec<FoundDisk>,
    /// Generations of the catalogue, at the server that keeps it.
    pub(crate) catalogue: Generations,
    /// True if there is room for the records of a start.
    pub(crate) has_room: bool,
    /// True if the first directory has a catalogue.
    pub(crate) has_catalogue: bool,
    /// True if any directory holds data of files.
    pub(crate) has_objects: bool,
}

/// Encodes a message as a line.
pub(crate) fn line(value: &impl Serialize) -> String {
    // These types have no keys that JSON cannot hold.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// Reads the next message.
///
/// # Errors
/// At the end of the input, or for a line that is not such a message.
pub(crate) fn receive<T: DeserializeOwned>(input: &mut impl BufRead) -> std::io::Result<T> {
    let mut line = Vec::new();
    if input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}

/// Parses a message of a server. A launcher may put text before it; a line without a message gives
/// `None`.
pub(crate) fn parse_message(line: &str) -> Option<ServerMessage> {
    let (_, said) = line.split_once(MARK)?;
    serde_json::from_str(said).ok()
}

/// Sends a message of this server.
pub(crate) fn report(message: &ServerMessage) {
    let mut output = std::io::stdout().lock();
    // If the reader is gone, the input ends too.
    let _ = write!(output, "{MARK}{}", line(message)).and_then(|()| output.flush());
}
