//! Room in the cache: entering blocks, and evicting others for them.
//!
//! Invariants:
//! - The cache holds at most `capacity` bytes of blocks, or one block.
//! - With several disks, blocks of one disk that cannot be evicted at once (used, on their way, or
//!   dirty) occupy at most the disk's share, or are one block besides pinned ones. So a stopped
//!   disk does not delay requests for others.

use super::block_locks::BlockKey;
use super::cache::BlockCache;
use super::entry::{Entry, User};
use crate::scale::rare;
use crate::server::files::open_file::OpenFile;
use std::convert::Infallible;
use std::rc::Rc;
use units::{DiskId, FileId};
use wire::Fault;
use world::World;

/// A block that needs room.
struct Wanted {
    key: BlockKey,
    disk: DiskId,
    length: u64,
}

impl<W: World> BlockCache<W> {
    /// Returns the entry of a block that has `end` bytes or more. Makes the entry if there is none,
    /// and waits for room. While the returned user lives, the entry stays, unless the length of the
    /// block changes.
    pub(super) async fn enter(
        self: &Rc<Self>,
        file: &Rc<OpenFile>,
        block: u64,
        end: u64,
    ) -> Result<User<W>, Fault> {
        let (key, disk) = ((file.file, block), file.stripe.locate(block).disk);
        loop {
            if self.locks.is_held(key) {
                rare(self.locks.until_free(key)).await;
            }
            if self.discarded.borrow().contains(file.file) {
                return Err(Fault::NoSuchFile { name: file.name().clone() });
            }
            let length = file.block_length(block);
            if end > length {
                return Err(file.past_end());
            }
            match self.try_enter(file, block) {
                Some(user) if user.length() == length => return Ok(user),
                Some(stale) => {
                    drop(stale);
                    rare(self.write_back_and_evict(file.file, block)).await;
                }
                None => rare(self.make_room(&Wanted { key, disk, length })).await,
            }
        }
    }

    /// Acts on the entry of a block that has `end` bytes or more, if it is cached and nothing must
    /// be waited for.
    pub(super) fn with_held<R>(
        &self,
        file: &OpenFile,
        block: u64,
        end: u64,
        act: impl FnOnce(&Rc<Entry<W>>) -> Option<R>,
    ) -> Option<R> {
        let key = (file.file, block);
        if self.locks.is_held(key) || self.discarded.borrow().contains(file.file) {
            return None;
        }
        let length = file.block_length(block);
        let entries = self.entries.borrow();
        let is_whole = |entry: &&Rc<Entry<W>>| end <= length && entry.length() == length;
        let entry = entries.get(&key).filter(is_whole)?;
        let done = act(entry)?;
        self.order.borrow_mut().touch(key, entry.place());
        Some(done)
    }

    /// Enters a block as [`BlockCache::enter`] does, unless that would wait.
    pub(super) fn enter_held(&self, file: &OpenFile, block: u64, end: u64) -> Option<User<W>> {
        self.with_held(file, block, end, |entry| {
            self.may_be_used(entry).then(|| Entry::user(entry))
        })
    }

    /// True when an entry is occupied, or may become so.
    pub(super) fn may_be_used(&self, entry: &Entry<W>) -> bool {
        entry.is_occupied() || self.common.shares.fits(entry.disk(), entry.length())
    }

    /// Writes back a block that is evictable then, or waits until something may have changed.
    async fn make_room(self: &Rc<Self>, wanted: &Wanted) {
        match self.dirty_victim(wanted, Entry::user) {
            Some(user) if user.disk() == wanted.disk => self.flush_entry(&user).await,
            Some(user) => {
                // This request must not wait for another disk.
                let cache = Rc::clone(self);
                self.background.spawn(async move {
                    cache.flush_entry(&user).await;
                    Ok::<(), Infallible>(())
                });
            }
            None => {
                let room = async {
                    if self.is_beyond_share(wanted) {
                        // Other disks are active all the time, and this one may have stopped.
                        let may_go_on = || {
                            let is_free = !self.is_beyond_share(wanted);
                            (is_free || self.has_dirty_victim(wanted)).then_some(())
                        };
                        self.common.shares.freed(wanted.disk).until(may_go_on).await;
                    } else {
                        self.common.room.until(|| self.can_enter(wanted).then_some(())).await;
                    }
                };
                // `wait` has already aborted what it could; just retry.
                let disk = self.is_beyond_share(wanted).then_some(wanted.disk);
                let _ = self.watchdog.wait(&self.world, disk, room).await;
            }
        }
    }

    /// True when the disk of a block occupies too much already.
    fn is_beyond_share(&self, wanted: &Wanted) -> bool {
        match self.entries.borrow().get(&wanted.key) {
            Some(entry) => !self.may_be_used(entry),
            None => !self.common.shares.fits(wanted.disk, wanted.length),
        }
    }

    fn can_enter(&self, wanted: &Wanted) -> bool {
        if self.is_beyond_share(wanted) {
            return self.has_dirty_victim(wanted);
        }
        let (entries, order, file) = (self.entries.borrow(), self.order.borrow(), wanted.key.0);
        let is_idle = |key: BlockKey| entries.get(&key).is_some_and(|entry| entry.is_idle());
        entries.contains_key(&wanted.key)
            || (self.has_room(wanted.length) && self.may_have_more(file, wanted.disk))
            || order.victims(file).any(is_idle)
    }

    /// True when a file may have one more block, of this disk. The file's limit does not count when
    /// all its blocks are of other disks, which may have stopped.
    fn may_have_more(&self, file: FileId, disk: DiskId) -> bool {
        let entries = self.entries.borrow();
        let mut of_file = entries.range((file, 0)..=(file, u64::MAX));
        !self.order.borrow().is_at_limit(file) || of_file.all(|(_, entry)| entry.disk() != disk)
    }

    /// True when a block of `length` bytes fits beside the cached ones. One always fits alone.
    fn has_room(&self, length: u64) -> bool {
        self.held.get() == 0 || self.held.get() + length <= self.capacity
    }

    /// Enters a block as [`BlockCache::enter`] does, but gives up where that would wait.
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
        if !self.common.shares.fits(disk, length) {
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
        let entry = Rc::new(Entry::new(file, (block, place), length, Rc::clone(&self.common)));
        let user = Entry::user(&entry);
        self.entries.borrow_mut().insert(key, entry);
        self.held.set(self.held.get() + length);
        Some(user)
    }

    /// Returns the first block in the eviction order for `file` that is evictable as it is.
    fn clean_victim(&self, file: FileId) -> Option<BlockKey> {
        let entries = self.entries.borrow();
        let order = self.order.borrow();
        order.victims(file).find(|key| {
            entries.get(key).is_some_and(|entry| entry.is_idle() && !entry.is_unsettled())
        })
    }

    /// Returns the first block in the eviction order that is unused but dirty, with a preference
    /// for blocks of the same disk. If the disk occupies too much, returns its block that has been
    /// dirty longest.
    fn dirty_victim<R>(
        &self,
        wanted: &Wanted,
        found: impl FnOnce(&Rc<Entry<W>>) -> R,
    ) -> Option<R> {
        let is_beyond_share = self.is_beyond_share(wanted);
        let entries = self.entries.borrow();
        let idle = |key: BlockKey| entries.get(&key).filter(|entry| entry.is_idle());
        if is_beyond_share {
            return self.common.dirty.find(wanted.disk, idle).map(found);
        }
        let order = self.order.borrow();
        let mut victims = order.victims(wanted.key.0).filter_map(idle).peekable();
        let first = victims.peek().copied();
        victims.find(|entry| entry.disk() == wanted.disk).or(first).map(found)
    }

    fn has_dirty_victim(&self, wanted: &Wanted) -> bool {
        self.dirty_victim(wanted, |_| ()).is_some()
    }

    /// Evicts a block to make room for another.
    fn evict(&self, key: BlockKey) {
        if let Some(entry) = self.entries.borrow().get(&key) {
            self.count_evicted(entry, 1);
            self.keep_if_wanted(entry);
        }
        self.remove(key);
    }

    /// Adds the counts of a block that leaves to those of its file.
    pub(super) fn count_evicted(&self, entry: &Entry<W>, evictions: u64) {
        // No statistics are kept of files that no client has open.
        if let Some(sum) = self.left.borrow_mut().get_mut(&entry.key().0) {
            entry.counted.add_to(sum);
            sum.prefetched_unused += u64::from(entry.counted.is_unused());
            sum.evictions += evictions;
        }
    }

    /// Removes a block, unless another entry has taken its place.
    pub(super) fn remove_user(&self, user: &User<W>) {
        let is_there = self.entries.borrow().get(&user.key()).is_some_and(|entry| user.is(entry));
        if is_there {
            self.remove(user.key());
        }
    }

    pub(super) fn remove(&self, key: BlockKey) {
        if let Some(entry) = self.entries.borrow_mut().remove(&key) {
            self.held.set(self.held.get() - entry.length());
            self.order.borrow_mut().remove(key);
            entry.leave();
        }
    }
}
