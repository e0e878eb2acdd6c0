//! Making the memory of disks: all of it at once, and only as much as the machine has.
//!
//! Memory that is only promised is found missing when it is first written, and then the system ends
//! a process that it chooses (its out-of-memory killer). So the pages of the disks are taken when
//! the memory is made, in steps, each after a look at what is available: to this machine, and to
//! the control groups of this process.
#![allow(unsafe_code)]

use super::table::{Layout, Table};
use crate::arena::SEALS;
use crate::huge::{self, HUGE_BYTES};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{ProtFlags, munmap};
use rustix::process::{Resource, getrlimit};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Bytes taken between two looks at what is available.
const STEP_BYTES: u64 = 64 << 20;

/// Bytes that must stay available to others, besides one in [`SPARE_SHARE`] of those wanted.
const SPARE_BYTES: u64 = 128 << 20;
const SPARE_SHARE: u64 = 64;

/// Failure to make memory for disks.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ReserveError {
    /// The machine, or a control group, has less.
    #[error("{available_bytes} bytes of memory are available")]
    NotAvailable {
        /// Bytes that were available before, as far as the system tells.
        available_bytes: u64,
    },
    /// The system refused.
    #[error("{0}")]
    Refused(String),
}

/// Makes memory for disks of `disk_bytes` in all, with room for other data of the process of
/// `other_bytes`, which is not taken yet. It is there as long as a process holds the file.
///
/// # Errors
/// When there is not as much memory.
pub fn reserve_memory(disk_bytes: u64, other_bytes: u64) -> Result<File, ReserveError> {
    let before = available_bytes();
    let too_large = ReserveError::NotAvailable { available_bytes: before.unwrap_or(0) };
    let layout = Layout::new(disk_bytes, other_bytes).ok_or(too_large.clone())?;
    if before.is_some_and(|available| available < layout.area + disk_bytes) {
        return Err(too_large);
    }
    let refused = |error: Errno| ReserveError::Refused(error.to_string());
    // Beyond this limit the system may end the process (SIGXFSZ) instead of returning an error.
    if getrlimit(Resource::Fsize).current.is_some_and(|limit| layout.bytes > limit) {
        return Err(refused(Errno::FBIG));
    }
    let length = usize::try_from(layout.bytes).map_err(|_| too_large.clone())?;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("unisono-disks", flags).map_err(refused)?;
    ftruncate(&file, layout.bytes).map_err(refused)?;
    fcntl_add_seals(&file, SEALS).map_err(refused)?;
    let base = huge::map_shared(&file, length, ProtFlags::READ | ProtFlags::WRITE);
    let base = base.ok_or(refused(Errno::NOMEM))?;
    let mut taken = Ok(());
    let end = layout.area + disk_bytes.next_multiple_of(HUGE_BYTES as u64);
    let end = end.min(layout.bytes);
    let mut at = 0;
    while at < end && taken.is_ok() {
        let until = if at < layout.area { layout.area } else { end };
        let step = STEP_BYTES.min(until - at);
        let needed = step + SPARE_BYTES.max(disk_bytes / SPARE_SHARE);
        if available_bytes().is_some_and(|available| available < needed) {
            taken = Err(too_large.clone());
            break;
        }
        if at >= layout.area {
            // SAFETY: it lies in the mapping, which nobody uses yet, in whole huge pages.
            unsafe { huge::populate(base.add(at as usize), step as usize) };
        }
        // What has no huge page.
        taken = fallocate(&file, FallocateFlags::empty(), at, step).map_err(|error| match error {
            Errno::NOSPC | Errno::NOMEM => too_large.clone(),
            other => refused(other),
        });
        at += step;
    }
    if taken.is_ok() {
        // SAFETY: the mapping is as long, and only this function uses it.
        unsafe { Table::new(base, layout) }.begin();
    }
    // SAFETY: it was mapped above with this length.
    let _ = unsafe { munmap(base.as_ptr().cast(), length) };
    taken.map(|()| file.into())
}

/// Bytes of memory that are available to this process: on the machine, and in its control groups.
fn available_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
    });
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = groups.lines().flat_map(group_directories);
    groups.filter_map(|directory| available_in(&directory)).chain(machine).min()
}

/// Directories of a control group and of those that it is part of, by a line of
/// `/proc/self/cgroup`, if the group counts memory.
fn group_directories(line: &str) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':');
    let (Some(_), Some(kinds), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
        return Vec::new();
    };
    let root = match kinds {
        "" => "/sys/fs/cgroup",
        kinds if kinds.split(',').any(|kind| kind == "memory") => "/sys/fs/cgroup/memory",
        _ => return Vec::new(),
    };
    let own = Path::new(name.trim_start_matches('/'));
    own.ancestors().map(|group| Path::new(root).join(group)).collect()
}

/// Bytes that a control group may still take: up to its limit, or in place of pages of files.
fn available_in(group: &Path) -> Option<u64> {
    let number = |names: [&str; 2]| {
        let text = names.iter().find_map(|name| fs::read_to_string(group.join(name)).ok())?;
        text.trim().parse::<u64>().ok()
    };
    // Without a limit the file says "max", or a number beyond all memory.
    let limit = number(["memory.max", "memory.limit_in_bytes"])?;
    let used = number(["memory.current", "memory.usage_in_bytes"])?;
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let files = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let files = files.and_then(|files| files.trim().parse::<u64>().ok()).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(files)))
}

#[cfg(test)]
mod tests {
    //! Proves: memory that is there is taken; more is refused, with how much is available.
    use super::*;

    #[test]
    fn what_is_there_can_be_taken_and_no_more() {
        let file = reserve_memory(8 << 20, 4 << 20).expect("there is memory");
        let found = rustix::fs::fstat(&file).expect("it is open");
        assert!(found.st_blocks as u64 * 512 >= 8 << 20, "its pages are there");
        let available = available_bytes().expect("the system tells");
        let refused = reserve_memory(available.saturating_mul(2), 0).map(|_| ());
        let Err(ReserveError::NotAvailable { available_bytes }) = refused else {
            panic!("{refused:?}");
        };
        assert!(available_bytes > 0);
        assert!(reserve_memory(u64::MAX, 0).is_err());
    }

    #[test]
    fn groups_of_both_kinds_are_found() {
        let all = |line| {
            let found = group_directories(line);
            found.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        let second = ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/"];
        assert_eq!(all("0::/a/b"), second);
        assert_eq!(all("5:cpu,memory:/"), ["/sys/fs/cgroup/memory/"]);
        assert!(all("5:cpu:/").is_empty());
    }
}
