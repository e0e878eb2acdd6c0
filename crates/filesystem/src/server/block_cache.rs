//! The block cache of a server: least recently used blocks leave, blocks that were written full
//! are written behind, one block is read ahead on the same disk (TOCS 1997, section 4). Files that
//! declare how they are used may have it otherwise (Tower of Pizzas, sections 2.1.4 and 2.2). When
//! much is dirty, and when a file is closed, what is dirty is written back in the background.
//!
//! Invariants: at most `capacity` bytes of blocks are held, and always at least one block; a block
//! is read from or written to its disk by one task at a time; bytes that were never filled are
//! never given out; dirty bytes leave the cache only through the disk, or with an error that the
//! next flush of each client reports.

mod dirty;
mod entry;
mod of_file;
mod pin;

use crate::server::block_locks::{BlockKey, BlockLocks};
use crate::server::failures::Failures;
use crate::server::movements::Movements;
use crate::server::open_file::OpenFile;
use crate::server::{ServerConfig, file_fault};
use dirty::WaterMarks;
use entry::{Common, Entry, User};
use pin::Pin;
use policy::{Buffering, Location, Prefetch, Residents, Window, next_on_disk};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::Range;
use std::rc::Rc;
use units::{ByteRange, DiskId, FileId, Run, ServerId};
use wire::{BufferStatistics, Fault};
use world::{Disk, DiskError, Payload, Scope, World};

/// The block cache of one server.
pub(crate) struct BlockCache<W: World> {
    world: W,
    server: ServerId,
    capacity: u64,
    marks: WaterMarks,
    held: Cell<u64>,
    /// Bytes of blocks that clients have fastened.
    pinned: Rc<Cell<u64>>,
    entries: RefCell<BTreeMap<BlockKey, Rc<Entry<W>>>>,
    order: RefCell<Residents>,
    /// Where passes that several clients make together have come to, on each disk.
    windows: RefCell<BTreeMap<(FileId, DiskId), Window>>,
    /// What happened to blocks that have left, by file, while it is open.
    left: RefCell<BTreeMap<FileId, BufferStatistics>>,
    common: Rc<Common>,
    /// Disks to which the blocks that have been dirty longest are being written back.
    cleaned: RefCell<BTreeSet<DiskId>>,
    /// Blocks that collectives are writing; none of them is taken in.
    locks: Rc<BlockLocks>,
    movements: Rc<Movements>,
    pub(crate) failures: Failures,
    /// Files that were removed: nothing of them comes in again, whoever still waits to bring it.
    /// Eight bytes for each removal since the start.
    discarded: RefCell<BTreeSet<FileId>>,
    background: Scope<W, Infallible>,
}

/// Clients can fasten one part in so many of a cache; what they want beyond is copied for them.
const PINNED_SHARE: u64 = 2;

impl<W: World> BlockCache<W> {
    pub(crate) fn new(
        world: W,
        config: &ServerConfig,
        locks: Rc<BlockLocks>,
        movements: Rc<Movements>,
    ) -> Rc<Self> {
        let capacity = config.cache_bytes;
        Rc::new(Self {
            background: Scope::new(world.clone()),
            world,
            server: config.id,
            capacity,
            marks: WaterMarks::new(capacity, config.dirty_percent),
            held: Cell::new(0),
            pinned: Rc::default(),
            entries: RefCell::default(),
            order: RefCell::new(Residents::new(config.rules.clone())),
            windows: RefCell::default(),
            left: RefCell::default(),
            common: Rc::default(),
            cleaned: RefCell::default(),
            locks,
            movements,
            failures: Failures::default(),
            discarded: RefCell::default(),
        })
    }

    /// Bytes of blocks in the cache.
    pub(crate) fn bytes(&self) -> u64 {
        self.held.get()
    }

    /// Bytes of blocks that the disks do not have yet, in part or in full.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.common.dirty.bytes()
    }

    /// The bytes `range` (relative to the block) of a block, from the disk if need be.
    pub(crate) async fn read(
        &self,
        file: &Rc<OpenFile>,
        block: u64,
        range: ByteRange,
    ) -> Result<W::Payload, Fault> {
        let user = match self.enter_held(file, block, range.end) {
            Some(user) => user,
            None => Box::pin(self.enter(file, block, range.end)).await?,
        };
        match self.read_held(&user, range) {
            Some(payload) => Ok(payload),
            None => Box::pin(self.fetch(&user, range)).await,
        }
    }

    /// The bytes `range` of a block, if they are there.
    fn read_held(&self, user: &User<W>, range: ByteRange) -> Option<W::Payload> {
        let payload = user.cut(range)?;
        user.counted.hits.update(|hits| hits + 1);
        self.was_read(user, range);
        Some(payload)
    }

    fn was_read(&self, user: &User<W>, range: ByteRange) {
        if range.end == user.length() {
            self.order.borrow_mut().read_to_its_end(user.key());
        }
    }

    /// A whole block, and what fastens it: while that is held the block stays in the cache, and
    /// these bytes as they are. Nothing fastens it when so much is fastened that others would lack
    /// room.
    pub(crate) async fn page(
        &self,
        file: &Rc<OpenFile>,
        block: u64,
    ) -> Result<(W::Payload, Option<Pin<W>>), Fault> {
        let user = self.enter(file, block, 1).await?;
        user.freeze();
        let whole = ByteRange::at(0, user.length());
        let payload = match self.read_held(&user, whole) {
            Some(payload) => payload,
            None => Box::pin(self.fetch(&user, whole)).await?,
        };
        let pinned = self.pinned.get() + user.length();
        let fits = pinned <= self.capacity / PINNED_SHARE;
        Ok((payload, fits.then(|| Pin::new(user, &self.pinned))))
    }

    /// The bytes `range` of a block, that have to be waited for. (What waits for a disk is a large
    /// future; made where it is needed, it does not make every request larger.)
    async fn fetch(&self, user: &User<W>, range: ByteRange) -> Result<W::Payload, Fault> {
        user.counted.misses.update(|misses| misses + 1);
        loop {
            if !user.wait_while_busy().await {
                self.load(user).await?;
            }
            if let Some(payload) = user.cut(range) {
                self.was_read(user, range);
                return Ok(payload);
            }
        }
    }

    /// From now on a file is buffered like this.
    pub(crate) fn declare(&self, file: FileId, buffering: Buffering) {
        self.order.borrow_mut().declare(file, buffering);
        self.left.borrow_mut().entry(file).or_default();
        self.common.room.notify();
    }

    /// Nobody has a file open any more: what is dirty of it goes to the disks, and nobody waits.
    pub(crate) fn release(self: &Rc<Self>, file: FileId) {
        self.forget_uses(file);
        self.failures.closed(file);
        let mut of_disks = BTreeMap::<DiskId, Vec<BlockKey>>::new();
        for (key, entry) in self.entries.borrow().range((file, 0)..=(file, u64::MAX)) {
            if entry.is_dirty() {
                of_disks.entry(entry.location().disk).or_default().push(*key);
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

    /// Forgets how a file was used.
    fn forget_uses(&self, file: FileId) {
        self.order.borrow_mut().forget(file);
        self.left.borrow_mut().remove(&file);
        self.windows.borrow_mut().retain(|(other, _), _| *other != file);
    }

    /// Begins to write back what has been dirty longest, to each disk in turn, if much is dirty.
    fn clean(self: &Rc<Self>) {
        if self.marks.high.is_none_or(|high| self.dirty_bytes() <= high) {
            return;
        }
        for disk in (0..self.world.disks().len() as u32).map(DiskId) {
            if self.common.dirty.oldest(disk).is_some() && self.cleaned.borrow_mut().insert(disk) {
                let cache = Rc::clone(self);
                self.background.spawn(async move {
                    cache.clean_disk(disk).await;
                    cache.cleaned.borrow_mut().remove(&disk);
                    Ok(())
                });
            }
        }
    }

    async fn clean_disk(&self, disk: DiskId) {
        while self.dirty_bytes() > self.marks.low
            && let Some(key) = self.common.dirty.oldest(disk)
            && let Some(user) = self.dirty_user(key)
        {
            self.flush_entry(&user).await;
        }
    }

    /// A block that is still dirty.
    fn dirty_user(&self, key: BlockKey) -> Option<User<W>> {
        let entries = self.entries.borrow();
        entries.get(&key).filter(|entry| entry.is_dirty()).map(Entry::user)
    }

    /// What has happened to the blocks of a file since it was opened, or since they came in.
    pub(crate) fn statistics(&self, file: FileId) -> BufferStatistics {
        let mut sum = self.left.borrow().get(&file).copied().unwrap_or_default();
        let entries = self.entries.borrow();
        for (_, entry) in entries.range((file, 0)..=(file, u64::MAX)) {
            entry.counted.add_to(&mut sum);
        }
        sum
    }

    /// Begins to read what is worth it before a block is asked for: the window that slides over a
    /// file which several clients read together.
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

    /// Begins to read what is worth it after a block was asked for: the next one on its disk.
    pub(crate) fn prefetch_after(self: &Rc<Self>, file: &Rc<OpenFile>, block: u64) {
        if file.buffering().prefetch() == Prefetch::Next
            && let Some(next) = next_on_disk(&file.stripe, block, file.bytes())
        {
            self.prefetch(file, next);
        }
    }

    /// Begins to read a block into the cache. False when there is no room for it.
    fn prefetch(self: &Rc<Self>, file: &Rc<OpenFile>, block: u64) -> bool {
        let key = (file.file, block);
        let is_gone = self.discarded.borrow().contains(&file.file);
        if is_gone || self.entries.borrow().contains_key(&key) || self.locks.is_held(key) {
            return true;
        }
        let Some(user) = self.try_enter(file, block) else { return false };
        user.counted.prefetched.set(true);
        let cache = Rc::clone(self);
        self.background.spawn(async move {
            // Nobody asked for it: a failure will be met by whoever does.
            let _ = cache.load(&user).await;
            Ok(())
        });
        true
    }

    /// Room for a block, waited for. As long as it is held the block stays, unless a collective
    /// writes it or its file is removed; whoever brings data for it needs no other memory.
    pub(crate) async fn reserve(&self, file: &Rc<OpenFile>, block: u64) -> Result<User<W>, Fault> {
        self.enter(file, block, 1).await
    }

    /// Puts `payload` piece by piece into `runs` of a block. A block that is now written in full is
    /// written behind.
    pub(crate) async fn write(
        self: &Rc<Self>,
        file: &Rc<OpenFile>,
        block: u64,
        runs: &[Run],
        payload: W::Payload,
    ) -> Result<(), Fault> {
        let end = runs.iter().filter_map(|run| run.checked_end()).max().unwrap_or(u64::MAX);
        let user = match self.enter_held(file, block, end) {
            Some(user) => user,
            None => Box::pin(self.enter(file, block, end)).await?,
        };
        user.put(&self.world, runs, &payload);
        if user.is_written_full() {
            let cache = Rc::clone(self);
            self.background.spawn(async move {
                cache.flush_entry(&user).await;
                Ok(())
            });
        } else {
            self.clean();
        }
        Ok(())
    }

    /// A block for a collective read, if it is held: dirty bytes must not be missed.
    pub(crate) async fn held_block(
        &self,
        file: &Rc<OpenFile>,
        block: u64,
    ) -> Result<Option<W::Payload>, Fault> {
        if !self.holds(file.file, block) {
            return Ok(None);
        }
        let whole = ByteRange::at(0, file.block_length(block));
        self.read(file, block, whole).await.map(Some)
    }

    /// Whether a block is in the cache, or on its way there.
    pub(crate) fn holds(&self, file: FileId, block: u64) -> bool {
        self.entries.borrow().contains_key(&(file, block))
    }

    /// The first of `blocks` that is in the cache, or on its way there. Found by bisection.
    pub(crate) fn next_held(&self, file: FileId, blocks: Range<u64>) -> Option<u64> {
        let entries = self.entries.borrow();
        let (key, _) = entries.range((file, blocks.start)..(file, blocks.end)).next()?;
        Some(key.1)
    }

    /// The bytes `range` of a block, if they are there without anything to wait for.
    pub(crate) fn peek(&self, file: FileId, block: u64, range: ByteRange) -> Option<W::Payload> {
        let key = (file, block);
        let entries = self.entries.borrow();
        let entry = entries.get(&key)?;
        let payload = entry.cut(range)?;
        self.order.borrow_mut().touch(key, entry.place());
        Some(payload)
    }

    /// Makes room for a collective write of a block: what the cache holds of it goes to the disk
    /// and leaves the cache. If the disk does not take it, those who wrote it will be told.
    pub(crate) async fn surrender(&self, file: FileId, block: u64) {
        let held = self.entries.borrow().get(&(file, block)).map(Entry::user);
        let Some(user) = held else { return };
        while user.is_unsettled() {
            self.flush_entry(&user).await;
        }
        self.remove_user(&user);
    }

    /// The entry of a block that has `end` bytes or more, made if there is none, waiting for room.
    /// While the returned user lives, the entry stays, unless the block gets another length.
    async fn enter(&self, file: &Rc<OpenFile>, block: u64, end: u64) -> Result<User<W>, Fault> {
        loop {
            let key = (file.file, block);
            if self.locks.is_held(key) {
                // Seldom, and not to make every request larger.
                Box::pin(self.locks.until_free(key)).await;
            }
            if self.discarded.borrow().contains(&file.file) {
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
                    Box::pin(self.surrender(file.file, block)).await;
                }
                None => Box::pin(self.make_room(key, length)).await,
            }
        }
    }

    /// As [`BlockCache::enter`] of a block that is held, and for which nothing is to be waited for:
    /// most often it is so, and then there is no future to be made.
    fn enter_held(&self, file: &OpenFile, block: u64, end: u64) -> Option<User<W>> {
        let key = (file.file, block);
        if self.locks.is_held(key) || self.discarded.borrow().contains(&file.file) {
            return None;
        }
        let length = file.block_length(block);
        let entries = self.entries.borrow();
        let is_whole = |entry: &&Rc<Entry<W>>| end <= length && entry.length() == length;
        let entry = entries.get(&key).filter(is_whole)?;
        self.order.borrow_mut().touch(key, entry.place());
        Some(Entry::user(entry))
    }

    /// Writes back a block that could leave then, or waits until something may have changed.
    async fn make_room(&self, key: BlockKey, length: u64) {
        match self.dirty_victim(key.0) {
            Some(user) => self.flush_entry(&user).await,
            None => {
                let free = || self.can_enter(key, length).then_some(());
                let room = self.common.room.until(free);
                // Whatever was the reason, all that can be done about it has been.
                let _ = self.movements.wait(&self.world, room).await;
            }
        }
    }

    fn can_enter(&self, key: BlockKey, length: u64) -> bool {
        let (entries, order) = (self.entries.borrow(), self.order.borrow());
        let is_idle = |key: BlockKey| entries.get(&key).is_some_and(|entry| entry.is_idle());
        entries.contains_key(&key)
            || (self.has_room(length) && !order.is_at_limit(key.0))
            || order.victims(key.0).any(is_idle)
    }

    /// Whether a block of `length` bytes fits beside those that are held; one always fits alone.
    fn has_room(&self, length: u64) -> bool {
        self.held.get() == 0 || self.held.get() + length <= self.capacity
    }

    /// As [`BlockCache::enter`], but gives up where that would wait.
    fn try_enter(&self, file: &Rc<OpenFile>, block: u64) -> Option<User<W>> {
        let key = (file.file, block);
        if let Some(entry) = self.entries.borrow().get(&key) {
            self.order.borrow_mut().touch(key, entry.place());
            return Some(Entry::user(entry));
        }
        let length = file.block_length(block);
        while !self.has_room(length) || self.order.borrow().is_at_limit(file.file) {
            let victim = self.clean_victim(file.file)?;
            self.evict(victim);
        }
        let place = self.order.borrow_mut().insert(key);
        let entry = Rc::new(Entry::new(file, (block, place), length, Rc::clone(&self.common)));
        let user = Entry::user(&entry);
        self.entries.borrow_mut().insert(key, entry);
        self.held.set(self.held.get() + length);
        Some(user)
    }

    /// The block that is to leave first for one of `file`, among those that can leave as they are.
    fn clean_victim(&self, file: FileId) -> Option<BlockKey> {
        let entries = self.entries.borrow();
        let order = self.order.borrow();
        order.victims(file).find(|key| {
            entries.get(key).is_some_and(|entry| entry.is_idle() && !entry.is_unsettled())
        })
    }

    /// The block that is to leave first among those that nobody uses but the disk must have.
    fn dirty_victim(&self, file: FileId) -> Option<User<W>> {
        let entries = self.entries.borrow();
        let order = self.order.borrow();
        let idle = |key: BlockKey| entries.get(&key).filter(|entry| entry.is_idle());
        order.victims(file).find_map(idle).map(Entry::user)
    }

    /// Removes a block to make room for another.
    fn evict(&self, key: BlockKey) {
        if let Some(entry) = self.entries.borrow().get(&key) {
            // Of files that nobody has open nothing is remembered.
            if let Some(sum) = self.left.borrow_mut().get_mut(&key.0) {
                entry.counted.add_to(sum);
                sum.prefetched_unused += u64::from(entry.counted.is_unused());
                sum.evictions += 1;
            }
        }
        self.remove(key);
    }

    /// Removes a block, unless another has taken its place.
    fn remove_user(&self, user: &User<W>) {
        let is_there = self.entries.borrow().get(&user.key()).is_some_and(|entry| user.is(entry));
        if is_there {
            self.remove(user.key());
        }
    }

    fn remove(&self, key: BlockKey) {
        if let Some(entry) = self.entries.borrow_mut().remove(&key) {
            assert!(!entry.is_dirty(), "what the disk does not have stays");
            self.held.set(self.held.get() - entry.length());
            self.order.borrow_mut().remove(key);
        }
        self.common.room.notify();
    }

    /// Reads what is missing of a block from its disk.
    async fn load(&self, user: &User<W>) -> Result<(), Fault> {
        let Some(_busy) = user.begin_work() else { return Ok(()) };
        let disk = self.disk_of(user)?;
        let loaded = disk.read(user.key().0, user.disk_offset(), user.length()).await;
        let payload = loaded.map_err(|error| self.fault(user, &error))?;
        user.fill(&self.world, payload);
        self.common.room.notify();
        Ok(())
    }

    /// Writes what is dirty of a block to its disk, after whatever is under way for it.
    async fn flush_entry(&self, user: &User<W>) {
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

    fn fault(&self, user: &User<W>, error: &DiskError) -> Fault {
        file_fault(self.server, user.file(), user.location().disk, error)
    }

    fn disk_of(&self, user: &User<W>) -> Result<&W::Disk, Fault> {
        let disk = user.location().disk;
        let gone = || Fault::BadRequest { cause: format!("there is no {disk} here") };
        self.world.disks().get(disk.0 as usize).ok_or_else(gone)
    }
}
