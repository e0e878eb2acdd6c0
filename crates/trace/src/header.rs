//! Header of a trace: the program, its ranks and the machine that it ran on.

use crate::limits::{HEADER_BYTES_MAX, RANKS_MAX};
use crate::paths::{header_path, stream_path};
use interface::{ErrorKind, UserError, WholeFile, is_no_space};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

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
    /// Origin of the trace.
    pub recorded: Recorded,
    /// The instance of Unisono that held the files, if any.
    pub instance: Option<RecordedInstance>,
    /// Share of time in which tasks waited for a processor of the host while the program ran, in
    /// percent; `None` where the system does not tell.
    pub processor_pressure_percent: Option<f64>,
    /// Share of processor time that other virtual machines took while the program ran, in percent.
    pub steal_percent: Option<f64>,
    /// Calls of the program that are not recorded, such as `MPI_Win_create`. A replay of a trace
    /// with such a list would be wrong.
    #[serde(default)]
    pub not_recorded: Vec<String>,
}

impl Header {
    /// True if ranks are known to use a processor all the time that they wait for messages. MPICH
    /// does; Open MPI leaves it to others where ranks are more than processors. Of libraries that
    /// are made of MPICH under another name, it is not known.
    pub fn ranks_poll(&self) -> bool {
        self.mpi.starts_with("MPICH")
    }

    /// Name and version of the format.
    pub const SCHEMA: &str = "unisono.trace/1";

    /// Writes `trace.json` of a directory, in full or not at all.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), UserError> {
        let path = header_path(directory);
        let write = || {
            let file = WholeFile::create(&path)?;
            let mut text = serde_json::to_vec_pretty(self).map_err(io::Error::other)?;
            text.push(b'\n');
            file.writer()?.write_all(&text)?;
            file.finish()
        };
        write().map_err(|error: io::Error| {
            let kind = if is_no_space(&error) { ErrorKind::NoSpace } else { ErrorKind::LocalFile };
            UserError::of_kind(
                kind,
                format!("cannot write {}", path.display()),
                error.to_string(),
                "name a directory that exists and that you may write to",
            )
        })
    }

    /// Reads `trace.json` of a directory.
    ///
    /// # Errors
    /// Refuses a directory that is no trace, a trace of another version, and a header that makes no
    /// sense.
    pub fn read(directory: &Path) -> Result<Self, UserError> {
        let text = read_text(directory)?;
        let header: Self = match serde_json::from_str(&text) {
            Ok(header) => header,
            Err(error) => return Err(not_read(directory, &text, &error)),
        };
        if header.schema != Self::SCHEMA {
            return Err(wrong_version(directory, &header.schema));
        }
        let (ranks, hosts) = (header.ranks, header.hosts.len());
        if ranks == 0 || ranks > RANKS_MAX {
            return Err(corrupt(directory, format!("it has {ranks} ranks, not 1 to {RANKS_MAX}")));
        }
        if hosts != ranks as usize {
            return Err(corrupt(directory, format!("it has {ranks} ranks but {hosts} hosts")));
        }
        Ok(header)
    }
}

fn read_text(directory: &Path) -> Result<String, UserError> {
    let path = header_path(directory);
    let mut text = String::new();
    let read = File::open(&path)
        .and_then(|file| file.take(HEADER_BYTES_MAX + 1).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 > HEADER_BYTES_MAX => {
            Err(corrupt(directory, format!("trace.json has more than {HEADER_BYTES_MAX} bytes")))
        }
        Ok(_) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(corrupt(directory, "trace.json is not UTF-8".to_owned()))
        }
        Err(error) => Err(no_header(directory, &error)),
    }
}

/// Error of a directory whose header cannot be read.
fn no_header(directory: &Path, error: &io::Error) -> UserError {
    let path = directory.display();
    let what = format!("cannot read the trace {path}");
    if error.kind() == io::ErrorKind::NotADirectory || directory.is_file() {
        let help = "name a directory that `unisono record` or `unisono trace import` made";
        return UserError::of_kind(ErrorKind::Usage, what, "it is not a directory", help);
    }
    if error.kind() != io::ErrorKind::NotFound {
        let help = "make it readable for you";
        let cause = format!("trace.json: {error}");
        return UserError::of_kind(ErrorKind::LocalFile, what, cause, help);
    }
    let (cause, help) = if !directory.exists() {
        ("it does not exist", "name a directory that `unisono record` made")
    } else if stream_path(directory, 0).exists() {
        (
            "trace.json is missing: `unisono record` was killed before it wrote it, or still runs",
            "wait for the end of `unisono record`, or record the program again",
        )
    } else {
        (
            "trace.json is missing, so the directory is not a trace",
            "name a directory that `unisono record` or `unisono trace import` made",
        )
    };
    UserError::of_kind(ErrorKind::NotFound, what, cause, help)
}

/// Error of a text that is no header: perhaps one of another version.
fn not_read(directory: &Path, text: &str, error: &serde_json::Error) -> UserError {
    #[derive(Deserialize)]
    struct Schema {
        schema: String,
    }
    match serde_json::from_str(text) {
        Ok(Schema { schema }) if schema != Header::SCHEMA => wrong_version(directory, &schema),
        _ => corrupt(directory, format!("trace.json: {error}")),
    }
}

fn wrong_version(directory: &Path, schema: &str) -> UserError {
    UserError::of_kind(
        ErrorKind::WrongVersion,
        format!("cannot read the trace {}", directory.display()),
        format!("it has the format {schema}; this release reads {}", Header::SCHEMA),
        "use the release of Unisono that recorded it, or record the program again",
    )
}

fn corrupt(directory: &Path, cause: String) -> UserError {
    UserError::of_kind(
        ErrorKind::Corrupt,
        format!("cannot read the trace {}", directory.display()),
        cause,
        "restore the trace from a copy, or record the program again",
    )
}

/// Origin of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recorded {
    /// All calls of MPI, by `unisono record`.
    Program,
    /// Transfers of an access pattern: a program that was made, not recorded.
    Pattern,
    /// Accesses of files only, from a log of Darshan DXT: no messages, no views. A replay is a
    /// bound and not a prediction.
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
