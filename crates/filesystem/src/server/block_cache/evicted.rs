//! Clean blocks that leave the cache or come into it without a disk, for caches at clients.

use super::cache::BlockCache;
use super::entry::Entry;
use super::evicted_block::EvictedBlock;
use crate::server::files::open_file::OpenFile;
use std::rc::Rc;
use units::{ByteRange, FileId};
use wire::Fault;
use world::{Payload, World};

/// Maximum number of evicted blocks that wait. The oldest are dropped.
const EVICTED_MAX: usize = 64;

impl<W: World> BlockCache<W> {
    /// Keeps clean blocks that are evicted from now on, for [`take_evicted`](Self::take_evicted).
    pub(crate) fn keep_evicted(&self) {
        self.evicted.borrow_mut().get_or_insert_default();
    }

    /// Keeps evicted blocks no longer.
    pub(crate) fn forget_evicted(&self) {
        *self.evicted.borrow_mut() = None;
    }

    /// Forgets evicted blocks of a file.
    pub(crate) fn forget_evicted_of(&self, file: FileId) {
        if let Some(kept) = &mut *self.evicted.borrow_mut() {
            kept.retain(|evicted| evicted.key.0 != file);
        }
    }

    /// Returns the next evicted block.
    pub(crate) fn take_evicted(&self) -> Option<EvictedBlock<W::Payload>> {
        self.evicted.borrow_mut().as_mut()?.pop_front()
    }

    /// Keeps a block that is being evicted, if that is wanted and all of it is known.
    pub(super) fn keep_if_wanted(&self, entry: &Entry<W>) {
        if let Some(kept) = &mut *self.evicted.borrow_mut()
            && let Some(payload) = entry.cut(ByteRange::at(0, entry.length()))
        {
            if kept.len() >= EVICTED_MAX {
                kept.pop_front();
            }
            let block_bytes = entry.file().stripe.block_bytes;
            kept.push_back(EvictedBlock { key: entry.key(), block_bytes, payload });
        }
    }

    /// Removes a block whose copy has moved elsewhere, unless a task uses it or its disk lacks some
    /// of it.
    pub(crate) fn drop_clean(&self, file: FileId, block: u64) {
        let key = (file, block);
        let entry = self.entries.borrow().get(&key).map(Rc::clone);
        if let Some(entry) = entry.filter(|entry| entry.is_idle() && !entry.is_unsettled()) {
            self.count_evicted(&entry, 0);
            self.remove(key);
        }
    }

    /// Takes bytes of a block that its disk has, as the most recent ones.
    pub(crate) async fn take_in(
        self: &Rc<Self>,
        file: &Rc<OpenFile>,
        block: u64,
        offset: u64,
        payload: W::Payload,
    ) -> Result<(), Fault> {
        let user = self.enter(file, block, offset + payload.length()).await?;
        user.fill_part(&self.world, offset, &payload);
        drop(user);
        self.common.room.notify();
        Ok(())
    }
}
