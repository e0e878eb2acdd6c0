//! A trace as a directory: its header and the streams of its ranks.

use crate::check::{REFUSED, TimingShare, check};
use crate::event::RankTrace;
use crate::format::{Stream, read_start, read_stream};
use crate::header::Header;
use crate::limits::RANKS_MAX;
use crate::paths::stream_path;
use interface::{ErrorKind, UserError};
use std::path::Path;

/// A trace that was read.
#[derive(Debug)]
pub struct Trace {
    header: Header,
    /// Events of each rank.
    pub ranks: Vec<RankTrace>,
    bytes: Vec<u64>,
}

/// Begin of a stream: the rank and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamStart {
    /// Number of ranks in MPI_COMM_WORLD.
    pub ranks: u32,
    /// Name of the rank's host.
    pub host: String,
    /// Version of the MPI library.
    pub mpi: String,
}

impl Trace {
    /// Reads a trace. Ranks whose process was killed have [`RankTrace::is_cut`].
    ///
    /// # Errors
    /// Refuses what is no trace, a trace of another version, and a damaged one.
    pub fn open(directory: &Path) -> Result<Self, UserError> {
        let header = Header::read(directory)?;
        let (mut ranks, mut bytes) = (Vec::new(), Vec::new());
        for rank in 0..header.ranks {
            let stream = read_stream(&stream_path(directory, rank), header.ranks);
            let stream = stream.map_err(|error| missing(error, &header))?;
            of_rank(directory, rank, &stream)?;
            ranks.push(stream.trace);
            bytes.push(stream.bytes);
        }
        Ok(Self { header, ranks, bytes })
    }

    /// Finds out if the trace can be replayed. Returns the share of its calls and times that depend
    /// on timing.
    ///
    /// # Errors
    /// Refuses a program that did what is not recorded, and what [`check`] refuses.
    pub fn check(&self) -> Result<TimingShare, UserError> {
        if self.header.not_recorded.is_empty() {
            return check(&self.ranks);
        }
        Err(UserError::of_kind(
            ErrorKind::Usage,
            REFUSED,
            format!(
                "the program did what is not recorded: {}",
                self.header.not_recorded.join(", ")
            ),
            "record a program without these calls; `unisono trace info` and `unisono trace export` \
             can show this one",
        ))
    }

    /// Header of the trace.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of each rank's stream.
    pub fn bytes(&self) -> &[u64] {
        &self.bytes
    }
}

/// Explains a stream that is not there.
fn missing(error: UserError, header: &Header) -> UserError {
    if error.kind != ErrorKind::NotFound {
        return error;
    }
    let cause = format!("the stream is missing, but trace.json says {} ranks", header.ranks);
    UserError { cause, ..error }
}

/// Refuses the stream of another rank.
fn of_rank(directory: &Path, rank: u32, stream: &Stream) -> Result<(), UserError> {
    match &stream.start {
        Some(start) if start.rank != rank => Err(other_rank(directory, rank, start.rank)),
        _ => Ok(()),
    }
}

fn other_rank(directory: &Path, rank: u32, said: u32) -> UserError {
    UserError::of_kind(
        ErrorKind::Corrupt,
        format!("cannot read {}", stream_path(directory, rank).display()),
        format!("it is the stream of rank {said}"),
        "give the streams back their names, or record the program again",
    )
}

/// Reads the begin of each stream in a directory, of rank 0 first, as long as there are streams.
/// `None` stands for a rank that was killed before it had written the begin.
///
/// # Errors
/// Refuses streams that are damaged, or of different programs.
pub fn stream_starts(directory: &Path) -> Result<Vec<Option<StreamStart>>, UserError> {
    let mut starts: Vec<Option<StreamStart>> = Vec::new();
    for rank in 0..RANKS_MAX {
        let start = match read_start(&stream_path(directory, rank)) {
            Err(error) if error.kind == ErrorKind::NotFound => break,
            other => other?,
        };
        let Some(start) = start else {
            starts.push(None);
            continue;
        };
        if start.rank != rank {
            return Err(other_rank(directory, rank, start.rank));
        }
        let before = starts.iter().flatten().next().map(|before| before.ranks);
        if before.is_some_and(|ranks| ranks != start.ranks) {
            return Err(UserError::of_kind(
                ErrorKind::Corrupt,
                format!("cannot read the trace {}", directory.display()),
                format!("rank {rank} is one of {} ranks, but others say differently", start.ranks),
                "remove the directory and record the program again",
            ));
        }
        starts.push(Some(StreamStart { ranks: start.ranks, host: start.host, mpi: start.mpi }));
    }
    Ok(starts)
}
