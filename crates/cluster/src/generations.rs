//! Records of the starts of an instance, on its disks and beside its catalogue.
//!
//! Each start, and each stop of an instance on one machine, gives the catalogue and all disks a new
//! generation, first as begun, later as complete.
//!
//! *Invariants:*
//! - A server serves no client before its disks record the generation as complete.
//! - The records of a start need no more room than was found before it began.

use crate::labels::unusable;
use crate::server::CATALOGUE;
use interface::UserError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use world_real::{
    Generation, Generations, STORED_LOG, begin_generation, complete_generation, read_log,
    reserve_generation,
};

/// Log of the generations of the catalogue, in its directory.
const CATALOGUE_LOG: &str = "generations";

/// Change of generation at a start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Step {
    /// Generation of all directories before.
    pub(crate) agreed: Option<Generation>,
    /// Generation from this start on.
    pub(crate) next: Generation,
}

/// State of one disk of a server, as it has found it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FoundDisk {
    pub(crate) generations: Generations,
    /// Cause for which there is nothing to read, if the server may start without it.
    pub(crate) absent: Option<String>,
    /// True if it holds data of files.
    pub(crate) has_objects: bool,
}

/// Reads the generations of a disk.
pub(crate) fn of_disk(directory: &Path) -> Result<Generations, UserError> {
    read(&directory.join(STORED_LOG), directory)
}

/// Reads the generations of the catalogue in a directory, the first of server 0.
pub(crate) fn of_catalogue(directory: &Path) -> Result<Generations, UserError> {
    read(&catalogue_log(directory), directory)
}

fn read(log: &Path, directory: &Path) -> Result<Generations, UserError> {
    let summary = read_log(log).map_err(|error| unusable(directory, &error.to_string()))?;
    Ok(summary.generations)
}

fn catalogue_log(directory: &Path) -> PathBuf {
    catalogue_log_in(&directory.join(CATALOGUE))
}

/// Log of the generations of a catalogue in its directory.
pub(crate) fn catalogue_log_in(catalogue: &Path) -> PathBuf {
    catalogue.join(CATALOGUE_LOG)
}

/// Logs of the generations of a server.
pub(crate) struct Logs(Vec<PathBuf>);

impl Logs {
    /// Logs of server `id`, whose disks are these directories. That of the catalogue comes first.
    pub(crate) fn of_server(id: u32, directories: &[PathBuf]) -> Self {
        let first = directories.first().filter(|_| id == 0).map(|first| catalogue_log(first));
        let disks = directories.iter().map(|directory| directory.join(STORED_LOG));
        Self(first.into_iter().chain(disks).collect())
    }

    /// Log of the generations of one disk.
    pub(crate) fn of_disk(directory: &Path) -> Self {
        Self(vec![directory.join(STORED_LOG)])
    }

    /// Records, in the logs of new disks, the generation of an instance that runs.
    pub(crate) fn take_over(&self, agreed: Generation) -> Result<(), UserError> {
        self.0.iter().try_for_each(|log| {
            let begun = begin_generation(log, agreed);
            let begun = begun.and_then(|()| complete_generation(log, agreed));
            begun.map_err(|error| failed(log, &error))
        })
    }

    /// Takes the room that a new generation needs. Returns false if there is none.
    pub(crate) fn reserve(&self) -> Result<bool, UserError> {
        let reserve = |log: &PathBuf| {
            log.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            reserve_generation(log)
        };
        let reserve = |log| reserve(log).map_err(|error| failed(log, &error));
        let reserved = self.0.iter().map(reserve).collect::<Result<Vec<_>, _>>()?;
        Ok(reserved.into_iter().all(|has_room| has_room))
    }

    /// Records that a start has begun.
    pub(crate) fn begin(&self, Step { agreed, next }: Step) -> Result<(), UserError> {
        for log in &self.0 {
            let found = read_log(log).map_err(|error| failed(log, &error))?.generations;
            if let Some(agreed) = agreed.filter(|agreed| found.complete != Some(*agreed)) {
                // The last start was interrupted before this place learned that it was complete.
                complete_generation(log, agreed).map_err(|error| failed(log, &error))?;
            }
            begin_generation(log, next).map_err(|error| failed(log, &error))?;
        }
        Ok(())
    }

    /// Records that the start is complete. The catalogue is the first to know.
    pub(crate) fn complete(&self, step: Step) -> Result<(), UserError> {
        let complete = |log: &PathBuf| {
            complete_generation(log, step.next).map_err(|error| failed(log, &error))
        };
        self.0.iter().try_for_each(complete)
    }
}

fn failed(log: &Path, error: &std::io::Error) -> UserError {
    unusable(log.parent().unwrap_or(log), &format!("{}: {error}", log.display()))
}
