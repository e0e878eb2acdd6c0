//! Dirty blocks of a cache.
//!
//! Invariant: a block is listed exactly while its disk lacks some of it and no task is writing it
//! back.

use super::block_locks::BlockKey;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use units::DiskId;

/// Dirty blocks of a cache, for each disk in the order in which they became dirty.
#[derive(Default)]
pub(crate) struct DirtyBlocks {
    /// Number of bytes of these blocks, including clean bytes: none of a dirty block can be evicted
    /// at once.
    bytes: Cell<u64>,
    of_disks: RefCell<BTreeMap<DiskId, u64>>,
    /// Number of times that a block has become dirty.
    ages: Cell<u64>,
    blocks: RefCell<BTreeMap<(DiskId, u64), BlockKey>>,
}

impl DirtyBlocks {
    /// Number of bytes of dirty blocks.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Number of bytes of dirty blocks of a disk.
    pub(super) fn bytes_of(&self, disk: DiskId) -> u64 {
        self.of_disks.borrow().get(&disk).copied().unwrap_or(0)
    }

    /// Returns the block of a disk that has been dirty longest.
    pub(super) fn oldest(&self, disk: DiskId) -> Option<BlockKey> {
        self.find(disk, Some)
    }

    /// Returns the first value of `found` for the blocks of a disk, beginning with the one that has
    /// been dirty longest.
    pub(super) fn find<R>(
        &self,
        disk: DiskId,
        found: impl FnMut(BlockKey) -> Option<R>,
    ) -> Option<R> {
        let blocks = self.blocks.borrow();
        blocks.range((disk, 0)..=(disk, u64::MAX)).map(|(_, key)| *key).find_map(found)
    }

    /// Lists a block of `length` bytes that has become dirty. Returns its place in the list.
    pub(super) fn add(&self, disk: DiskId, key: BlockKey, length: u64) -> (DiskId, u64) {
        let place = (disk, self.ages.replace(self.ages.get() + 1));
        self.blocks.borrow_mut().insert(place, key);
        self.bytes.set(self.bytes.get() + length);
        *self.of_disks.borrow_mut().entry(disk).or_default() += length;
        place
    }

    /// Notes that a dirty block of a disk has become longer by `more` bytes.
    pub(super) fn grow(&self, disk: DiskId, more: u64) {
        self.bytes.set(self.bytes.get() + more);
        *self.of_disks.borrow_mut().entry(disk).or_default() += more;
    }

    /// Removes the block at a place, which is not dirty any more.
    pub(super) fn remove(&self, place: (DiskId, u64), length: u64) {
        let removed = self.blocks.borrow_mut().remove(&place);
        assert!(removed.is_some(), "a dirty block is listed");
        self.bytes.set(self.bytes.get() - length);
        if let Some(bytes) = self.of_disks.borrow_mut().get_mut(&place.0) {
            *bytes -= length;
        }
    }
}
