//! Data directories and the disks that they stand for, with labels that prevent mix-ups.
//!
//! Invariant: the directories of one instance carry labels with one identity, which no others
//! carry, and each its own place among them.

use client::absolute;
use interface::{ExitCode, UserError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use world_real::{OBJECTS_DIRECTORY, RECORDS_FILE, STORED_LOG};

/// The data directories of an instance. One directory is one disk.
#[derive(Clone, Debug)]
pub struct DataDirectories {
    /// Directories of each server. All servers have the same number.
    pub by_server: Vec<Vec<PathBuf>>,
    /// True if the user named the directories.
    are_named: bool,
}

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
}

/// Disk that a data directory stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Place {
    server: u32,
    servers: u32,
    disk: u32,
    disks_per_server: u32,
}

/// Subdirectory of the catalogue, in the first data directory of server 0.
pub(crate) const CATALOGUE: &str = "catalogue";

const LABEL_FILE: &str = "unisono-disk.json";

impl DataDirectories {
    /// Deals `directories` to `servers`: directory i goes to server i modulo servers. Without any,
    /// each server gets one below `default_parent`.
    ///
    /// # Errors
    /// Fails when the servers cannot have the same number each, or a directory is named twice.
    pub fn share(
        directories: &[PathBuf],
        servers: u32,
        default_parent: &Path,
    ) -> Result<Self, UserError> {
        if servers == 0 || servers > 4096 {
            return Err(UserError::usage(
                "cannot start these servers",
                format!("the number of servers is {servers}"),
                "give --servers a number from 1 to 4096",
            ));
        }
        if directories.is_empty() {
            let own = |server| vec![default_parent.join(format!("server-{server}"))];
            let by_server = (0..servers).map(own).collect();
            return Ok(Self { by_server, are_named: false });
        }
        if !directories.len().is_multiple_of(servers as usize) {
            return Err(UserError::usage(
                "cannot divide the data directories among the servers",
                format!("{} directories for {servers} servers", directories.len()),
                "give every server the same number: repeat --data one or more times for each \
                 server",
            ));
        }
        let directories: Vec<PathBuf> = directories.iter().map(|path| absolute(path)).collect();
        let twice = directories.iter().enumerate().find(|(i, one)| directories[..*i].contains(one));
        if let Some((_, directory)) = twice {
            return Err(UserError::usage(
                "a data directory cannot be more than one disk",
                format!("{} is named twice", directory.display()),
                "name each directory once",
            ));
        }
        let of = |server| directories.iter().skip(server).step_by(servers as usize).cloned();
        let by_server = (0..servers as usize).map(|server| of(server).collect()).collect();
        Ok(Self { by_server, are_named: true })
    }

    /// Number of disks of each server.
    pub fn disks_per_server(&self) -> u32 {
        self.by_server.first().map_or(0, Vec::len) as u32
    }

    /// Makes missing directories and checks the labels. If no directory is labelled, all get
    /// labels. Otherwise each must carry the label of this set and of its place: a directory
    /// without it holds another disk's blocks.
    ///
    /// # Errors
    /// Fails when they do not belong together so, or cannot be used. Then no label was written,
    /// unless writing one failed.
    pub fn prepare(&self) -> Result<(), UserError> {
        let mut found = Vec::new();
        for (directory, place) in self.places() {
            let label = read_label(directory, place)?;
            found.push((directory.display().to_string(), label.map(|label| label.set)));
        }
        if common_set(&found)?.is_some() {
            return match self.places().next() {
                Some((first, Place { server: 0, .. })) => {
                    refuse_lost_catalogue(first, self.places().map(|(directory, _)| directory))
                }
                _ => Ok(()),
            };
        }
        let set = new_set()?;
        self.places().try_for_each(|(directory, place)| give_label(directory, place, &set))
    }

    /// Refuses to start with new directories that the user has not named, if those of the last
    /// start hold files and are others. The file `memory` lists them.
    ///
    /// # Errors
    /// For that reason, and when a label cannot be read.
    pub(crate) fn refuse_to_forget(&self, memory: &Path) -> Result<(), UserError> {
        let text = fs::read(memory).unwrap_or_default();
        let Ok(by_server) = serde_json::from_slice(&text) else { return Ok(()) };
        let last = Self { by_server, are_named: true };
        let Some(kept) = last.in_order().find(|directory| has_objects(directory)) else {
            return Ok(());
        };
        for own in self.in_order() {
            let is_known = last.in_order().any(|one| one == own) || any_label(own)?.is_some();
            if self.are_named || is_known {
                return Ok(());
            }
        }
        let all = last.in_order().map(|directory| format!("--data {}", directory.display()));
        let all: Vec<String> = all.collect();
        Err(UserError::usage(
            "cannot start without the data of this instance",
            format!("its files are in {}, which --data does not name", kept.display()),
            format!(
                "start with: --servers {} {}   (or name another --instance)",
                last.by_server.len(),
                all.join(" ")
            ),
        ))
    }

    /// Records these directories in the file `memory`. If that fails, the next start accepts any
    /// directories.
    pub(crate) fn remember(&self, memory: &Path) {
        let _ = fs::write(memory, serde_json::to_vec(&self.by_server).unwrap_or_default());
    }

    /// All directories, in the order in which they are dealt to servers.
    fn in_order(&self) -> impl Iterator<Item = &Path> {
        (0..self.disks_per_server() as usize).flat_map(|disk| {
            let own = self.by_server.iter().filter_map(move |directories| directories.get(disk));
            own.map(PathBuf::as_path)
        })
    }

    /// Each directory and its place.
    fn places(&self) -> impl Iterator<Item = (&Path, Place)> {
        let (servers, disks_per_server) = (self.by_server.len() as u32, self.disks_per_server());
        (0..).zip(&self.by_server).flat_map(move |(server, directories)| {
            let place = move |disk| Place { server, servers, disk, disks_per_server };
            (0..).zip(directories).map(move |(disk, directory)| (directory.as_path(), place(disk)))
        })
    }
}

/// Refuses to make a new catalogue in `first` if any of `all` holds data. File numbers would be
/// used again, and the old data would be taken for that of new files.
fn refuse_lost_catalogue<'a>(
    first: &Path,
    all: impl IntoIterator<Item = &'a Path>,
) -> Result<(), UserError> {
    if has_catalogue(first) {
        return Ok(());
    }
    let data = all.into_iter().find(|directory| has_objects(directory));
    data.map_or(Ok(()), |data| Err(lost_catalogue(&data.display().to_string(), first)))
}

/// True if a directory, the first of server 0, has a catalogue.
pub(crate) fn has_catalogue(directory: &Path) -> bool {
    let records = directory.join(CATALOGUE).join(RECORDS_FILE);
    fs::metadata(records).is_ok_and(|found| found.len() > 0)
}

/// True if a directory holds data of files, or a log of such data.
pub(crate) fn has_objects(directory: &Path) -> bool {
    let objects = fs::read_dir(directory.join(OBJECTS_DIRECTORY));
    let log = fs::metadata(directory.join(STORED_LOG));
    objects.is_ok_and(|mut objects| objects.next().is_some())
        || log.is_ok_and(|found| found.len() > 0)
}

/// Error of data without a catalogue in the directory where it belongs.
pub(crate) fn lost_catalogue(data: &str, first: &Path) -> UserError {
    let records = first.join(CATALOGUE).join(RECORDS_FILE);
    UserError::new(
        ExitCode::DataCheck,
        "cannot start: the catalogue is lost",
        format!("{data} holds data of files, but there is no catalogue in {}", records.display()),
        "restore the catalogue from a copy, or start with empty data directories",
    )
}

/// Reads the label of a directory, if it has one. It must be a label of this place.
fn read_label(directory: &Path, place: Place) -> Result<Option<Label>, UserError> {
    let label = any_label(directory)?;
    match label {
        Some(label) if label.place != place => Err(UserError::usage(
            format!("cannot use {} as {place}", directory.display()),
            format!("its label is that of {}", label.place),
            "start with the same --servers and --data, in the same order, as the first time",
        )),
        label => Ok(label),
    }
}

/// Reads the label of a directory, whatever its place.
fn any_label(directory: &Path) -> Result<Option<Label>, UserError> {
    let text = match fs::read(directory.join(LABEL_FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(directory, &error)),
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

/// Returns the identity that all labels share; `None` if no directory is labelled. `directories`
/// holds the name of each directory and the identity of its label.
///
/// # Errors
/// Fails when they do not belong together.
pub(crate) fn common_set(
    directories: &[(String, Option<String>)],
) -> Result<Option<String>, UserError> {
    let labelled = |(name, set): &'_ (String, Option<String>)| Some((name.clone(), set.clone()?));
    let Some((first, set)) = directories.iter().find_map(labelled) else { return Ok(None) };
    for (other, found) in directories {
        match found {
            Some(found) if *found == set => {}
            Some(_) => {
                return Err(UserError::usage(
                    format!("{other} belongs to another instance's data"),
                    format!(
                        "its label {LABEL_FILE} has a different identity from the label of \
                             {first}"
                    ),
                    "name only the data directories of the first start",
                ));
            }
            None => {
                return Err(UserError::usage(
                    format!("{other} does not belong to the other data directories"),
                    format!("it has no label {LABEL_FILE}, but {first} has one"),
                    "name the directories of the first start, or only new ones; if the first start \
                     was interrupted, remove its labels",
                ));
            }
        }
    }
    Ok(Some(set))
}

/// Makes a random identity for directories that belong together.
pub(crate) fn new_set() -> Result<String, UserError> {
    let mut identity = [0; 16];
    getrandom::fill(&mut identity).map_err(|error| {
        UserError::new(
            ExitCode::Failed,
            "cannot give the data directories an identity",
            error.to_string(),
            "the system must supply random numbers: check that /dev/urandom exists",
        )
    })?;
    Ok(format!("{:032x}", u128::from_le_bytes(identity)))
}

/// Position of a server in its instance, to check that its directories are its own disks.
pub(crate) struct OwnDirectories {
    /// Number of the server.
    pub(crate) server: u32,
    /// Number of servers of the instance.
    pub(crate) servers: u32,
    /// Number of disks of each server.
    pub(crate) disks_per_server: u32,
}

impl OwnDirectories {
    fn place(&self, disk: usize) -> Place {
        let Self { server, servers, disks_per_server } = *self;
        Place { server, servers, disk: disk as u32, disks_per_server }
    }

    /// Identity of each directory, if it has one.
    ///
    /// # Errors
    /// Fails when one is that of another server or disk.
    pub(crate) fn labels(&self, directories: &[PathBuf]) -> Result<Vec<Option<String>>, UserError> {
        let read = |(disk, directory): (usize, &PathBuf)| {
            Ok(read_label(directory, self.place(disk))?.map(|label| label.set))
        };
        directories.iter().enumerate().map(read).collect()
    }

    /// Labels the directories with this identity, unless they carry it already.
    pub(crate) fn label(&self, directories: &[PathBuf], set: &str) -> Result<(), UserError> {
        for (disk, directory) in directories.iter().enumerate() {
            if read_label(directory, self.place(disk))?.is_none() {
                give_label(directory, self.place(disk), set)?;
            }
        }
        Ok(())
    }
}

fn give_label(directory: &Path, place: Place, set: &str) -> Result<(), UserError> {
    let is_late = has_objects(directory);
    let written = write_label(directory, &Label { set: set.to_owned(), place, is_late });
    written.map_err(|error| unusable(directory, &error))
}

/// Writes a label atomically and durably: a crash of the machine never leaves half of it.
fn write_label(directory: &Path, label: &Label) -> std::io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&serde_json::to_vec(label)?)?;
    file.as_file().sync_all()?;
    file.persist(directory.join(LABEL_FILE))?;
    File::open(directory)?.sync_all()
}

fn unusable(directory: &Path, error: &std::io::Error) -> UserError {
    UserError::usage(
        format!("cannot use the data directory {}", directory.display()),
        error.to_string(),
        "name a directory that you may write to, on a disk with space",
    )
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, servers, disk, disks_per_server } = self;
        write!(out, "disk {disk} of {disks_per_server} of server {server} of {servers}")
    }
}
