//! Locks by block: who holds one may read a block, change it and write it back undisturbed. While
//! it is held, the cache takes the block in for nobody, so that it never holds what is about to be
//! overwritten behind its back.

use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::BTreeSet;
use units::FileId;

/// A block of a file.
pub(crate) type BlockKey = (FileId, u64);

/// The locks of one server.
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
    /// Waits until the block is free, then holds it.
    pub(crate) async fn lock(&self, key: BlockKey) -> BlockLock<'_> {
        self.released.until(|| self.held.borrow_mut().insert(key).then_some(())).await;
        BlockLock { locks: self, key }
    }

    pub(crate) fn is_held(&self, key: BlockKey) -> bool {
        self.held.borrow().contains(&key)
    }

    /// Waits until nobody holds the block.
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
