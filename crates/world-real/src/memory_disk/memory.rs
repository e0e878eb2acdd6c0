//! The memory of the disks of this process, which is its arena too.
//!
//! *Invariant:* a part of the area is either free, or a chunk of one object, or belongs to one
//! [`RealMemory`](crate::RealMemory) or payload; a chunk may be shared by payloads.
#![allow(unsafe_code)]

use super::buddies::{Buddies, ORDER_MAX};
use super::table::{Entry, Layout, Table, UNIT_BYTES};
use crate::arena;
use crate::huge::{self, HUGE_BYTES};
use rustix::fs::fstat;
use rustix::mm::{ProtFlags, munmap};
use std::collections::BTreeMap;
use std::fs::File;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Memory of the disks of this process, from [`use_memory`] on.
static MEMORY: OnceLock<DiskMemory> = OnceLock::new();

/// Memory of the disks of a process.
pub(super) struct DiskMemory {
    base: NonNull<u8>,
    layout: Layout,
    pub(super) table: Table,
    free: Mutex<Free>,
    /// Bytes of all chunks.
    used: AtomicU64,
    sequence: AtomicU64,
    /// Chunks that an earlier process left, by disk; each is taken once.
    left: Mutex<BTreeMap<u32, Vec<(u64, Entry)>>>,
}

// SAFETY: it only gives out parts of its memory, each to one caller.
unsafe impl Send for DiskMemory {}
// SAFETY: as above.
unsafe impl Sync for DiskMemory {}

struct Free {
    parts: Buddies,
    /// Huge pages of the area that have memory of the system, or hold a chunk that was left.
    resident: Vec<bool>,
}

/// Bytes that only chunks may take beside those that the disks have to get: a chunk that is shared
/// can so always be written, to another part.
const REPLACED_BYTES: u64 = 16 << 20;

const UNITS_OF_HUGE: u64 = HUGE_BYTES as u64 / UNIT_BYTES;

/// Makes memory that [`reserve_memory`](super::reserve_memory) made, in this process or an earlier
/// one, that of the disks of this process. Call it once, before the first node is opened. Returns
/// its capacity in bytes.
///
/// # Errors
/// When the file is no such memory, cannot be mapped, or the process has such memory.
pub fn use_memory(file: File) -> Result<u64, String> {
    let bytes = fstat(&file).map_err(|error| error.to_string())?.st_size as u64;
    let length = usize::try_from(bytes).map_err(|error| error.to_string())?;
    let base = huge::map_shared(&file, length, ProtFlags::READ | ProtFlags::WRITE);
    let base = base.ok_or("the address space is full")?;
    // SAFETY: it was just mapped, and is never unmapped from here on.
    let layout = unsafe { Table::read_layout(base, bytes) };
    let layout = layout.ok_or("it is not memory of disks, or of another version")?;
    // SAFETY: as above; only the table accesses what lies before the area.
    let table = unsafe { Table::new(base, layout) };
    let memory = DiskMemory::new(base, layout, table);
    arena::adopt(file.into(), base, length).ok_or("the process has shared memory already")?;
    MEMORY.set(memory).map_err(|_| "the process has memory for disks already")?;
    Ok(layout.disk_bytes)
}

/// Bytes of the objects in the memory of this process, in whole parts. `None` without such memory.
pub fn memory_in_use() -> Option<u64> {
    MEMORY.get().map(DiskMemory::used)
}

/// True if memory that [`reserve_memory`](super::reserve_memory) made holds an object.
///
/// # Errors
/// When the file is no such memory, or cannot be mapped.
pub fn holds_objects(file: &File) -> Result<bool, String> {
    let bytes = fstat(file).map_err(|error| error.to_string())?.st_size as u64;
    let length = usize::try_from(bytes).map_err(|error| error.to_string())?;
    let base = huge::map_shared(file, length, ProtFlags::READ | ProtFlags::WRITE);
    let base = base.ok_or("the address space is full")?;
    // SAFETY: it was just mapped.
    let layout = unsafe { Table::read_layout(base, bytes) };
    let holds = layout.map(|layout| {
        // SAFETY: as above, and only the table accesses what lies before the area.
        let table = unsafe { Table::new(base, layout) };
        (0..layout.units()).any(|unit| !table.is_free(unit))
    });
    // SAFETY: it was mapped above with this length, and nothing refers to it.
    let _ = unsafe { munmap(base.as_ptr().cast(), length) };
    holds.ok_or_else(|| "it is not memory of disks, or of another version".to_owned())
}

/// Memory of the disks of this process.
pub(super) fn memory() -> Option<&'static DiskMemory> {
    MEMORY.get()
}

/// Takes a part of `bytes` bytes, a power of two, for any use. The contents are unspecified.
pub(crate) fn allocate(bytes: usize) -> Option<NonNull<u8>> {
    let memory = MEMORY.get()?;
    let order = order_of(bytes as u64)?;
    let kept = memory.capacity().saturating_sub(memory.used()) + REPLACED_BYTES;
    if memory.free().parts.free_units() * UNIT_BYTES < kept + bytes as u64 {
        return None;
    }
    Some(memory.pointer(memory.take(order)?))
}

/// Frees a part that [`allocate`] gave. Returns `false` if it is no part of the memory.
///
/// # Safety
///
/// Nobody uses the part any more.
pub(crate) unsafe fn free(base: NonNull<u8>, bytes: usize) -> bool {
    let Some(memory) = MEMORY.get() else { return false };
    match (memory.unit_of(base.as_ptr()), order_of(bytes as u64)) {
        (Some(unit), Some(order)) => {
            memory.free().parts.give(unit, order);
            true
        }
        _ => false,
    }
}

/// Order of a part of `bytes` bytes, if a part can have this size.
pub(super) fn order_of(bytes: u64) -> Option<u32> {
    let units = bytes / UNIT_BYTES;
    let order = units.checked_ilog2()?;
    (bytes == UNIT_BYTES << order && order <= ORDER_MAX).then_some(order)
}

impl DiskMemory {
    fn new(base: NonNull<u8>, layout: Layout, table: Table) -> Self {
        let (mut chunks, mut unit) = (Vec::new(), 0);
        while unit < layout.units() {
            match table.entry(unit) {
                Some(entry) => {
                    chunks.push((unit, entry));
                    unit += 1 << entry.order;
                }
                None => {
                    // What is no entry, after a defect of the memory, is none for ever.
                    if !table.is_free(unit) {
                        table.clear(unit);
                    }
                    unit += 1;
                }
            }
        }
        let mut parts = Buddies::full(layout.units());
        parts.give_all_but(chunks.iter().map(|(unit, one)| *unit..*unit + (1 << one.order)));
        let used = chunks.iter().map(|(_, one)| UNIT_BYTES << one.order).sum();
        let last = chunks.iter().map(|(_, one)| one.sequence).max().unwrap_or(0);
        let reserved = layout.disk_bytes.div_ceil(HUGE_BYTES as u64);
        let mut resident = vec![false; (layout.units() / UNITS_OF_HUGE) as usize];
        resident[..reserved as usize].fill(true);
        for (unit, entry) in &chunks {
            let end = (unit + (1 << entry.order)).div_ceil(UNITS_OF_HUGE);
            resident[(unit / UNITS_OF_HUGE) as usize..end as usize].fill(true);
        }
        let mut left: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        chunks.into_iter().for_each(|chunk| left.entry(chunk.1.disk).or_default().push(chunk));
        Self {
            base,
            layout,
            table,
            free: Mutex::new(Free { parts, resident }),
            used: AtomicU64::new(used),
            sequence: AtomicU64::new(last + 1),
            left: Mutex::new(left),
        }
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a part of this order.
    pub(super) fn take(&self, order: u32) -> Option<u64> {
        let mut free = self.free();
        let unit = free.parts.take(order)?;
        let end = (unit + (1 << order)).div_ceil(UNITS_OF_HUGE);
        for page in unit / UNITS_OF_HUGE..end {
            if std::mem::replace(&mut free.resident[page as usize], true) {
                continue;
            }
            let first = self.pointer(page * UNITS_OF_HUGE);
            // SAFETY: no part of this page had an owner until now, and no chunk was left in it: the
            // one just taken is the first.
            unsafe { huge::populate(first, HUGE_BYTES) };
        }
        Some(unit)
    }

    /// Address of a unit.
    pub(super) fn pointer(&self, unit: u64) -> NonNull<u8> {
        assert!(unit < self.layout.units(), "a unit must lie in the area");
        // SAFETY: the unit lies in the mapping.
        unsafe { self.base.add((self.layout.area + unit * UNIT_BYTES) as usize) }
    }

    /// The unit that begins at an address.
    pub(super) fn unit_of(&self, address: *const u8) -> Option<u64> {
        let offset = (address as usize).checked_sub(self.base.as_ptr() as usize)? as u64;
        let offset = offset.checked_sub(self.layout.area)?;
        let unit = offset / UNIT_BYTES;
        (offset.is_multiple_of(UNIT_BYTES) && unit < self.layout.units()).then_some(unit)
    }

    /// Capacity of the disks, in bytes.
    pub(super) fn capacity(&self) -> u64 {
        self.layout.disk_bytes
    }

    /// Bytes of all chunks.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts `more` bytes of chunks instead of `fewer`. Returns `false`, and counts nothing, if
    /// the disks would hold more than their capacity.
    pub(super) fn count(&self, more: u64, fewer: u64) -> bool {
        let capacity = self.capacity();
        let counted = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            let new = (used + more).saturating_sub(fewer);
            (new <= capacity || more <= fewer).then_some(new)
        });
        counted.is_ok()
    }

    /// Counts `more` bytes of chunks, also beyond the capacity.
    pub(super) fn count_anyway(&self, more: u64) {
        self.used.fetch_add(more, Ordering::Relaxed);
    }

    /// Number of the next chunk.
    pub(super) fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    /// Chunks of a disk that an earlier process left, each with its first unit.
    pub(super) fn take_left(&self, disk: u32) -> Vec<(u64, Entry)> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.remove(&disk).unwrap_or_default()
    }
}
