//! The memory of all servers of an instance on this machine.

use crate::data::{DATA, MEMORY_PREFIX};
use crate::durable::cannot_write;
use crate::instance::lock;
use crate::memory::{MemoryState, discard, discard_empty, state};
use client::Instance;
use interface::UserError;
use std::fs;
use std::path::PathBuf;

/// Numbers of servers of an instance on this machine by what became of their memory.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct MemoryCount {
    /// Servers whose memory is held for the next start.
    pub held: usize,
    /// Servers whose memory is gone, with their files.
    pub lost: usize,
}

/// Counts the memory of an instance on this machine.
pub fn count_memories(instance: &Instance) -> MemoryCount {
    let mut count = MemoryCount::default();
    for directory in data_directories(instance) {
        match state(&directory) {
            Ok(MemoryState::Held(_)) => count.held += 1,
            Ok(MemoryState::Lost) | Err(_) => count.lost += 1,
            Ok(MemoryState::None) => {}
        }
    }
    count
}

/// Gives the memory back that a failed start has left, as far as it holds no files.
pub(crate) fn discard_unused(instance: &Instance) {
    for directory in data_directories(instance) {
        // What is left, `stop --discard` finds.
        let _ = discard_empty(&directory);
    }
}

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

/// Data directories of the servers of an instance on this machine that have memory.
fn data_directories(instance: &Instance) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(instance.directory().join(DATA)).into_iter().flatten().flatten();
    let is_one =
        |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(MEMORY_PREFIX);
    entries.filter(is_one).map(|entry| entry.path())
}
