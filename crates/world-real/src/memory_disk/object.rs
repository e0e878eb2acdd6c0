//! One object in memory: its chunks, in the order of their offsets.
//!
//! *Invariant:* chunks do not overlap, and begin and end at whole units of the object.

use super::chunk::{Chunk, Place, Times};
use super::memory::{DiskMemory, order_of};
use super::table::UNIT_BYTES;
use crate::disk::Failure;
use crate::memory::{RealMemory, RealPayload};
use rustix::io::Errno;
use std::collections::BTreeMap;
use units::{ByteRange, FileId, Timestamp};
use world::Memory;

/// Order of the largest part that is taken for bytes that must be copied: 1 MiB.
const COPY_ORDER_MAX: u32 = 8;

/// Smallest read that shares a chunk. A smaller one is a copy: while a chunk is shared, each write
/// to it takes another part.
const SHARED_BYTES_MIN: u64 = 64 << 10;

/// Bytes of one object, which is removed when this is dropped.
pub(super) struct Object {
    memory: &'static DiskMemory,
    disk: u32,
    id: FileId,
    /// Chunks by their offset in the object.
    chunks: BTreeMap<u64, Chunk>,
    times: Times,
}

impl Object {
    /// An object without bytes.
    pub(super) fn new(memory: &'static DiskMemory, disk: u32, id: FileId, times: Times) -> Self {
        Self { memory, disk, id, chunks: BTreeMap::new(), times }
    }

    /// Adds a chunk that an earlier process left, unless a newer one has taken its place.
    pub(super) fn restore(&mut self, chunk: Chunk, times: Times) {
        let room = chunk.room();
        if self.overlapping(room).next().is_some() {
            self.memory.count(0, room.length());
            return;
        }
        // Of the newest, which was added first, the time counts as it was set.
        self.times.written = self.times.written.max(times.written);
        self.chunks.insert(room.start, chunk);
    }

    /// Time of the object: as it was set, or of the last write.
    pub(super) fn modified(&self) -> Timestamp {
        self.times.set.unwrap_or(self.times.written)
    }

    /// Sets the time of the object.
    pub(super) fn set_modified(&mut self, modified: Timestamp) {
        self.times.set = Some(modified);
        self.chunks.values().for_each(|chunk| chunk.set_time(self.times));
    }

    /// True if the object has no bytes.
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// One past the last byte that was written and not freed.
    pub(super) fn length(&self) -> u64 {
        self.chunks.last_key_value().map_or(0, |(offset, chunk)| offset + chunk.end())
    }

    fn place(&self, offset: u64) -> Place {
        Place { disk: self.disk, object: self.id, offset }
    }

    /// Offsets of the chunks that have room for some of these bytes, the last one first.
    fn overlapping(&self, bytes: ByteRange) -> impl Iterator<Item = u64> {
        let before = self.chunks.range(..bytes.end).rev();
        let overlaps = move |(_, chunk): &(&u64, &Chunk)| chunk.room().end > bytes.start;
        before.take_while(overlaps).map(|(offset, _)| *offset)
    }

    /// Returns the bytes of a range, verified.
    pub(super) fn read(&self, range: ByteRange) -> Result<RealPayload, Failure> {
        if let Some(offset) = self.overlapping(range).last()
            && let Some(chunk) = self.chunks.get(&offset)
            && range.length() >= SHARED_BYTES_MIN
            && ByteRange::at(offset, chunk.end()).contains(range)
        {
            return chunk.read(range.start - offset..range.end - offset);
        }
        let memory = RealMemory::new(range.length() as usize);
        memory.with_bytes_mut(|bytes| {
            bytes.fill(0);
            self.overlapping(range).try_for_each(|offset| {
                let Some(chunk) = self.chunks.get(&offset) else { return Ok(()) };
                let part = ByteRange::at(offset, chunk.end()).intersect(range);
                if part.is_empty() {
                    return Ok(());
                }
                let to = (part.start - range.start) as usize..(part.end - range.start) as usize;
                chunk.copy(part.start - offset..part.end - offset, &mut bytes[to])
            })
        })?;
        Ok(memory.freeze())
    }

    /// Writes bytes to a range of the same length.
    pub(super) fn write(
        &mut self,
        range: ByteRange,
        payload: &RealPayload,
        now: Timestamp,
    ) -> Result<(), Failure> {
        self.times.written = now;
        let times = self.times;
        if self.adopt(range, payload, times)? {
            return Ok(());
        }
        // Before anything is written.
        for chunk in self.overlapping(range).filter_map(|offset| self.chunks.get(&offset)) {
            let part = chunk.room().intersect(range);
            chunk.check_edges(part.start - chunk.room().start, part.length())?;
        }
        let bytes = payload.bytes();
        let mut at = range.start;
        while at < range.end {
            let rest = &bytes[(at - range.start) as usize..];
            let here = self.overlapping(ByteRange::at(at, 1)).next();
            at += match here.and_then(|offset| self.chunks.get_mut(&offset)) {
                Some(chunk) => {
                    let room = chunk.room();
                    let length = (room.end - at).min(rest.len() as u64);
                    chunk.write(at - room.start, &rest[..length as usize], times)?;
                    length
                }
                None => self.fill_gap(at, rest, times)?,
            };
        }
        Ok(())
    }

    /// Makes the payload a chunk where it lies, if it can be one. Returns `false` if its bytes must
    /// be copied.
    fn adopt(
        &mut self,
        range: ByteRange,
        payload: &RealPayload,
        times: Times,
    ) -> Result<bool, Failure> {
        let is_whole = range.start.is_multiple_of(UNIT_BYTES) && order_of(range.length()).is_some();
        let replaced: Vec<u64> = self.overlapping(range).collect();
        let rooms = || replaced.iter().filter_map(|offset| Some(self.chunks.get(offset)?.room()));
        if !is_whole || !rooms().all(|room| range.contains(room)) {
            return Ok(false);
        }
        let fewer = rooms().map(ByteRange::length).sum();
        if !self.memory.count(range.length(), fewer) {
            // What is there can still be overwritten.
            return Ok(false);
        }
        let Some(chunk) = Chunk::of_payload(self.memory, self.place(range.start), payload, times)
        else {
            self.memory.count(fewer, range.length());
            return Ok(false);
        };
        // From here on the new chunk counts, and not those that it replaces.
        let replaced: Vec<_> = replaced.iter().map(|at| self.chunks.remove(at)).collect();
        self.chunks.insert(range.start, chunk);
        drop(replaced);
        Ok(true)
    }

    /// Writes the first of `bytes` at `at`, where no chunk is. Returns their number.
    fn fill_gap(&mut self, at: u64, bytes: &[u8], times: Times) -> Result<u64, Failure> {
        let before = self.chunks.range(..=at).next_back();
        let gap_start = before.map_or(0, |(_, chunk)| chunk.room().end);
        let gap_end = self.chunks.range(at..).next().map_or(u64::MAX, |(offset, _)| *offset);
        for order in (0..=COPY_ORDER_MAX).rev() {
            let size = UNIT_BYTES << order;
            let start = at / size * size;
            let needed = (at - start).saturating_add(bytes.len() as u64);
            let fits = start >= gap_start && gap_end - start >= size;
            if !fits || order > 0 && needed <= size / 2 {
                continue;
            }
            if !self.memory.count(size, 0) {
                continue;
            }
            let length = (start + size - at).min(bytes.len() as u64);
            let new = &bytes[..length as usize];
            let place = self.place(start);
            if let Some(chunk) = Chunk::new(self.memory, place, order, at - start, new, times) {
                self.chunks.insert(start, chunk);
                return Ok(length);
            }
            self.memory.count(0, size);
        }
        Err(Errno::NOSPC.into())
    }

    /// Frees everything beyond the first `length` bytes, of which a longer object keeps that many.
    pub(super) fn truncate(&mut self, length: u64, now: Timestamp) -> Result<(), Failure> {
        if self.length() <= length {
            return Ok(());
        }
        self.times.written = now;
        if length > 0 {
            // First, so that a kill in between leaves the object no shorter than that.
            self.have_end(length)?;
        }
        while let Some(last) = self.chunks.last_entry() {
            let offset = *last.key();
            if offset < length {
                return last.into_mut().truncate(length - offset, self.times);
            }
            self.memory.count(0, last.get().room().length());
            last.remove();
        }
        Ok(())
    }

    /// Makes the last of the first `length` bytes part of the object, as a zero if it lies in a
    /// hole.
    fn have_end(&mut self, length: u64) -> Result<(), Failure> {
        let times = self.times;
        let here = self.overlapping(ByteRange::at(length - 1, 1)).next();
        if let Some(chunk) = here.and_then(|offset| self.chunks.get_mut(&offset)) {
            let end = length - chunk.room().start;
            if chunk.end() < end {
                chunk.check_edges(end, 0)?;
                return chunk.write(end, &[], times);
            }
            return Ok(());
        }
        let start = (length - 1) / UNIT_BYTES * UNIT_BYTES;
        // A disk that is full can be truncated too.
        self.memory.count_anyway(UNIT_BYTES);
        let place = self.place(start);
        let chunk = Chunk::new(self.memory, place, 0, length - start, &[], times);
        if chunk.is_none() {
            self.memory.count(0, UNIT_BYTES);
        }
        self.chunks.insert(start, chunk.ok_or(Errno::NOSPC)?);
        Ok(())
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // Newer bytes first, so that a kill in between leaves an object that is only shorter.
        while let Some((_, chunk)) = self.chunks.pop_last() {
            self.memory.count(0, chunk.room().length());
        }
    }
}
