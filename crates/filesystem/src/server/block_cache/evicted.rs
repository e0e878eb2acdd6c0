//! Clean blocks that have left the cache, for caches at clients.

use super::block_locks::BlockKey;
use std::cell::RefCell;
use std::collections::VecDeque;
use units::FileId;

/// Maximum number of evicted blocks that wait. The oldest are dropped.
const EVICTED_MAX: usize = 64;

/// Clean block that was evicted.
pub(crate) struct EvictedBlock<P> {
    pub(crate) key: BlockKey,
    /// Number of bytes of the blocks of its file.
    pub(crate) block_bytes: u64,
    pub(crate) payload: P,
}

/// Clean blocks that were evicted to make room, if the server asked for them.
pub(crate) struct EvictedBlocks<P>(RefCell<Option<VecDeque<EvictedBlock<P>>>>);

impl<P> Default for EvictedBlocks<P> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<P> EvictedBlocks<P> {
    /// Keeps clean blocks that are evicted from now on, for [`take`](Self::take).
    pub(crate) fn keep(&self) {
        self.0.borrow_mut().get_or_insert_default();
    }

    /// Keeps evicted blocks no longer.
    pub(crate) fn forget(&self) {
        *self.0.borrow_mut() = None;
    }

    /// Forgets evicted blocks of a file.
    pub(crate) fn forget_file(&self, file: FileId) {
        if let Some(kept) = &mut *self.0.borrow_mut() {
            kept.retain(|evicted| evicted.key.0 != file);
        }
    }

    /// Returns the next evicted block.
    pub(crate) fn take(&self) -> Option<EvictedBlock<P>> {
        self.0.borrow_mut().as_mut()?.pop_front()
    }

    /// Adds a block that is being evicted, if that is wanted and all of it is known.
    pub(super) fn add(&self, evicted: impl FnOnce() -> Option<EvictedBlock<P>>) {
        if let Some(kept) = &mut *self.0.borrow_mut()
            && let Some(evicted) = evicted()
        {
            if kept.len() >= EVICTED_MAX {
                kept.pop_front();
            }
            kept.push_back(evicted);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: evicted blocks are kept only while they are wanted, the latest of them, in order.
    use super::*;

    fn add(kept: &EvictedBlocks<u64>, file: u64, block: u64) {
        kept.add(|| {
            Some(EvictedBlock { key: (FileId(file), block), block_bytes: 1, payload: block })
        });
    }

    fn take_all(kept: &EvictedBlocks<u64>) -> Vec<u64> {
        std::iter::from_fn(|| kept.take()).map(|evicted| evicted.payload).collect()
    }

    #[test]
    fn the_latest_wanted_blocks_are_kept() {
        let kept = EvictedBlocks::default();
        kept.add(|| panic!("an unwanted block is not even made"));
        kept.keep();
        (0..EVICTED_MAX as u64 + 2).for_each(|block| add(&kept, 1, block));
        kept.add(|| None);
        assert!(take_all(&kept).into_iter().eq(2..EVICTED_MAX as u64 + 2));
        [(1, 7), (2, 8), (1, 9)].into_iter().for_each(|(file, block)| add(&kept, file, block));
        kept.forget_file(FileId(1));
        kept.keep();
        assert_eq!(take_all(&kept), [8]);
        add(&kept, 1, 7);
        kept.forget();
        add(&kept, 1, 7);
        assert!(take_all(&kept).is_empty());
    }
}
