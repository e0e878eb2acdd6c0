//! The buffers of a client: one memory of a stated size that all servers reach.
//!
//! Invariants: a buffer is part of one memory that was exposed once, so that a read costs one
//! message to each server and no copy; bytes that a server may still bring are in nobody else's
//! buffer.

use super::state::Client;
use crate::collective::caching;
use crate::signal::Signal;
use policy::{Chunk, Direction, RangeSet};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use units::{ByteRange, KIB, RegionId, Run};
use wire::{Fault, FileRecord};
use world::{Memory, World};

/// Buffers begin at multiples of so many bytes.
const UNIT_BYTES: u64 = 4 * KIB;

/// Requests of one read or write that are under way for each disk.
const REQUESTS_PER_DISK: u32 = 16;

/// Where buffers come from. Clones are handles to the same pool.
pub struct BufferPool<W: World>(Rc<State<W>>);

struct State<W: World> {
    client: Client<W>,
    memory: W::Memory,
    region: RegionId,
    free: RefCell<RangeSet>,
    /// Rung when a buffer came back.
    room: Signal,
}

/// Some bytes of a pool; given back when dropped.
pub struct Buffer<W: World> {
    pool: BufferPool<W>,
    range: ByteRange,
    /// Transfers that have begun and not ended: servers may still write to it, or read it.
    under_way: Cell<u32>,
}

impl<W: World> Clone for BufferPool<W> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<W: World> BufferPool<W> {
    /// A pool of `bytes` bytes, rounded up to whole units of 4 KiB.
    pub async fn new(client: &Client<W>, bytes: u64) -> Result<Self, Fault> {
        let bytes = bytes.max(1).checked_next_multiple_of(UNIT_BYTES);
        let too_large = || Fault::BadRequest { cause: "a pool must fit in memory".to_owned() };
        let bytes = bytes.filter(|bytes| isize::try_from(*bytes).is_ok()).ok_or_else(too_large)?;
        let memory = client.world().memory(bytes);
        let region = client.expose_to_servers(&memory).await?.region;
        let mut free = RangeSet::new();
        free.insert(ByteRange::at(0, bytes));
        let (client, free) = (client.clone(), RefCell::new(free));
        Ok(Self(Rc::new(State { client, memory, region, free, room: Signal::default() })))
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.memory.length()
    }

    /// A buffer of `bytes` bytes, with unspecified contents, if there is room for it.
    pub fn take(&self, bytes: u64) -> Option<Buffer<W>> {
        let reserved = bytes.max(1).checked_next_multiple_of(UNIT_BYTES)?;
        let range = self.0.free.borrow_mut().take(reserved)?;
        let range = ByteRange::at(range.start, bytes);
        Some(Buffer { pool: self.clone(), range, under_way: Cell::new(0) })
    }

    /// A buffer of `bytes` bytes, waited for. Never comes when the pool is smaller, or all of it is
    /// held by whoever waits.
    pub async fn wait_for(&self, bytes: u64) -> Buffer<W> {
        self.0.room.until(|| self.take(bytes)).await
    }

    /// Ends the pool: servers no longer reach it. What was still under way fails.
    pub async fn close(self) {
        self.0.client.world().withdraw(self.0.region).await;
    }
}

impl<W: World> Drop for Buffer<W> {
    fn drop(&mut self) {
        // Where a read was given up its data may still come.
        if self.under_way.get() == 0 {
            let reserved = self.range.length().max(1).next_multiple_of(UNIT_BYTES);
            self.pool.0.free.borrow_mut().insert(ByteRange::at(self.range.start, reserved));
            self.pool.0.room.notify();
        }
    }
}

impl<W: World> Buffer<W> {
    /// Its size in bytes.
    pub fn length(&self) -> u64 {
        self.range.length()
    }

    /// The first `length` bytes of it, for a transfer of fewer. Panics when it has fewer.
    pub fn part(&self, length: u64) -> BufferPart<'_, W> {
        assert!(length <= self.range.length(), "a part must lie in its buffer");
        BufferPart { buffer: self, range: ByteRange::at(self.range.start, length) }
    }

    /// The memory that it is part of, and which part.
    pub fn place(&self) -> (&W::Memory, ByteRange) {
        (&self.pool.0.memory, self.range)
    }

    /// A copy of its bytes.
    pub fn payload(&self) -> W::Payload {
        let run = Run::contiguous(self.range.start, self.range.length());
        self.pool.0.memory.gather(&[run])
    }

    /// Copies `payload`, which is as long, into it.
    pub fn fill(&self, payload: &W::Payload) {
        let run = Run::contiguous(self.range.start, self.range.length());
        self.pool.0.memory.scatter(&[run], payload);
    }

    /// Moves bytes between the buffer and the bytes from `offset` on of an open file, as an
    /// ordinary read or write: what is written is seen by every later read, and reported by a later
    /// [`Client::flush`] if it cannot be stored. Let it come to its end: a buffer of a transfer
    /// that was dropped is never used again.
    ///
    /// # Errors
    /// [`Fault::BadAccess`] when the file ends before; what servers meet.
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
    /// The memory that it is part of, and which part.
    pub fn place(&self) -> (&W::Memory, ByteRange) {
        (&self.buffer.pool.0.memory, self.range)
    }

    /// As [`Buffer::transfer`].
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
