//! Bringing memory to a processor's caches before it is used: where nothing is foreseen, a
//! simulation of thousands of nodes waits for memory most of the time.

/// Bytes of a line of the caches.
const LINE: usize = 64;

/// The most of a future that is brought at once. What is polled first lies at its beginning, and
/// which of its states it is in, at its end.
const FUTURE_BYTES_MAX: usize = 1024;

/// Has the first `bytes_max` bytes of a value brought to the caches.
#[inline]
pub(crate) fn prefetch<T: ?Sized>(value: &T, bytes_max: usize) {
    let start = std::ptr::from_ref(value).cast::<i8>();
    for offset in (0..size_of_val(value).min(bytes_max)).step_by(LINE) {
        prefetch_line(start.wrapping_add(offset));
    }
}

/// Has what is likely to be needed of a future brought to the caches.
#[inline]
pub(crate) fn prefetch_future<F: ?Sized>(future: &F) {
    prefetch(future, FUTURE_BYTES_MAX);
    let start = std::ptr::from_ref(future).cast::<i8>();
    prefetch_line(start.wrapping_add(size_of_val(future).saturating_sub(1)));
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline]
fn prefetch_line(address: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: to prefetch is not to access; any address will do.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) }
}

#[cfg(not(target_arch = "x86_64"))]
fn prefetch_line(_address: *const i8) {}
