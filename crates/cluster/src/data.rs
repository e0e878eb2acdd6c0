//! Data directories of an instance on this machine.

use crate::durable::replace;
use crate::labels::{has_objects, is_labelled};
use crate::memory::{MemoryState, state};
use crate::server::CATALOGUE;
use client::absolute;
use interface::{UserError, size_word};
use std::fs;
use std::path::{Path, PathBuf};
use world_real::RECORDS_FILE;

/// Directory of the data directories that the user has not named, in that of the instance.
pub const DATA: &str = "data";

/// Beginning of the name of a data directory whose objects are in memory.
pub(crate) const MEMORY_PREFIX: &str = "memory-";

/// The data directories of an instance. One directory is one disk.
#[derive(Clone, Debug)]
pub struct DataDirectories {
    /// Directories of each server. All servers have the same number.
    pub by_server: Vec<Vec<PathBuf>>,
    /// True if the user named the directories.
    are_named: bool,
}

impl DataDirectories {
    /// Deals `directories` to `servers`: directory i goes to server i modulo servers. Without any,
    /// each server gets one below `default_parent`, whose objects are in memory if `in_memory`.
    ///
    /// # Errors
    /// Fails when the servers cannot have the same number each, or a directory is named twice.
    pub fn share(
        directories: &[PathBuf],
        servers: u32,
        default_parent: &Path,
        in_memory: bool,
    ) -> Result<Self, UserError> {
        if servers == 0 || servers > 4096 {
            return Err(UserError::usage(
                "cannot start these servers",
                format!("the number of servers is {servers}"),
                "give --servers a number from 1 to 4096",
            ));
        }
        if directories.is_empty() {
            let prefix = if in_memory { MEMORY_PREFIX } else { "server-" };
            let own = |server| vec![default_parent.join(format!("{prefix}{server}"))];
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

    /// First directory of each server.
    pub(crate) fn firsts(&self) -> impl Iterator<Item = &Path> {
        self.by_server.iter().filter_map(|directories| Some(directories.first()?.as_path()))
    }

    /// Number of disks of each server.
    pub fn disks_per_server(&self) -> u32 {
        self.by_server.first().map_or(0, Vec::len) as u32
    }

    /// Refuses to start with new directories that the user has not named, if those of the last
    /// start hold files and are others. The file `memory` lists them.
    ///
    /// # Errors
    /// For that reason, and when a label cannot be read.
    pub(crate) fn refuse_to_forget(&self, memory: &Path) -> Result<(), UserError> {
        let Some(last) = Self::remembered(memory) else { return Ok(()) };
        let has_files = |directory: &&Path| {
            has_objects(directory) || matches!(state(directory), Ok(MemoryState::Held(_)))
        };
        let Some(kept) = last.in_order().find(has_files) else {
            return Ok(());
        };
        for own in self.in_order() {
            let is_known = last.in_order().any(|one| one == own) || is_labelled(own)?;
            if self.are_named || is_known {
                return Ok(());
            }
        }
        if let Ok(MemoryState::Held(bytes)) = state(kept) {
            let (servers, size) = (last.by_server.len(), size_word(bytes));
            return Err(UserError::usage(
                "cannot start without the files of this instance",
                "they are in memory, without --memory no server finds them",
                format!(
                    "start with: --servers {servers} --memory {size}   (or remove them: unisono \
                     stop --discard)"
                ),
            ));
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

    /// The directories that the file `memory` lists.
    pub(crate) fn remembered(memory: &Path) -> Option<Self> {
        let text = fs::read(memory).unwrap_or_default();
        let by_server = serde_json::from_slice(&text).ok()?;
        Some(Self { by_server, are_named: true })
    }

    /// All directories, in the order in which they are dealt to servers.
    fn in_order(&self) -> impl Iterator<Item = &Path> {
        (0..self.disks_per_server() as usize).flat_map(|disk| {
            let own = self.by_server.iter().filter_map(move |directories| directories.get(disk));
            own.map(PathBuf::as_path)
        })
    }
}

/// Records the directories of an instance in the file `memory`, for the next start.
pub(crate) fn remember(by_server: &[&[PathBuf]], memory: &Path) -> std::io::Result<()> {
    let text = serde_json::to_vec(by_server)?;
    match fs::read(memory).is_ok_and(|last| last == text) {
        true => Ok(()),
        false => replace(memory, &text),
    }
}

/// True if a directory, the first of server 0, has a catalogue.
pub(crate) fn has_catalogue(directory: &Path) -> bool {
    let records = directory.join(CATALOGUE).join(RECORDS_FILE);
    fs::metadata(records).is_ok_and(|found| found.len() > 0)
}
