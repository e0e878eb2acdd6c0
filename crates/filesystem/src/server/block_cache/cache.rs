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

use super::admission::Admission;
use super::block_disks::BlockDisks;
use super::block_locks::BlockLock;
use super::block_table::BlockTable;
use super::closed_blocks::ClosedBlocks;
use super::entry::{Entry, User};
use super::evicted::EvictedBlocks;
use super::occupancy::Occupancy;
use super::pin::Pin;
use super::prefetch::Prefetcher;
use super::water_marks::WaterMarks;
use super::write_back::WriteBack;
use crate::scale::rare;
use crate::server::config::ServerConfig;
use crate::server::files::file_disks::FileDisks;
use crate::server::files::open_file::OpenFile;
use crate::server::files::write_failures::WriteFailures;
use crate::server::transfers::transfer_watchdog::TransferWatchdog;
use policy::Buffering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use units::{ByteRange, FileId, Run};
use wire::{BufferStatistics, Fault, FileRecord};
use world::{Payload, World};

/// Block cache of one server.
pub(crate) struct BlockCache<W: World> {
    world: W,
    closed: Rc<ClosedBlocks>,
    table: Rc<BlockTable<W>>,
    disks: Rc<BlockDisks<W>>,
    failures: Rc<WriteFailures>,
    write_back: Rc<WriteBack<W>>,
    admission: Admission<W>,
    prefetcher: Prefetcher<W>,
}

impl<W: World> BlockCache<W> {
    pub(crate) fn new(
        world: W,
        config: &ServerConfig,
        watchdog: Rc<TransferWatchdog>,
        failures: Rc<WriteFailures>,
        file_disks: Rc<FileDisks<W>>,
    ) -> Self {
        let (capacity, disk_count) = (config.cache_bytes, world.disks().len());
        let marks = WaterMarks::new(capacity / (disk_count as u64).max(1), config.dirty_percent);
        let occupancy = Rc::new(Occupancy::new(capacity, disk_count));
        let disks = Rc::new(BlockDisks::new(world.clone(), file_disks, Rc::clone(&occupancy)));
        let table = Rc::new(BlockTable::new(
            (capacity, config.caches_ends),
            config.extensions.policies.clone(),
            occupancy,
        ));
        let closed = Rc::new(ClosedBlocks::default());
        let write_back = Rc::new(WriteBack::new(
            world.clone(),
            marks,
            Rc::clone(&table),
            Rc::clone(&disks),
            Rc::clone(&failures),
        ));
        let admission = Admission::new(
            world.clone(),
            Rc::clone(&closed),
            Rc::clone(&table),
            Rc::clone(&write_back),
            watchdog,
        );
        let prefetcher = Prefetcher::new(
            world.clone(),
            Rc::clone(&closed),
            Rc::clone(&table),
            Rc::clone(&disks),
        );
        Self { world, closed, table, disks, failures, write_back, admission, prefetcher }
    }

    /// Number of bytes of cached blocks.
    pub(crate) fn bytes(&self) -> u64 {
        self.table.bytes()
    }

    /// Number of bytes of blocks that are dirty in part or in full.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.table.occupancy().dirty().bytes()
    }

    /// Reads that begin before or after a request.
    pub(crate) fn prefetcher(&self) -> &Prefetcher<W> {
        &self.prefetcher
    }

    /// Clean blocks that were evicted to make room.
    pub(crate) fn evicted(&self) -> &EvictedBlocks<W::Payload> {
        self.table.evicted()
    }

    /// Returns the bytes `range` (relative to the block) of a block, from the disk if need be.
    pub(crate) async fn read(
        &self,
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
        let read = |entry: &Rc<Entry<W>>| entry.read(range);
        let payload = self.admission.with_held(file, block, range.end, read)?;
        self.was_read(file, block, range);
        Some(payload)
    }

    /// Returns bytes as [`read`](Self::read) does, and waits for the disk.
    async fn read_later(
        &self,
        file: &Rc<OpenFile>,
        block: u64,
        range: ByteRange,
    ) -> Result<W::Payload, Fault> {
        let user = self.admission.enter(file, block, range.end).await?;
        let payload = match user.read(range) {
            Some(payload) => payload,
            None => self.fetch(&user, range).await?,
        };
        self.was_read(file, block, range);
        Ok(payload)
    }

    fn was_read(&self, file: &OpenFile, block: u64, range: ByteRange) {
        if range.end == file.block_length(block) {
            self.table.read_to_its_end((file.file, block));
        }
    }

    /// Returns a whole block and a pin. While the pin lives, the block stays in the cache with
    /// these bytes. There is no pin when so much is pinned that others would lack room.
    pub(crate) async fn page(
        &self,
        file: &Rc<OpenFile>,
        block: u64,
    ) -> Result<(W::Payload, Option<Pin<W>>), Fault> {
        let user = self.admission.enter(file, block, 1).await?;
        user.freeze();
        let whole = ByteRange::at(0, user.length());
        let payload = match user.read(whole) {
            Some(payload) => payload,
            None => rare(self.fetch(&user, whole)).await?,
        };
        self.was_read(file, block, whole);
        Ok((payload, Pin::new(user)))
    }

    /// Returns the bytes `range` of a block after a wait.
    async fn fetch(&self, user: &User<W>, range: ByteRange) -> Result<W::Payload, Fault> {
        user.uses().miss();
        loop {
            if !user.wait_while_busy().await {
                self.disks.load(user).await?;
            }
            if let Some(payload) = user.cut(range) {
                return Ok(payload);
            }
        }
    }

    /// Forgets what the disks had of a file, which is not what they have.
    pub(crate) fn forget_clean(&self, file: FileId) {
        self.table.forget_clean(file);
    }

    /// Waits for room for a block. The block stays while the returned user lives, unless a
    /// collective writes it or its file is removed. Data for the block needs no other memory.
    pub(crate) async fn reserve(&self, file: &Rc<OpenFile>, block: u64) -> Result<User<W>, Fault> {
        self.admission.enter(file, block, 1).await
    }

    /// Puts `payload` piece by piece into `runs` of a block. A block that is now dirty in full is
    /// written behind.
    pub(crate) async fn write(
        &self,
        file: &Rc<OpenFile>,
        block: u64,
        runs: &[Run],
        payload: W::Payload,
    ) -> Result<(), Fault> {
        let end = runs.iter().filter_map(|run| run.checked_end()).max().unwrap_or(u64::MAX);
        let user = match self.admission.enter_held(file, block, end) {
            Some(user) => user,
            None => rare(self.admission.enter(file, block, end)).await?,
        };
        user.put(&self.world, runs, &payload);
        if user.is_written_full() {
            self.write_back.begin(user);
        } else {
            self.write_back.clean(user.disk());
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
        if self.write_back.has_marks() {
            return false;
        }
        let end = run.offset.saturating_add(run.length);
        let user = self.admission.with_held(file, block, end, |entry| {
            let stays_dirty = !entry.may_be_full_with(run.length);
            (stays_dirty && self.table.may_be_used(entry)).then(|| Entry::user(entry))
        });
        user.inspect(|user| user.put(&self.world, &[run], payload)).is_some()
    }

    /// Takes bytes of a block that its disk has, as the most recent ones.
    pub(crate) async fn take_in(
        &self,
        file: &Rc<OpenFile>,
        block: u64,
        offset: u64,
        payload: W::Payload,
    ) -> Result<(), Fault> {
        let user = self.admission.enter(file, block, offset + payload.length()).await?;
        user.fill_part(&self.world, offset, &payload);
        drop(user);
        self.table.occupancy().notify_room();
        Ok(())
    }

    /// Returns a block for a collective read, if it is cached: dirty bytes must not be missed.
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

    /// Tells if a block is in the cache, or on its way there.
    pub(crate) fn holds(&self, file: FileId, block: u64) -> bool {
        self.table.holds((file, block))
    }

    /// Returns the first of `blocks` that is in the cache, or on its way there. Uses bisection.
    pub(crate) fn next_held(&self, file: FileId, blocks: Range<u64>) -> Option<u64> {
        self.table.next_held(file, blocks)
    }

    /// Returns the bytes `range` of a block, if that needs no wait.
    pub(crate) fn peek(&self, file: FileId, block: u64, range: ByteRange) -> Option<W::Payload> {
        self.table.with((file, block), |entry| entry.cut(range))
    }

    /// Removes a block whose copy has moved elsewhere, unless a task uses it or its disk lacks some
    /// of it.
    pub(crate) fn drop_clean(&self, file: FileId, block: u64) {
        self.table.drop_clean((file, block));
    }

    /// Waits until a block is free, and locks it. The cache does not take it in until the lock is
    /// dropped.
    pub(crate) async fn lock(&self, file: FileId, block: u64) -> BlockLock<'_> {
        self.closed.lock((file, block)).await
    }

    /// Makes room for a collective write of a block: writes its cached bytes back and evicts it. If
    /// the disk fails, the clients that wrote them get the fault later.
    pub(crate) async fn write_back_and_evict(&self, file: FileId, block: u64) {
        self.write_back.flush_and_evict((file, block)).await;
    }

    /// Waits until no task works on blocks of a file, and writes dirty ones back. The caller must
    /// then ask the [failures](WriteFailures).
    pub(crate) async fn flush(&self, file: FileId) {
        self.write_back.flush_file(file).await;
    }

    /// Flushes every file. Fails with a fault that no client has got.
    pub(crate) async fn write_back_all(&self) -> Result<(), Fault> {
        for file in self.table.files() {
            self.write_back.flush_file(file).await;
        }
        self.failures.unreported()
    }

    /// Sets the buffering of a file from now on.
    pub(crate) fn declare(&self, file: FileId, buffering: Buffering) {
        self.table.declare(file, buffering);
    }

    /// Returns the statistics of a file since it was opened, with those of its cached blocks.
    pub(crate) fn statistics(&self, file: FileId) -> BufferStatistics {
        self.table.statistics(file)
    }

    /// Returns the end of the bytes of a file that its disks lack. Considers only blocks that came
    /// in with the same stripe.
    pub(crate) fn reach(&self, file: &OpenFile) -> u64 {
        self.table.unstored_end(file)
    }

    /// Returns the files, from `from` on, of which the disks may lack bytes that clients have
    /// written, with the number of these bytes.
    pub(crate) fn unstored(&self, from: FileId) -> BTreeMap<FileId, (FileRecord, u64)> {
        self.table.unstored(from)
    }

    /// Begins to write back the dirty blocks of a file that no client has open any more.
    pub(crate) fn release(&self, file: FileId) {
        self.forget_uses(file);
        self.failures.closed(file);
        self.write_back.begin_file(file);
    }

    /// Forgets all blocks of a removed file, dirty or not, and takes none of them in again.
    pub(crate) async fn discard(&self, file: FileId) {
        self.closed.remove_file(file);
        self.table.forget_from((file, 0)).await;
        self.failures.forget(file);
        self.forget_uses(file);
    }

    /// Forgets the bytes beyond the first `bytes` bytes of a file. Earlier bytes of the last block
    /// go to the disk.
    pub(crate) async fn cut(&self, file: &OpenFile, bytes: u64) {
        let block_bytes = file.stripe.block_bytes;
        if !bytes.is_multiple_of(block_bytes) {
            self.write_back_and_evict(file.file, bytes / block_bytes).await;
        }
        self.table.forget_from((file.file, bytes.div_ceil(block_bytes))).await;
    }

    /// Forgets the usage history of a file.
    fn forget_uses(&self, file: FileId) {
        self.table.forget_uses(file);
        self.prefetcher.forget(file);
    }
}
