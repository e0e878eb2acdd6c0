//! Prefetch: blocks that are read before a client asks for them.

use super::block_disks::BlockDisks;
use super::block_table::BlockTable;
use super::closed_blocks::ClosedBlocks;
use crate::server::files::open_file::OpenFile;
use policy::{Location, Prefetch, Window, next_on_disk};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use units::{ByteRange, DiskId, FileId};
use world::{Scope, World};

/// Begins the reads that pay before or after a request, as the buffering of its file says.
pub(crate) struct Prefetcher<W: World> {
    closed: Rc<ClosedBlocks>,
    table: Rc<BlockTable<W>>,
    disks: Rc<BlockDisks<W>>,
    /// Windows of passes that several clients make together, on each disk.
    windows: RefCell<BTreeMap<(FileId, DiskId), Window>>,
    background: Scope<W, Infallible>,
}

impl<W: World> Prefetcher<W> {
    pub(super) fn new(
        world: W,
        closed: Rc<ClosedBlocks>,
        table: Rc<BlockTable<W>>,
        disks: Rc<BlockDisks<W>>,
    ) -> Self {
        let (windows, background) = (RefCell::default(), Scope::new(world));
        Self { closed, table, disks, windows, background }
    }

    /// Begins the reads that pay before a request for a block: the window of a file that several
    /// clients read together.
    pub(crate) fn begin_before(&self, file: &Rc<OpenFile>, block: u64) {
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
            if !self.begin(file, next) {
                if let Some(window) = self.windows.borrow_mut().get_mut(&key) {
                    window.stop_at(slot);
                }
                return;
            }
        }
    }

    /// Begins the read that pays after a request for a block: the next block on its disk.
    pub(crate) fn begin_after(&self, file: &Rc<OpenFile>, block: u64) {
        if let Some(next) = self.next_to_read(file, block) {
            self.begin(file, next);
        }
    }

    /// True when [`begin_before`](Self::begin_before) and [`begin_after`](Self::begin_after) have
    /// nothing to begin for a block.
    pub(crate) fn has_nothing_to_begin(&self, file: &OpenFile, block: u64) -> bool {
        match file.buffering().prefetch() {
            Prefetch::Window(_) => false,
            Prefetch::Next | Prefetch::Nothing => self.next_to_read(file, block).is_none(),
        }
    }

    /// Forgets the passes of a file.
    pub(super) fn forget(&self, file: FileId) {
        self.windows.borrow_mut().retain(|(other, _), _| *other != file);
    }

    fn next_to_read(&self, file: &OpenFile, block: u64) -> Option<u64> {
        if file.buffering().prefetch() != Prefetch::Next {
            return None;
        }
        let next = next_on_disk(&file.stripe, block, file.bytes())?;
        self.is_worth_reading(file, next).then_some(next)
    }

    /// True when no byte of a block is cached, and it may come in.
    fn is_worth_reading(&self, file: &OpenFile, block: u64) -> bool {
        let key = (file.file, block);
        !self.closed.is_removed(file.file) && !self.table.holds(key) && !self.closed.is_locked(key)
    }

    /// Begins to read a block into the cache. False when there is no room for it.
    fn begin(&self, file: &Rc<OpenFile>, block: u64) -> bool {
        if !self.is_worth_reading(file, block) {
            return true;
        }
        let Some(user) = self.table.try_enter(file, block) else { return false };
        user.uses().prefetched();
        let disks = Rc::clone(&self.disks);
        self.background.spawn(async move {
            // No client asked for it: the next request for the block meets the failure.
            let _ = disks.load(&user).await;
            Ok(())
        });
        true
    }
}
