//! Zero-copy data that a peer on this machine lends: mapped from its memory, returned when unused.
//!
//! Invariants:
//!
//! - Borrowed data lies within a file of the peer that neither side can shorten, so that reading it
//!   cannot fail, whatever the peer does.
//! - Each loan is returned once.
#![allow(unsafe_code)]

use super::process::PeerProcess;
use crate::arena::{SEALS, Sharing};
use crate::huge::{self, PAGE_BYTES};
use crate::memory::{RealMemory, runs_bytes};
use rustix::fs::{Mode, OFlags, fcntl_get_seals, fstat, fstatfs, open};
use rustix::mm::{ProtFlags, munmap};
use std::ptr::NonNull;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use units::PieceRun;

/// Shared memory of a peer, mapped into this process.
pub(crate) struct PeerArena {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is memory that this process only reads.
unsafe impl Send for PeerArena {}
// SAFETY: as above.
unsafe impl Sync for PeerArena {}

impl PeerArena {
    /// Maps the shared memory of `process`; the error says why that is not possible.
    pub(crate) fn map(process: &PeerProcess, sharing: Sharing) -> Result<Self, String> {
        let failed = |error: rustix::io::Errno| error.to_string();
        let bytes = usize::try_from(sharing.bytes).map_err(|error| error.to_string())?;
        let path = process.descriptor_path(sharing.descriptor);
        let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        // The process existed after its file was opened, so the file was its file.
        process.check_alive().map_err(failed)?;
        let seals = fcntl_get_seals(&file).map_err(failed)?;
        let found = fstat(&file).map_err(failed)?.st_size;
        // Pages of other kinds (hugetlb) can be taken away, whatever the seals are.
        let is_ordinary = fstatfs(&file).map_err(failed)?.f_type == libc::TMPFS_MAGIC;
        let is_as_told = u64::try_from(found) == Ok(sharing.bytes) && is_ordinary;
        if !seals.contains(SEALS) || !is_as_told || bytes == 0 || !bytes.is_multiple_of(PAGE_BYTES)
        {
            return Err("it is not sealed, or has the wrong size or type".into());
        }
        let base = huge::map_shared(&file, bytes, ProtFlags::READ).ok_or(
            "the address space is \
                                                                          full",
        )?;
        Ok(Self { base, bytes })
    }
}

impl Drop for PeerArena {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and every loan of it holds the arena.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping must be known to the system");
    }
}

/// Borrower of data from one peer.
pub(crate) struct Borrower {
    arena: Arc<PeerArena>,
    returns: UnboundedSender<u64>,
}

/// One loan; returned when dropped.
pub(crate) struct Borrowed {
    arena: Arc<PeerArena>,
    returns: UnboundedSender<u64>,
    number: u64,
}

impl Borrower {
    /// Returns a borrower of data in `arena`. The channel yields the numbers of ended loans.
    pub(crate) fn new(arena: PeerArena) -> (Self, UnboundedReceiver<u64>) {
        let (returns, returned) = unbounded_channel();
        (Self { arena: Arc::new(arena), returns }, returned)
    }

    /// Borrows `length` bytes at `offset` as loan `number`, if the arena has them; returns their
    /// address too.
    pub(crate) fn borrow(
        &self,
        number: u64,
        offset: u64,
        length: u64,
    ) -> Option<(Borrowed, NonNull<u8>)> {
        let end = offset.checked_add(length)?;
        if end > self.arena.bytes as u64 {
            return None;
        }
        let (arena, returns) = (Arc::clone(&self.arena), self.returns.clone());
        // SAFETY: the end was just found to lie in the mapping.
        let first = unsafe { arena.base.add(offset as usize) };
        Some((Borrowed { arena, returns, number }, first))
    }

    /// Copies `pieces` of the arena, whose file sides count from its start, into `memory`, which
    /// has their memory sides. `None` when one of them leaves the arena.
    pub(crate) fn copy(&self, pieces: &[PieceRun], memory: &RealMemory) -> Option<()> {
        let there = pieces.iter().map(|piece| piece.file_side());
        runs_bytes(there, self.arena.bytes)?;
        // SAFETY: every piece was just found to lie in the mapping.
        unsafe { memory.take_pieces(self.arena.base.as_ptr(), pieces) };
        Some(())
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        debug_assert!(self.arena.bytes > 0, "a loan lies in an arena");
        // After the end of the connection there is no peer to return it to.
        let _ = self.returns.send(self.number);
    }
}
