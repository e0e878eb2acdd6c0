//! Clock, tasks, processor and randomness.

use std::future::Future;
use units::{Duration, Instant};

/// The passing of time on this machine.
pub trait Clock: 'static {
    /// The present moment. Never runs backwards.
    fn now(&self) -> Instant;

    /// Returns when `now() >= deadline`; at once when it is past.
    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + 'static;

    /// Returns after `length`.
    fn sleep(&self, length: Duration) -> impl Future<Output = ()> + 'static {
        self.sleep_until(self.now() + length)
    }
}

/// Concurrent activities on this node.
pub trait Tasks: 'static {
    /// The handle of a task. **Dropping it cancels the task**: it runs no further line after its
    /// present poll, and its future is dropped at once or when the world next turns to it.
    type Task: 'static;

    /// Starts `future` as a task of this node. Its first poll happens after the present poll of
    /// the caller ends. Programs use [`crate::Scope`], which keeps the handles.
    fn spawn(&self, future: impl Future<Output = ()> + 'static) -> Self::Task;

    /// The same with the future that `build` returns, before this returns. A world that keeps its
    /// tasks in boxes has it built there; otherwise a large one is moved on its way.
    #[inline]
    fn spawn_built<F>(&self, build: impl FnOnce() -> F) -> Self::Task
    where
        F: Future<Output = ()> + 'static,
    {
        self.spawn(build())
    }
}

/// The node's processor.
pub trait Processor: 'static {
    /// Occupies the processor for `cost`, a time on the reference processor (50 MHz RISC of
    /// TOCS 1997, Table I); a faster processor takes less. Requests are served one at a time, in
    /// the order of their calls. In a real world the work itself takes the time and this is free.
    fn compute(&self, cost: Duration) -> impl Future<Output = ()> + 'static;
}

/// Random numbers, reproducible where the world is.
pub trait Randomness: 'static {
    /// 64 uniformly distributed bits.
    fn random(&self) -> u64;
}
