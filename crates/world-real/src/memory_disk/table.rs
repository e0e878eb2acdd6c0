//! Table in the memory of disks: what a new process must know about it.
//!
//! ```text
//! byte 0         4096                  area
//!      | header | entries | checksums | units of 4 KiB, taken as parts of 2^n units
//! ```
//!
//! There is an entry for each unit of the area, used if a chunk begins there, and a checksum for
//! each 64 KiB. A chunk that is smaller has its checksum in its entry.
//!
//! Invariants, which make a kill at any instruction harmless:
//!
//! - The control word of an entry is written last when a chunk appears, and first when it goes.
//! - Of two chunks for the same bytes of an object, that with the larger sequence number counts.
//! - A checksum is in flux from before its bytes are written until after.
#![allow(unsafe_code)]

use super::buddies::ORDER_MAX;
use crate::huge::HUGE_BYTES;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Smallest part of the memory.
pub(super) const UNIT_BYTES: u64 = 4 << 10;

/// Bytes that share a checksum.
pub(super) const PIECE_BYTES: u64 = 64 << 10;

const HEADER_BYTES: u64 = 4096;
const ENTRY_WORDS: usize = 8;
const WORD_BYTES: u64 = 8;
const MAGIC: u64 = u64::from_le_bytes(*b"unimemo1");

/// Bit of a checksum whose bytes are being written: any bytes match.
const IN_FLUX: u64 = 1 << 32;

/// Places of the parts of the memory, in bytes from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Capacity of the disks.
    pub(super) disk_bytes: u64,
    /// Room for other data of the process.
    other_bytes: u64,
    /// Start of the checksums.
    sums: u64,
    /// Start of the area.
    pub(super) area: u64,
    /// Size of the whole.
    pub(super) bytes: u64,
}

impl Layout {
    /// Layout with room for disks of `disk_bytes` in all, and for other data of the process.
    /// `None` if the sum overflows.
    pub(super) fn new(disk_bytes: u64, other_bytes: u64) -> Option<Self> {
        let huge = HUGE_BYTES as u64;
        // In whole parts of the largest size: a smaller one at the end would be taken first.
        let largest = UNIT_BYTES << ORDER_MAX;
        let area_bytes = disk_bytes.checked_add(other_bytes)?.checked_next_multiple_of(largest)?;
        let entries = (area_bytes / UNIT_BYTES).checked_mul(ENTRY_WORDS as u64 * WORD_BYTES)?;
        let sums = HEADER_BYTES.checked_add(entries)?;
        let area = sums.checked_add(area_bytes / PIECE_BYTES * WORD_BYTES)?;
        let area = area.checked_next_multiple_of(huge)?;
        let bytes = area.checked_add(area_bytes).filter(|bytes| i64::try_from(*bytes).is_ok())?;
        Some(Self { disk_bytes, other_bytes, sums, area, bytes })
    }

    /// Number of units of the area.
    pub(super) fn units(&self) -> u64 {
        (self.bytes - self.area) / UNIT_BYTES
    }
}

/// Header, entries and checksums.
#[derive(Clone, Copy)]
pub(super) struct Table {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: all its words are atomic.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// Content of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// Size of the chunk: `2^order` units.
    pub(super) order: u32,
    /// Disk of the object.
    pub(super) disk: u32,
    pub(super) object: u64,
    /// Place of the chunk in the object.
    pub(super) offset: u64,
    /// Number of bytes, from the start of the chunk, that are part of the object.
    pub(super) end: u64,
    pub(super) sequence: u64,
    /// Time of the last write, as a timestamp in nanoseconds.
    pub(super) written_ns: u64,
    /// Time of the object as it was set, in nanoseconds; 0 if it was not.
    pub(super) set_ns: u64,
}

impl Table {
    /// The table at the start of mapped memory of this layout.
    ///
    /// # Safety
    ///
    /// `layout.bytes` bytes at `base`, which is aligned to a page, stay mapped and writable, and
    /// what lies before the area is accessed only through tables.
    pub(super) unsafe fn new(base: NonNull<u8>, layout: Layout) -> Self {
        Self { base, layout }
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        let inside = offset.is_multiple_of(WORD_BYTES) && offset < self.layout.area;
        assert!(inside, "a word must lie in its table");
        // SAFETY: it lies in the mapping, is aligned, and nobody accesses it in another way.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset as usize).cast()) }
    }

    fn entry_word(&self, unit: u64, word: usize) -> &AtomicU64 {
        let entry = HEADER_BYTES + unit * ENTRY_WORDS as u64 * WORD_BYTES;
        self.word(entry + word as u64 * WORD_BYTES)
    }

    /// Writes the header of new memory.
    pub(super) fn begin(&self) {
        self.word(8).store(self.layout.disk_bytes, Ordering::Relaxed);
        self.word(16).store(self.layout.other_bytes, Ordering::Relaxed);
        self.word(0).store(MAGIC, Ordering::Release);
    }

    /// Reads the layout from the header of memory that is mapped with `bytes` bytes; `None` if it
    /// is none of this version.
    ///
    /// # Safety
    ///
    /// `bytes` bytes at `base`, which is aligned to a page, are readable.
    pub(super) unsafe fn read_layout(base: NonNull<u8>, bytes: u64) -> Option<Layout> {
        if bytes < HEADER_BYTES {
            return None;
        }
        let word = |index: usize| {
            // SAFETY: the header lies in what the caller vouches for, and is aligned.
            let word = unsafe { AtomicU64::from_ptr(base.as_ptr().cast::<u64>().add(index)) };
            word.load(Ordering::Acquire)
        };
        let layout = Layout::new(word(1), word(2)).filter(|_| word(0) == MAGIC);
        layout.filter(|layout| layout.bytes == bytes)
    }

    /// Returns the entry of the chunk that begins at a unit, if one does.
    pub(super) fn entry(&self, unit: u64) -> Option<Entry> {
        let control = self.entry_word(unit, 0).load(Ordering::Acquire);
        let order = u32::try_from(control & 0xff).ok()?.checked_sub(1)?;
        let word = |index| self.entry_word(unit, index).load(Ordering::Relaxed);
        let entry = Entry {
            order,
            disk: (control >> 32) as u32,
            object: word(1),
            offset: word(2),
            end: word(3),
            sequence: word(4),
            written_ns: word(5),
            set_ns: word(7),
        };
        let is_whole = order <= ORDER_MAX
            && unit.is_multiple_of(1 << order)
            && unit + (1 << order) <= self.layout.units();
        (is_whole && entry.end <= UNIT_BYTES << order).then_some(entry)
    }

    /// True if no chunk begins at a unit.
    pub(super) fn is_free(&self, unit: u64) -> bool {
        self.entry_word(unit, 0).load(Ordering::Relaxed) == 0
    }

    /// Makes the part at a unit a chunk.
    pub(super) fn publish(&self, unit: u64, entry: &Entry) {
        let words = [entry.object, entry.offset, entry.end, entry.sequence, entry.written_ns];
        for (index, word) in (1..).zip(words) {
            self.entry_word(unit, index).store(word, Ordering::Relaxed);
        }
        self.set_time(unit, entry.set_ns);
        let control = u64::from(entry.disk) << 32 | u64::from(entry.order + 1);
        self.entry_word(unit, 0).store(control, Ordering::Release);
    }

    /// Stores the end and the time of a chunk that was written.
    pub(super) fn wrote(&self, unit: u64, end: u64, written_ns: u64) {
        self.entry_word(unit, 5).store(written_ns, Ordering::Relaxed);
        // What is before the end has been written.
        self.entry_word(unit, 3).store(end, Ordering::Release);
    }

    /// Stores the time of the object of a chunk as it was set; 0 if it was not.
    pub(super) fn set_time(&self, unit: u64, set_ns: u64) {
        self.entry_word(unit, 7).store(set_ns, Ordering::Relaxed);
    }

    /// Makes a chunk a part that belongs to no object.
    pub(super) fn clear(&self, unit: u64) {
        self.entry_word(unit, 0).store(0, Ordering::Release);
    }

    fn sum(&self, unit: u64, order: u32, piece: u64) -> &AtomicU64 {
        if UNIT_BYTES << order < PIECE_BYTES {
            return self.entry_word(unit, 6);
        }
        let piece = unit * UNIT_BYTES / PIECE_BYTES + piece;
        self.word(self.layout.sums + piece * WORD_BYTES)
    }

    /// Checksum of a piece of a chunk; `None` while it is in flux.
    pub(super) fn checksum(&self, unit: u64, order: u32, piece: u64) -> Option<u32> {
        let sum = self.sum(unit, order, piece).load(Ordering::Relaxed);
        (sum & IN_FLUX == 0).then_some(sum as u32)
    }

    /// Stores the checksum of a piece of a chunk, whose bytes are written before; or `None` before
    /// they are written.
    pub(super) fn set_checksum(&self, unit: u64, order: u32, piece: u64, sum: Option<u32>) {
        let sum = sum.map_or(IN_FLUX, u64::from);
        self.sum(unit, order, piece).store(sum, Ordering::Release);
        // Nor may the writes that follow come before the mark of flux.
        std::sync::atomic::fence(Ordering::SeqCst);
    }
}
