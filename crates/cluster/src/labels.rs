//! Labels of data directories, which say which disk of which instance a directory is.
//!
//! A label is *provisional* until the instance of its start is complete. No server serves a client
//! before its labels are final, so a provisional label stands for no data: to a later start the
//! directory is unlabelled.
//!
//! *Invariants:*
//! - The directories of one instance carry labels with one identity, which no others carry, and
//!   each its own place among them.
//! - A label is read and written by the process that holds its directory locked.

use crate::durable::replace;
use crate::lost_data::LostData;
use interface::{ExitCode, UserError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use world_real::{OBJECTS_DIRECTORY, STORED_LOG, read_log};

const LABEL_FILE: &str = "unisono-disk.json";

/// Time limit for another server to release a directory: it may be ending.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval between attempts to lock a directory.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Label of a data directory, stored in it, so that it is never taken for another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Label {
    /// 128 random bits in hexadecimal, the same on all directories that belong together.
    set: String,
    #[serde(flatten)]
    place: Place,
    /// True if the label was given to a directory that already had files. Its first label was lost,
    /// and with it the record of which disk its objects name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_late: bool,
    /// Random number of a directory that took the place of a lost one; 0 for a first one.
    #[serde(default, skip_serializing_if = "is_zero")]
    replacement: u64,
    /// True until the instance is complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_provisional: bool,
}

/// Disk that a data directory stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Place {
    server: u32,
    servers: u32,
    disk: u32,
    disks_per_server: u32,
}

/// Label of a directory, as its server reports it to the start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct FoundLabel {
    /// Identity that the directories of an instance share.
    pub(crate) set: String,
    /// True if no server has served a client with this label.
    pub(crate) is_provisional: bool,
}

/// True if a directory holds data of files, or a log of such data.
pub(crate) fn has_objects(directory: &Path) -> bool {
    let objects = fs::read_dir(directory.join(OBJECTS_DIRECTORY));
    let log = read_log(&directory.join(STORED_LOG));
    objects.is_ok_and(|mut objects| objects.next().is_some())
        || log.is_ok_and(|log| log.has_objects)
}

/// True if a directory has a final label.
pub(crate) fn is_labelled(directory: &Path) -> Result<bool, UserError> {
    Ok(any_label(directory)?.is_some_and(|label| !label.is_provisional))
}

/// Reads the label of a directory, whatever its place.
fn any_label(directory: &Path) -> Result<Option<Label>, UserError> {
    let text = match fs::read(directory.join(LABEL_FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(directory, &error.to_string())),
    };
    let label = serde_json::from_slice(&text).map_err(|error| {
        UserError::usage(
            format!("cannot use {}", directory.display()),
            format!("its label {LABEL_FILE} cannot be read: {error}"),
            "restore the label, which identifies the disk, from a copy, or name another directory",
        )
    })?;
    Ok(Some(label))
}

/// Unique number of a disk, derived from its label; 0 if the label does not identify it.
pub(crate) fn identity_of(directory: &Path) -> Result<u64, UserError> {
    Ok(any_label(directory)?.map_or(0, |label| label.identity()))
}

/// Identity in the final label of a directory.
pub(crate) fn set_of(directory: &Path) -> Result<Option<String>, UserError> {
    let label = any_label(directory)?.filter(|label| !label.is_provisional);
    Ok(label.map(|label| label.set))
}

/// Number of a directory that took the place of a lost one; 0 for any other.
pub(crate) fn replacement_of(directory: &Path) -> Result<u64, UserError> {
    Ok(any_label(directory)?.map_or(0, |label| label.replacement))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Label {
    fn identity(&self) -> u64 {
        if self.is_late {
            return 0;
        }
        let Place { server, disk, .. } = self.place;
        // Sets are random numbers; a label that was written by hand may have any text.
        let set = u128::from_str_radix(&self.set, 16).unwrap_or_default();
        set as u64 ^ (u64::from(server) << 32 | u64::from(disk))
    }
}

/// Returns the identity that directories get or have: that of their final labels, or a new one.
/// `directories` holds the name of each directory and its label.
///
/// # Errors
/// Fails when they do not belong together.
pub(crate) fn common_set(
    directories: &[(String, Option<FoundLabel>)],
) -> Result<String, UserError> {
    let is_final = |(_, label): &&(String, Option<FoundLabel>)| {
        label.as_ref().is_some_and(|label| !label.is_provisional)
    };
    let Some((first, Some(FoundLabel { set, .. }))) = directories.iter().find(is_final) else {
        return new_set();
    };
    for (other, found) in directories {
        match found {
            // Also a provisional label: the start ended between two final ones.
            Some(found) if found.set == *set => {}
            Some(FoundLabel { is_provisional: false, .. }) => {
                return Err(UserError::usage(
                    format!("{other} belongs to another instance's data"),
                    format!(
                        "its label {LABEL_FILE} has a different identity from the label of {first}"
                    ),
                    "name only the data directories of the first start",
                ));
            }
            Some(_) | None => {
                return Err(UserError::usage(
                    format!("{other} does not belong to the other data directories"),
                    format!("it has no label {LABEL_FILE}, but {first} has one"),
                    "name the directories of the first start, or only new ones; if some are lost, \
                     have empty ones filled from copies: unisono start --refill; or read what is \
                     left: unisono start --degraded",
                ));
            }
        }
    }
    Ok(set.clone())
}

/// Makes a random identity for directories that belong together.
fn new_set() -> Result<String, UserError> {
    Ok(format!("{:032x}", u128::from_le_bytes(random()?)))
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], UserError> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        UserError::new(
            ExitCode::Failed,
            "cannot give the data directories an identity",
            error.to_string(),
            "the system must supply random numbers: check that /dev/urandom exists",
        )
    })?;
    Ok(bytes)
}

/// Data directories of one server and their places, locked as long as this exists.
pub(crate) struct OwnDirectories {
    directories: Vec<OwnDirectory>,
}

struct OwnDirectory {
    path: PathBuf,
    place: Place,
    state: State,
}

enum State {
    Locked(#[expect(dead_code, reason = "it is locked while it is open")] File),
    /// There is nothing to read, for this reason.
    Absent(String),
}

impl OwnDirectories {
    /// Locks the directories of server `server` of `servers`. Waits a little for a server that is
    /// ending. In a degraded start, directories that cannot be used, or have no label, are absent.
    ///
    /// # Errors
    /// Fails when another server uses one, and, in other starts, when one cannot be used.
    pub(crate) fn lock(
        server: u32,
        servers: u32,
        directories: &[PathBuf],
        lost_data: LostData,
    ) -> Result<Self, UserError> {
        let disks_per_server = directories.len() as u32;
        let own = |(disk, path): (u32, &PathBuf)| {
            let place = Place { server, servers, disk, disks_per_server };
            let state = match lost_data.is_degraded() {
                true => state_of(server, path, place)?,
                false => State::Locked(lock(server, path)?),
            };
            Ok::<_, UserError>(OwnDirectory { path: path.clone(), place, state })
        };
        let directories = (0..).zip(directories).map(own).collect::<Result<_, _>>()?;
        Ok(Self { directories })
    }

    /// Path of each directory, and why it is absent, if it is.
    pub(crate) fn absent(&self) -> impl Iterator<Item = (&Path, Option<&str>)> {
        self.directories.iter().map(|own| match &own.state {
            State::Locked(_) => (own.path.as_path(), None),
            State::Absent(cause) => (own.path.as_path(), Some(cause.as_str())),
        })
    }

    /// Label of each directory, if it has one.
    ///
    /// # Errors
    /// Fails when one is finally that of another server or disk.
    pub(crate) fn labels(&self) -> Result<Vec<Option<FoundLabel>>, UserError> {
        let found = |OwnDirectory { path, place, state }: &OwnDirectory| {
            if matches!(state, State::Absent(_)) {
                return Ok(None);
            }
            let label = label_at(path, *place)?;
            Ok(label.map(|Label { set, is_provisional, .. }| FoundLabel { set, is_provisional }))
        };
        self.directories.iter().map(found).collect()
    }

    /// Gives this identity, provisionally, to the directories that do not have it, and to those
    /// that take the place of lost ones: where `lost` has a cause.
    pub(crate) fn label(&self, set: &str, lost: &[Option<String>]) -> Result<(), UserError> {
        let lost = lost.iter().map(Option::is_some).chain(std::iter::repeat(false));
        for (OwnDirectory { path: directory, place, .. }, is_lost) in
            self.directories.iter().zip(lost)
        {
            let has_it = |label: Label| label.set == set;
            if !is_lost && label_at(directory, *place)?.is_some_and(has_it) {
                continue;
            }
            let replacement = if is_lost { u64::from_le_bytes(random()?) | 1 } else { 0 };
            let (set, place, is_late) = (set.to_owned(), *place, has_objects(directory));
            write(directory, &Label { set, place, is_late, replacement, is_provisional: true })?;
        }
        Ok(())
    }

    /// Makes the labels final: the instance is complete.
    pub(crate) fn complete(&self) -> Result<(), UserError> {
        for OwnDirectory { path: directory, .. } in &self.directories {
            if let Some(label) = any_label(directory)?.filter(|label| label.is_provisional) {
                write(directory, &Label { is_provisional: false, ..label })?;
            }
        }
        Ok(())
    }
}

/// Locks a directory that may be lost.
fn state_of(server: u32, path: &Path, place: Place) -> Result<State, UserError> {
    // A link, or a directory of another user, was refused before.
    if let Err(error) = fs::read_dir(path) {
        return Ok(State::Absent(format!("it cannot be read: {error}")));
    }
    let locked = lock(server, path)?;
    match label_at(path, place)? {
        Some(Label { is_provisional: false, .. }) => Ok(State::Locked(locked)),
        Some(_) | None => Ok(State::Absent(format!("it has no label {LABEL_FILE}"))),
    }
}

/// Reads the label of a directory, which must be that of this place. A provisional label of another
/// place counts as none.
fn label_at(directory: &Path, place: Place) -> Result<Option<Label>, UserError> {
    match any_label(directory)? {
        Some(label) if label.place == place => Ok(Some(label)),
        Some(Label { is_provisional: true, .. }) | None => Ok(None),
        Some(label) => Err(UserError::usage(
            format!("cannot use {} as {place}", directory.display()),
            format!("its label is that of {}", label.place),
            "start with the same --servers and --data, in the same order, as the first time",
        )),
    }
}

fn write(directory: &Path, label: &Label) -> Result<(), UserError> {
    let text = serde_json::to_vec(label).unwrap_or_default();
    replace(&directory.join(LABEL_FILE), &text)
        .map_err(|error| unusable(directory, &error.to_string()))
}

fn lock(server: u32, path: &Path) -> Result<File, UserError> {
    let directory = File::open(path).map_err(|error| unusable(path, &error.to_string()))?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(directory),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(UserError::new(
                    ExitCode::NoServer,
                    format!("server {server} cannot start"),
                    format!("another server uses {}", path.display()),
                    "stop the instance that uses this directory, or name another with --data",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(path, &error.to_string())),
        }
    }
}

/// Error of a data directory that cannot be used.
pub(crate) fn unusable(directory: &Path, cause: &str) -> UserError {
    UserError::usage(
        format!("cannot use the data directory {}", directory.display()),
        cause,
        "name a directory that you may write to, on a disk with space",
    )
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, servers, disk, disks_per_server } = self;
        write!(out, "disk {disk} of {disks_per_server} of server {server} of {servers}")
    }
}

#[cfg(test)]
mod tests {
    //! Proves: labels of a start that did not complete are taken over, wherever it ended; those of
    //! a complete instance are not, with any other directory beside them.
    use super::*;

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir().expect("a test must have room")
    }

    fn own(server: u32, servers: u32, directory: &tempfile::TempDir) -> OwnDirectories {
        let own =
            OwnDirectories::lock(server, servers, &[directory.path().to_owned()], LostData::Refuse);
        own.expect("nobody else uses it")
    }

    fn set_of(all: &[&OwnDirectories]) -> Result<String, UserError> {
        let labels = all.iter().map(|own| own.labels()).collect::<Result<Vec<_>, _>>()?;
        let named = labels.concat().into_iter().map(|label| ("a directory".to_owned(), label));
        common_set(&named.collect::<Vec<_>>())
    }

    #[test]
    fn provisional_labels_are_taken_over() {
        let [first, second] = [directory(), directory()];
        // The start ended when it had labelled one directory, then when it had labelled both.
        let (a, b) = (own(0, 2, &first), own(1, 2, &second));
        a.label("1", &[]).expect("it has room");
        let set = set_of(&[&a, &b]).expect("no instance was complete");
        a.label(&set, &[]).expect("it has room");
        b.label(&set, &[]).expect("it has room");
        assert_ne!(set_of(&[&a, &b]).expect("no instance was complete"), set);
        drop((a, b));
        // Another number of servers.
        let only = own(0, 1, &second);
        assert_eq!(only.labels().expect("the other label does not count"), [None]);
        only.label("3", &[]).expect("it has room");
        only.complete().expect("it has room");
        assert_eq!(set_of(&[&only]).expect("it has a label"), "3");
    }

    #[test]
    fn final_labels_stay() {
        let [first, second, new] = [directory(), directory(), directory()];
        let (a, b) = (own(0, 2, &first), own(1, 2, &second));
        a.label("1", &[]).expect("it has room");
        b.label("1", &[]).expect("it has room");
        a.complete().expect("it has room");
        // The start ended between the two: the instance was complete.
        assert_eq!(set_of(&[&a, &b]).expect("they belong together"), "1");
        b.label("1", &[]).expect("it has room");
        b.complete().expect("it has room");
        drop(b);
        let c = own(1, 2, &new);
        assert!(set_of(&[&a, &c]).is_err_and(|error| error.cause.contains("no label")));
        c.label("2", &[]).expect("it has room");
        assert!(set_of(&[&a, &c]).is_err_and(|error| error.cause.contains("no label")));
        c.complete().expect("it has room");
        assert!(set_of(&[&a, &c]).is_err_and(|error| error.error.contains("another instance")));
        drop(a);
        assert!(own(1, 2, &first).labels().is_err(), "it is another place");
    }
}
