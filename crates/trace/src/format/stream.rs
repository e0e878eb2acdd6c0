//! A stream as a file: its head, its checksum, and the place where it is cut.

use super::head::{BadHead, HEAD_BYTES, Head, read_head};
use super::reader::{Reader, Start, Stop, empty};
use crate::event::{Operation, RankTrace};
use crate::limits::{RANKS_MAX, STREAM_BYTES_MAX, TEXT_BYTES_MAX};
use interface::{ErrorKind, UserError};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A stream as it was read.
#[derive(Debug)]
pub(crate) struct Stream {
    /// First record; `None` when the stream is cut before it.
    pub(crate) start: Option<Start>,
    /// Events and tables.
    pub(crate) trace: RankTrace,
    /// Bytes of the stream.
    pub(crate) bytes: u64,
}

/// Reads the stream at `path`, of `ranks` ranks.
pub(crate) fn read_stream(path: &Path, ranks: u32) -> Result<Stream, UserError> {
    decode(path, &load(path, u64::MAX)?, ranks)
}

/// Decodes the stream of `ranks` ranks that `bytes` are.
pub(super) fn decode(path: &Path, bytes: &[u8], ranks: u32) -> Result<Stream, UserError> {
    let Some(head) = head_of(path, bytes)? else {
        let trace = RankTrace { is_cut: true, ..empty(ranks) };
        return Ok(Stream { start: None, trace, bytes: bytes.len() as u64 });
    };
    let there = &bytes[HEAD_BYTES..];
    let is_truncated = (there.len() as u64) < head.length;
    let records = if is_truncated { there } else { &there[..head.length as usize] };
    if !is_truncated && head.checksum.is_some_and(|sum| sum != crc32c::crc32c(records)) {
        return Err(corrupt(path, "its checksum does not match its records"));
    }
    let may_end = is_truncated || (head.checksum.is_none() && records.last() == Some(&0));
    let mut reader = Reader::new(records, ranks);
    let stopped = reader.read_all();
    let at = reader.at() + HEAD_BYTES;
    let is_lost = match stopped {
        Ok(()) => is_truncated,
        Err(Stop::Ended) if may_end => true,
        // A machine that lost its power may have kept the length and not the bytes.
        Err(Stop::Damaged(_)) if may_end && reader.is_at_zeros() => true,
        Err(Stop::Ended) => {
            let cause = format!("it ends inside the record that begins at byte {at}");
            return Err(corrupt(path, &cause));
        }
        Err(Stop::Damaged(cause)) => {
            return Err(corrupt(path, &format!("the record at byte {at}: {cause}")));
        }
    };
    let last = reader.trace.events.last();
    let has_ended = last.is_some_and(|last| last.operation == Operation::End);
    reader.trace.is_cut = is_lost || !has_ended;
    let bytes = (HEAD_BYTES + records.len()) as u64;
    Ok(Stream { start: reader.start, trace: reader.trace, bytes })
}

/// Reads the first record of a stream; `None` when the stream is cut before its end.
pub(crate) fn read_start(path: &Path) -> Result<Option<Start>, UserError> {
    let longest = 2 * TEXT_BYTES_MAX + 64;
    let bytes = load(path, longest as u64)?;
    if head_of(path, &bytes)?.is_none() {
        return Ok(None);
    }
    let mut reader = Reader::new(&bytes[HEAD_BYTES..], RANKS_MAX);
    match reader.start() {
        Ok(start) => Ok(Some(start)),
        Err(Stop::Ended) => Ok(None),
        Err(Stop::Damaged(_)) if reader.is_at_zeros() => Ok(None),
        Err(Stop::Damaged(cause)) => Err(corrupt(path, &format!("its first record: {cause}"))),
    }
}

/// Loads the head of a stream and at most `most` bytes of the records that the head counts.
fn load(path: &Path, most: u64) -> Result<Vec<u8>, UserError> {
    let unreadable = |error: std::io::Error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::LocalFile,
        };
        let help = "name a trace that is whole, or record the program again";
        UserError::of_kind(kind, cannot_read(path), error.to_string(), help)
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let there = file.metadata().map_err(unreadable)?;
    if !there.is_file() {
        return Err(corrupt(path, "it is not a file"));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut bytes).map_err(unreadable)?;
    let Ok(head) = read_head(&bytes) else { return Ok(bytes) };
    let length = head.length.min(there.len().saturating_sub(HEAD_BYTES as u64));
    if length > STREAM_BYTES_MAX {
        return Err(corrupt(path, &format!("it has more than {STREAM_BYTES_MAX} bytes")));
    }
    let wanted = length.min(most);
    bytes.reserve_exact(wanted as usize);
    file.take(wanted).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// Head at the front of a stream; `None` when the stream is cut before its end.
fn head_of(path: &Path, bytes: &[u8]) -> Result<Option<Head>, UserError> {
    match read_head(bytes) {
        Ok(head) => Ok(Some(head)),
        Err(BadHead::Cut) => Ok(None),
        Err(BadHead::Damaged(cause)) => Err(corrupt(path, cause)),
        Err(BadHead::Version(version)) => {
            let cause = format!("its stream has version {version}; this release reads version 1");
            let help = "use the release of Unisono that recorded it";
            let kind = ErrorKind::WrongVersion;
            Err(UserError::of_kind(kind, cannot_read(path), cause, help))
        }
    }
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

fn corrupt(path: &Path, cause: &str) -> UserError {
    let help = "restore the trace from a copy, or record the program again";
    UserError::of_kind(ErrorKind::Corrupt, cannot_read(path), cause, help)
}
