//! Locks of blocks. The holder of a lock may read a block, change it and write it back undisturbed.
//!
//! Invariant: the cache takes no locked block in, so it never holds data that is about to be
//! overwritten on the disk.

use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::BTreeSet;
use units::FileId;

/// File and number of a block.
pub(crate) type BlockKey = (FileId, u64);

/// Locks of one server.
#[derive(Default)]
pub(crate) struct BlockLocks {
    held: RefCell<BTreeSet<BlockKey>>,
    released: Signal,
}

/// A held lock; released when dropped.
pub(crate) struct BlockLock<'a> {
    locks: &'a BlockLocks,
    key: BlockKey,
}

impl BlockLocks {
    /// Waits until the block is free, then locks it.
    pub(crate) async fn lock(&self, key: BlockKey) -> BlockLock<'_> {
        self.released.until(|| self.held.borrow_mut().insert(key).then_some(())).await;
        BlockLock { locks: self, key }
    }

    pub(crate) fn is_held(&self, key: BlockKey) -> bool {
        self.held.borrow().contains(&key)
    }

    /// Waits until no task holds the block.
    pub(crate) async fn until_free(&self, key: BlockKey) {
        self.released.until(|| (!self.is_held(key)).then_some(())).await;
    }
}

impl Drop for BlockLock<'_> {
    fn drop(&mut self) {
        self.locks.held.borrow_mut().remove(&self.key);
        self.locks.released.notify();
    }
}
