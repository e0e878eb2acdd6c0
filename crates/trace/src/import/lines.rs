//! Lines of a log in the text form that `darshan-dxt-parser` prints (Darshan 3.1 to 3.5 and later).
//!
//! Comments say which file, host and columns follow; each other line is a segment. The columns of
//! a table differ between releases, so they are found [by their names](super::columns).

use super::columns::{Columns, Values};
use crate::limits::{FILES_MAX, RANKS_MAX, TEXT_BYTES_MAX};
use interface::{ErrorKind, UserError};
use policy::{BYTES_MAX, Direction};
use std::collections::HashMap;
use std::io::{BufRead, Read};

/// Largest number of bytes in a line.
const LINE_BYTES_MAX: u64 = 1 << 17;
/// Largest number of segments.
const SEGMENTS_MAX: usize = 1 << 28;
/// Latest end of a segment, in seconds: 30 years.
const SECONDS_MAX: f64 = 1e9;

/// Interface that a segment was seen at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Module {
    /// Calls of the operating system.
    Posix,
    /// Calls of MPI-IO, which make calls of the operating system.
    MpiIo,
}

/// A call that moved data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) module: Module,
    pub(super) rank: u32,
    /// Index in [`Log::files`].
    pub(super) file: u32,
    pub(super) direction: Direction,
    /// Offset in the file; `None` in segments of MPI-IO that Darshan recorded before release 3.2.
    pub(super) offset: Option<u64>,
    pub(super) bytes: u64,
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
}

/// A log.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Command line, if the log tells it.
    pub(super) command: Option<String>,
    /// Number of processes, if the log tells it.
    pub(super) processes: Option<u32>,
    /// Begin of the program, in seconds since 1970.
    pub(super) started: Option<i64>,
    /// Duration of the program.
    pub(super) ran_ns: Option<u64>,
    /// Host of each rank that the log tells.
    pub(super) hosts: HashMap<u32, String>,
    /// Names of the files.
    pub(super) files: Vec<String>,
    /// Segments in the order of the log.
    pub(super) segments: Vec<Segment>,
    /// True if Darshan had no memory for all segments, as a warning in the log says.
    pub(super) is_incomplete: bool,
    /// Index of each file.
    numbers: HashMap<String, u32>,
    /// File and rank that the next segments are of.
    current: (Option<u32>, Option<u32>),
    /// Columns of the next segments.
    columns: Option<Columns>,
}

/// Reads a log named `name`.
pub(super) fn read(name: &str, mut input: impl BufRead) -> Result<Log, UserError> {
    let mut log = Log::default();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = input.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line);
        let read = read.map_err(|error| {
            let help = "name a file with the output of darshan-dxt-parser";
            let what = format!("cannot read {name}");
            UserError::of_kind(ErrorKind::LocalFile, what, error.to_string(), help)
        })?;
        if read == 0 {
            break;
        }
        let text = match std::str::from_utf8(&line) {
            _ if line.len() as u64 > LINE_BYTES_MAX => {
                Err(format!("it has more than {LINE_BYTES_MAX} bytes"))
            }
            Ok(text) => Ok(text.trim()),
            Err(_) => Err("it is not UTF-8".to_owned()),
        };
        text.and_then(|text| log.line(text)).map_err(|cause| malformed(name, number, &cause))?;
    }
    Ok(log)
}

fn malformed(name: &str, number: u64, cause: &str) -> UserError {
    UserError::of_kind(
        ErrorKind::Usage,
        format!("cannot import {name}"),
        format!("line {number}: {cause}"),
        "give the output of `darshan-dxt-parser LOG` as it is",
    )
}

impl Log {
    fn line(&mut self, text: &str) -> Result<(), String> {
        match text.strip_prefix('#') {
            Some(comment) => self.comment(comment.trim()),
            None if text.is_empty() => Ok(()),
            None => self.segment(text),
        }
    }

    fn comment(&mut self, comment: &str) -> Result<(), String> {
        if let Some(about) = comment.strip_prefix("DXT, ") {
            return self.about_table(about);
        }
        if Columns::are_in(comment) {
            self.columns = Some(Columns::read(comment)?);
            return Ok(());
        }
        let Some((key, value)) = comment.split_once(':') else { return Ok(()) };
        let value = value.trim();
        match key {
            "exe" => self.command = Some(value.to_owned()),
            "nprocs" => match value.parse() {
                Ok(processes @ 1..=RANKS_MAX) => self.processes = Some(processes),
                _ => return Err(format!("{value} processes are not between 1 and {RANKS_MAX}")),
            },
            "start_time" | "start_time_sec" => self.started = value.parse().ok(),
            "run time" => self.ran_ns = Some(time_of(value)?),
            "*WARNING*" => self.is_incomplete |= value.contains("incomplete data"),
            _ => {}
        }
        Ok(())
    }

    /// A line before a table that says whose segments it has.
    fn about_table(&mut self, about: &str) -> Result<(), String> {
        if about.starts_with("file_id: ") {
            let (_, name) = about.split_once("file_name: ").ok_or("it has no name of a file")?;
            self.current = (Some(self.file(name)?), None);
        } else if let Some(rest) = about.strip_prefix("rank: ") {
            let (rank, host) = match rest.split_once(',') {
                Some((rank, rest)) => (rank, rest.trim().strip_prefix("hostname: ")),
                None => (rest, None),
            };
            let rank = rank_of(rank)?;
            self.current.1 = Some(rank);
            if let Some(host) = host {
                self.hosts.entry(rank).or_insert_with(|| host.to_owned());
            }
        }
        Ok(())
    }

    fn file(&mut self, name: &str) -> Result<u32, String> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        if name.is_empty() || name.len() > TEXT_BYTES_MAX {
            return Err("a name of a file is empty or too long".to_owned());
        }
        if self.files.len() == FILES_MAX {
            return Err(format!("there are more than {FILES_MAX} files"));
        }
        let number = self.files.len() as u32;
        self.numbers.insert(name.to_owned(), number);
        self.files.push(name.to_owned());
        Ok(number)
    }

    fn segment(&mut self, text: &str) -> Result<(), String> {
        let (Some(file), of_rank) = self.current else {
            return Err("no line before it names its file".to_owned());
        };
        let columns = self.columns.as_ref().ok_or("no line before it names its columns")?;
        let segment = segment_of(&columns.values(text)?, file)?;
        let rank = segment.rank;
        if self.processes.is_some_and(|processes| rank >= processes) {
            return Err(format!("its rank {rank} is not one of the processes"));
        }
        if of_rank.is_some_and(|other| other != rank) {
            return Err(format!("its rank is {rank}, but that of its table is another"));
        }
        if self.segments.len() == SEGMENTS_MAX {
            return Err(format!("there are more than {SEGMENTS_MAX} segments"));
        }
        self.segments.push(segment);
        Ok(())
    }
}

/// The segment of `file` that a line has.
fn segment_of(values: &Values<'_>, file: u32) -> Result<Segment, String> {
    let module = match values.module()? {
        "X_POSIX" => Module::Posix,
        "X_MPIIO" => Module::MpiIo,
        other => return Err(format!("{other} is neither X_POSIX nor X_MPIIO")),
    };
    let rank = rank_of(values.rank()?)?;
    let direction = match values.direction()? {
        "write" => Direction::Write,
        "read" => Direction::Read,
        other => return Err(format!("{other} is neither write nor read")),
    };
    let number = values.segment()?;
    number.parse::<u64>().map_err(|_| format!("{number} is no number of a segment"))?;
    let offset = match values.offset()? {
        // Logs before release 3.2 have no offsets of MPI-IO, for which later parsers print -1.
        None | Some("-1") if module == Module::MpiIo => None,
        None => return Err("it has no offset".to_owned()),
        Some(offset) => Some(bytes_of(offset)?),
    };
    let bytes = bytes_of(values.length()?)?;
    let (begin_ns, end_ns) = (time_of(values.begin()?)?, time_of(values.end()?)?);
    if let Some(offset) = offset
        && offset.checked_add(bytes).is_none_or(|end| end > BYTES_MAX)
    {
        return Err(format!("{bytes} bytes at {offset} do not fit in a file"));
    }
    if end_ns < begin_ns {
        return Err("the segment ends before it begins".to_owned());
    }
    Ok(Segment { module, rank, file, direction, offset, bytes, begin_ns, end_ns })
}

fn rank_of(word: &str) -> Result<u32, String> {
    match word.trim().parse() {
        Ok(rank) if rank < RANKS_MAX => Ok(rank),
        _ => Err(format!("{word} is no rank between 0 and {}", RANKS_MAX - 1)),
    }
}

fn bytes_of(word: &str) -> Result<u64, String> {
    match word.parse() {
        Ok(bytes) if bytes <= BYTES_MAX => Ok(bytes),
        _ => Err(format!("{word} is no number of bytes")),
    }
}

/// Nanoseconds of a time in seconds.
fn time_of(word: &str) -> Result<u64, String> {
    match word.parse::<f64>() {
        Ok(seconds) if (0.0..=SECONDS_MAX).contains(&seconds) => Ok((seconds * 1e9).round() as u64),
        _ => Err(format!("{word} is no time in seconds")),
    }
}
