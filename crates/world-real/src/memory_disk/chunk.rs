//! Chunk of an object: consecutive bytes that lie together in the memory.

use super::memory::{DiskMemory, order_of};
use super::part;
use super::table::{Entry, PIECE_BYTES, UNIT_BYTES};
use crate::disk::Failure;
use crate::memory::{RealMemory, RealPayload, thaw};
use rustix::io::Errno;
use std::ops::Range;
use units::{ByteRange, FileId, Timestamp};
use world::{Damage, Memory, Payload};

/// Place that a chunk has or gets.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) disk: u32,
    pub(super) object: FileId,
    /// Offset of the chunk in the object.
    pub(super) offset: u64,
}

/// Times of an object.
#[derive(Clone, Copy)]
pub(super) struct Times {
    /// Of the last write.
    pub(super) written: Timestamp,
    /// As it was set, which counts instead.
    pub(super) set: Option<Timestamp>,
}

impl Times {
    fn set_ns(self) -> u64 {
        self.set.map_or(0, Timestamp::as_ns)
    }
}

/// Chunk of an object, in the table until it is dropped or replaced.
pub(super) struct Chunk {
    memory: &'static DiskMemory,
    place: Place,
    unit: u64,
    order: u32,
    /// Number of bytes, from the start, that are part of the object. Those behind are unspecified.
    end: u64,
    /// All bytes of the part.
    bytes: RealPayload,
}

impl Chunk {
    /// Makes data that lies in the memory a chunk, where it is. `None` if it does not, is not a
    /// whole part, or is a chunk already.
    pub(super) fn of_payload(
        memory: &'static DiskMemory,
        place: Place,
        payload: &RealPayload,
        times: Times,
    ) -> Option<Self> {
        let unit = memory.unit_of(payload.whole_part()?)?;
        let order = order_of(payload.length()).filter(|_| memory.table.is_free(unit))?;
        let (end, bytes) = (payload.length(), payload.clone());
        let mut chunk = Self { memory, place, unit, order, end, bytes };
        chunk.sum(0..end);
        chunk.publish(times);
        Some(chunk)
    }

    /// Makes a chunk of `2^order` units with these bytes, from byte `start` of the chunk on, behind
    /// zeros. `None` if there is no such part.
    pub(super) fn new(
        memory: &'static DiskMemory,
        place: Place,
        order: u32,
        start: u64,
        bytes: &[u8],
        times: Times,
    ) -> Option<Self> {
        let (unit, part) = part::take(memory, order)?;
        let end = start + bytes.len() as u64;
        part.with_bytes_mut(|part| {
            part[..start as usize].fill(0);
            part[start as usize..end as usize].copy_from_slice(bytes);
        });
        let mut chunk = Self { memory, place, unit, order, end, bytes: part.freeze() };
        chunk.sum(0..end);
        chunk.publish(times);
        Some(chunk)
    }

    /// The chunk that an earlier process left at a unit.
    pub(super) fn left(
        memory: &'static DiskMemory,
        unit: u64,
        entry: &Entry,
        part: RealMemory,
    ) -> Self {
        let Entry { order, disk, object, offset, end, .. } = *entry;
        let place = Place { disk, object: FileId(object), offset };
        Self { memory, place, unit, order, end, bytes: part.freeze() }
    }

    /// Bytes of the object that the chunk has room for.
    pub(super) fn room(&self) -> ByteRange {
        ByteRange::at(self.place.offset, UNIT_BYTES << self.order)
    }

    /// Number of bytes, from the start, that are part of the object.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Stores the time of the object as it was set.
    pub(super) fn set_time(&self, times: Times) {
        self.memory.table.set_time(self.unit, times.set_ns());
    }

    fn publish(&mut self, times: Times) {
        let entry = Entry {
            order: self.order,
            disk: self.place.disk,
            object: self.place.object.0,
            offset: self.place.offset,
            end: self.end,
            sequence: self.memory.next_sequence(),
            written_ns: times.written.as_ns(),
            set_ns: times.set_ns(),
        };
        self.memory.table.publish(self.unit, &entry);
    }

    /// Returns verified bytes of the chunk, all before its end. Large ones share its memory.
    pub(super) fn read(&self, bytes: Range<u64>) -> Result<RealPayload, Failure> {
        self.verify(bytes.clone())?;
        Ok(self.bytes.slice(bytes.start, bytes.end - bytes.start))
    }

    /// Copies verified bytes of the chunk, all before its end.
    pub(super) fn copy(&self, bytes: Range<u64>, to: &mut [u8]) -> Result<(), Failure> {
        self.verify(bytes.clone())?;
        to.copy_from_slice(&self.bytes.bytes()[bytes.start as usize..bytes.end as usize]);
        Ok(())
    }

    /// Fails if a piece is damaged that a write of `length` bytes from byte `start` on covers in
    /// part: bytes that stay beside new ones must be what they were.
    pub(super) fn check_edges(&self, start: u64, length: u64) -> Result<(), Failure> {
        let changed = start.min(self.end)..start + length;
        for piece in pieces(changed.start..changed.end.min(self.end)) {
            let kept = self.piece(piece);
            if kept.start < changed.start || changed.end < kept.end {
                self.verify(kept)?;
            }
        }
        Ok(())
    }

    /// Writes bytes from byte `start` of the chunk on, where there is room, after
    /// [`check_edges`](Chunk::check_edges). Bytes between the end and `start` become zeros.
    pub(super) fn write(&mut self, start: u64, new: &[u8], times: Times) -> Result<(), Failure> {
        let new_end = start + new.len() as u64;
        let changed = start.min(self.end)..new_end;
        if self.bytes.is_shared() {
            return self.replace(start, new, times);
        }
        pieces(changed.clone()).for_each(|piece| self.set_sum(piece, None));
        let gap = changed.start as usize..start as usize;
        let memory = thaw(std::mem::replace(&mut self.bytes, RealMemory::new(0).freeze()));
        memory.with_bytes_mut(|bytes| {
            bytes[gap].fill(0);
            bytes[start as usize..new_end as usize].copy_from_slice(new);
        });
        self.bytes = memory.freeze();
        self.end = self.end.max(new_end);
        self.memory.table.wrote(self.unit, self.end, times.written.as_ns());
        self.sum(changed);
        Ok(())
    }

    /// Writes to a copy, which takes the place of this chunk: others read this one.
    fn replace(&mut self, start: u64, new: &[u8], times: Times) -> Result<(), Failure> {
        let (unit, part) = part::take(self.memory, self.order).ok_or(Errno::NOSPC)?;
        let (old_end, new_end) = (self.end as usize, start as usize + new.len());
        part.with_bytes_mut(|bytes| {
            bytes[..old_end].copy_from_slice(&self.bytes.bytes()[..old_end]);
            // Overwrites nothing that stays: it lies behind the end, or is written next.
            bytes[old_end.min(start as usize)..start as usize].fill(0);
            bytes[start as usize..new_end].copy_from_slice(new);
        });
        let end = self.end.max(new_end as u64);
        let (memory, place, order, bytes) = (self.memory, self.place, self.order, part.freeze());
        let mut copy = Self { memory, place, unit, order, end, bytes };
        let changed = start.min(self.end)..new_end as u64;
        for piece in pieces(0..end) {
            let here = copy.piece(piece);
            match here.start < changed.end && changed.start < here.end {
                true => copy.sum(here),
                // The bytes are the same, damaged or not.
                false => copy.set_sum(piece, self.memory.table.checksum(self.unit, order, piece)),
            }
        }
        copy.publish(times);
        // Dropped after its copy is in the table.
        *self = copy;
        Ok(())
    }

    /// Cuts what lies behind the first `end` bytes.
    pub(super) fn truncate(&mut self, end: u64, times: Times) -> Result<(), Failure> {
        if end >= self.end {
            return Ok(());
        }
        let last = end / PIECE_BYTES;
        let is_piece_cut = !end.is_multiple_of(PIECE_BYTES);
        if is_piece_cut {
            self.verify(self.piece(last))?;
            self.set_sum(last, None);
        }
        self.end = end;
        self.memory.table.wrote(self.unit, end, times.written.as_ns());
        if is_piece_cut {
            self.sum(self.piece(last));
        }
        Ok(())
    }

    /// Bytes of a piece that are part of the object.
    fn piece(&self, piece: u64) -> Range<u64> {
        piece * PIECE_BYTES..((piece + 1) * PIECE_BYTES).min(self.end)
    }

    fn set_sum(&self, piece: u64, sum: Option<u32>) {
        self.memory.table.set_checksum(self.unit, self.order, piece, sum);
    }

    fn sum_of(&self, bytes: Range<u64>) -> u32 {
        crc32c::crc32c(&self.bytes.bytes()[bytes.start as usize..bytes.end as usize])
    }

    /// Stores the checksums of the pieces that hold some of these bytes.
    fn sum(&self, bytes: Range<u64>) {
        for piece in pieces(bytes) {
            self.set_sum(piece, Some(self.sum_of(self.piece(piece))));
        }
    }

    /// Fails if a piece that holds some of these bytes is damaged.
    fn verify(&self, bytes: Range<u64>) -> Result<(), Failure> {
        for piece in pieces(bytes) {
            let own = self.piece(piece);
            let known = self.memory.table.checksum(self.unit, self.order, piece);
            let found = self.sum_of(own.clone());
            match known {
                // The process that wrote it was killed.
                None => self.set_sum(piece, Some(found)),
                Some(known) if known == found => {}
                Some(_) => {
                    let start = self.place.offset + own.start;
                    let bytes = ByteRange::at(start, own.end - own.start);
                    return Err(Failure::Corrupt(self.place.object, bytes, Damage::Mismatch));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // Before the part is free, which it is when no payload shares it.
        self.memory.table.clear(self.unit);
    }
}

/// Pieces of a chunk that hold some of these bytes.
fn pieces(bytes: Range<u64>) -> Range<u64> {
    bytes.start / PIECE_BYTES..bytes.end.div_ceil(PIECE_BYTES)
}
