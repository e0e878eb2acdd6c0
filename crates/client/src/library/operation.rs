//! Calls that a program began and waits for later.

use super::io_thread;
use interface::UserError;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// A call under way, which makes progress by itself. Also a future.
///
/// One that transfers memory of the caller ([`RawMemory`](super::RawMemory)) waits for its end when
/// it is dropped; any other goes on to its end.
#[must_use = "an operation must be waited for to know how it ended"]
pub struct Operation<T> {
    answer: oneshot::Receiver<Result<T, UserError>>,
    outcome: Option<Result<T, UserError>>,
    /// True when memory of the caller is in use until the end.
    uses_memory: bool,
    /// Process that began it. In a forked child it never ends: the I/O thread is the parent's.
    process: u32,
    /// Work on the result by the thread that takes it.
    finish: Option<Finish<T>>,
}

type Finish<T> = Box<dyn FnOnce(&mut T) + Send>;

impl<T> Operation<T> {
    pub(super) fn new(answer: oneshot::Receiver<Result<T, UserError>>, uses_memory: bool) -> Self {
        let process = std::process::id();
        Self { answer, outcome: None, uses_memory, process, finish: None }
    }

    /// Adds work on the result, done by the thread that takes it.
    pub(super) fn finish_with(mut self, finish: impl FnOnce(&mut T) + Send + 'static) -> Self {
        self.finish = Some(Box::new(finish));
        self
    }

    fn take(&mut self) -> Result<T, UserError> {
        let mut outcome = self.outcome.take().unwrap_or_else(|| Err(io_thread::failed()));
        if let (Ok(result), Some(finish)) = (&mut outcome, self.finish.take()) {
            finish(result);
        }
        outcome
    }

    /// Returns an operation that has ended already.
    pub(super) fn ended(outcome: Result<T, UserError>) -> Self {
        let (sender, answer) = oneshot::channel();
        drop(sender);
        let mut operation = Self::new(answer, false);
        operation.outcome = Some(outcome);
        operation
    }

    /// True if it ended when it was begun.
    pub(super) fn was_refused(&self) -> bool {
        self.outcome.is_some()
    }

    /// True once it has ended; never waits.
    pub fn test(&mut self) -> bool {
        if !self.has_outcome() {
            self.outcome = match self.answer.try_recv() {
                Ok(outcome) => Some(outcome),
                Err(oneshot::error::TryRecvError::Empty) => None,
                Err(oneshot::error::TryRecvError::Closed) => Some(Err(io_thread::failed())),
            };
        }
        self.outcome.is_some()
    }

    /// Waits until it has ended. The thread sleeps meanwhile.
    ///
    /// # Errors
    /// Error of the call.
    pub fn wait(mut self) -> Result<T, UserError> {
        pollster::block_on(poll_fn(|context| self.poll_ended(context)));
        self.take()
    }

    fn poll_ended(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.has_outcome() {
            let Poll::Ready(answer) = Pin::new(&mut self.answer).poll(context) else {
                return Poll::Pending;
            };
            self.outcome = Some(answer.unwrap_or_else(|_| Err(io_thread::failed())));
        }
        Poll::Ready(())
    }

    /// True when the outcome is known, as it is in a forked child.
    fn has_outcome(&mut self) -> bool {
        if self.outcome.is_none() && self.process != std::process::id() {
            self.outcome = Some(Err(io_thread::forked()));
        }
        self.outcome.is_some()
    }
}

impl<T> Future for Operation<T> {
    type Output = Result<T, UserError>;

    /// Must not be polled again when it is ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_ended(context).map(|()| self.take())
    }
}

impl<T> Unpin for Operation<T> {}

impl<T> Drop for Operation<T> {
    fn drop(&mut self) {
        if self.uses_memory && !self.test() {
            pollster::block_on(poll_fn(|context| self.poll_ended(context)));
        }
    }
}

/// Waits until at least one of `operations` has ended; returns its index, the lowest of several.
/// Returns `None` when there are none.
pub fn wait_any<T>(operations: &mut [Operation<T>]) -> Option<usize> {
    if operations.is_empty() {
        return None;
    }
    let first = poll_fn(|context| {
        let ended = operations.iter_mut().map(|one| one.poll_ended(context));
        // Each is polled, so that each wakes this thread.
        let ended: Vec<bool> = ended.map(|poll| poll.is_ready()).collect();
        ended.into_iter().position(|is_ready| is_ready).map_or(Poll::Pending, Poll::Ready)
    });
    Some(pollster::block_on(first))
}
