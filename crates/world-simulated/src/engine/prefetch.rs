//! Memory prefetch: data of the next events is brought to the processor's caches ahead of them.
//!
//! The events of one instant belong to many nodes. The caches have lost nearly all that an event
//! touches since the previous event of its node, so a simulation of thousands of nodes would wait
//! for memory most of the time
//! ([decision 36](../../../../docs/decisions/0036-later-events-are-prefetched.md)).
//! (This is no *lookahead* in the sense of parallel simulation.)
//!
//! Invariant: a prefetch changes neither events nor their instants.

/// Number of tasks from which on prefetches pay off: the data of fewer stays in the caches.
pub(super) const PREFETCH_TASKS_MIN: usize = 500;

/// Number of events that precede a [`Near`](PrefetchDistance::Near) one.
pub(super) const NEAR_EVENTS: usize = 2;

/// Distance of an event for which data is prefetched. Data behind a pointer can be prefetched only
/// when the pointer itself has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PrefetchDistance {
    /// Behind the whole front of the queue: prefetches data at known addresses.
    Far,
    /// Behind [`NEAR_EVENTS`] other events: prefetches data behind pointers.
    Near,
}

/// A timer handler that knows which data its events touch.
pub(crate) trait PrefetchHints {
    /// Prefetches data of the event in which the handler receives `token`.
    fn prefetch_for_timer(&self, token: u64, distance: PrefetchDistance);

    /// Prefetches data of the next poll of a task of `node`.
    fn prefetch_for_poll(&self, node: u32, distance: PrefetchDistance);
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Largest part of a future that is prefetched, in bytes. Its beginning is polled first; its last
/// byte holds its state.
const FUTURE_BYTES_MAX: usize = 1024;

/// Prefetches the first `bytes_max` bytes of a value.
#[inline]
pub(crate) fn prefetch<T: ?Sized>(value: &T, bytes_max: usize) {
    let start = std::ptr::from_ref(value).cast::<i8>();
    for offset in (0..size_of_val(value).min(bytes_max)).step_by(LINE) {
        prefetch_line(start.wrapping_add(offset));
    }
}

/// Prefetches the parts of a future that its next poll is likely to touch.
#[inline]
pub(super) fn prefetch_future<F: ?Sized>(future: &F) {
    prefetch(future, FUTURE_BYTES_MAX);
    let start = std::ptr::from_ref(future).cast::<i8>();
    prefetch_line(start.wrapping_add(size_of_val(future).saturating_sub(1)));
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline]
fn prefetch_line(address: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch is no access; every address is permitted.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) }
}

#[cfg(not(target_arch = "x86_64"))]
fn prefetch_line(_address: *const i8) {}
