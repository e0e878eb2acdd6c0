//! Wakers that are a task's number: no allocation, no reference count.
//!
//! Invariants: a key is never given to two tasks of one thread (generations come from one counter
//! of the thread), so a wake that comes late wakes nobody. A wake from another thread than the
//! engine's is lost, which no simulated program can cause: nothing in a world is `Send`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::num::NonZeroU64;
use std::task::{RawWaker, RawWakerVTable, Waker};

/// Which task: its place in the engine's table and the generation of that place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TaskKey {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

thread_local! {
    /// Not dropped with its thread, because every look at a value that is dropped asks first
    /// whether it still lives; an engine that ends gives the room back.
    static READY: RefCell<ManuallyDrop<VecDeque<u64>>> =
        const { RefCell::new(ManuallyDrop::new(VecDeque::new())) };
    /// The one to poll next, before those of the queue; most often it is the only one.
    static NEXT: Cell<Option<NonZeroU64>> = const { Cell::new(None) };
    /// How many there are in the queue.
    static QUEUED: Cell<usize> = const { Cell::new(0) };
    static GENERATION: Cell<u32> = const { Cell::new(0) };
}

/// A generation that no task of this thread had before (in the last 2^32); never 0.
pub(crate) fn next_generation() -> u32 {
    GENERATION.with(|last| {
        last.set(last.get().wrapping_add(1).max(1));
        last.get()
    })
}

/// Puts a task at the end of the queue of those to poll.
pub(crate) fn make_ready(key: TaskKey) {
    push(pack(key));
}

/// The next task to poll.
#[inline]
pub(crate) fn take_ready() -> Option<TaskKey> {
    match NEXT.take() {
        Some(next) => Some(unpack(next.get())),
        None if QUEUED.get() == 0 => None,
        None => take_queued(),
    }
}

fn take_queued() -> Option<TaskKey> {
    let first = READY.with(|ready| ready.borrow_mut().pop_front())?;
    QUEUED.set(QUEUED.get() - 1);
    Some(unpack(first))
}

/// Gives back the room of the queue, unless another engine of this thread uses it.
pub(crate) fn release_room() {
    READY.with(|ready| {
        let queue = &mut ready.borrow_mut();
        if queue.is_empty() {
            queue.shrink_to_fit();
        }
    });
}

fn push(packed: u64) {
    if NEXT.get().is_none() && QUEUED.get() == 0 {
        return NEXT.set(NonZeroU64::new(packed));
    }
    QUEUED.set(QUEUED.get() + 1);
    READY.with(|ready| ready.borrow_mut().push_back(packed));
}

fn pack(key: TaskKey) -> u64 {
    u64::from(key.generation) << 32 | u64::from(key.index)
}

fn unpack(packed: u64) -> TaskKey {
    TaskKey { index: packed as u32, generation: (packed >> 32) as u32 }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(
    |data| RawWaker::new(data, &VTABLE),
    |data| push(data as u64),
    |data| push(data as u64),
    |_| {},
);

const _: () = assert!(size_of::<*const ()>() == 8, "a task key must fit in a pointer");

/// The task that a waker wakes, if it is one of [`waker_of`].
pub(crate) fn task_of(waker: &Waker) -> Option<TaskKey> {
    std::ptr::eq(waker.vtable(), &VTABLE).then(|| unpack(waker.data().addr() as u64))
}

/// The waker of a task.
#[allow(unsafe_code)]
pub(crate) fn waker_of(key: TaskKey) -> Waker {
    let data = std::ptr::without_provenance(pack(key) as usize);
    // SAFETY: the data is a number that is never followed as a pointer; every function of the
    // table is free of memory effects beyond a thread-local queue, from any thread.
    unsafe { Waker::from_raw(RawWaker::new(data, &VTABLE)) }
}
