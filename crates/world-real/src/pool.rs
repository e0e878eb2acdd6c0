//! Buffer pool of the process: page-aligned areas of memory that are reused.
//!
//! The first fill of 1 MiB of a fresh mapping takes 650 us, because of 256 page faults, and the
//! second 36 us (`examples/strided_copy.rs`, in a virtual machine). A process that lends data to
//! others on its machine keeps its areas in an [`arena`](crate::arena) that they can map, while the
//! arena has space. Areas smaller than a huge page come from slabs of one huge page. Areas that
//! will be used whole get huge pages. Free areas in the arena are merged into other sizes on
//! demand.
//!
//! Invariants:
//!
//! - An area belongs to one owner or to the pool.
//! - Outside the arena the pool holds at most [`POOL_BYTES_MAX`], plus less than a slab for each
//!   thread. Excess areas return to the system.
#![allow(unsafe_code)]

use crate::arena;
use crate::coalesce_free::coalesce_free;
use crate::huge::{self, HUGE_BYTES, PAGE_BYTES};
use crate::memory_disk;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::alloc::{Layout, handle_alloc_error};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// Maximum free memory in the pool of a process, in bytes, without the arena.
pub(crate) const POOL_BYTES_MAX: usize = 256 << 20;

/// Size of the smallest pooled area. Smaller memories come from the allocator, which caches them
/// itself.
pub(crate) const POOLED_BYTES_MIN: usize = 1 << CLASS_BITS_MIN;

/// Size of the largest pooled area. In larger ones the page faults are amortised.
const POOLED_BYTES_MAX: usize = 64 << 20;

/// Size of the smallest area worth a huge page, which is resident as a whole once touched.
const HUGE_AREA_BYTES_MIN: usize = 256 << 10;

const CLASS_BITS_MIN: u32 = 14;
const CLASSES: usize = (POOLED_BYTES_MAX.trailing_zeros() - CLASS_BITS_MIN + 1) as usize;

/// One free area.
struct Free(NonNull<u8>);

// SAFETY: a free area is only an address; the thread that pops it owns it alone.
unsafe impl Send for Free {}

/// Free areas by class: class `c` holds areas of `2^(c + CLASS_BITS_MIN)` bytes.
struct Pool {
    classes: [Vec<Free>; CLASSES],
    /// Free bytes outside the arena.
    bytes: usize,
    /// Free bytes in the arena.
    arena_bytes: usize,
    /// Free bytes in the arena below which merging is known to fail.
    coalesce_retry_bytes: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    classes: [const { Vec::new() }; CLASSES],
    bytes: 0,
    arena_bytes: 0,
    coalesce_retry_bytes: 0,
});

/// Free bytes in the arena from which areas are merged into other sizes before more of the arena is
/// used, because the arena returns no memory. Below it nothing is merged: programs need several
/// sizes.
const COALESCE_BYTES_MIN: usize = 16 << 20;

/// Returns the size reserved for an area of `length` bytes: a power of two, or whole pages if the
/// area is too large for the pool. Untouched pages take no memory.
pub(crate) fn reserved_bytes(length: usize) -> usize {
    if length <= POOLED_BYTES_MAX {
        length.next_power_of_two().max(POOLED_BYTES_MIN)
    } else {
        length.checked_next_multiple_of(PAGE_BYTES).expect("a memory must fit in the address space")
    }
}

/// Allocates an area of `reserved` bytes (from [`reserved_bytes`] of `length`), of which `length`
/// will be used. The contents are unspecified.
pub(crate) fn allocate(reserved: usize, length: usize) -> NonNull<u8> {
    let found = memory_disk::allocate(reserved)
        .or_else(|| pooled(reserved))
        .or_else(|| coalesced(reserved, length))
        .or_else(|| {
            if reserved >= HUGE_BYTES {
                return map(reserved, length / HUGE_BYTES * HUGE_BYTES);
            }
            let is_worth_it = length == reserved && reserved >= HUGE_AREA_BYTES_MIN;
            slab(reserved, is_worth_it).or_else(|| map_small(reserved))
        });
    found.unwrap_or_else(|| {
        let layout = Layout::from_size_align(reserved, PAGE_BYTES);
        handle_alloc_error(layout.expect("sizes were rounded before"))
    })
}

/// Takes a free area of this size.
fn pooled(reserved: usize) -> Option<NonNull<u8>> {
    let class = class(reserved)?;
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let Free(base) = pool.classes[class].pop()?;
    *pool.waiting(base) -= reserved;
    Some(base)
}

/// Merges free areas of the arena into one area, if it is large, or into a slab.
fn coalesced(reserved: usize, length: usize) -> Option<NonNull<u8>> {
    let class = class(reserved)?;
    let whole = reserved.max(HUGE_BYTES);
    let base = {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.arena_bytes < whole.max(COALESCE_BYTES_MIN).max(pool.coalesce_retry_bytes) {
            return None;
        }
        let Some(base) = pool.coalesce(whole) else {
            // Another attempt is worth it only when much more is free.
            pool.coalesce_retry_bytes = pool.arena_bytes + COALESCE_BYTES_MIN;
            return None;
        };
        pool.coalesce_retry_bytes = 0;
        pool.cut(base, reserved, class);
        base
    };
    // SAFETY: the area was just taken out of the pool, and lies in the arena.
    unsafe { huge::populate(base, length / HUGE_BYTES * HUGE_BYTES) };
    Some(base)
}

impl Pool {
    /// Returns the counter of free bytes that covers `base`.
    fn waiting(&mut self, base: NonNull<u8>) -> &mut usize {
        if arena::holds(base) { &mut self.arena_bytes } else { &mut self.bytes }
    }

    /// Frees all areas of a slab but the first; does nothing if the area is no slab.
    fn cut(&mut self, base: NonNull<u8>, reserved: usize, class: usize) {
        for start in (reserved..HUGE_BYTES).step_by(reserved) {
            // SAFETY: the area lies in the slab.
            self.classes[class].push(Free(unsafe { base.add(start) }));
            *self.waiting(base) += reserved;
        }
    }

    fn coalesce(&mut self, reserved: usize) -> Option<NonNull<u8>> {
        let mut areas = BTreeMap::new();
        for (class, waiting) in self.classes.iter().enumerate() {
            let here = waiting.iter().filter_map(|free| arena::offset_of(free.0.as_ptr()));
            areas.extend(here.map(|at| (at as usize, POOLED_BYTES_MIN << class)));
        }
        let start = coalesce_free(&mut areas, reserved, POOLED_BYTES_MAX)?;
        let base = arena::at(start)?;
        for waiting in &mut self.classes {
            waiting.retain(|free| !arena::holds(free.0));
        }
        for (at, bytes) in areas {
            if let (Some(class), Some(base)) = (class(bytes), arena::at(at)) {
                self.classes[class].push(Free(base));
            }
        }
        self.arena_bytes -= reserved;
        Some(base)
    }
}

/// Maps new memory, aligned to a huge page, of which the first `used` bytes, whole huge pages, will
/// be used.
fn map(bytes: usize, used: usize) -> Option<NonNull<u8>> {
    let shared = if class(bytes).is_some() { map_shared(bytes, used) } else { None };
    shared.or_else(|| map_private(bytes, used))
}

fn map_shared(bytes: usize, used: usize) -> Option<NonNull<u8>> {
    let base = arena::allocate(bytes)?;
    // SAFETY: the arena gave it to this caller alone.
    unsafe { huge::populate(base, used) };
    Some(base)
}

fn map_private(bytes: usize, used: usize) -> Option<NonNull<u8>> {
    let base = huge::map_private(bytes)?;
    // SAFETY: it was just mapped.
    unsafe { huge::advise(base, bytes, used) };
    Some(base)
}

/// Maps a new slab, returns its first area and frees the others; `None` when the pool has no room
/// for those. `is_worth_it`: all of the slab will be used.
fn slab(reserved: usize, is_worth_it: bool) -> Option<NonNull<u8>> {
    let class = class(reserved)?;
    let used = if is_worth_it { HUGE_BYTES } else { 0 };
    let rest = HUGE_BYTES - reserved;
    let has_room = || {
        let pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        pool.bytes + rest <= POOL_BYTES_MAX
    };
    let base = map_shared(HUGE_BYTES, used)
        .or_else(|| if has_room() { map_private(HUGE_BYTES, used) } else { None })?;
    POOL.lock().unwrap_or_else(PoisonError::into_inner).cut(base, reserved, class);
    Some(base)
}

/// Maps new memory for one area that is smaller than a slab.
fn map_small(bytes: usize) -> Option<NonNull<u8>> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let anywhere = std::ptr::null_mut();
    // SAFETY: a new private mapping at an address of the system's choice overlaps no other.
    let mapped = unsafe { mmap_anonymous(anywhere, bytes, protection, MapFlags::PRIVATE) };
    NonNull::new(mapped.ok()?.cast())
}

/// Frees an area that came from [`allocate`] with the same `reserved`.
///
/// # Safety
///
/// Nobody uses the area any more.
pub(crate) unsafe fn free(base: NonNull<u8>, reserved: usize) {
    // SAFETY: the caller says that it is unused.
    if unsafe { memory_disk::free(base, reserved) } {
        return;
    }
    if let Some(class) = class(reserved) {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        let in_arena = arena::holds(base);
        if in_arena || pool.bytes + reserved <= POOL_BYTES_MAX {
            *pool.waiting(base) += reserved;
            pool.classes[class].push(Free(base));
            return;
        }
    }
    // SAFETY: `allocate` mapped it, perhaps together with others, and the caller says it is unused.
    let unmapped = unsafe { munmap(base.as_ptr().cast(), reserved) };
    debug_assert!(unmapped.is_ok(), "a mapping of the pool must be known to the system");
}

fn class(reserved: usize) -> Option<usize> {
    let pooled = (POOLED_BYTES_MIN..=POOLED_BYTES_MAX).contains(&reserved);
    pooled.then(|| (reserved.trailing_zeros() - CLASS_BITS_MIN) as usize)
}
