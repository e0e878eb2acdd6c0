//! Clock, tasks, processor and randomness.

use std::future::Future;
use thiserror::Error;
use units::{Duration, Instant, Timestamp};

/// The clock of this machine.
pub trait Clock: 'static {
    /// Returns the present instant. It never decreases.
    fn now(&self) -> Instant;

    /// Number of this clock. Nodes whose clocks have one number read the same time.
    fn clock(&self) -> u64;

    /// Returns the present time of day. It may go back when the clock is set.
    fn timestamp(&self) -> Timestamp;

    /// Completes when `now() >= deadline`; at once if that is past.
    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + 'static;

    /// Completes after `length`.
    fn sleep(&self, length: Duration) -> impl Future<Output = ()> + 'static {
        self.sleep_until(self.now() + length)
    }
}

/// Concurrent activities on this node.
pub trait Tasks: 'static {
    /// Handle of a task. **Dropping it cancels the task**: the task does not run any further after
    /// its present poll, and its future is dropped at once or at the next turn of the world.
    type Task: 'static;

    /// Starts `future` as a task of this node. Its first poll happens after the present poll of
    /// the caller ends. Programs use [`crate::Scope`], which keeps the handles.
    fn spawn(&self, future: impl Future<Output = ()> + 'static) -> Self::Task;

    /// Starts the future that `build` returns as a task; `build` is called before this returns. A
    /// world that stores tasks in boxes builds the future there, which saves moving a large one.
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
    /// Occupies the processor for `cost`, a time on the reference processor (50 MHz RISC of TOCS
    /// 1997, Table I); a faster processor takes less. Requests are served one at a time, in the
    /// order of their calls. In a real world the work itself takes the time, and this call is free.
    fn compute(&self, cost: Duration) -> impl Future<Output = ()> + 'static;

    /// Returns the processor time that this node has used. Neither part ever decreases. In a real
    /// world it is that of the process, which other nodes of the process share.
    fn used(&self) -> ProcessorTime;

    /// Executes a job that may take long, while the tasks of this node go on. Jobs of a node are
    /// executed one at a time; the number of those that are queued is bounded, and further callers
    /// wait for room. The job costs the reference processor `cost`; in a real world it takes the
    /// time that it takes.
    ///
    /// A job whose future is dropped is not begun, or its result is dropped.
    ///
    /// # Errors
    /// [`JobFailed`] if the job panics, or if the node cannot execute jobs.
    fn compute_apart<R: Send + 'static>(
        &self,
        cost: Duration,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = Result<R, JobFailed>> + 'static;
}

/// Processor time since the beginning of a node.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ProcessorTime {
    /// All of it.
    pub all: Duration,
    /// Part of it in the operating system, as precisely as that counts. A simulated processor has
    /// none.
    pub system: Duration,
}

/// A job that has no result.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("a computation has failed: {cause}")]
pub struct JobFailed {
    /// Reason.
    pub cause: String,
}

/// Random numbers, reproducible where the world is.
pub trait Randomness: 'static {
    /// Returns 64 uniformly distributed bits.
    fn random(&self) -> u64;
}
