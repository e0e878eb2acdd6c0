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

/// The first `bytes` of a file, seen by others too, at a multiple of [`HUGE_BYTES`]. Memory is not
/// promised for all of it at once.
pub(crate) fn map_shared(
    file: impl AsFd,
    bytes: usize,
    protection: ProtFlags,
) -> Option<NonNull<u8>> {
    let base = reserve(bytes)?;
    let flags = MapFlags::SHARED | MapFlags::NORESERVE | MapFlags::FIXED;
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

/// Addresses that nobody uses, from a multiple of [`HUGE_BYTES`] on.
fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    let longer = bytes.checked_add(HUGE_BYTES)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the system's choice touches nothing else.
    let found = unsafe { mmap_anonymous(std::ptr::null_mut(), longer, ProtFlags::empty(), flags) };
    let found = found.ok()?.cast::<u8>();
    let before = found.align_offset(HUGE_BYTES);
    // SAFETY: both ends lie in the mapping, and nobody has heard of it.
    unsafe {
        let _ = munmap(found.cast(), before);
        let _ = munmap(found.add(before + bytes).cast(), HUGE_BYTES - before);
        NonNull::new(found.add(before))
    }
}

/// Private memory that nobody has used yet takes huge pages as it is used.
///
/// # Safety
///
/// `bytes` bytes at `base` were mapped by [`map_private`].
pub(crate) unsafe fn advise(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller says that it is mapped; the advice changes no byte.
    let _ = unsafe { madvise(base.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
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
    use super::*;

    #[test]
    fn memory_begins_at_a_huge_page_and_can_be_written() {
        for bytes in [4096, HUGE_BYTES, 3 * HUGE_BYTES + 4096] {
            let base = map_private(bytes).expect("there is memory");
            assert_eq!(base.as_ptr().align_offset(HUGE_BYTES), 0);
            // SAFETY: it was just mapped, and is not used after it was given back.
            unsafe {
                advise(base, bytes);
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
