//! Data that a peer on this machine lends: seen in its memory, given back when nobody needs it.
//!
//! Invariants: what is seen lies within a file of the peer that neither side can shorten, so that
//! looking at it cannot fail whatever the peer does; each loan is given back once.
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

/// The shared memory of a peer, as this process sees it.
pub(crate) struct PeerArena {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is memory that this process only reads.
unsafe impl Send for PeerArena {}
// SAFETY: as above.
unsafe impl Sync for PeerArena {}

impl PeerArena {
    /// Maps what `process` shares; the error says why that is not possible.
    pub(crate) fn map(process: &PeerProcess, sharing: Sharing) -> Result<Self, String> {
        let failed = |error: rustix::io::Errno| error.to_string();
        let bytes = usize::try_from(sharing.bytes).map_err(|error| error.to_string())?;
        let path = process.descriptor_path(sharing.descriptor);
        let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        // The process was there after its file was opened, so it was its file.
        process.check_alive().map_err(failed)?;
        let seals = fcntl_get_seals(&file).map_err(failed)?;
        let found = fstat(&file).map_err(failed)?.st_size;
        // What lies in pages of other kinds (hugetlb) can be taken away however it is sealed.
        let is_ordinary = fstatfs(&file).map_err(failed)?.f_type == libc::TMPFS_MAGIC;
        let is_as_told = u64::try_from(found) == Ok(sharing.bytes) && is_ordinary;
        if !seals.contains(SEALS) || !is_as_told || bytes == 0 || !bytes.is_multiple_of(PAGE_BYTES)
        {
            return Err("it is not sealed, has another size, or is of another kind".into());
        }
        let base = huge::map_shared(&file, bytes, ProtFlags::READ).ok_or("there is no room")?;
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

/// Borrows from one peer.
pub(crate) struct Borrower {
    arena: Arc<PeerArena>,
    returns: UnboundedSender<u64>,
}

/// One loan; given back when dropped.
pub(crate) struct Borrowed {
    arena: Arc<PeerArena>,
    returns: UnboundedSender<u64>,
    number: u64,
}

impl Borrower {
    /// Of what lies in `arena`. The numbers of loans that are over come out of the other end.
    pub(crate) fn new(arena: PeerArena) -> (Self, UnboundedReceiver<u64>) {
        let (returns, returned) = unbounded_channel();
        (Self { arena: Arc::new(arena), returns }, returned)
    }

    /// The loan `number`: `length` bytes at `offset`, if the arena has them, and where they are.
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
        // Where the connection has ended there is nobody to give it back to.
        let _ = self.returns.send(self.number);
    }
}
