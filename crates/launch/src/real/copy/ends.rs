//! The two ends of a copy: bytes that come out of one and go into the other.

use crate::error::{ExitCode, LaunchError};
use crate::real::PartFile;
use filesystem::collective::{Strategy, Transfer};
use filesystem::{Fault, Group, SharedMemory};
use policy::{Access, Direction, DiskOrder, ListEntry};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use units::KIB;
use wire::FileRecord;
use world_real::RealWorld;

/// Holes of the target are multiples of this: finer ones are written as zeros.
const HOLE_BYTES: usize = 64 * KIB as usize;

/// A part of a file: its offset in the file, its offset in memory, its length.
pub(super) type Segment = (u64, u64, u64);

/// Moves segments between a file of the instance and a memory.
pub(super) async fn transfer(
    group: &Group<RealWorld>,
    file: &FileRecord,
    direction: Direction,
    segments: &[Segment],
    memory: &SharedMemory<RealWorld>,
) -> Result<(), Fault> {
    let entry = |&(file_offset, memory_offset, length): &Segment| ListEntry {
        file_offset,
        memory_offset,
        length,
    };
    let transfer = Transfer {
        direction,
        file: file.clone(),
        access: Access::List(vec![segments.iter().map(entry).collect()]),
        strategy: Strategy::DiskDirected,
        order: DiskOrder::Sorted,
        outstanding_per_disk: 1,
        sync: false,
    };
    group.transfer(&transfer, memory).await
}

/// The first byte of a local file at or behind `offset` that lies in no hole, if there is one.
pub(super) fn next_data(file: &File, offset: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(start) => Ok(Some(start)),
        Err(Errno::NXIO) => Ok(None),
        // A file system that knows no holes.
        Err(Errno::INVAL) => Ok(Some(offset)),
        Err(error) => Err(error.into()),
    }
}

/// The parts of `bytes`, which lie at `offset` in the file, that are not zero throughout.
pub(super) fn data_of(bytes: &[u8], offset: u64) -> Vec<Segment> {
    let mut found: Vec<Segment> = Vec::new();
    for (number, piece) in bytes.chunks(HOLE_BYTES).enumerate() {
        if piece.iter().all(|byte| *byte == 0) {
            continue;
        }
        let (at, length) = ((number * HOLE_BYTES) as u64, piece.len() as u64);
        match found.last_mut() {
            Some((_, memory, known)) if *memory + *known == at => *known += length,
            _ => found.push((offset + at, at, length)),
        }
    }
    found
}

/// Writes segments of `bytes` to a local file.
pub(super) fn write_segments(
    file: &PartFile,
    bytes: &[u8],
    segments: &[Segment],
) -> io::Result<()> {
    segments.iter().try_for_each(|&(offset, memory, length)| {
        let part = memory as usize..(memory + length) as usize;
        file.as_file().write_all_at(&bytes[part], offset)
    })
}

pub(super) fn local_error(what: &str, error: &io::Error) -> LaunchError {
    let (code, help) = match error.kind() {
        io::ErrorKind::NotFound => (ExitCode::Failed, "check the path of the local file"),
        io::ErrorKind::StorageFull => (ExitCode::NoSpace, "free space on the local disk"),
        _ => (ExitCode::Failed, "check that the local file may be read or written"),
    };
    LaunchError::new(code, what, error.to_string(), help)
}

#[cfg(test)]
mod tests {
    //! Proves: what is not zero is found, and nothing else.
    use super::*;

    #[test]
    fn zeros_are_left_out() {
        let mut bytes = vec![0; 5 * HOLE_BYTES + 10];
        bytes[HOLE_BYTES + 3] = 1;
        bytes[2 * HOLE_BYTES] = 1;
        bytes[5 * HOLE_BYTES + 9] = 1;
        let hole = HOLE_BYTES as u64;
        let expected = [(100 + hole, hole, 2 * hole), (100 + 5 * hole, 5 * hole, 10)];
        assert_eq!(data_of(&bytes, 100), expected);
        assert_eq!(data_of(&[0; 7], 0), []);
    }
}
