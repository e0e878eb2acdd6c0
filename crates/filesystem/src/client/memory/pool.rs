//! Buffers of a client: one memory of a stated size that all servers can reach.
//!
//! Invariants:
//! - A buffer is part of one memory that is exposed once. A read costs one message to each server
//!   and no copy.
//! - Bytes that a server may still write belong to no other buffer.

use crate::client::state::Client;
use crate::collective::caching;
use crate::signal::Signal;
use policy::{Chunk, Direction, RangeSet};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use units::{ByteRange, KIB, RegionId, Run};
use wire::{Fault, FileRecord};
use world::{Memory, World};

/// Alignment of buffers, in bytes.
const UNIT_BYTES: u64 = 4 * KIB;

/// Maximum number of active requests of one read or write, for each disk.
const REQUESTS_PER_DISK: u32 = 16;

/// Pool of buffers. Clones are handles to the same pool.
pub struct BufferPool<W: World>(Rc<State<W>>);

struct State<W: World> {
    client: Client<W>,
    memory: W::Memory,
    region: RegionId,
    free: RefCell<RangeSet>,
    /// Notified when a buffer is returned.
    room: Signal,
}

/// Part of a pool, returned when dropped.
pub struct Buffer<W: World> {
    pool: BufferPool<W>,
    range: ByteRange,
    /// Number of active transfers: servers may still write to the buffer or read it.
    under_way: Cell<u32>,
}

impl<W: World> Clone for BufferPool<W> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<W: World> BufferPool<W> {
    /// Makes a pool of `bytes` bytes, rounded up to whole units of 4 KiB.
    pub async fn new(client: &Client<W>, bytes: u64) -> Result<Self, Fault> {
        let bytes = bytes.max(1).checked_next_multiple_of(UNIT_BYTES);
        let too_large = || Fault::BadRequest { cause: "a pool must fit in memory".to_owned() };
        let bytes = bytes.filter(|bytes| isize::try_from(*bytes).is_ok()).ok_or_else(too_large)?;
        let memory = client.world().memory(bytes);
        let region = client.expose_to_servers(&memory).await?;
        let mut free = RangeSet::new();
        free.insert(ByteRange::at(0, bytes));
        let (client, free) = (client.clone(), RefCell::new(free));
        Ok(Self(Rc::new(State { client, memory, region, free, room: Signal::default() })))
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.memory.length()
    }

    /// Takes a buffer of `bytes` bytes with unspecified contents, if there is room.
    pub fn take(&self, bytes: u64) -> Option<Buffer<W>> {
        let reserved = bytes.max(1).checked_next_multiple_of(UNIT_BYTES)?;
        let range = self.0.free.borrow_mut().take(reserved)?;
        let range = ByteRange::at(range.start, bytes);
        Some(Buffer { pool: self.clone(), range, under_way: Cell::new(0) })
    }

    /// Waits for a buffer of `bytes` bytes. Never returns when the pool is smaller, or when the
    /// callers hold all of it.
    pub async fn wait_for(&self, bytes: u64) -> Buffer<W> {
        self.0.room.until(|| self.take(bytes)).await
    }

    /// Closes the pool: servers no longer reach it. Active transfers fail.
    pub async fn close(self) {
        self.0.client.world().withdraw(self.0.region).await;
    }
}

impl<W: World> Drop for Buffer<W> {
    fn drop(&mut self) {
        // The data of a read that was dropped may still arrive.
        if self.under_way.get() == 0 {
            let reserved = self.range.length().max(1).next_multiple_of(UNIT_BYTES);
            self.pool.0.free.borrow_mut().insert(ByteRange::at(self.range.start, reserved));
            self.pool.0.room.notify();
        }
    }
}

impl<W: World> Buffer<W> {
    /// Size in bytes.
    pub fn length(&self) -> u64 {
        self.range.length()
    }

    /// Returns the first `length` bytes, for a shorter transfer. Panics when there are fewer.
    pub fn part(&self, length: u64) -> BufferPart<'_, W> {
        assert!(length <= self.range.length(), "a part must lie in its buffer");
        BufferPart { buffer: self, range: ByteRange::at(self.range.start, length) }
    }

    /// Returns the memory and the range of it that the buffer occupies.
    pub fn place(&self) -> (&W::Memory, ByteRange) {
        (&self.pool.0.memory, self.range)
    }

    /// Returns a copy of the bytes.
    pub fn payload(&self) -> W::Payload {
        let run = Run::contiguous(self.range.start, self.range.length());
        self.pool.0.memory.gather(&[run])
    }

    /// Copies `payload`, which has the same length, into the buffer.
    pub fn fill(&self, payload: &W::Payload) {
        let run = Run::contiguous(self.range.start, self.range.length());
        self.pool.0.memory.scatter(&[run], payload);
    }

    /// Transfers bytes between the buffer and an open file from `offset` on, as an ordinary read or
    /// write. Every later read sees written bytes. A later [`Client::flush`] reports bytes that
    /// cannot be stored. Await the end: the buffer of a dropped transfer is never reused.
    ///
    /// # Errors
    /// [`Fault::BadAccess`] when the file ends before; faults of servers.
    pub async fn transfer(
        &self,
        direction: Direction,
        file: &FileRecord,
        offset: u64,
    ) -> Result<(), Fault> {
        self.part(self.length()).transfer(direction, file, offset).await
    }
}

/// The first bytes of a buffer.
pub struct BufferPart<'a, W: World> {
    buffer: &'a Buffer<W>,
    range: ByteRange,
}

impl<W: World> BufferPart<'_, W> {
    /// Returns the memory and the range of it that the part occupies.
    pub fn place(&self) -> (&W::Memory, ByteRange) {
        (&self.buffer.pool.0.memory, self.range)
    }

    /// Transfers the part as [`Buffer::transfer`].
    pub async fn transfer(
        &self,
        direction: Direction,
        file: &FileRecord,
        offset: u64,
    ) -> Result<(), Fault> {
        let (length, pool) = (self.range.length(), &self.buffer.pool.0);
        if length == 0 {
            return Ok(());
        }
        if offset.checked_add(length).is_none_or(|end| end > file.bytes) {
            let (name, bytes) = (&file.name, file.bytes);
            let cause = format!("{length} bytes at {offset} of {name:?}, which has {bytes}");
            return Err(Fault::BadAccess { cause });
        }
        match direction {
            Direction::Read => pool.client.settle(file.file, false).await,
            Direction::Write => pool.client.settle_writes(file.file, false).await?,
        }
        let chunks = caching::client::Chunks {
            client: &pool.client,
            direction,
            file,
            memory: &pool.memory,
            region: pool.region,
            outstanding_per_disk: REQUESTS_PER_DISK,
        };
        let chunk = Chunk { file_offset: offset, memory_offset: self.range.start, length };
        self.buffer.under_way.update(|count| count + 1);
        let moved = chunks.transfer(chunk).await;
        self.buffer.under_way.update(|count| count - 1);
        moved
    }
}
