//! A worker of a copy: copies one file after another, on a thread of its own.

use super::ends::{
    self, data_of, list_of, local_error, make_link, next_data, open_local, write_segments,
};
use super::failure::Failure;
use super::plan::{CopyOptions, FileCopy};
use super::verify::{Moved, piece_bytes, verify};
use crate::cleanup::{Cleanup, Undo};
use crate::copy::LocalOutput;
use crate::files::{Placement, Usual, made_now, placement};
use crate::library::{Connection, File, Group};
use crate::names::{Place, join};
use filesystem::{Fault, NewFile};
use interface::UserError;
use policy::OwnPart;
use std::cell::RefCell;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::UNIX_EPOCH;
use units::Timestamp;
use wire::{EntryKind, FileDefaults, NAME_BYTES_MAX};

/// A worker: a group of one member, with a window of memory.
pub(super) struct Worker<'a> {
    connection: &'a Connection,
    group: Group,
    window: RefCell<Vec<u8>>,
    window_bytes: u64,
    /// Defaults for new files, used where the directory has none.
    usual: Usual,
    options: CopyOptions,
}

/// Source of the bytes.
enum Source {
    Local(std::fs::File),
    Instance(File),
}

/// Target of the bytes.
enum Target {
    Local(LocalOutput),
    Instance(File),
}

impl Target {
    fn is_stream(&self) -> bool {
        matches!(self, Self::Local(output) if output.is_stream())
    }
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        window_bytes: u64,
        usual: Usual,
        options: CopyOptions,
    ) -> Result<Self, UserError> {
        let group = Group::alone(connection)?;
        let window = RefCell::new(vec![0; window_bytes as usize]);
        Ok(Self { connection, group, window, window_bytes, usual, options })
    }

    /// Copies one file. Stops early, as if by an error, if there is a `failure` of another.
    pub(super) fn copy(
        &self,
        copy: &FileCopy,
        progress: &dyn Fn(u64),
        failure: &Failure,
    ) -> Result<u64, UserError> {
        let what = format!("cannot copy {} to {}", copy.from, copy.to);
        if let Some(target) = &copy.link {
            return make_link(&what, target, &copy.to).map(|()| 0);
        }
        let (source, bytes) = match &copy.from {
            Place::Local(path) => {
                let opened = open_local(path).map_err(|error| local_error(&what, &error))?;
                (Source::Local(opened.0), opened.1)
            }
            Place::Instance(name) => {
                let file = self.connection.open_file(name).map_err(|error| error.doing(&what))?;
                let bytes = file.bytes();
                (Source::Instance(file), bytes)
            }
        };
        let (moved, what) = (RefCell::default(), &*what);
        let work = Work { worker: self, source, bytes, what, progress, failure, moved };
        match &copy.to {
            Place::Local(path) => work.to_local(path)?,
            Place::Instance(name) => work.to_instance(name, copy.replaces)?,
        }
        if let Source::Instance(file) = work.source {
            file.close().map_err(|error| error.doing(what))?;
        }
        Ok(bytes)
    }
}

/// Copy of one file.
struct Work<'a> {
    worker: &'a Worker<'a>,
    source: Source,
    bytes: u64,
    what: &'a str,
    progress: &'a dyn Fn(u64),
    failure: &'a Failure,
    /// Digests of the data copied.
    moved: RefCell<Moved>,
}

impl Work<'_> {
    fn to_local(&self, path: &Path) -> Result<(), UserError> {
        let output = LocalOutput::open(path).map_err(|error| self.local(&error))?;
        let target = Target::Local(output);
        self.move_all(&target)?;
        if let Source::Instance(file) = &self.source {
            self.verify(file)?;
        }
        let Target::Local(output) = target else { unreachable!("it was made above") };
        let time = self.time_to_keep()?;
        let sized = output.set_length(self.bytes);
        let timed = sized.and_then(|()| time.map_or(Ok(()), |time| output.set_modified(time)));
        timed.and_then(|()| output.keep()).map_err(|error| self.local(&error))
    }

    /// Returns the time of the source, if the target is to have it.
    fn time_to_keep(&self) -> Result<Option<Timestamp>, UserError> {
        if !self.worker.options.keeps_times {
            return Ok(None);
        }
        match &self.source {
            Source::Local(file) => {
                let modified = file.metadata().and_then(|found| found.modified());
                let modified = modified.map_err(|error| self.local(&error))?;
                let since_1970 = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
                let ns = u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX);
                Ok(Some(Timestamp::from_ns(ns)))
            }
            Source::Instance(file) => {
                let entry = self.worker.connection.stat(&file.name());
                Ok(Some(entry.map_err(|error| error.doing(self.what))?.modified))
            }
        }
    }

    /// Copies to an unpredictable temporary name, then renames the file to `name`.
    fn to_instance(&self, name: &str, replaces: bool) -> Result<(), UserError> {
        let connection = self.worker.connection;
        let failing = |error: UserError| error.doing(self.what);
        if !replaces {
            self.check_free(name)?;
        }
        let part = part_name(name, connection.random());
        let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
        let defaults = match connection.find(directory) {
            Ok(Some(entry)) => match entry.kind {
                EntryKind::Directory(defaults) => defaults,
                EntryKind::File(_) | EntryKind::Special(_) => FileDefaults::default(),
            },
            // The call that makes the file will report the error.
            Ok(None) | Err(_) => FileDefaults::default(),
        };
        let placed = placement(connection, self.worker.usual, &defaults, self.bytes);
        let Placement { stripe, pool, buffering, protection } = placed;
        let (made, name_now, bytes) = (made_now(), part.clone(), self.bytes);
        let new = NewFile { name: name_now, bytes, stripe, pool, buffering, protection, made };
        // Before the file is made, which takes as long as a server does. Nothing else has its name.
        let undo = Undo::on_signals(Cleanup::RemoveCopy {
            instance: connection.instance().clone(),
            name: part.clone(),
        });
        let file = connection.create_as(new).map_err(failing)?;
        let target = Target::Instance(file.clone());
        let copied = || {
            self.move_all(&target)?;
            file.flush(true).map_err(failing)?;
            self.verify(&file)?;
            if let Some(time) = self.time_to_keep()? {
                file.set_modified(time).map_err(failing)?;
            }
            file.clone().close().map_err(failing)?;
            connection.rename(&part, name, replaces).map_err(failing)
        };
        if let Err(error) = copied() {
            undo.wait_if_begun();
            // The first error is the one to report.
            let _ = connection.remove(&part);
            return Err(error);
        }
        Ok(())
    }

    /// Compares the data that the servers hold of a file with the data copied.
    fn verify(&self, file: &File) -> Result<(), UserError> {
        match self.piece_of(file) {
            Some(_) => verify(file, &self.moved.take(), self.what),
            None => Ok(()),
        }
    }

    /// Size of the pieces in which a file is compared, in bytes, if it is. The parts moved begin
    /// and end at piece boundaries.
    fn piece_of(&self, file: &File) -> Option<u64> {
        let (piece, window) = (piece_bytes(file), self.worker.window_bytes);
        (self.worker.options.verifies && (piece <= window || self.bytes <= window)).then_some(piece)
    }

    /// Size of the pieces of the file that is compared at the end, in bytes, if any is.
    fn piece_to(&self, target: &Target) -> Option<u64> {
        match (target, &self.source) {
            (Target::Instance(file), _) | (_, Source::Instance(file)) => self.piece_of(file),
            (Target::Local(_), Source::Local(_)) => None,
        }
    }

    /// Fails if the name is taken, before anything is copied.
    fn check_free(&self, name: &str) -> Result<(), UserError> {
        match self.worker.connection.find(name).map_err(|error| error.doing(self.what))? {
            None => Ok(()),
            Some(_) => {
                let taken = Fault::FileExists { name: name.to_owned() };
                Err(UserError::of_fault(self.what, &taken))
            }
        }
    }

    fn move_all(&self, target: &Target) -> Result<(), UserError> {
        let piece = self.piece_to(target);
        let mut offset = 0;
        while offset < self.bytes {
            if self.failure.is_there() {
                // This error is not reported: that failure is the reason.
                return Err(UserError::of_fault(self.what, &Fault::Cancelled));
            }
            let (start, end) = self.next_part(offset, piece.unwrap_or(1), target)?;
            self.move_part(target, start, end, piece)?;
            (self.progress)(end - offset);
            offset = end;
        }
        Ok(())
    }

    /// Returns the next part to move, at most a window, after any hole; empty after the last.
    /// Begins and ends at multiples of `unit`, or at the end of the file.
    fn next_part(&self, offset: u64, unit: u64, target: &Target) -> Result<(u64, u64), UserError> {
        let start = match &self.source {
            Source::Local(_) if target.is_stream() => offset,
            Source::Instance(_) => offset,
            Source::Local(file) => next_data(file, offset, self.bytes)
                .map(|data| (data / unit * unit).max(offset).min(self.bytes))
                .map_err(|error| self.local(&error))?,
        };
        let window = self.worker.window_bytes;
        let whole = if unit <= window { window / unit * unit } else { window };
        Ok((start, self.bytes.min(start + whole)))
    }

    fn move_part(
        &self,
        target: &Target,
        start: u64,
        end: u64,
        piece: Option<u64>,
    ) -> Result<(), UserError> {
        let failing = |error: UserError| error.doing(self.what);
        let length = end - start;
        if length == 0 {
            return Ok(());
        }
        let group = &self.worker.group;
        let mut window = self.worker.window.borrow_mut();
        let bytes = &mut window[..length as usize];
        match &self.source {
            Source::Local(file) => {
                file.read_exact_at(bytes, start).map_err(|error| self.local(&error))?;
            }
            Source::Instance(file) => {
                group.read(file, &OwnPart::contiguous(start, length), bytes).map_err(failing)?;
            }
        }
        if let Some(piece) = piece {
            self.moved.borrow_mut().add(bytes, start, piece);
        }
        let data = match target.is_stream() {
            true => vec![(start, 0, length)],
            false => data_of(bytes, start),
        };
        match target {
            _ if data.is_empty() => Ok(()),
            Target::Local(output) => {
                write_segments(output, bytes, &data).map_err(|error| self.local(&error))
            }
            Target::Instance(file) => {
                group.write(file, &list_of(&data), bytes).map(|_| ()).map_err(failing)
            }
        }
    }

    fn local(&self, error: &std::io::Error) -> UserError {
        ends::local_error(self.what, error)
    }
}

/// Temporary name of a file that will be renamed to `name`. It lies beside `name`, unless that
/// would be too long.
fn part_name(name: &str, random: u64) -> String {
    let (directory, last) = name.rsplit_once('/').unwrap_or(("", name));
    // A name of the greatest length has no room for a suffix.
    let last: String = last.chars().take(40).collect();
    let part = format!(".{last}.part-{random:016x}");
    let beside = join(directory, &part);
    if beside.len() > NAME_BYTES_MAX { part } else { beside }
}

#[cfg(test)]
mod tests {
    //! Proves: what can be a name can be copied to.
    use super::*;
    use wire::name_flaw;

    #[test]
    fn names_of_the_greatest_length_have_parts() {
        assert_eq!(part_name("d/name", 10), "d/.name.part-000000000000000a");
        let directory = "abcdefghi/".repeat(409);
        let name = format!("{directory}123456");
        assert_eq!((name.len(), name_flaw(&name)), (NAME_BYTES_MAX, None));
        assert_eq!(part_name(&name, 10), ".123456.part-000000000000000a");
    }
}
