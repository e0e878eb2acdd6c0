//! The calls on an open file.

use super::buffer::Buffer;
use super::cached_record::CachedRecord;
use super::connection::{Connection, Shared, beyond_all_files};
use super::operation::Operation;
use super::plain::{move_alone, read_plain, write_plain};
use super::small_calls::SmallCalls;
use super::user_memory::{RawMemory, VectorOperation};
use super::without_message::Waiting;
use filesystem::{CollectivePlan, Fault};
use interface::UserError;
use policy::{Access, BYTES_MAX, Direction, DiskOrder, OwnPart};
use std::io::{IoSlice, IoSliceMut};
use std::ops::{Deref, Range};
use std::rc::Rc;
use std::sync::Arc;
use units::{ByteRange, Timestamp};
use wire::{BufferStatistics, FileRecord};
use world_real::{RealPayload, RealWorld};

/// An open file, for any thread. It is closed at the servers when [`File::close`] was called as
/// often as the connection has opened it, or when the connection ends.
#[derive(Clone)]
pub struct File {
    /// Its small calls, unless each goes to the servers at once. Dropped before the connection,
    /// since servers have lent the pages.
    small: Option<Arc<SmallCalls>>,
    connection: Connection,
    known: CachedRecord,
}

/// A page of a file as it was when it was asked for, mapped from its server if that is on this
/// machine; pinned there until the last clone is dropped.
#[derive(Clone)]
pub struct Page {
    payload: RealPayload,
    /// As long as it is connected the server keeps what it lent. Dropped after the payload.
    connection: Option<Connection>,
}

impl Deref for Page {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.payload.bytes()
    }
}

impl File {
    pub(super) fn new(connection: Connection, known: CachedRecord) -> Self {
        let small = connection.0.small_calls.of(&known);
        Self { connection, known, small: Some(small) }
    }

    /// Makes one whose calls all go to the servers.
    pub(super) fn without_small_calls(connection: Connection, known: CachedRecord) -> Self {
        Self { connection, known, small: None }
    }

    /// The connection that it was opened by.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn known(&self) -> &CachedRecord {
        &self.known
    }

    /// Name of the file.
    pub fn name(&self) -> String {
        self.record().name.clone()
    }

    /// Size in bytes as this connection last heard of it; [`File::size`] asks.
    pub fn bytes(&self) -> u64 {
        let small = self.small.as_ref().filter(|_| self.is_usable());
        self.record().bytes.max(small.map_or(0, |small| small.known_bytes()))
    }

    /// Size in bytes now, whoever has changed it.
    ///
    /// # Errors
    /// Faults of the servers.
    pub fn size(&self) -> Result<u64, UserError> {
        let (known, name) = (self.known.clone(), self.name());
        let record = self.connection.run(
            move || format!("cannot get the size of {name:?}"),
            async move |shared| known.refreshed(&shared.client).await,
        )?;
        Ok(record.bytes)
    }

    /// Makes it `bytes` bytes long (ftruncate). What lies beyond is freed, what is new is zero.
    ///
    /// # Errors
    /// Beyond what a file may have; what servers meet.
    pub fn set_size(&self, bytes: u64) -> Result<(), UserError> {
        let (known, name) = (self.known.clone(), self.name());
        let what = move || format!("cannot set the size of {name:?} to {bytes} bytes");
        if bytes > BYTES_MAX {
            return Err(beyond_all_files(what()));
        }
        self.connection.run(what, async move |shared| known.set_size(&shared.client, bytes).await)
    }

    /// Makes it at least `bytes` bytes long; what is new is zero. It never becomes shorter.
    ///
    /// # Errors
    /// As for [`File::set_size`].
    pub fn grow(&self, bytes: u64) -> Result<(), UserError> {
        let (known, name) = (self.known.clone(), self.name());
        let what = move || format!("cannot make {name:?} {bytes} bytes long");
        if bytes > BYTES_MAX {
            return Err(beyond_all_files(what()));
        }
        let grow = async move |shared: Rc<Shared>| {
            known.refreshed(&shared.client).await?;
            known.grown(&shared.client, bytes).await
        };
        self.connection.run(what, grow).map(|_| ())
    }

    /// Sets the time of its last change. A later change sets it again.
    ///
    /// # Errors
    /// Faults of the servers.
    pub fn set_modified(&self, modified: Timestamp) -> Result<(), UserError> {
        let record = self.record();
        let name = record.name.clone();
        let what = move || format!("cannot set the time of {name:?}");
        self.connection
            .run(what, async move |shared| shared.client.set_modified(&record, modified).await)
    }

    /// Size of its pages (its blocks) in bytes; the last one may be shorter.
    pub fn page_bytes(&self) -> u64 {
        self.record().stripe.block_bytes
    }

    /// Number of its pages, as far as this connection knows.
    pub fn pages(&self) -> u64 {
        self.bytes().div_ceil(self.page_bytes())
    }

    /// Reads to `into` what the file has from `offset` on; returns how many bytes, fewer only at
    /// its end (pread).
    ///
    /// # Errors
    /// Faults of the servers.
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize, UserError> {
        if !self.concerns(offset, into.len()) && !self.has_lost_writes() {
            if self.read_kept(into, offset, Waiting::ForServers) {
                return Ok(into.len());
            }
            if self.connection.read_blocking(&self.known.get(), into, offset)? {
                return Ok(into.len());
            }
        }
        RawMemory::read_to(into, |memory| self.start_read_memory(memory, offset))
    }

    /// Writes `from` to the bytes from `offset` on (pwrite); a file that ends before becomes
    /// longer. Every later read sees it; [`File::flush`] says when it is stored.
    ///
    /// # Errors
    /// Faults of the servers. Any part of the bytes may then have been written.
    pub fn write_at(&self, from: &[u8], offset: u64) -> Result<(), UserError> {
        if self.gather(from, offset, Waiting::ForServers) {
            return Ok(());
        }
        if !self.concerns(offset, from.len())
            && !self.has_lost_writes()
            && self.connection.write_blocking(&self.known, from, offset)?
        {
            return Ok(());
        }
        RawMemory::write_from(from, |memory| self.start_write_memory(memory, offset))
    }

    /// True if a server was lost with what this program has written. The next call by way of the
    /// I/O thread tells it.
    fn has_lost_writes(&self) -> bool {
        let unsynced = self.known.unsynced();
        unsynced.are_some() && unsynced.are_lost(self.connection.losses(&self.known.get()))
    }

    /// Gathers a write. False if it must go to the servers now.
    pub(super) fn gather(&self, from: &[u8], offset: u64, waiting: Waiting) -> bool {
        let small = self.small.as_ref();
        small.is_some_and(|small| self.connection.gather(small, from, offset, waiting))
    }

    /// Reads from kept pages. False if the bytes must come from the servers.
    pub(super) fn read_kept(&self, into: &mut [u8], offset: u64, waiting: Waiting) -> bool {
        let small = self.small.as_ref();
        small.is_some_and(|small| self.connection.read_kept(small, into, offset, waiting))
    }

    /// True if a call on these bytes must come after gathered writes.
    pub(super) fn concerns(&self, offset: u64, length: usize) -> bool {
        let range = ByteRange::checked_at(offset, length as u64);
        match (&self.small, range) {
            (Some(small), Some(range)) => self.is_usable() && small.concerns(range),
            (None, _) | (_, None) => false,
        }
    }

    /// False in a forked child.
    fn is_usable(&self) -> bool {
        self.connection.0.thread.is_of_this_process()
    }

    /// Reads to memory of the caller, as [`File::read_at`].
    ///
    /// # Errors
    /// As for [`File::read_at`].
    pub fn read_memory_at(&self, memory: RawMemory, offset: u64) -> Result<usize, UserError> {
        memory.read(|into| self.read_at(into, offset))
    }

    /// Writes from memory of the caller, as [`File::write_at`].
    ///
    /// # Errors
    /// As for [`File::write_at`].
    pub fn write_memory_at(&self, memory: RawMemory, offset: u64) -> Result<(), UserError> {
        memory.write(|from| self.write_at(from, offset))
    }

    /// Reads to one slice after the other, as one read of all their bytes (preadv).
    ///
    /// # Errors
    /// As for [`File::read_at`].
    pub fn read_vectored_at(
        &self,
        into: &mut [IoSliceMut<'_>],
        offset: u64,
    ) -> Result<usize, UserError> {
        RawMemory::read_to_all(into, |memories| self.start_read_memories(memories, offset))
    }

    /// Writes one slice after the other, as one write of all their bytes (pwritev).
    ///
    /// # Errors
    /// As for [`File::write_at`].
    pub fn write_vectored_at(&self, from: &[IoSlice<'_>], offset: u64) -> Result<(), UserError> {
        RawMemory::write_from_all(from, |memories| self.start_write_memories(memories, offset))
    }

    /// Begins a [`File::read_at`] into memory of the caller. It may have ended already.
    pub fn start_read_memory(&self, mut memory: RawMemory, offset: u64) -> Operation<usize> {
        let bytes = memory.bytes();
        let may_be_kept = !self.concerns(offset, bytes) && !self.has_lost_writes();
        if may_be_kept && self.read_kept(memory.fill(), offset, Waiting::Never) {
            return Operation::ended(Ok(bytes));
        }
        self.start_read_memories(vec![memory], offset)
    }

    /// Begins a [`File::write_at`] from memory of the caller. Other calls that are made before it
    /// has ended may come before or after it. It may have ended already.
    pub fn start_write_memory(&self, memory: RawMemory, offset: u64) -> Operation<()> {
        if self.gather(memory.look(), offset, Waiting::Never) {
            return Operation::ended(Ok(()));
        }
        self.start_write_memories(vec![memory], offset)
    }

    /// Begins a [`File::read_vectored_at`] into memories of the caller. The servers get one request
    /// each; beyond 1 MiB one for each MiB or longer memory, all at the same time.
    pub fn start_read_memories(
        &self,
        mut memories: Vec<RawMemory>,
        offset: u64,
    ) -> Operation<usize> {
        memories.retain(|memory| memory.bytes() > 0);
        let length = bytes_of(&memories);
        if length == 0 {
            return Operation::ended(Ok(0));
        }
        let (known, name) = (self.known.clone(), self.name());
        let what = move || format!("cannot read {length} bytes at {offset} of {name:?}");
        self.connection.begin(what, true, async move |shared| {
            let memories: Vec<_> = memories.into_iter().map(RawMemory::lend).collect();
            let record = known.reaching(&shared.client, offset.saturating_add(length)).await?;
            match read_plain(&shared, &record, &memories, offset).await {
                // Another program has made it shorter.
                Err(Fault::PastEnd { .. }) => {
                    let record = known.caught_up(&shared.client).await?;
                    read_plain(&shared, &record, &memories, offset).await
                }
                other => other,
            }
        })
    }

    /// Begins a [`File::write_vectored_at`] from memories of the caller, with as many requests as
    /// [`File::start_read_memories`].
    pub fn start_write_memories(&self, mut memories: Vec<RawMemory>, offset: u64) -> Operation<()> {
        memories.retain(|memory| memory.bytes() > 0);
        let (length, name) = (bytes_of(&memories), self.name());
        let what = move || format!("cannot write {length} bytes at {offset} of {name:?}");
        let end = offset.checked_add(length).filter(|end| *end <= BYTES_MAX);
        let Some(end) = end else { return Operation::ended(Err(beyond_all_files(what()))) };
        if length == 0 {
            return Operation::ended(Ok(()));
        }
        let known = self.known.clone();
        self.connection.begin(what, true, async move |shared| {
            let memories: Vec<_> = memories.into_iter().map(RawMemory::lend).collect();
            let write =
                async |record: &FileRecord| write_plain(&shared, record, &memories, offset).await;
            known.write(&shared.client, end, false, write).await
        })
    }

    /// Begins to read the bytes from `offset` on to a buffer of the pool, without a copy.
    pub fn start_read(&self, buffer: Buffer, offset: u64) -> Operation<Buffer> {
        self.start(Direction::Read, buffer, offset)
    }

    /// Begins to write a buffer of the pool to the bytes from `offset` on, without a copy.
    pub fn start_write(&self, buffer: Buffer, offset: u64) -> Operation<Buffer> {
        self.start(Direction::Write, buffer, offset)
    }

    fn start(&self, direction: Direction, buffer: Buffer, offset: u64) -> Operation<Buffer> {
        let (length, name) = (buffer.len() as u64, self.name());
        let verb = if direction == Direction::Read { "read" } else { "write" };
        let what = move || format!("cannot {verb} {length} bytes at {offset} of {name:?}");
        let known = self.known.clone();
        let end = offset.saturating_add(length);
        self.connection.begin(what, false, async move |shared| {
            let client = &shared.client;
            match direction {
                Direction::Read => {
                    let record = known.reaching(client, end).await?;
                    buffer.buffer.get().transfer(direction, &record, offset).await?;
                }
                Direction::Write => {
                    let write = async |record: &FileRecord| {
                        buffer.buffer.get().transfer(direction, record, offset).await
                    };
                    known.write(client, end, false, write).await?;
                }
            }
            Ok(buffer)
        })
    }

    /// Reads strided or listed bytes with one request to each server, each piece to its place in
    /// `into`. Other bytes of `into` stay as they are.
    ///
    /// # Errors
    /// [`ErrorKind::PastEnd`](interface::ErrorKind::PastEnd) when the file ends before the part;
    /// [`ErrorKind::BadAccess`](interface::ErrorKind::BadAccess) for a part that makes no sense or
    /// does not fit `into`; what servers meet.
    pub fn read_part(&self, part: &OwnPart, into: &mut [u8]) -> Result<(), UserError> {
        RawMemory::read_to(into, |memory| {
            self.start_part(Direction::Read, part.clone(), memory, false)
        })
    }

    /// Writes strided or listed bytes with one request to each server. A file that ends before
    /// becomes longer. When it returns they are with the disks, on stable storage if `sync`.
    ///
    /// # Errors
    /// As for [`File::read_part`].
    pub fn write_part(&self, part: &OwnPart, from: &[u8], sync: bool) -> Result<(), UserError> {
        RawMemory::write_from(from, |memory| {
            self.start_part(Direction::Write, part.clone(), memory, sync)
        })
    }

    /// Begins a [`File::read_part`] or [`File::write_part`] with memory of the caller.
    pub fn start_part(
        &self,
        direction: Direction,
        part: OwnPart,
        memory: RawMemory,
        sync: bool,
    ) -> Operation<()> {
        self.start_part_as(direction, part, memory, sync, || ())
    }

    /// As [`File::start_part`], with a result of the caller's.
    pub(super) fn start_part_as<T: Send + 'static>(
        &self,
        direction: Direction,
        part: OwnPart,
        memory: RawMemory,
        sync: bool,
        result: impl FnOnce() -> T + Send + 'static,
    ) -> Operation<T> {
        let (known, name) = (self.known.clone(), self.name());
        let verb = if direction == Direction::Read { "read" } else { "write" };
        let what = move || format!("cannot {verb} parts of {name:?}");
        self.connection.begin(what, true, async move |shared| {
            let memory = memory.lend();
            move_alone(&shared, &known, (direction, part, sync), &memory).await?;
            drop(memory);
            Ok(result())
        })
    }

    /// Begins a [`File::read_part`] or [`File::write_part`] with a vector.
    pub fn start_part_vector(
        &self,
        direction: Direction,
        part: OwnPart,
        bytes: Vec<u8>,
    ) -> VectorOperation<()> {
        VectorOperation::begin(bytes, |memory| self.start_part(direction, part, memory, false))
    }

    /// Begins a [`File::read_at`] into a vector. A read beyond the end of the file leaves the rest
    /// of the vector as it is.
    pub fn start_read_vector(&self, into: Vec<u8>, offset: u64) -> VectorOperation<usize> {
        VectorOperation::begin(into, |memory| self.start_read_memory(memory, offset))
    }

    /// Begins a [`File::write_at`] from a vector.
    pub fn start_write_vector(&self, from: Vec<u8>, offset: u64) -> VectorOperation<()> {
        VectorOperation::begin(from, |memory| self.start_write_memory(memory, offset))
    }

    /// Returns what the servers would transfer, and in which order, if members with these parts, by
    /// rank, made a disk-directed call. Moves no data, and needs no other member. Returns at most
    /// `blocks_max` blocks of each disk.
    ///
    /// # Errors
    /// Parts that reach beyond the file in a read; faults of the servers.
    pub fn plan(
        &self,
        direction: Direction,
        order: DiskOrder,
        parts: Vec<OwnPart>,
        blocks_max: u64,
    ) -> Result<CollectivePlan, UserError> {
        let record = self.record();
        let name = record.name.clone();
        let what = move || format!("cannot plan a transfer of {name:?}");
        self.connection.run(what, async move |shared| {
            let access = Access::of_parts(parts);
            shared.client.plan(&record, (direction, &access, order), blocks_max).await
        })
    }

    /// Pins a page.
    ///
    /// # Errors
    /// Fails when the file has no such page; what its server meets.
    pub fn page(&self, number: u64) -> Result<Page, UserError> {
        let mut pages = self.page_range(number..number.saturating_add(1))?;
        pages.pop().ok_or_else(|| beyond_all_files(format!("cannot read page {number}")))
    }

    /// Pins the pages of a range.
    ///
    /// # Errors
    /// As for [`File::page`].
    pub fn page_range(&self, numbers: Range<u64>) -> Result<Vec<Page>, UserError> {
        self.start_page_range(numbers).wait()
    }

    /// Begins a [`File::page_range`].
    pub fn start_page_range(&self, numbers: Range<u64>) -> Operation<Vec<Page>> {
        let (known, name) = (self.known.clone(), self.name());
        let end = match numbers.end {
            0 => 0,
            end => self.begin_of(end - 1).saturating_add(1),
        };
        let Range { start, end: behind } = numbers;
        let what = move || format!("cannot read pages {start} to {behind} of {name:?}");
        let pages = self.connection.begin(what, false, async move |shared| {
            let record = known.holding(&shared.client, end).await?;
            let pages = shared.client.pages(&record, start..behind).await?;
            let page = |page: &filesystem::Page<RealWorld>| Page {
                payload: page.payload().clone(),
                connection: None,
            };
            Ok(pages.iter().map(page).collect())
        });
        let connection = self.connection.clone();
        pages.finish_with(move |pages: &mut Vec<Page>| {
            for page in pages {
                page.connection = Some(connection.clone());
            }
        })
    }

    /// Writes a whole page, or what there is to be of the last one; a file that ends before becomes
    /// longer.
    ///
    /// # Errors
    /// Fails when `page` is empty or longer than a page; as for [`File::write_at`].
    pub fn write_page(&self, number: u64, page: &[u8]) -> Result<(), UserError> {
        let (most, length) = (self.page_bytes(), page.len() as u64);
        let ends_within = self.begin_of(number).saturating_add(length) < self.bytes();
        if length == 0 || length > most || (length < most && ends_within) {
            return Err(UserError::usage(
                format!("cannot write page {number} of {:?}", self.name()),
                format!("a page has {most} bytes and {length} were given"),
                "give whole pages; only the last one may be shorter",
            ));
        }
        self.write_at(page, self.begin_of(number))
    }

    /// Begins a [`File::flush`].
    pub fn start_flush(&self, sync: bool) -> Operation<()> {
        let (known, name) = (self.known.clone(), self.name());
        let what = move || format!("cannot flush {name:?}");
        self.connection
            .begin(what, false, async move |shared| known.flush(&shared.client, sync).await)
    }

    /// Waits until all that was written is with the disks and, with `sync`, on stable storage of
    /// every server of the file (fsync).
    ///
    /// # Errors
    /// Failures of earlier writes to the file that were not reported yet: since the last flush of
    /// this connection, or since it opened the file. A later write reports them too.
    pub fn flush(&self, sync: bool) -> Result<(), UserError> {
        self.start_flush(sync).wait()
    }

    /// True if a server may lose what this program has written: it is started again when it is
    /// lost, and no [`File::flush`] has stored the writes.
    pub fn has_unsynced_writes(&self) -> bool {
        self.connection.waits() && self.known.unsynced().are_some()
    }

    /// Tells, after another program has called [`File::flush`] with `sync`, that it has stored what
    /// this one wrote before. Programs that write a file together need only one that flushes it.
    ///
    /// # Errors
    /// A server that was lost after the writes and before the flush. Writes that are lost.
    pub fn confirm_sync(&self) -> Result<(), UserError> {
        let (known, name) = (self.known.clone(), self.name());
        let what = move || format!("cannot tell if {name:?} is stored");
        self.connection.run(what, async move |shared| known.confirm_sync(&shared.client).await)
    }

    /// Statistics of how each of its servers has buffered it since it was opened.
    ///
    /// # Errors
    /// Faults of the servers.
    pub fn statistics(&self) -> Result<Vec<BufferStatistics>, UserError> {
        let record = self.record();
        let name = record.name.clone();
        let what = move || format!("cannot get the buffer statistics of {name:?}");
        self.connection.run(what, async move |shared| shared.client.buffers(&record).await)
    }

    /// Closes it. What was written stays.
    ///
    /// # Errors
    /// Faults of the servers.
    pub fn close(self) -> Result<(), UserError> {
        self.start_close().wait()
    }

    /// Begins a [`File::close`].
    pub fn start_close(self) -> Operation<()> {
        let (known, name) = (self.known.clone(), self.name());
        let what = move || format!("cannot close {name:?}");
        let work = async move |shared: Rc<Shared>| {
            let closed = shared.client.close(&known.get()).await;
            closed.and_then(|()| known.check(&shared.client))
        };
        let closing = self.connection.begin(what, false, work);
        // The connection must last until the file is closed.
        let connection = self.connection.clone();
        closing.finish_with(move |()| drop(connection))
    }

    /// Begins to ask for the checksums (CRC32C) of the pieces of a block, as its server holds them.
    pub fn start_digests(&self, block: u64, piece_bytes: u64) -> Operation<Vec<u32>> {
        let record = self.record();
        let name = record.name.clone();
        let what = move || format!("cannot compare block {block} of {name:?}");
        self.connection.begin(what, false, async move |shared| {
            shared.client.digests(&record, block, piece_bytes).await
        })
    }

    pub(crate) fn record(&self) -> Arc<FileRecord> {
        self.known.get()
    }

    /// First byte of a page.
    fn begin_of(&self, page: u64) -> u64 {
        page.saturating_mul(self.page_bytes()).min(BYTES_MAX)
    }
}

/// Sum of the bytes of memories.
fn bytes_of(memories: &[RawMemory]) -> u64 {
    memories.iter().fold(0, |sum, memory| sum.saturating_add(memory.bytes() as u64))
}
