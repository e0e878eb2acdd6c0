//! Wakers of tasks, and the queue of the tasks that are ready.
//!
//! Invariants:
//!
//! - An engine gives a key to one task only, so a late wake of a task that has ended does nothing.
//! - Tasks leave the queue in the order in which they were woken.
//! - A wake from another thread than the engine's is sound, but may be lost. No simulated program
//!   causes one: nothing in a world is `Send`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

/// Key of a task: its place in the engine's table, and the generation of that place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TaskKey {
    pub(super) index: u32,
    /// Never 0.
    pub(super) generation: u32,
}

impl TaskKey {
    fn pack(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    fn unpack(packed: u64) -> Self {
        Self { index: packed as u32, generation: (packed >> 32) as u32 }
    }
}

/// Tasks of one engine that are ready to be polled, in the order in which they were woken. Most
/// often there is one, which needs no lock.
#[derive(Default)]
pub(super) struct ReadyQueue {
    /// The task ahead of those in `rest`; 0 for none.
    next: AtomicU64,
    /// Number of tasks in `rest`.
    rest_length: AtomicUsize,
    rest: Mutex<VecDeque<u64>>,
}

impl ReadyQueue {
    /// Appends a task.
    #[inline]
    pub(super) fn push(&self, key: TaskKey) {
        let length = self.rest_length.load(Ordering::Relaxed);
        if length == 0 && self.next.load(Ordering::Relaxed) == 0 {
            return self.next.store(key.pack(), Ordering::Relaxed);
        }
        self.lock_rest().push_back(key.pack());
        self.rest_length.store(length + 1, Ordering::Relaxed);
    }

    /// Takes the next task.
    #[inline]
    pub(super) fn take(&self) -> Option<TaskKey> {
        let next = self.next.load(Ordering::Relaxed);
        if next != 0 {
            self.next.store(0, Ordering::Relaxed);
            return Some(TaskKey::unpack(next));
        }
        match self.rest_length.load(Ordering::Relaxed) {
            0 => None,
            length => self.take_rest(length),
        }
    }

    fn take_rest(&self, length: usize) -> Option<TaskKey> {
        let first = self.lock_rest().pop_front()?;
        self.rest_length.store(length - 1, Ordering::Relaxed);
        Some(TaskKey::unpack(first))
    }

    /// Drops all tasks and the memory of the queue.
    pub(super) fn clear(&self) {
        self.next.store(0, Ordering::Relaxed);
        self.rest_length.store(0, Ordering::Relaxed);
        *self.lock_rest() = VecDeque::new();
    }

    fn lock_rest(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of a task that its wakers share.
pub(super) struct TaskWaker {
    pub(super) ready: Arc<ReadyQueue>,
    pub(super) key: TaskKey,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.push(self.key);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.push(self.key);
    }
}
