//! Counts of the uses of blocks: of each cached block, and of the evicted blocks of each open file.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use units::FileId;
use wire::BufferStatistics;

/// Uses of a block since it came in.
#[derive(Default)]
pub(super) struct UseCounts {
    hits: Cell<u64>,
    misses: Cell<u64>,
    /// True when it was read before a request for it.
    was_prefetched: Cell<bool>,
}

impl UseCounts {
    /// Counts a request that found its bytes.
    pub(super) fn hit(&self) {
        self.hits.update(|hits| hits + 1);
    }

    /// Counts a request that had to wait for its bytes.
    pub(super) fn miss(&self) {
        self.misses.update(|misses| misses + 1);
    }

    /// Notes that the block is read before a request for it.
    pub(super) fn prefetched(&self) {
        self.was_prefetched.set(true);
    }

    /// Adds these counts to `sum`.
    pub(super) fn add_to(&self, sum: &mut BufferStatistics) {
        sum.hits += self.hits.get();
        sum.misses += self.misses.get();
        sum.prefetched += u64::from(self.was_prefetched.get());
    }

    /// True when it was prefetched for nothing.
    fn is_unused(&self) -> bool {
        self.was_prefetched.get() && self.hits.get() + self.misses.get() == 0
    }
}

/// Counts of evicted blocks, by file. None are kept of files that no client has open.
#[derive(Default)]
pub(super) struct FileCounts(RefCell<BTreeMap<FileId, BufferStatistics>>);

impl FileCounts {
    /// Begins to count for a file, if that has not begun.
    pub(super) fn begin(&self, file: FileId) {
        self.0.borrow_mut().entry(file).or_default();
    }

    /// Forgets a file.
    pub(super) fn forget(&self, file: FileId) {
        self.0.borrow_mut().remove(&file);
    }

    /// Adds the counts of a block of a file that leaves the cache, by `evictions` evictions.
    pub(super) fn add(&self, file: FileId, block: &UseCounts, evictions: u64) {
        if let Some(sum) = self.0.borrow_mut().get_mut(&file) {
            block.add_to(sum);
            sum.prefetched_unused += u64::from(block.is_unused());
            sum.evictions += evictions;
        }
    }

    /// Returns the counts of a file.
    pub(super) fn of(&self, file: FileId) -> BufferStatistics {
        self.0.borrow().get(&file).copied().unwrap_or_default()
    }
}
