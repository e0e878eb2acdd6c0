//! Writing dirty blocks back to their disks.

use super::block_locks::BlockKey;
use super::cache::BlockCache;
use super::entry::{Entry, User};
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{DiskId, FileId};
use wire::Fault;
use world::{Disk, Payload, World};

impl<W: World> BlockCache<W> {
    /// Begins to write back the dirty blocks of a file that no client has open any more.
    pub(crate) fn release(self: &Rc<Self>, file: FileId) {
        self.forget_uses(file);
        self.failures.closed(file);
        let mut of_disks = BTreeMap::<DiskId, Vec<BlockKey>>::new();
        for (key, entry) in self.entries.borrow().range((file, 0)..=(file, u64::MAX)) {
            if entry.is_dirty() {
                of_disks.entry(entry.disk()).or_default().push(*key);
            }
        }
        for keys in of_disks.into_values() {
            let cache = Rc::clone(self);
            self.background.spawn(async move {
                for key in keys {
                    if let Some(user) = cache.dirty_user(key) {
                        cache.flush_entry(&user).await;
                    }
                }
                Ok(())
            });
        }
    }

    /// Begins to write back the oldest dirty blocks of a disk, above the high-water mark.
    pub(super) fn clean(self: &Rc<Self>, disk: DiskId) {
        let is_enough = |high| self.common.dirty.bytes_of(disk) <= high;
        if self.marks.high.is_none_or(is_enough) || !self.cleaned.borrow_mut().insert(disk) {
            return;
        }
        let cache = Rc::clone(self);
        self.background.spawn(async move {
            cache.clean_disk(disk).await;
            cache.cleaned.borrow_mut().remove(&disk);
            Ok(())
        });
    }

    async fn clean_disk(&self, disk: DiskId) {
        while self.common.dirty.bytes_of(disk) > self.marks.low
            && let Some(key) = self.common.dirty.oldest(disk)
            && let Some(user) = self.dirty_user(key)
        {
            self.flush_entry(&user).await;
        }
    }

    /// Returns a user of a block that is still dirty.
    fn dirty_user(&self, key: BlockKey) -> Option<User<W>> {
        let entries = self.entries.borrow();
        entries.get(&key).filter(|entry| entry.is_dirty()).map(Entry::user)
    }

    /// Makes room for a collective write of a block: writes its cached bytes back and evicts it. If
    /// the disk fails, the clients that wrote them get the fault later.
    pub(crate) async fn write_back_and_evict(&self, file: FileId, block: u64) {
        let held = self.entries.borrow().get(&(file, block)).map(Entry::user);
        let Some(user) = held else { return };
        while user.is_unsettled() {
            self.flush_entry(&user).await;
        }
        self.remove_user(&user);
    }

    /// Writes the dirty bytes of a block to its disk, after the task that works on it.
    pub(super) async fn flush_entry(&self, user: &User<W>) {
        if user.wait_while_busy().await {
            return;
        }
        if user.is_fragmented() {
            // Many small writes cost more than reading the rest and writing once.
            if let Err(fault) = self.load(user).await {
                user.forget_dirty();
                self.failures.record(user.key().0, fault);
                return;
            }
        }
        let Some(_busy) = user.begin_work() else { return };
        if let Err(fault) = self.write_back(user).await {
            self.failures.record(user.key().0, fault);
        }
        self.common.room.notify();
    }

    async fn write_back(&self, user: &User<W>) -> Result<(), Fault> {
        let disk = self.disk_of(user)?;
        let mut unwritten = user.take_dirty();
        while let Some((offset, payload)) = unwritten.first() {
            debug_assert!(payload.length() > 0, "a dirty range must not be empty");
            let written = disk.write(user.key().0, user.disk_offset() + offset, payload).await;
            if let Err(error) = written {
                unwritten.lose();
                return Err(self.fault(user, &error));
            }
            unwritten.first_is_written();
        }
        Ok(())
    }
}
