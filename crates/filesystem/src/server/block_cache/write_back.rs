//! Writing dirty blocks back to their disks.

use super::block_disks::BlockDisks;
use super::block_locks::BlockKey;
use super::block_table::BlockTable;
use super::entry::User;
use super::water_marks::WaterMarks;
use crate::server::files::write_failures::WriteFailures;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::rc::Rc;
use units::{DiskId, FileId};
use world::{Scope, World};

/// Write-behind of a cache. Failures go to [`WriteFailures`].
pub(super) struct WriteBack<W: World> {
    table: Rc<BlockTable<W>>,
    disks: Rc<BlockDisks<W>>,
    failures: Rc<WriteFailures>,
    marks: WaterMarks,
    /// Disks with a background task that writes their oldest dirty blocks back.
    cleaned: RefCell<BTreeSet<DiskId>>,
    background: Scope<W, Infallible>,
}

impl<W: World> WriteBack<W> {
    pub(super) fn new(
        world: W,
        marks: WaterMarks,
        table: Rc<BlockTable<W>>,
        disks: Rc<BlockDisks<W>>,
        failures: Rc<WriteFailures>,
    ) -> Self {
        let (cleaned, background) = (RefCell::default(), Scope::new(world));
        Self { table, disks, failures, marks, cleaned, background }
    }

    /// Begins to write back the dirty blocks of a file that no client has open any more.
    pub(super) fn begin_file(self: &Rc<Self>, file: FileId) {
        for keys in self.table.dirty_of(file).into_values() {
            let write_back = Rc::clone(self);
            self.background.spawn(async move {
                for key in keys {
                    if let Some(user) = write_back.table.dirty_user(key) {
                        write_back.flush(&user).await;
                    }
                }
                Ok(())
            });
        }
    }

    /// Begins to write back a block.
    pub(super) fn begin(self: &Rc<Self>, user: User<W>) {
        let write_back = Rc::clone(self);
        self.background.spawn(async move {
            write_back.flush(&user).await;
            Ok(())
        });
    }

    /// True if dirty blocks are written back above a mark.
    pub(super) fn has_marks(&self) -> bool {
        self.marks.exist()
    }

    /// Begins to write back the oldest dirty blocks of a disk, above the high-water mark.
    pub(super) fn clean(self: &Rc<Self>, disk: DiskId) {
        let is_enough = !self.marks.begin_at(self.dirty_bytes_of(disk));
        if is_enough || !self.cleaned.borrow_mut().insert(disk) {
            return;
        }
        let write_back = Rc::clone(self);
        self.background.spawn(async move {
            write_back.clean_disk(disk).await;
            write_back.cleaned.borrow_mut().remove(&disk);
            Ok(())
        });
    }

    async fn clean_disk(&self, disk: DiskId) {
        while self.marks.go_on_at(self.dirty_bytes_of(disk))
            && let Some(key) = self.table.occupancy().dirty().oldest(disk)
            && let Some(user) = self.table.dirty_user(key)
        {
            self.flush(&user).await;
        }
    }

    fn dirty_bytes_of(&self, disk: DiskId) -> u64 {
        self.table.occupancy().dirty().bytes_of(disk)
    }

    /// Writes a block back and evicts it.
    pub(super) async fn flush_and_evict(&self, key: BlockKey) {
        let Some(user) = self.table.user(key) else { return };
        while user.is_unsettled() {
            self.flush(&user).await;
        }
        self.table.remove_user(&user);
    }

    /// Waits until no task works on blocks of a file, and writes dirty ones back.
    pub(super) async fn flush_file(&self, file: FileId) {
        while let Some(user) = self.table.unsettled_user(file) {
            self.flush(&user).await;
        }
    }

    /// Writes the dirty bytes of a block to its disk, after the task that works on it.
    pub(super) async fn flush(&self, user: &User<W>) {
        if user.wait_while_busy().await {
            return;
        }
        if user.is_fragmented() {
            // Many small writes cost more than reading the rest and writing once.
            if let Err(fault) = self.disks.load(user).await {
                user.forget_dirty();
                self.failures.record(user.key().0, fault);
                return;
            }
        }
        if let Err(fault) = self.disks.store(user).await {
            self.failures.record(user.key().0, fault);
        }
    }
}
