//! Traces made of logs of Darshan DXT.
//!
//! A log has the data calls of each rank with their times, and nothing else: no messages, no views,
//! no collective calls. So each rank opens its files by itself, and the time between two calls is
//! blocked time: the program may have computed or waited. A replay is a bound and not a prediction.

use super::lines::{Log, Module, Segment, read};
use crate::event::{Communicator, Event, FileNumber, Operation};
use crate::format::Writer;
use crate::header::{Header, Recorded};
use interface::{ErrorKind, UserError};
use policy::{Direction, OwnPart};
use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::Path;

/// A log that was imported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Imported {
    /// Number of ranks.
    pub ranks: u32,
    /// Segments that became events.
    pub segments: u64,
    /// Segments of the POSIX interface that were left out, because segments of MPI-IO of the same
    /// file contain them.
    pub left_out: u64,
    /// Segments of MPI-IO that were left out, because the log has no offsets of them.
    pub without_offset: u64,
    /// True if Darshan had no memory for all segments.
    pub is_incomplete: bool,
}

/// Makes the trace `directory`, which does not exist, of a log named `name` in the text form of
/// `darshan-dxt-parser`.
///
/// # Errors
/// Refuses malformed lines, with their numbers, and a log without segments. Fails when the trace
/// cannot be written; then nothing is left of it.
pub fn import_dxt(
    name: &str,
    input: impl BufRead,
    directory: &Path,
) -> Result<Imported, UserError> {
    let log = read(name, input)?;
    if log.segments.iter().all(|segment| segment.offset.is_none()) {
        let cause = match log.segments.len() {
            0 => "it has no segments",
            _ => "it has no offsets of its segments",
        };
        return Err(UserError::of_kind(
            ErrorKind::Usage,
            format!("cannot import {name}"),
            cause,
            "record with Darshan 3.2 or later and DXT_ENABLE_IO_TRACE=1, and give the output of \
             `darshan-dxt-parser LOG`",
        ));
    }
    std::fs::create_dir(directory).map_err(|error| not_made(directory, &error))?;
    let written = write(&log, directory);
    if written.is_err() {
        // The error of the trace counts, not that of the attempt to remove it.
        let _ = std::fs::remove_dir_all(directory);
    }
    written
}

fn not_made(directory: &Path, error: &io::Error) -> UserError {
    let what = format!("cannot make {}", directory.display());
    let (kind, help) = match error.kind() {
        io::ErrorKind::AlreadyExists => {
            (ErrorKind::AlreadyExists, "name a directory that does not exist, or remove it")
        }
        _ => (ErrorKind::LocalFile, "name a directory in one that exists and you may write to"),
    };
    UserError::of_kind(kind, what, error.to_string(), help)
}

fn write(log: &Log, directory: &Path) -> Result<Imported, UserError> {
    let last = log.segments.iter().map(|segment| segment.rank).max().unwrap_or(0);
    let ranks = log.processes.unwrap_or(last + 1);
    let files = files_of(log);
    let host = |rank: u32| log.hosts.get(&rank).map_or("unknown", String::as_str);
    let mut by_rank: Vec<Vec<Segment>> = vec![Vec::new(); ranks as usize];
    let (mut left_out, mut without_offset) = (0, 0);
    for segment in &log.segments {
        match segment.module {
            _ if segment.offset.is_none() => without_offset += 1,
            Module::Posix if files[segment.file as usize].has_mpi_io => left_out += 1,
            _ => by_rank[segment.rank as usize].push(*segment),
        }
    }
    let segments = by_rank.iter().map(|segments| segments.len() as u64).sum();
    for (rank, segments) in (0_u32..).zip(&mut by_rank) {
        segments.sort_by_key(|segment| (segment.begin_ns, segment.end_ns));
        let writer = Writer::create(directory, (rank, ranks), host(rank), MPI)?;
        write_rank(log, &files, (rank, ranks), segments, writer)?;
    }
    let started = log.started.and_then(|second| jiff::Timestamp::from_second(second).ok());
    let header = Header {
        schema: Header::SCHEMA.to_owned(),
        command: log
            .command
            .iter()
            .flat_map(|line| line.split_whitespace())
            .map(str::to_owned)
            .collect(),
        ranks,
        hosts: (0..ranks).map(|rank| host(rank).to_owned()).collect(),
        mpi: MPI.to_owned(),
        started: started.map_or_else(String::new, |started| started.to_string()),
        recorded: Recorded::DarshanDxt,
        instance: None,
        processor_pressure_percent: None,
        steal_percent: None,
        not_recorded: Vec::new(),
    };
    header.write(directory)?;
    let is_incomplete = log.is_incomplete;
    Ok(Imported { ranks, segments, left_out, without_offset, is_incomplete })
}

/// Version of the MPI library, which a log does not tell.
const MPI: &str = "unknown";

/// Summary of the segments of a file.
#[derive(Clone, Copy, Default)]
struct FileUse {
    /// True if there are segments of MPI-IO with their offsets.
    has_mpi_io: bool,
    is_written: bool,
    /// Begin of the first segment, and true if it is a read.
    first: Option<(u64, bool)>,
    /// End of the last byte that is read.
    read_end: u64,
}

impl FileUse {
    /// Bytes that the file must have had before the program: all that is read, unless the program
    /// wrote first.
    fn bytes(&self) -> u64 {
        if self.first.is_some_and(|(_, is_read)| is_read) { self.read_end } else { 0 }
    }
}

fn files_of(log: &Log) -> Vec<FileUse> {
    let mut files = vec![FileUse::default(); log.files.len()];
    for segment in &log.segments {
        let Some(offset) = segment.offset else { continue };
        let file = &mut files[segment.file as usize];
        let is_read = segment.direction == Direction::Read;
        file.has_mpi_io |= segment.module == Module::MpiIo;
        file.is_written |= !is_read;
        if file.first.is_none_or(|(begin, _)| segment.begin_ns < begin) {
            file.first = Some((segment.begin_ns, is_read));
        }
        if is_read {
            file.read_end = file.read_end.max(offset + segment.bytes);
        }
    }
    files
}

fn write_rank(
    log: &Log,
    files: &[FileUse],
    (rank, ranks): (u32, u32),
    segments: &[Segment],
    mut writer: Writer,
) -> Result<(), UserError> {
    writer.write(&event(0, 0, Operation::Begin))?;
    let communicator = match ranks {
        1 => Communicator(0),
        _ => writer.communicator(&[rank])?,
    };
    let mut opened: BTreeMap<u32, FileNumber> = BTreeMap::new();
    let mut now = 0;
    for segment in segments {
        let Some(offset) = segment.offset else { continue };
        let file = match opened.get(&segment.file) {
            Some(file) => *file,
            None => {
                let file = writer.file(&log.files[segment.file as usize])?;
                opened.insert(segment.file, file);
                let about = files[segment.file as usize];
                let operation = Operation::Open {
                    file,
                    communicator,
                    creates: about.is_written,
                    is_fresh: false,
                    bytes: about.bytes(),
                };
                writer.write(&event(0, 0, operation))?;
                file
            }
        };
        let placed = writer.part(&OwnPart::contiguous(offset, segment.bytes))?;
        let operation = Operation::Transfer {
            file,
            direction: segment.direction,
            is_collective: false,
            part: placed.map(|placed| placed.part),
            shift: placed.map_or(0, |placed| placed.shift),
            request: None,
        };
        // Segments of several threads overlap.
        let blocked_ns = segment.begin_ns.saturating_sub(now);
        let took_ns = segment.end_ns - segment.begin_ns.max(now.min(segment.end_ns));
        writer.write(&event(blocked_ns, took_ns, operation))?;
        now = now.max(segment.end_ns);
    }
    for file in opened.into_values() {
        writer.write(&event(0, 0, Operation::Close { file }))?;
    }
    let left = log.ran_ns.unwrap_or(0).saturating_sub(now);
    writer.write(&event(left, 0, Operation::End))?;
    writer.close()
}

fn event(blocked_ns: u64, took_ns: u64, operation: Operation) -> Event {
    Event { computed_ns: 0, blocked_ns, took_ns, depends_on_timing: false, operation }
}
