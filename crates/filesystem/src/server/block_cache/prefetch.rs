//! Prefetch: blocks that are read before a client asks for them.

use super::cache::BlockCache;
use crate::server::files::open_file::OpenFile;
use policy::{Location, Prefetch, next_on_disk};
use std::rc::Rc;
use units::ByteRange;
use world::World;

impl<W: World> BlockCache<W> {
    /// Begins the reads that pay before a request for a block: the window of a file that several
    /// clients read together.
    pub(crate) fn prefetch_before(self: &Rc<Self>, file: &Rc<OpenFile>, block: u64) {
        let Prefetch::Window(ahead) = file.buffering().prefetch() else { return };
        let (stripe, at) = (&file.stripe, file.stripe.locate(block));
        let last = stripe.blocks_in(ByteRange::new(0, file.bytes())).end;
        let on_disk = stripe.blocks_on(at.server, at.disk, 0..last);
        let count = on_disk.size_hint().0 as u64;
        let key = (file.file, at.disk);
        let slots = {
            let mut windows = self.windows.borrow_mut();
            windows.entry(key).or_default().fetch(at.slot, ahead, count)
        };
        for slot in slots {
            let next = stripe.block_of(Location { slot, ..at });
            if !self.prefetch(file, next) {
                if let Some(window) = self.windows.borrow_mut().get_mut(&key) {
                    window.stop_at(slot);
                }
                return;
            }
        }
    }

    /// Begins the read that pays after a request for a block: the next block on its disk.
    pub(crate) fn prefetch_after(self: &Rc<Self>, file: &Rc<OpenFile>, block: u64) {
        if let Some(next) = self.next_to_prefetch(file, block) {
            self.prefetch(file, next);
        }
    }

    fn next_to_prefetch(&self, file: &OpenFile, block: u64) -> Option<u64> {
        if file.buffering().prefetch() != Prefetch::Next {
            return None;
        }
        let next = next_on_disk(&file.stripe, block, file.bytes())?;
        self.is_worth_reading(file, next).then_some(next)
    }

    /// True when [`prefetch_before`](Self::prefetch_before) and
    /// [`prefetch_after`](Self::prefetch_after) have nothing to begin for a block.
    pub(crate) fn has_nothing_to_prefetch(&self, file: &OpenFile, block: u64) -> bool {
        match file.buffering().prefetch() {
            Prefetch::Window(_) => false,
            Prefetch::Next | Prefetch::Nothing => self.next_to_prefetch(file, block).is_none(),
        }
    }

    /// True when no byte of a block is cached, and it may come in.
    fn is_worth_reading(&self, file: &OpenFile, block: u64) -> bool {
        let key = (file.file, block);
        let is_gone = self.discarded.borrow().contains(file.file);
        !is_gone && !self.entries.borrow().contains_key(&key) && !self.locks.is_held(key)
    }

    /// Begins to read a block into the cache. False when there is no room for it.
    fn prefetch(self: &Rc<Self>, file: &Rc<OpenFile>, block: u64) -> bool {
        if !self.is_worth_reading(file, block) {
            return true;
        }
        let Some(user) = self.try_enter(file, block) else { return false };
        user.counted.prefetched.set(true);
        let cache = Rc::clone(self);
        self.background.spawn(async move {
            // No client asked for it: the next request for the block meets the failure.
            let _ = cache.load(&user).await;
            Ok(())
        });
        true
    }
}
