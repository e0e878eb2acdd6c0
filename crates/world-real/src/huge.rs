//! Memory in huge pages of 2 MiB, where the system has them.
//!
//! A direct transfer needs one DMA segment for each physically contiguous piece of memory: a read
//! of 1 MiB into ordinary pages has up to 256. Into a huge page it has one, and such reads are 1.4
//! to 3 times as fast here (docs/decisions/0033).
//!
//! Invariant: a request for huge pages falls back to ordinary pages, without an error.
#![allow(unsafe_code)]

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::os::fd::AsFd;
use std::ptr::NonNull;

/// Size of an ordinary page.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Size and alignment of a huge page.
pub(crate) const HUGE_BYTES: usize = 2 << 20;

/// Maps `bytes` of new private memory, a multiple of pages, aligned to [`HUGE_BYTES`].
pub(crate) fn map_private(bytes: usize) -> Option<NonNull<u8>> {
    let base = reserve(bytes)?;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: what was just reserved belongs to nobody else.
    let mapped = unsafe {
        mmap_anonymous(base.as_ptr().cast(), bytes, protection, MapFlags::PRIVATE | MapFlags::FIXED)
    };
    or_give_back(base, bytes, mapped.is_ok())
}

/// Maps the first `bytes` of a file, a multiple of pages, shared, aligned to [`HUGE_BYTES`].
pub(crate) fn map_shared(
    file: impl AsFd,
    bytes: usize,
    protection: ProtFlags,
) -> Option<NonNull<u8>> {
    let base = reserve(bytes)?;
    // Without NORESERVE: a file without guaranteed memory (hugetlb) must fail here, not by SIGBUS
    // on access.
    let flags = MapFlags::SHARED | MapFlags::FIXED;
    // SAFETY: what was just reserved belongs to nobody else.
    let mapped = unsafe { mmap(base.as_ptr().cast(), bytes, protection, flags, file, 0) };
    or_give_back(base, bytes, mapped.is_ok())
}

fn or_give_back(base: NonNull<u8>, bytes: usize, is_mapped: bool) -> Option<NonNull<u8>> {
    if !is_mapped {
        // SAFETY: no other code knows this address yet.
        let _ = unsafe { munmap(base.as_ptr().cast(), bytes) };
    }
    is_mapped.then_some(base)
}

/// Reserves an unused address range aligned to [`HUGE_BYTES`]. `bytes` are whole pages.
fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    let longer = bytes.checked_add(HUGE_BYTES)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the system's choice overlaps no other.
    let found = unsafe { mmap_anonymous(std::ptr::null_mut(), longer, ProtFlags::empty(), flags) };
    let found = found.ok()?.cast::<u8>();
    let before = found.align_offset(HUGE_BYTES);
    // SAFETY: less than `HUGE_BYTES` before, and `bytes` behind it, lie in the mapping.
    let base = unsafe { found.add(before) };
    // SAFETY: no other code knows the part before `base`.
    let _ = unsafe { munmap(found.cast(), before) };
    // SAFETY: nor the part behind it, which ends with the mapping.
    let _ = unsafe { munmap(base.add(bytes).cast(), HUGE_BYTES - before) };
    NonNull::new(base)
}

/// Advises the system about unused private memory: huge pages for the first `used` bytes, none for
/// the rest, which may never be used, whatever the policy of the system is.
///
/// # Safety
///
/// `bytes` bytes at `base` were mapped by [`map_private`], and `used` of them are whole pages.
pub(crate) unsafe fn advise(base: NonNull<u8>, bytes: usize, used: usize) {
    // SAFETY: the caller says that it is mapped; the advice changes no byte.
    let _ = unsafe { madvise(base.as_ptr().cast(), used, Advice::LinuxHugepage) };
    // SAFETY: `used` is at most `bytes`.
    let rest = unsafe { base.as_ptr().add(used) };
    // SAFETY: as above.
    let _ = unsafe { madvise(rest.cast(), bytes - used, Advice::LinuxNoHugepage) };
}

/// Populates unused shared memory with huge pages at once, because systems do not do so on first
/// touch by default. All of it becomes resident.
///
/// # Safety
///
/// `bytes` bytes at `base`, both multiples of [`HUGE_BYTES`], are mapped, writable and owned by the
/// caller.
pub(crate) unsafe fn populate(base: NonNull<u8>, bytes: usize) {
    for start in (0..bytes).step_by(HUGE_BYTES) {
        // SAFETY: `start` is less than `bytes`. Only a partly present huge page can be collapsed.
        unsafe { base.add(start).write_volatile(0) };
    }
    // Fails before Linux 6.1, and when no huge page is free. SAFETY: the caller says that it is
    // mapped; moving the pages changes no byte.
    let _ = unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_COLLAPSE) };
}

#[cfg(test)]
mod tests {
    //! Proves: memory in huge pages is aligned, and behaves like any other.

    use super::*;

    #[test]
    fn memory_begins_at_a_huge_page_and_can_be_written() {
        for bytes in [4096, HUGE_BYTES, 3 * HUGE_BYTES + 4096] {
            let base = map_private(bytes).expect("there is memory");
            assert_eq!(base.as_ptr().align_offset(HUGE_BYTES), 0);
            // SAFETY: it was just mapped, and is not used after it was unmapped.
            unsafe {
                advise(base, bytes, bytes / HUGE_BYTES * HUGE_BYTES);
                base.write_bytes(7, bytes);
                assert_eq!(base.add(bytes - 1).read(), 7);
                munmap(base.as_ptr().cast(), bytes).expect("it was mapped");
            }
        }
    }

    #[test]
    fn shared_memory_keeps_its_zeros_when_it_is_backed() {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file = rustix::fs::memfd_create("unisono-test", flags).expect("there is memory");
        rustix::fs::ftruncate(&file, 2 * HUGE_BYTES as u64).expect("it can be as long");
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let base = map_shared(&file, 2 * HUGE_BYTES, protection).expect("there is memory");
        // SAFETY: it was just mapped, and is not used after it was unmapped.
        unsafe {
            populate(base, 2 * HUGE_BYTES);
            let bytes = std::slice::from_raw_parts(base.as_ptr(), 2 * HUGE_BYTES);
            assert!(bytes.iter().all(|byte| *byte == 0));
            munmap(base.as_ptr().cast(), 2 * HUGE_BYTES).expect("it was mapped");
        }
    }
}
