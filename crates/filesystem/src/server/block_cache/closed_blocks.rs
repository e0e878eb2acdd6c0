//! Blocks that the cache takes in no more, or not now.

use super::block_locks::{BlockKey, BlockLock, BlockLocks};
use crate::server::files::removed_files::RemovedFiles;
use std::cell::RefCell;
use units::FileId;

/// Blocks that may not come in: those that collectives write, and those of removed files.
#[derive(Default)]
pub(super) struct ClosedBlocks {
    /// Blocks that collectives write.
    locks: BlockLocks,
    /// Removed files. No block of them comes in again, even for a task that waits with data.
    removed: RefCell<RemovedFiles>,
}

impl ClosedBlocks {
    /// Locks a block for a collective.
    pub(super) async fn lock(&self, key: BlockKey) -> BlockLock<'_> {
        self.locks.lock(key).await
    }

    /// True when a block may not come in.
    pub(super) fn contains(&self, key: BlockKey) -> bool {
        self.locks.is_held(key) || self.is_removed(key.0)
    }

    /// True when the blocks of a file may never come in again.
    pub(super) fn is_removed(&self, file: FileId) -> bool {
        self.removed.borrow().contains(file)
    }

    /// True while a collective writes a block.
    pub(super) fn is_locked(&self, key: BlockKey) -> bool {
        self.locks.is_held(key)
    }

    /// Waits until no collective writes a block.
    pub(super) async fn until_unlocked(&self, key: BlockKey) {
        self.locks.until_free(key).await;
    }

    /// Takes no block of a file in from now on.
    pub(super) fn remove_file(&self, file: FileId) {
        self.removed.borrow_mut().insert(file);
    }
}
