//! Which blocks are dirty, and when there are so many that some must go to the disk.
//!
//! Invariant: a block is listed exactly while its disk does not have all of it and nobody is
//! writing it back.

use super::block_locks::BlockKey;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use units::DiskId;

/// The dirty blocks of a cache, for each disk in the order in which they became so.
#[derive(Default)]
pub(crate) struct DirtyBlocks {
    /// Bytes of these blocks, the clean ones among them too: none of it can leave at once.
    bytes: Cell<u64>,
    of_disks: RefCell<BTreeMap<DiskId, u64>>,
    /// How many blocks have become dirty.
    ages: Cell<u64>,
    blocks: RefCell<BTreeMap<(DiskId, u64), BlockKey>>,
}

impl DirtyBlocks {
    /// Bytes of dirty blocks.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Bytes of dirty blocks of a disk.
    pub(super) fn bytes_of(&self, disk: DiskId) -> u64 {
        self.of_disks.borrow().get(&disk).copied().unwrap_or(0)
    }

    /// The block of a disk that has been dirty longest.
    pub(super) fn oldest(&self, disk: DiskId) -> Option<BlockKey> {
        self.find(disk, Some)
    }

    /// What `found` says of the first block of a disk, from the one that has been dirty longest, of
    /// which it says something.
    pub(super) fn find<R>(
        &self,
        disk: DiskId,
        found: impl FnMut(BlockKey) -> Option<R>,
    ) -> Option<R> {
        let blocks = self.blocks.borrow();
        blocks.range((disk, 0)..=(disk, u64::MAX)).map(|(_, key)| *key).find_map(found)
    }

    /// A block of `length` bytes has become dirty; returns the place that it has here.
    pub(super) fn add(&self, disk: DiskId, key: BlockKey, length: u64) -> (DiskId, u64) {
        let place = (disk, self.ages.replace(self.ages.get() + 1));
        self.blocks.borrow_mut().insert(place, key);
        self.bytes.set(self.bytes.get() + length);
        *self.of_disks.borrow_mut().entry(disk).or_default() += length;
        place
    }

    /// The block at this place is not dirty any more.
    pub(super) fn remove(&self, place: (DiskId, u64), length: u64) {
        let removed = self.blocks.borrow_mut().remove(&place);
        assert!(removed.is_some(), "a dirty block is listed");
        self.bytes.set(self.bytes.get() - length);
        if let Some(bytes) = self.of_disks.borrow_mut().get_mut(&place.0) {
            *bytes -= length;
        }
    }
}

/// Between which marks the bytes of dirty blocks of a disk are kept.
#[derive(Clone, Copy)]
pub(super) struct WaterMarks {
    /// With more than this, writing back begins; `None` for never.
    pub(super) high: Option<u64>,
    /// With no more than this it ends.
    pub(super) low: u64,
}

/// The low mark is one part in so many of the high one.
const LOW_SHARE: u64 = 2;

impl WaterMarks {
    /// The marks of a disk's part of a cache, of which so much may be dirty; all of it has no
    /// marks.
    pub(super) fn new(capacity: u64, dirty_percent: u32) -> Self {
        let share = u128::from(capacity) * u128::from(dirty_percent.min(100)) / 100;
        let high = share as u64;
        Self { high: (dirty_percent < 100).then_some(high), low: high / LOW_SHARE }
    }
}
