//! Arena: memory of this process that other processes of its machine can map; one sealed memfd.
//!
//! Invariants:
//!
//! - No peer can write the arena or change its size, so that peers cannot harm this process.
//! - Allocated bytes never move, and no memory returns to the system.
#![allow(unsafe_code)]

use crate::huge::{self, HUGE_BYTES};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create,
};
use rustix::mm::ProtFlags;
use rustix::process::{Resource, getrlimit};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Arena of this process, from the first [`open`] on.
static ARENA: OnceLock<Option<Arena>> = OnceLock::new();

struct Arena {
    file: OwnedFd,
    base: NonNull<u8>,
    bytes: usize,
    /// Bytes allocated so far, from the start.
    used: AtomicUsize,
}

// SAFETY: an arena is only addresses and a counter; it accesses no byte that it gave out.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

/// Description by which another process maps the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sharing {
    /// File descriptor number in this process.
    pub(crate) descriptor: u64,
    /// Size of the arena.
    pub(crate) bytes: u64,
}

/// Seals that a peer verifies before it relies on the size of the file.
pub(crate) const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Opens the arena with `bytes` bytes, unless it is open. Untouched pages take no memory. If the
/// system has no sealed memfds, everything works without the arena.
pub(crate) fn open(bytes: u64) {
    ARENA.get_or_init(|| {
        let bytes = usize::try_from(bytes).ok()?.checked_next_multiple_of(HUGE_BYTES)?;
        Arena::new(bytes.max(HUGE_BYTES)).ok()
    });
}

/// Makes memory that is mapped here for good the arena, all of it in use. `None` if the process has
/// an arena, or the system refuses the seals. Peers may not write it either: only this process
/// opens it for that.
pub(crate) fn adopt(file: OwnedFd, base: NonNull<u8>, bytes: usize) -> Option<()> {
    // Without the seal for future writes: a later process of this server writes it.
    fcntl_add_seals(&file, SEALS).or_else(|_| is_sealed(&file)).ok()?;
    ARENA.set(Some(Arena { file, base, bytes, used: AtomicUsize::new(bytes) })).ok()
}

/// Fails if a file lacks the seals.
fn is_sealed(file: &OwnedFd) -> Result<(), rustix::io::Errno> {
    let seals = fcntl_get_seals(file)?;
    if seals.contains(SEALS) { Ok(()) } else { Err(rustix::io::Errno::PERM) }
}

/// Returns the description of the arena, if there is one.
pub(crate) fn sharing() -> Option<Sharing> {
    let arena = arena()?;
    let descriptor = u64::try_from(arena.file.as_raw_fd()).ok()?;
    Some(Sharing { descriptor, bytes: arena.bytes as u64 })
}

/// Allocates `bytes`, a multiple of [`HUGE_BYTES`], at an equal alignment. The memory is unused and
/// zero.
pub(crate) fn allocate(bytes: usize) -> Option<NonNull<u8>> {
    let arena = arena()?;
    let fits = |used: usize| used.checked_add(bytes).filter(|end| *end <= arena.bytes);
    let start = arena.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
    // SAFETY: `start + bytes` is at most the length of the mapping.
    Some(unsafe { arena.base.add(start) })
}

/// Returns the address of the byte at `offset`.
pub(crate) fn at(offset: usize) -> Option<NonNull<u8>> {
    let arena = arena().filter(|arena| offset < arena.bytes)?;
    // SAFETY: the byte lies in the mapping.
    Some(unsafe { arena.base.add(offset) })
}

/// True if `address` lies in the arena.
pub(crate) fn holds(address: NonNull<u8>) -> bool {
    offset_of(address.as_ptr()).is_some()
}

/// Returns the offset of `address` in the arena, by which peers find it.
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
        // Beyond this limit the system may end the process (SIGXFSZ) instead of returning an error.
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| bytes as u64 > limit) {
            return Err(rustix::io::Errno::FBIG);
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("unisono", flags)?;
        ftruncate(&file, bytes as u64)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let base = huge::map_shared(&file, bytes, protection).ok_or(rustix::io::Errno::NOMEM)?;
        // The mapping just made is the last writable one.
        fcntl_add_seals(&file, SealFlags::FUTURE_WRITE | SEALS)?;
        Ok(Self { file, base, bytes, used: AtomicUsize::new(0) })
    }
}
