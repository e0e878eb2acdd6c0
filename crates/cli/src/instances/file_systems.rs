//! File systems of the disks of an instance, each of which may have several disks.

use client::ServerState;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// One disk of a server that answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DiskSpace {
    /// Number of the server, and of the disk there.
    pub(crate) place: (u32, usize),
    pub(crate) size_bytes: u64,
    pub(crate) free_bytes: u64,
    /// An earlier disk on the same file system. Known only of directories on this machine.
    pub(crate) same_as: Option<(u32, usize)>,
}

/// Disks of the servers that answer, in order. Those in memory share no file system.
pub(crate) fn file_systems(states: &[ServerState], in_memory: bool) -> Vec<DiskSpace> {
    let mut first_on = BTreeMap::new();
    let mut found = Vec::new();
    for ServerState { entry, status, .. } in states {
        let Ok(status) = status else { continue };
        for (disk, (size_bytes, free_bytes)) in status.disks.iter().enumerate() {
            let place = (entry.id, disk);
            let is_known = entry.host.is_none() && !in_memory;
            let directory = entry.data.get(disk).filter(|_| is_known);
            let first = directory
                .and_then(|directory| device(directory))
                .map(|device| *first_on.entry(device).or_insert(place));
            let same_as = first.filter(|first| *first != place);
            let (size_bytes, free_bytes) = (*size_bytes, *free_bytes);
            found.push(DiskSpace { place, size_bytes, free_bytes, same_as });
        }
    }
    found
}

/// Number of the file system of a directory.
fn device(directory: &Path) -> Option<u64> {
    std::fs::metadata(directory).ok().map(|found| found.dev())
}
