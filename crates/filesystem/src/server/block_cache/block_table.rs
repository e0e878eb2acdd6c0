//! Table of the cached blocks, and the choice of those that leave it.
//!
//! Invariants:
//! - The table holds at most `capacity` bytes of blocks, or one block.
//! - A block is in the eviction order exactly while it is in the table.

use super::block_locks::BlockKey;
use super::entry::{Entry, User};
use super::evicted::{EvictedBlock, EvictedBlocks};
use super::occupancy::Occupancy;
use super::use_counts::FileCounts;
use crate::server::files::open_file::OpenFile;
use policy::{Buffering, EvictionOrder, ReplacementPolicies};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;
use units::{ByteRange, DiskId, FileId};
use wire::{BufferStatistics, FileRecord};
use world::World;

/// A block that needs room.
pub(super) struct Wanted {
    pub(super) key: BlockKey,
    pub(super) disk: DiskId,
    pub(super) length: u64,
}

/// Blocks of a cache: those in memory, and those on their way.
pub(super) struct BlockTable<W: World> {
    capacity: u64,
    /// True if the last block of a file may become longer here.
    caches_ends: bool,
    /// Number of bytes of all blocks.
    bytes: Cell<u64>,
    entries: RefCell<BTreeMap<BlockKey, Rc<Entry<W>>>>,
    order: RefCell<EvictionOrder>,
    occupancy: Rc<Occupancy>,
    /// Counts of evicted blocks of open files.
    counts: FileCounts,
    evicted: EvictedBlocks<W::Payload>,
}

/// Returns the keys of all blocks of a file.
fn all_of(file: FileId) -> RangeInclusive<BlockKey> {
    (file, 0)..=(file, u64::MAX)
}

impl<W: World> BlockTable<W> {
    pub(super) fn new(
        (capacity, caches_ends): (u64, bool),
        policies: ReplacementPolicies,
        occupancy: Rc<Occupancy>,
    ) -> Self {
        Self {
            capacity,
            caches_ends,
            bytes: Cell::new(0),
            entries: RefCell::default(),
            order: RefCell::new(EvictionOrder::new(policies)),
            occupancy,
            counts: FileCounts::default(),
            evicted: EvictedBlocks::default(),
        }
    }

    /// Number of bytes of all blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Room that the blocks occupy.
    pub(super) fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    /// Blocks that were evicted to make room.
    pub(super) fn evicted(&self) -> &EvictedBlocks<W::Payload> {
        &self.evicted
    }

    /// Sets the buffering of a file from now on, and counts its uses.
    pub(super) fn declare(&self, file: FileId, buffering: Buffering) {
        self.order.borrow_mut().declare(file, buffering);
        self.counts.begin(file);
        self.occupancy.notify_room();
    }

    /// Forgets the usage history of a file.
    pub(super) fn forget_uses(&self, file: FileId) {
        self.order.borrow_mut().forget(file);
        self.counts.forget(file);
    }

    /// Returns the statistics of a file since it was opened, with those of its cached blocks.
    pub(super) fn statistics(&self, file: FileId) -> BufferStatistics {
        let mut sum = self.counts.of(file);
        for (_, entry) in self.entries.borrow().range(all_of(file)) {
            entry.uses().add_to(&mut sum);
        }
        sum
    }

    /// Tells if a block is in the table.
    pub(super) fn holds(&self, key: BlockKey) -> bool {
        self.entries.borrow().contains_key(&key)
    }

    /// Returns the first of `blocks` that is in the table. Uses bisection.
    pub(super) fn next_held(&self, file: FileId, blocks: Range<u64>) -> Option<u64> {
        let entries = self.entries.borrow();
        let (key, _) = entries.range((file, blocks.start)..(file, blocks.end)).next()?;
        Some(key.1)
    }

    /// Returns the numbers of all files with blocks, ascending.
    pub(super) fn files(&self) -> Vec<FileId> {
        let mut files: Vec<FileId> = self.entries.borrow().keys().map(|(file, _)| *file).collect();
        files.dedup();
        files
    }

    /// Acts on a block, if it is in the table. That is a use of the block if it has a result.
    pub(super) fn with<R>(
        &self,
        key: BlockKey,
        act: impl FnOnce(&Rc<Entry<W>>) -> Option<R>,
    ) -> Option<R> {
        let entries = self.entries.borrow();
        let entry = entries.get(&key)?;
        let done = act(entry)?;
        self.order.borrow_mut().touch(key, entry.place());
        Some(done)
    }

    /// Records that a block was read up to its last byte.
    pub(super) fn read_to_its_end(&self, key: BlockKey) {
        self.order.borrow_mut().read_to_its_end(key);
    }

    /// Returns a user of a block.
    pub(super) fn user(&self, key: BlockKey) -> Option<User<W>> {
        self.entries.borrow().get(&key).map(Entry::user)
    }

    /// Returns a user of a block if it is dirty.
    pub(super) fn dirty_user(&self, key: BlockKey) -> Option<User<W>> {
        let entries = self.entries.borrow();
        entries.get(&key).filter(|entry| entry.is_dirty()).map(Entry::user)
    }

    /// Returns a user of the first block of a file that a task works on, or whose disk lacks some
    /// of it.
    pub(super) fn unsettled_user(&self, file: FileId) -> Option<User<W>> {
        let entries = self.entries.borrow();
        let mut of_file = entries.range(all_of(file)).map(|(_, entry)| entry);
        of_file.find(|entry| entry.is_unsettled()).map(Entry::user)
    }

    /// Has the blocks of a file forget what their disks had.
    pub(super) fn forget_clean(&self, file: FileId) {
        let entries = self.entries.borrow();
        entries.range(all_of(file)).for_each(|(_, entry)| entry.forget_clean());
    }

    /// Returns the dirty blocks of a file, ascending for each disk.
    pub(super) fn dirty_of(&self, file: FileId) -> BTreeMap<DiskId, Vec<BlockKey>> {
        let mut of_disks = BTreeMap::<DiskId, Vec<BlockKey>>::new();
        for (key, entry) in self.entries.borrow().range(all_of(file)) {
            if entry.is_dirty() {
                of_disks.entry(entry.disk()).or_default().push(*key);
            }
        }
        of_disks
    }

    /// Returns the end of the bytes of a file that its disks lack. Considers only blocks that came
    /// in with the same stripe.
    pub(super) fn unstored_end(&self, file: &OpenFile) -> u64 {
        let entries = self.entries.borrow();
        let of_file = entries.range(all_of(file.file));
        let own = of_file.filter(|(_, entry)| entry.file().stripe == file.stripe);
        own.filter_map(|((_, block), entry)| {
            let end = entry.unstored_end()?;
            block.checked_mul(file.stripe.block_bytes)?.checked_add(end)
        })
        .max()
        .unwrap_or(0)
    }

    /// Returns the files, from `from` on, of which the disks may lack bytes, with their number.
    pub(super) fn unstored(&self, from: FileId) -> BTreeMap<FileId, (FileRecord, u64)> {
        let mut unstored = BTreeMap::<FileId, (FileRecord, u64)>::new();
        for ((file, _), entry) in self.entries.borrow().range((from, 0)..) {
            let bytes = entry.unstored_bytes();
            if bytes > 0 {
                unstored.entry(*file).or_insert_with(|| (entry.file().record(), 0)).1 += bytes;
            }
        }
        unstored
    }

    /// True when a block is occupied, or may become so.
    pub(super) fn may_be_used(&self, entry: &Entry<W>) -> bool {
        entry.is_occupied() || self.occupancy.fits(entry.disk(), entry.room())
    }

    /// Returns a user of a block, which comes in if it is not in the table. `None` when it must
    /// wait for room.
    pub(super) fn try_enter(&self, file: &Rc<OpenFile>, block: u64) -> Option<User<W>> {
        let key = (file.file, block);
        if let Some(entry) = self.entries.borrow().get(&key) {
            if !self.may_be_used(entry) {
                return None;
            }
            self.order.borrow_mut().touch(key, entry.place());
            return Some(Entry::user(entry));
        }
        let (length, disk) = (file.block_length(block), file.stripe.locate(block).disk);
        if !self.occupancy.fits(disk, length) {
            return None;
        }
        while !self.has_room(length) || self.order.borrow().is_at_limit(file.file) {
            match self.clean_victim(file.file) {
                Some(victim) => self.evict(victim),
                None if self.has_room(length) && self.may_have_more(file.file, disk) => break,
                None => return None,
            }
        }
        let place = self.order.borrow_mut().insert(key);
        let occupancy = Rc::clone(&self.occupancy);
        let may_grow = self.caches_ends && length < file.stripe.block_bytes;
        let entry = Rc::new(Entry::new(file, (block, place), (length, may_grow), occupancy));
        let user = Entry::user(&entry);
        self.entries.borrow_mut().insert(key, entry);
        self.bytes.set(self.bytes.get() + length);
        Some(user)
    }

    /// Makes a block longer, as its file has become. Returns false, without effect, when that must
    /// wait.
    pub(super) fn grow(&self, world: &W, file: &Rc<OpenFile>, user: &User<W>, length: u64) -> bool {
        let fits = |more: &u64| {
            *more == 0 || (self.has_room(*more) && self.occupancy.fits(user.disk(), *more))
        };
        let Some(more) = user.room_to_grow(file, length).filter(fits) else { return false };
        self.bytes.set(self.bytes.get() + more);
        user.grow(world, length, more);
        true
    }

    /// True when a block may be able to come in now.
    pub(super) fn can_enter(&self, wanted: &Wanted) -> bool {
        if self.is_beyond_share(wanted) {
            return self.has_dirty_victim(wanted);
        }
        let (entries, order, file) = (self.entries.borrow(), self.order.borrow(), wanted.key.0);
        let is_idle = |key: BlockKey| entries.get(&key).is_some_and(|entry| entry.is_idle());
        entries.contains_key(&wanted.key)
            || (self.has_room(wanted.length) && self.may_have_more(file, wanted.disk))
            || order.victims(file).any(is_idle)
    }

    /// True when the disk of a block occupies too much already.
    pub(super) fn is_beyond_share(&self, wanted: &Wanted) -> bool {
        match self.entries.borrow().get(&wanted.key) {
            Some(entry) => !self.may_be_used(entry),
            None => !self.occupancy.fits(wanted.disk, wanted.length),
        }
    }

    /// True when a file may have one more block, of this disk. The file's limit does not count when
    /// all its blocks are of other disks, which may have stopped.
    fn may_have_more(&self, file: FileId, disk: DiskId) -> bool {
        let entries = self.entries.borrow();
        let mut of_file = entries.range(all_of(file));
        !self.order.borrow().is_at_limit(file) || of_file.all(|(_, entry)| entry.disk() != disk)
    }

    /// True when a block of `length` bytes fits beside the cached ones. One always fits alone.
    fn has_room(&self, length: u64) -> bool {
        self.bytes.get() == 0 || self.bytes.get() + length <= self.capacity
    }

    /// Returns the first block in the eviction order for `file` that is evictable as it is.
    fn clean_victim(&self, file: FileId) -> Option<BlockKey> {
        let entries = self.entries.borrow();
        let order = self.order.borrow();
        order.victims(file).find(|key| {
            entries.get(key).is_some_and(|entry| entry.is_idle() && !entry.is_unsettled())
        })
    }

    /// Returns a user of the block that should be written back for another one
    /// ([`find_dirty_victim`](Self::find_dirty_victim)).
    pub(super) fn dirty_victim(&self, wanted: &Wanted) -> Option<User<W>> {
        self.find_dirty_victim(wanted, Entry::user)
    }

    /// True when a block can be written back for another one.
    pub(super) fn has_dirty_victim(&self, wanted: &Wanted) -> bool {
        self.find_dirty_victim(wanted, |_| ()).is_some()
    }

    /// Returns the first block in the eviction order that is unused but dirty, with a preference
    /// for blocks of the same disk. If the disk occupies too much, returns its block that has been
    /// dirty longest.
    fn find_dirty_victim<R>(
        &self,
        wanted: &Wanted,
        found: impl FnOnce(&Rc<Entry<W>>) -> R,
    ) -> Option<R> {
        let is_beyond_share = self.is_beyond_share(wanted);
        let entries = self.entries.borrow();
        let idle = |key: BlockKey| entries.get(&key).filter(|entry| entry.is_idle());
        if is_beyond_share {
            return self.occupancy.dirty().find(wanted.disk, idle).map(found);
        }
        let order = self.order.borrow();
        let mut victims = order.victims(wanted.key.0).filter_map(idle).peekable();
        let first = victims.peek().copied();
        victims.find(|entry| entry.disk() == wanted.disk).or(first).map(found)
    }

    /// Evicts a block to make room for another.
    fn evict(&self, key: BlockKey) {
        if let Some(entry) = self.entries.borrow().get(&key) {
            self.counts.add(key.0, entry.uses(), 1);
            self.evicted.add(|| {
                let payload = entry.cut(ByteRange::at(0, entry.length()))?;
                let block_bytes = entry.file().stripe.block_bytes;
                Some(EvictedBlock { key, block_bytes, payload })
            });
        }
        self.remove(key);
    }

    /// Removes a block whose copy has moved elsewhere, unless a task uses it or its disk lacks some
    /// of it.
    pub(super) fn drop_clean(&self, key: BlockKey) {
        let entry = self.entries.borrow().get(&key).map(Rc::clone);
        if let Some(entry) = entry.filter(|entry| entry.is_idle() && !entry.is_unsettled()) {
            self.counts.add(key.0, entry.uses(), 0);
            self.remove(key);
        }
    }

    /// Forgets all blocks of a file from `first` on, dirty or not, each after the task that works
    /// on it.
    pub(super) async fn forget_from(&self, (file, first): BlockKey) {
        loop {
            let next = {
                let entries = self.entries.borrow();
                entries
                    .range((file, first)..=(file, u64::MAX))
                    .next()
                    .map(|(_, it)| Entry::user(it))
            };
            let Some(user) = next else { return };
            while user.wait_while_busy().await {}
            user.forget_dirty();
            self.remove_user(&user);
        }
    }

    /// Removes the block of a user, unless another entry has taken its place.
    pub(super) fn remove_user(&self, user: &User<W>) {
        let is_there = self.entries.borrow().get(&user.key()).is_some_and(|entry| user.is(entry));
        if is_there {
            self.remove(user.key());
        }
    }

    fn remove(&self, key: BlockKey) {
        if let Some(entry) = self.entries.borrow_mut().remove(&key) {
            self.bytes.set(self.bytes.get() - entry.room());
            self.order.borrow_mut().remove(key);
            entry.leave();
        }
    }
}
