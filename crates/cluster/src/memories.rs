//! The memory of all servers of an instance on this machine.

use crate::data::{DATA, MEMORY_PREFIX};
use crate::durable::cannot_write;
use crate::instance::lock;
use crate::memory::{discard, is_held};
use client::Instance;
use interface::UserError;
use std::fs;
use std::path::PathBuf;

/// Discards the memory of all servers of an instance on this machine, with their data directories.
/// Returns the number of those with memory. The servers must have ended.
///
/// # Errors
/// When a directory cannot be removed.
pub fn discard_memory(instance: &Instance) -> Result<usize, UserError> {
    let _nobody_starts = lock(instance)?;
    let mut count = 0;
    for directory in data_directories(instance) {
        count += usize::from(discard(&directory)?);
        let removed = fs::remove_dir_all(&directory);
        removed.map_err(|error| cannot_write(&directory, &error))?;
    }
    Ok(count)
}

/// Number of the servers of an instance on this machine whose memory is held for the next start.
pub fn memories_held(instance: &Instance) -> usize {
    data_directories(instance).filter(|directory| is_held(directory)).count()
}

/// Data directories of the servers of an instance on this machine that have memory.
fn data_directories(instance: &Instance) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(instance.directory().join(DATA)).into_iter().flatten().flatten();
    let is_one =
        |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(MEMORY_PREFIX);
    entries.filter(is_one).map(|entry| entry.path())
}
