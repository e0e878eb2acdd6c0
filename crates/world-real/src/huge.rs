//! Memory in the system's huge pages of 2 MiB, where it has them.
//!
//! A transfer past the page cache names to the device every piece of memory that does not follow
//! the one before it: one read of 1 MiB into ordinary pages has up to 256 of them. Into a huge page
//! it has one, and here such reads are 1.4 to 3 times as fast (docs/decisions/0026). Invariant:
//! whoever asks for huge pages gets the same memory without them, and no error.
#![allow(unsafe_code)]

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::os::fd::AsFd;
use std::ptr::NonNull;

/// Bytes of an ordinary page.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Bytes of a huge page, and what its address is a multiple of.
pub(crate) const HUGE_BYTES: usize = 2 << 20;

/// New private memory of `bytes`, a multiple of pages, at a multiple of [`HUGE_BYTES`].
pub(crate) fn map_private(bytes: usize) -> Option<NonNull<u8>> {
    let base = reserve(bytes)?;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: what was just reserved belongs to nobody else.
    let mapped = unsafe {
        mmap_anonymous(base.as_ptr().cast(), bytes, protection, MapFlags::PRIVATE | MapFlags::FIXED)
    };
    or_give_back(base, bytes, mapped.is_ok())
}

/// The first `bytes` of a file, a multiple of pages, seen by others too, at a multiple of
/// [`HUGE_BYTES`].
pub(crate) fn map_shared(
    file: impl AsFd,
    bytes: usize,
    protection: ProtFlags,
) -> Option<NonNull<u8>> {
    let base = reserve(bytes)?;
    // Not NORESERVE: a file whose memory cannot be promised (hugetlb) must be refused here, not
    // by a signal to whoever looks at it.
    let flags = MapFlags::SHARED | MapFlags::FIXED;
    // SAFETY: what was just reserved belongs to nobody else.
    let mapped = unsafe { mmap(base.as_ptr().cast(), bytes, protection, flags, file, 0) };
    or_give_back(base, bytes, mapped.is_ok())
}

fn or_give_back(base: NonNull<u8>, bytes: usize, is_mapped: bool) -> Option<NonNull<u8>> {
    if !is_mapped {
        // SAFETY: nobody has heard of it.
        let _ = unsafe { munmap(base.as_ptr().cast(), bytes) };
    }
    is_mapped.then_some(base)
}

/// Addresses that nobody uses, from a multiple of [`HUGE_BYTES`] on. `bytes` are whole pages.
fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    let longer = bytes.checked_add(HUGE_BYTES)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the system's choice touches nothing else.
    let found = unsafe { mmap_anonymous(std::ptr::null_mut(), longer, ProtFlags::empty(), flags) };
    let found = found.ok()?.cast::<u8>();
    let before = found.align_offset(HUGE_BYTES);
    // SAFETY: less than `HUGE_BYTES` before, and `bytes` behind it, lie in the mapping.
    let base = unsafe { found.add(before) };
    // SAFETY: nobody has heard of what lies before it.
    let _ = unsafe { munmap(found.cast(), before) };
    // SAFETY: nor of what lies behind, which ends where the mapping does.
    let _ = unsafe { munmap(base.add(bytes).cast(), HUGE_BYTES - before) };
    NonNull::new(base)
}

/// Of private memory that nobody has used yet the first `used` bytes take huge pages as they are
/// used, and the others do not, whatever the system does by itself: they may never be used.
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

/// Gives shared memory that nobody has used yet its huge pages now: systems give none by
/// themselves. All of it takes memory then.
///
/// # Safety
///
/// `bytes` bytes at `base`, multiples of [`HUGE_BYTES`] both, are mapped, can be written, and are
/// the caller's.
pub(crate) unsafe fn back(base: NonNull<u8>, bytes: usize) {
    for start in (0..bytes).step_by(HUGE_BYTES) {
        // SAFETY: `start` is less than `bytes`. Only what is there in part can be made whole.
        unsafe { base.add(start).write_volatile(0) };
    }
    // Refused by systems before Linux 6.1, and where there is no such page left.
    // SAFETY: the caller says that it is mapped; where the memory lies changes no byte.
    let _ = unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_COLLAPSE) };
}

#[cfg(test)]
mod tests {
    //! Proves: memory at huge pages is where it should be, and is memory like any other.

    use super::*;

    #[test]
    fn memory_begins_at_a_huge_page_and_can_be_written() {
        for bytes in [4096, HUGE_BYTES, 3 * HUGE_BYTES + 4096] {
            let base = map_private(bytes).expect("there is memory");
            assert_eq!(base.as_ptr().align_offset(HUGE_BYTES), 0);
            // SAFETY: it was just mapped, and is not used after it was given back.
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
        // SAFETY: it was just mapped, and is not used after it was given back.
        unsafe {
            back(base, 2 * HUGE_BYTES);
            let bytes = std::slice::from_raw_parts(base.as_ptr(), 2 * HUGE_BYTES);
            assert!(bytes.iter().all(|byte| *byte == 0));
            munmap(base.as_ptr().cast(), 2 * HUGE_BYTES).expect("it was mapped");
        }
    }
}
