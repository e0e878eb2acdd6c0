//! Admission of blocks to the cache, which may have to wait for room.
//!
//! Invariant: with several disks, blocks of one disk that cannot be evicted at once (used, on their
//! way, or dirty) occupy at most the disk's share, or are one block besides pinned ones. So a
//! stopped disk does not delay requests for others.

use super::block_table::{BlockTable, Wanted};
use super::closed_blocks::ClosedBlocks;
use super::entry::{Entry, User};
use super::write_back::WriteBack;
use crate::scale::rare;
use crate::server::files::open_file::OpenFile;
use crate::server::transfers::transfer_watchdog::TransferWatchdog;
use std::rc::Rc;
use wire::Fault;
use world::World;

/// Admits blocks, and makes room for them.
pub(super) struct Admission<W: World> {
    world: W,
    closed: Rc<ClosedBlocks>,
    table: Rc<BlockTable<W>>,
    write_back: Rc<WriteBack<W>>,
    watchdog: Rc<TransferWatchdog>,
}

impl<W: World> Admission<W> {
    pub(super) fn new(
        world: W,
        closed: Rc<ClosedBlocks>,
        table: Rc<BlockTable<W>>,
        write_back: Rc<WriteBack<W>>,
        watchdog: Rc<TransferWatchdog>,
    ) -> Self {
        Self { world, closed, table, write_back, watchdog }
    }

    /// Returns the entry of a block that has `end` bytes or more. Makes the entry if there is none,
    /// and waits for room. While the returned user lives, the entry stays, unless the length of the
    /// block changes.
    pub(super) async fn enter(
        &self,
        file: &Rc<OpenFile>,
        block: u64,
        end: u64,
    ) -> Result<User<W>, Fault> {
        let (key, disk) = ((file.file, block), file.stripe.locate(block).disk);
        loop {
            if self.closed.is_locked(key) {
                rare(self.closed.until_unlocked(key)).await;
            }
            if self.closed.is_removed(file.file) {
                return Err(Fault::NoSuchFile { name: file.name().clone() });
            }
            let length = file.block_length(block);
            if end > length {
                return Err(file.past_end());
            }
            match self.table.try_enter(file, block) {
                Some(user) if user.length() == length => return Ok(user),
                Some(user) if self.table.grow(&self.world, file, &user, length) => return Ok(user),
                Some(stale) => {
                    drop(stale);
                    rare(self.write_back.flush_and_evict(key)).await;
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
        if self.closed.contains(key) {
            return None;
        }
        let length = file.block_length(block);
        let is_whole = |entry: &Entry<W>| end <= length && entry.length() == length;
        self.table.with(key, |entry| if is_whole(entry) { act(entry) } else { None })
    }

    /// Enters a block as [`enter`](Self::enter) does, unless it is not cached or that would wait.
    pub(super) fn enter_held(&self, file: &OpenFile, block: u64, end: u64) -> Option<User<W>> {
        self.with_held(file, block, end, |entry| {
            self.table.may_be_used(entry).then(|| Entry::user(entry))
        })
    }

    /// Writes back a block that is evictable then, or waits until something may have changed.
    async fn make_room(&self, wanted: &Wanted) {
        let (table, occupancy) = (&*self.table, self.table.occupancy());
        match table.dirty_victim(wanted) {
            Some(user) if user.disk() == wanted.disk => self.write_back.flush(&user).await,
            // This request must not wait for another disk.
            Some(user) => self.write_back.begin(user),
            None => {
                let room = async {
                    if table.is_beyond_share(wanted) {
                        // Other disks are active all the time, and this one may have stopped.
                        let may_go_on =
                            || !table.is_beyond_share(wanted) || table.has_dirty_victim(wanted);
                        occupancy.until_freed(wanted.disk, may_go_on).await;
                    } else {
                        occupancy.until_room(|| table.can_enter(wanted)).await;
                    }
                };
                // `wait` has already aborted what it could; just retry.
                let disk = table.is_beyond_share(wanted).then_some(wanted.disk);
                let _ = self.watchdog.wait(&self.world, disk, room).await;
            }
        }
    }
}
