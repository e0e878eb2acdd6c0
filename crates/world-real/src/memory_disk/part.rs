//! Parts of the memory of disks, as memories.
#![allow(unsafe_code)]

use super::memory::DiskMemory;
use super::table::UNIT_BYTES;
use crate::memory::RealMemory;

/// Takes a part of `2^order` units. Returns its first unit too.
pub(super) fn take(memory: &DiskMemory, order: u32) -> Option<(u64, RealMemory)> {
    let unit = memory.take(order)?;
    // SAFETY: the part was just taken, for this memory alone.
    Some((unit, unsafe { at(memory, unit, order) }))
}

/// The part that begins at a unit.
///
/// # Safety
///
/// It is a whole part, taken, and no other memory has it.
pub(super) unsafe fn at(memory: &DiskMemory, unit: u64, order: u32) -> RealMemory {
    // SAFETY: the caller vouches for it.
    unsafe { RealMemory::of_part(memory.pointer(unit), (UNIT_BYTES << order) as usize) }
}
