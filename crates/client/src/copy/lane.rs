//! One of the files that are copied at the same time.

use super::ends::{self, data_of, local_error, next_data, open_local, transfer, write_segments};
use super::failure::Failure;
use super::plan::FileCopy;
use super::verify::{Moved, piece_bytes, verify};
use crate::cleanup::{Cleanup, Undo};
use crate::copy::LocalOutput;
use crate::files::{Placement, Usual, made_now, placement};
use crate::instance::Instance;
use crate::names::{Place, join};
use filesystem::{Fault, Group, NewFile, SharedMemory};
use interface::UserError;
use policy::Direction;
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use wire::{EntryKind, FileDefaults, FileRecord, NAME_BYTES_MAX};
use world::{Payloads, Randomness};
use world_real::RealWorld;

/// A group of one with a window of memory that the servers reach.
pub(super) struct Lane {
    instance: Instance,
    group: Group<RealWorld>,
    memory: SharedMemory<RealWorld>,
    window: u64,
    /// How files are made where their directory does not say.
    usual: Usual,
    verifies: bool,
}

/// Where bytes come from.
enum Source {
    Local(File),
    Instance(FileRecord),
}

/// Where they go.
enum Target {
    Local(LocalOutput),
    Instance(FileRecord),
}

impl Target {
    fn is_stream(&self) -> bool {
        matches!(self, Self::Local(output) if output.is_stream())
    }
}

impl Lane {
    pub(super) async fn new(
        instance: &Instance,
        group: Group<RealWorld>,
        window: u64,
        usual: Usual,
        verifies: bool,
    ) -> Result<Self, Fault> {
        let memory = group.client().world().memory(window);
        let memory = group.share(memory).await?;
        Ok(Self { instance: instance.clone(), group, memory, window, usual, verifies })
    }

    /// Ends it; its memory is no longer reached by anyone.
    pub(super) async fn close(self) {
        self.group.unshare(self.memory).await;
    }

    /// Copies one file. Stops in the middle, as if by an error, when there is a `failure` of
    /// another.
    pub(super) async fn copy(
        &self,
        copy: &FileCopy,
        progress: &dyn Fn(u64),
        failure: &Failure,
    ) -> Result<u64, UserError> {
        let what = format!("cannot copy {} to {}", copy.from, copy.to);
        let failing = |fault: Fault| UserError::of_fault(&what, &fault);
        let (source, bytes) = match &copy.from {
            Place::Local(path) => {
                let opened = open_local(path).map_err(|error| local_error(&what, &error))?;
                (Source::Local(opened.0), opened.1)
            }
            Place::Instance(name) => {
                let record = self.group.client().open(name).await.map_err(failing)?;
                let bytes = record.bytes;
                (Source::Instance(record), bytes)
            }
        };
        let (moved, what) = (RefCell::default(), &*what);
        let work = Work { lane: self, source, bytes, what, progress, failure, moved };
        match &copy.to {
            Place::Local(path) => work.to_local(path).await?,
            Place::Instance(name) => work.to_instance(name, copy.replaces).await?,
        }
        if let Source::Instance(record) = &work.source {
            self.group.client().close(record).await.map_err(failing)?;
        }
        Ok(bytes)
    }
}

/// The copying of one file.
struct Work<'a> {
    lane: &'a Lane,
    source: Source,
    bytes: u64,
    what: &'a str,
    progress: &'a dyn Fn(u64),
    failure: &'a Failure,
    /// The digests of what was moved.
    moved: RefCell<Moved>,
}

impl Work<'_> {
    async fn to_local(&self, path: &Path) -> Result<(), UserError> {
        let output = LocalOutput::open(path).map_err(|error| self.local(&error))?;
        let target = Target::Local(output);
        self.move_all(&target).await?;
        if let Source::Instance(record) = &self.source {
            self.verify(record).await?;
        }
        let Target::Local(output) = target else { unreachable!("it was made above") };
        let sized = output.set_length(self.bytes);
        sized.and_then(|()| output.keep()).map_err(|error| self.local(&error))
    }

    /// Copies to a name that nobody can foresee, which becomes `name` when everything is there.
    async fn to_instance(&self, name: &str, replaces: bool) -> Result<(), UserError> {
        let client = self.lane.group.client();
        let failing = |fault: Fault| UserError::of_fault(self.what, &fault);
        if !replaces {
            self.check_free(name).await?;
        }
        let part = part_name(name, client.world().random());
        let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
        let defaults = match client.stat(directory).await.map(|entry| entry.kind) {
            Ok(EntryKind::Directory(defaults)) => defaults,
            // Whoever makes the file will learn what is wrong.
            Ok(EntryKind::File(_)) | Err(_) => FileDefaults::default(),
        };
        let Placement { stripe, pool, buffering } =
            placement(client, self.lane.usual, &defaults, self.bytes);
        let made = made_now();
        let new = NewFile { name: part.clone(), bytes: self.bytes, stripe, pool, buffering, made };
        let record = client.create_as(new).await.map_err(failing)?;
        let undo = Undo::on_signals(Cleanup::RemoveCopy {
            instance: self.lane.instance.clone(),
            name: part.clone(),
        });
        let target = Target::Instance(record.clone());
        let copied = async {
            self.move_all(&target).await?;
            client.flush(&record, true).await.map_err(failing)?;
            self.verify(&record).await?;
            client.close(&record).await.map_err(failing)?;
            let renamed = match replaces {
                true => client.replace(&part, name).await,
                false => client.rename(&part, name).await,
            };
            renamed.map_err(failing)
        };
        if let Err(error) = copied.await {
            undo.wait_if_begun();
            // The first error is the one to report.
            let _ = client.remove(&part).await;
            return Err(error);
        }
        Ok(())
    }

    /// Compares what the servers hold of a file with what was moved.
    async fn verify(&self, record: &FileRecord) -> Result<(), UserError> {
        match self.piece_of(record) {
            Some(_) => {
                verify(self.lane.group.client(), record, &self.moved.take(), self.what).await
            }
            None => Ok(()),
        }
    }

    /// Bytes of the pieces in which a file is compared, if it is: parts that are moved begin and
    /// end with pieces.
    fn piece_of(&self, record: &FileRecord) -> Option<u64> {
        let (piece, window) = (piece_bytes(record), self.lane.window);
        (self.lane.verifies && (piece <= window || self.bytes <= window)).then_some(piece)
    }

    /// The pieces of the file that is compared at the end, if any is.
    fn piece_to(&self, target: &Target) -> Option<u64> {
        match (target, &self.source) {
            (Target::Instance(record), _) | (_, Source::Instance(record)) => self.piece_of(record),
            (Target::Local(_), Source::Local(_)) => None,
        }
    }

    /// Refuses a name that is taken before anything is copied.
    async fn check_free(&self, name: &str) -> Result<(), UserError> {
        let taken = match self.lane.group.client().stat(name).await {
            Ok(_) => Fault::FileExists { name: name.to_owned() },
            Err(Fault::NoSuchFile { .. }) => return Ok(()),
            Err(fault) => fault,
        };
        Err(UserError::of_fault(self.what, &taken))
    }

    async fn move_all(&self, target: &Target) -> Result<(), UserError> {
        let piece = self.piece_to(target);
        let mut offset = 0;
        while offset < self.bytes {
            if self.failure.is_there() {
                // Nobody is told: that failure is the reason.
                return Err(UserError::of_fault(self.what, &Fault::Cancelled));
            }
            let (start, end) = self.next_part(offset, piece.unwrap_or(1), target)?;
            self.move_part(target, start, end, piece).await?;
            (self.progress)(end - offset);
            offset = end;
        }
        Ok(())
    }

    /// The next part to move, at most a window, behind what is a hole; empty behind the last. It
    /// begins and ends at multiples of `unit`, or at the end of the file.
    fn next_part(&self, offset: u64, unit: u64, target: &Target) -> Result<(u64, u64), UserError> {
        let start = match &self.source {
            Source::Local(_) if target.is_stream() => offset,
            Source::Instance(_) => offset,
            Source::Local(file) => next_data(file, offset, self.bytes)
                .map(|data| (data / unit * unit).max(offset).min(self.bytes))
                .map_err(|error| self.local(&error))?,
        };
        let window = self.lane.window;
        let whole = if unit <= window { window / unit * unit } else { window };
        Ok((start, self.bytes.min(start + whole)))
    }

    async fn move_part(
        &self,
        target: &Target,
        start: u64,
        end: u64,
        piece: Option<u64>,
    ) -> Result<(), UserError> {
        let (group, memory) = (&self.lane.group, &self.lane.memory);
        let failing = |fault: Fault| UserError::of_fault(self.what, &fault);
        let length = end - start;
        if length == 0 {
            return Ok(());
        }
        match &self.source {
            Source::Local(file) => memory
                .memory()
                .with_bytes_mut(|bytes| file.read_exact_at(&mut bytes[..length as usize], start))
                .map_err(|error| self.local(&error))?,
            Source::Instance(record) => {
                let segment = [(start, 0, length)];
                let read = transfer(group, record, Direction::Read, &segment, memory).await;
                read.map_err(failing)?;
            }
        }
        let data = memory.memory().with_bytes_mut(|bytes| {
            let bytes = &bytes[..length as usize];
            if let Some(piece) = piece {
                self.moved.borrow_mut().add(bytes, start, piece);
            }
            match target.is_stream() {
                true => vec![(start, 0, length)],
                false => data_of(bytes, start),
            }
        });
        if data.is_empty() {
            return Ok(());
        }
        match target {
            Target::Local(output) => memory
                .memory()
                .with_bytes_mut(|bytes| write_segments(output, bytes, &data))
                .map_err(|error| self.local(&error)),
            Target::Instance(record) => {
                let written = transfer(group, record, Direction::Write, &data, memory).await;
                written.map_err(failing)
            }
        }
    }

    fn local(&self, error: &std::io::Error) -> UserError {
        ends::local_error(self.what, error)
    }
}

/// The name of a file that is to become `name`: beside it, unless that would be too long.
fn part_name(name: &str, random: u64) -> String {
    let (directory, last) = name.rsplit_once('/').unwrap_or(("", name));
    // A name of the greatest length would have no room for more.
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
        let directory = "abcdefghi/".repeat(102);
        let name = format!("{directory}1234");
        assert_eq!((name.len(), name_flaw(&name)), (NAME_BYTES_MAX, None));
        assert_eq!(part_name(&name, 10), ".1234.part-000000000000000a");
    }
}
