//! A lock between tasks of one node.

use crate::signal::Signal;
use std::cell::Cell;

/// Lock that one task holds at a time.
#[derive(Default)]
pub(crate) struct TaskLock {
    is_held: Cell<bool>,
    released: Signal,
}

/// A lock that is held. Released when dropped.
pub(crate) struct TaskLockGuard<'a>(&'a TaskLock);

impl TaskLock {
    /// Waits until no other task holds the lock.
    pub(crate) async fn lock(&self) -> TaskLockGuard<'_> {
        self.released.until(|| (!self.is_held.replace(true)).then_some(())).await;
        TaskLockGuard(self)
    }
}

impl Drop for TaskLockGuard<'_> {
    fn drop(&mut self) {
        self.0.is_held.set(false);
        self.0.released.notify();
    }
}
