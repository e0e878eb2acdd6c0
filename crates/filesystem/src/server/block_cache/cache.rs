//! Block cache of a server: LRU replacement, write-behind of full blocks, prefetch of one block on
//! the same disk (TOCS 1997, section 4). Files may declare other policies (Tower of Pizzas,
//! sections 2.1.4 and 2.2). Above the dirty high-water mark, and when a file is closed, dirty
//! blocks are written back in the background.
//!
//! Invariants:
//! - One task at a time reads a block from its disk or writes it there.
//! - The cache never gives out bytes that were never filled.
//! - Dirty bytes leave the cache only through the disk, or with a fault that the next flush of each
//!   client reports.

use super::block_locks::{BlockKey, BlockLocks};
use super::dirty::WaterMarks;
use super::entry::{Common, Entry, User};
use super::evicted_block::EvictedBlock;
use super::pin::Pin;
use crate::scale::rare;
use crate::server::config::ServerConfig;
use crate::server::faults::file_fault;
use crate::server::files::open_file::OpenFile;
use crate::server::files::removed_files::RemovedFiles;
use crate::server::files::write_failures::WriteFailures;
use crate::server::transfers::transfer_watchdog::TransferWatchdog;
use policy::{Buffering, EvictionOrder, Window};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::ops::Range;
use std::rc::Rc;
use units::{ByteRange, DiskId, FileId, Run, ServerId};
use wire::{BufferStatistics, Fault};
use world::{Disk, DiskError, Scope, World};

/// Block cache of one server.
pub(crate) struct BlockCache<W: World> {
    pub(super) world: W,
    pub(super) server: ServerId,
    pub(super) capacity: u64,
    pub(super) marks: WaterMarks,
    pub(super) held: Cell<u64>,
    pub(super) entries: RefCell<BTreeMap<BlockKey, Rc<Entry<W>>>>,
    pub(super) order: RefCell<EvictionOrder>,
    /// Prefetch windows of passes that several clients make together, on each disk.
    pub(super) windows: RefCell<BTreeMap<(FileId, DiskId), Window>>,
    /// Statistics of evicted blocks of open files, by file.
    pub(super) left: RefCell<BTreeMap<FileId, BufferStatistics>>,
    pub(super) common: Rc<Common>,
    /// Disks with a background task that writes their oldest dirty blocks back.
    pub(super) cleaned: RefCell<BTreeSet<DiskId>>,
    /// Blocks that collectives write. The cache takes none of them in.
    pub(super) locks: Rc<BlockLocks>,
    pub(super) watchdog: Rc<TransferWatchdog>,
    pub(crate) failures: WriteFailures,
    /// Removed files. No block of them comes in again, even for a task that waits with data.
    pub(super) discarded: RefCell<RemovedFiles>,
    /// Clean blocks that were evicted to make room, if the server asked for them.
    pub(super) evicted: RefCell<Option<VecDeque<EvictedBlock<W::Payload>>>>,
    pub(super) background: Scope<W, Infallible>,
}

/// Divisor of a disk's share of the cache: the fraction that clients can pin. Further pages are
/// copies.
const PINNED_SHARE: u64 = 2;

impl<W: World> BlockCache<W> {
    pub(crate) fn new(
        world: W,
        config: &ServerConfig,
        locks: Rc<BlockLocks>,
        watchdog: Rc<TransferWatchdog>,
    ) -> Rc<Self> {
        let (capacity, disks) = (config.cache_bytes, world.disks().len());
        Rc::new(Self {
            background: Scope::new(world.clone()),
            world,
            server: config.id,
            capacity,
            marks: WaterMarks::new(capacity / (disks as u64).max(1), config.dirty_percent),
            held: Cell::new(0),
            entries: RefCell::default(),
            order: RefCell::new(EvictionOrder::new(config.policies.clone())),
            windows: RefCell::default(),
            left: RefCell::default(),
            common: Rc::new(Common::new(capacity, disks)),
            cleaned: RefCell::default(),
            locks,
            watchdog,
            failures: WriteFailures::default(),
            discarded: RefCell::default(),
            evicted: RefCell::default(),
        })
    }

    /// Number of bytes of cached blocks.
    pub(crate) fn bytes(&self) -> u64 {
        self.held.get()
    }

    /// Number of bytes of blocks that are dirty in part or in full.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.common.dirty.bytes()
    }

    /// Returns the bytes `range` (relative to the block) of a block, from the disk if need be.
    pub(crate) async fn read(
        self: &Rc<Self>,
        file: &Rc<OpenFile>,
        block: u64,
        range: ByteRange,
    ) -> Result<W::Payload, Fault> {
        match self.read_held(file, block, range) {
            Some(payload) => Ok(payload),
            None => rare(self.read_later(file, block, range)).await,
        }
    }

    /// Returns bytes as [`read`](Self::read) does, unless that would wait. Then it does nothing.
    pub(crate) fn read_held(
        &self,
        file: &OpenFile,
        block: u64,
        range: ByteRange,
    ) -> Option<W::Payload> {
        let payload = self.with_held(file, block, range.end, |entry| entry.read(range))?;
        self.was_read(file, block, range);
        Some(payload)
    }

    /// Returns bytes as [`read`](Self::read) does, and waits for the disk.
    async fn read_later(
        self: &Rc<Self>,
        file: &Rc<OpenFile>,
        block: u64,
        range: ByteRange,
    ) -> Result<W::Payload, Fault> {
        let user = self.enter(file, block, range.end).await?;
        let payload = match user.read(range) {
            Some(payload) => payload,
            None => self.fetch(&user, range).await?,
        };
        self.was_read(file, block, range);
        Ok(payload)
    }

    fn was_read(&self, file: &OpenFile, block: u64, range: ByteRange) {
        if range.end == file.block_length(block) {
            self.order.borrow_mut().read_to_its_end((file.file, block));
        }
    }

    /// Returns a whole block and a pin. While the pin lives, the block stays in the cache with
    /// these bytes. There is no pin when so much is pinned that others would lack room.
    pub(crate) async fn page(
        self: &Rc<Self>,
        file: &Rc<OpenFile>,
        block: u64,
    ) -> Result<(W::Payload, Option<Pin<W>>), Fault> {
        let user = self.enter(file, block, 1).await?;
        user.freeze();
        let whole = ByteRange::at(0, user.length());
        let payload = match user.read(whole) {
            Some(payload) => payload,
            None => rare(self.fetch(&user, whole)).await?,
        };
        self.was_read(file, block, whole);
        let pinned = self.common.shares.pinned(user.disk());
        let share = self.capacity.min(self.common.shares.bytes_max());
        let fits = pinned.get() + user.length() <= share / PINNED_SHARE;
        let disk = user.disk();
        let pin = fits.then(|| Pin::new(user, pinned));
        // A pinned block no longer blocks a longer one.
        self.common.shares.freed(disk).notify();
        Ok((payload, pin))
    }

    /// Returns the bytes `range` of a block after a wait.
    async fn fetch(&self, user: &User<W>, range: ByteRange) -> Result<W::Payload, Fault> {
        user.counted.misses.update(|misses| misses + 1);
        loop {
            if !user.wait_while_busy().await {
                self.load(user).await?;
            }
            if let Some(payload) = user.cut(range) {
                return Ok(payload);
            }
        }
    }

    /// Sets the buffering of a file from now on.
    pub(crate) fn declare(&self, file: FileId, buffering: Buffering) {
        self.order.borrow_mut().declare(file, buffering);
        self.left.borrow_mut().entry(file).or_default();
        self.common.room.notify();
    }

    /// Forgets the usage history of a file.
    pub(super) fn forget_uses(&self, file: FileId) {
        self.order.borrow_mut().forget(file);
        self.left.borrow_mut().remove(&file);
        self.windows.borrow_mut().retain(|(other, _), _| *other != file);
    }

    /// Returns the statistics of a file since it was opened, with those of its cached blocks.
    pub(crate) fn statistics(&self, file: FileId) -> BufferStatistics {
        let mut sum = self.left.borrow().get(&file).copied().unwrap_or_default();
        let entries = self.entries.borrow();
        for (_, entry) in entries.range((file, 0)..=(file, u64::MAX)) {
            entry.counted.add_to(&mut sum);
        }
        sum
    }

    /// Waits for room for a block. The block stays while the returned user lives, unless a
    /// collective writes it or its file is removed. Data for the block needs no other memory.
    pub(crate) async fn reserve(
        self: &Rc<Self>,
        file: &Rc<OpenFile>,
        block: u64,
    ) -> Result<User<W>, Fault> {
        self.enter(file, block, 1).await
    }

    /// Puts `payload` piece by piece into `runs` of a block. A block that is now dirty in full is
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
            None => rare(self.enter(file, block, end)).await?,
        };
        user.put(&self.world, runs, &payload);
        if user.is_written_full() {
            let cache = Rc::clone(self);
            self.background.spawn(async move {
                cache.flush_entry(&user).await;
                Ok(())
            });
        } else {
            self.clean(user.disk());
        }
        Ok(())
    }

    /// Puts `payload` into one run, if that neither waits nor causes a write-back. Otherwise
    /// returns false and does nothing.
    pub(crate) fn write_held(
        &self,
        file: &OpenFile,
        block: u64,
        run: Run,
        payload: &W::Payload,
    ) -> bool {
        if self.marks.high.is_some() {
            return false;
        }
        let end = run.offset.saturating_add(run.length);
        let user = self.with_held(file, block, end, |entry| {
            let stays_dirty = !entry.may_be_full_with(run.length);
            (stays_dirty && self.may_be_used(entry)).then(|| Entry::user(entry))
        });
        user.inspect(|user| user.put(&self.world, &[run], payload)).is_some()
    }

    /// Returns a block for a collective read, if it is cached: dirty bytes must not be missed.
    pub(crate) async fn held_block(
        self: &Rc<Self>,
        file: &Rc<OpenFile>,
        block: u64,
    ) -> Result<Option<W::Payload>, Fault> {
        if !self.holds(file.file, block) {
            return Ok(None);
        }
        let whole = ByteRange::at(0, file.block_length(block));
        self.read(file, block, whole).await.map(Some)
    }

    /// Tells if a block is in the cache, or on its way there.
    pub(crate) fn holds(&self, file: FileId, block: u64) -> bool {
        self.entries.borrow().contains_key(&(file, block))
    }

    /// Returns the first of `blocks` that is in the cache, or on its way there. Uses bisection.
    pub(crate) fn next_held(&self, file: FileId, blocks: Range<u64>) -> Option<u64> {
        let entries = self.entries.borrow();
        let (key, _) = entries.range((file, blocks.start)..(file, blocks.end)).next()?;
        Some(key.1)
    }

    /// Returns the bytes `range` of a block, if that needs no wait.
    pub(crate) fn peek(&self, file: FileId, block: u64, range: ByteRange) -> Option<W::Payload> {
        let key = (file, block);
        let entries = self.entries.borrow();
        let entry = entries.get(&key)?;
        let payload = entry.cut(range)?;
        self.order.borrow_mut().touch(key, entry.place());
        Some(payload)
    }

    /// Reads the missing bytes of a block from its disk.
    pub(super) async fn load(&self, user: &User<W>) -> Result<(), Fault> {
        let Some(_busy) = user.begin_work() else { return Ok(()) };
        let disk = self.disk_of(user)?;
        let loaded = disk.read(user.key().0, user.disk_offset(), user.length()).await;
        let payload = loaded.map_err(|error| self.fault(user, &error))?;
        user.fill(&self.world, payload);
        self.common.room.notify();
        Ok(())
    }

    pub(super) fn fault(&self, user: &User<W>, error: &DiskError) -> Fault {
        file_fault(self.server, user.file(), user.disk(), error)
    }

    pub(super) fn disk_of(&self, user: &User<W>) -> Result<&W::Disk, Fault> {
        let disk = user.disk();
        let gone = || Fault::BadRequest { cause: format!("this server has no {disk}") };
        self.world.disks().get(disk.0 as usize).ok_or_else(gone)
    }
}
