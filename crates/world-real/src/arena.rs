//! Memory of this process that others on its machine can see: one sealed file in memory.
//!
//! Invariants: nobody but this process can write it or change its size, whatever they do, so that
//! they cannot harm it; what it gave out stays where it is, and nothing goes back to the system.
#![allow(unsafe_code)]

use crate::huge::{self, HUGE_BYTES};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::ProtFlags;
use rustix::process::{Resource, getrlimit};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The arena of this process, from the first [`open`] on.
static ARENA: OnceLock<Option<Arena>> = OnceLock::new();

struct Arena {
    file: OwnedFd,
    base: NonNull<u8>,
    bytes: usize,
    /// How much of it was given out.
    used: AtomicUsize,
}

// SAFETY: an arena is only addresses and a counter; who owns what it gave out is not its business.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

/// What another process needs to know to see the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sharing {
    /// The number of its file in this process.
    pub(crate) descriptor: u64,
    /// Its size.
    pub(crate) bytes: u64,
}

/// What others must find on the file before they trust that it stays as it is.
pub(crate) const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Opens the arena, for `bytes`, unless it is open. Only what is used of it takes memory. Where the
/// system has no such files everything works without it.
pub(crate) fn open(bytes: u64) {
    ARENA.get_or_init(|| {
        let bytes = usize::try_from(bytes).ok()?.checked_next_multiple_of(HUGE_BYTES)?;
        Arena::new(bytes.max(HUGE_BYTES)).ok()
    });
}

/// What to tell others, if there is an arena.
pub(crate) fn sharing() -> Option<Sharing> {
    let arena = arena()?;
    let descriptor = u64::try_from(arena.file.as_raw_fd()).ok()?;
    Some(Sharing { descriptor, bytes: arena.bytes as u64 })
}

/// `bytes` of it, a multiple of [`HUGE_BYTES`] at another one, that nobody had before, with zeros.
pub(crate) fn take(bytes: usize) -> Option<NonNull<u8>> {
    let arena = arena()?;
    let fits = |used: usize| used.checked_add(bytes).filter(|end| *end <= arena.bytes);
    let start = arena.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
    // SAFETY: `start + bytes` is at most the length of the mapping.
    Some(unsafe { arena.base.add(start) })
}

/// Where it has the byte at `offset`.
pub(crate) fn at(offset: usize) -> Option<NonNull<u8>> {
    let arena = arena().filter(|arena| offset < arena.bytes)?;
    // SAFETY: the byte lies in the mapping.
    Some(unsafe { arena.base.add(offset) })
}

/// Whether an address lies in it.
pub(crate) fn holds(address: NonNull<u8>) -> bool {
    offset_of(address.as_ptr()).is_some()
}

/// Where others find what lies at an address here.
pub(crate) fn offset_of(address: *const u8) -> Option<u64> {
    let arena = arena()?;
    let offset = (address as usize).checked_sub(arena.base.as_ptr() as usize)?;
    (offset < arena.bytes).then_some(offset as u64)
}

fn arena() -> Option<&'static Arena> {
    ARENA.get()?.as_ref()
}

impl Arena {
    fn new(bytes: usize) -> Result<Self, rustix::io::Errno> {
        // Beyond it the system would not refuse but end the process.
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| bytes as u64 > limit) {
            return Err(rustix::io::Errno::FBIG);
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("unisono", flags)?;
        ftruncate(&file, bytes as u64)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let base = huge::map_shared(&file, bytes, protection).ok_or(rustix::io::Errno::NOMEM)?;
        // The mapping just made is the last that can be written.
        fcntl_add_seals(&file, SealFlags::FUTURE_WRITE | SEALS)?;
        Ok(Self { file, base, bytes, used: AtomicUsize::new(0) })
    }
}
