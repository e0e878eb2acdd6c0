//! The two ends of a copy: bytes that come out of one and go into the other.

use crate::copy::LocalOutput;
use crate::names::Place;
use filesystem::Fault;
use interface::{ExitCode, UserError, is_no_space};
use policy::{ListEntry, OwnPart};
use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use units::KIB;

/// Alignment of holes in the target, in bytes. Smaller holes are written as zeros.
const HOLE_BYTES: usize = 64 * KIB as usize;

/// Smallest buffer for a file, in bytes: a file that reports size 0 may still have data.
pub(super) const UNTOLD_BYTES: u64 = 64 * KIB;

/// Path that stands for standard input as a source, as in a shell.
pub const STANDARD_STREAM: &str = "-";

pub(super) fn is_standard_input(path: &Path) -> bool {
    path == Path::new(STANDARD_STREAM)
}

/// A part of a file: its offset in the file, its offset in memory, its length.
pub(super) type Segment = (u64, u64, u64);

/// Segments as a part of a transfer.
pub(super) fn list_of(segments: &[Segment]) -> OwnPart {
    let entry = |&(file_offset, memory_offset, length): &Segment| ListEntry {
        file_offset,
        memory_offset,
        length,
    };
    OwnPart::List(segments.iter().map(entry).collect())
}

/// Opens a regular file and returns its size. A file that reports size 0, as those of /proc do, may
/// still have data; then it is read to its end. So is standard input.
pub(super) fn open_local(path: &Path) -> io::Result<(File, u64)> {
    if is_standard_input(path) {
        return read_out(io::stdin().as_fd().try_clone_to_owned()?.into());
    }
    // Does not wait for the other end of a pipe.
    let waits_not = OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(waits_not).open(path)?;
    let metadata = file.metadata()?;
    match (metadata.is_file(), metadata.len()) {
        (false, _) => Err(io::Error::other("it is not a regular file")),
        (true, 0) => read_out(file),
        (true, bytes) => Ok((file, bytes)),
    }
}

/// Copies a file of unknown size into an unnamed temporary file, because its bytes are later read
/// by offset, more than once.
fn read_out(mut file: File) -> io::Result<(File, u64)> {
    let mut first = vec![0; UNTOLD_BYTES as usize];
    let length = file.read(&mut first)?;
    if length == 0 {
        return Ok((file, 0));
    }
    let mut whole = tempfile::tempfile()?;
    whole.write_all(&first[..length])?;
    let rest = io::copy(&mut file, &mut whole)?;
    Ok((whole, length as u64 + rest))
}

/// Offset of the first data of a local file of `bytes` bytes at or after `offset`, or the size of
/// the file if only a hole follows.
pub(super) fn next_data(file: &File, offset: u64, bytes: u64) -> io::Result<u64> {
    match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(start) => Ok(start),
        // A hole up to the end of the file looks like an end that has moved.
        Err(Errno::NXIO) if file.metadata()?.len() < bytes => {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
        Err(Errno::NXIO) => Ok(bytes),
        // The file system does not support holes.
        Err(Errno::INVAL) => Ok(offset),
        Err(error) => Err(error.into()),
    }
}

/// The parts of `bytes`, which lie at `offset` in the file, that are not all zero.
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

/// Writes segments of `bytes`, in their order.
pub(super) fn write_segments(
    output: &LocalOutput,
    bytes: &[u8],
    segments: &[Segment],
) -> io::Result<()> {
    segments.iter().try_for_each(|&(offset, memory, length)| {
        let part = memory as usize..(memory + length) as usize;
        output.write_at(&bytes[part], offset)
    })
}

/// Makes a local directory. One inside the target of a copy may not be a symbolic link: an earlier
/// copy may have made that link, which then leads anywhere.
pub(super) fn make_directory(what: &str, path: &Path, is_inside: bool) -> Result<(), UserError> {
    if is_inside && path.is_symlink() {
        let cause =
            format!("{} is a symbolic link, where a directory must be made", path.display());
        return Err(UserError::usage(what, cause, "remove the link, or copy to another directory"));
    }
    std::fs::create_dir_all(path).map_err(|error| local_error(what, &error))
}

/// Makes a symbolic link, in place of anything but a directory that has its name.
pub(super) fn make_link(what: &str, target: &str, link: &Place) -> Result<(), UserError> {
    let path = match link {
        Place::Local(path) => path,
        Place::Instance(name) => {
            let (name, kind) = (name.clone(), "a symbolic link".to_owned());
            return Err(UserError::of_fault(what, &Fault::IsSpecial { name, kind }));
        }
    };
    let failed = |error: io::Error| local_error(what, &error);
    match std::os::unix::fs::symlink(target, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
            let directory = directory.unwrap_or(Path::new("."));
            let folder = tempfile::Builder::new().prefix(".unisono-link-").tempdir_in(directory);
            let folder = folder.map_err(failed)?;
            let made = folder.path().join("link");
            std::os::unix::fs::symlink(target, &made).map_err(failed)?;
            std::fs::rename(&made, path).map_err(failed)
        }
        made => made.map_err(failed),
    }
}

pub(super) fn local_error(what: &str, error: &io::Error) -> UserError {
    let (code, help) = match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            let cause = "the source became shorter while it was copied";
            let help = "copy it when no other program changes it";
            return UserError::new(ExitCode::Failed, what, cause, help);
        }
        io::ErrorKind::NotFound => (ExitCode::Failed, "check the path of the local file"),
        _ if is_no_space(error) => (ExitCode::NoSpace, "free space on the local disk"),
        _ => (ExitCode::Failed, "check that the local file may be read or written"),
    };
    UserError::new(code, what, error.to_string(), help)
}

#[cfg(test)]
mod tests {
    //! Proves: what is not zero is found, and nothing else; a hole at the end of a file is one, and
    //! a file that ends too early has none.
    use super::*;
    use std::os::unix::fs::FileExt;

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

    #[test]
    fn an_early_end_is_no_hole() {
        let file = tempfile::tempfile().expect("a test must have room");
        file.write_all_at(b"x", 0).expect("a test must have room");
        file.set_len(2 << 20).expect("a test must have room");
        assert_eq!(next_data(&file, 1 << 20, 2 << 20).ok(), Some(2 << 20));
        for cut in [2 << 20, 1 << 20, 1] {
            file.set_len(cut).expect("a test must have room");
            let found = next_data(&file, 1 << 20, (2 << 20) + 1).map_err(|error| error.kind());
            assert_eq!(found, Err(io::ErrorKind::UnexpectedEof), "{cut} bytes are left");
        }
    }
}
