//! Waiting for a condition that another task of the same node changes.
//!
//! Invariants:
//! - A dropped wait leaves no waker behind, so a signal that is never notified does not grow.
//! - Waiting tasks are woken in the order in which they began to wait.

use crate::scale::SmallVec;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// A set of tasks that wait for a change.
#[derive(Default)]
pub(crate) struct Signal {
    next: Cell<u64>,
    /// Wakers by ascending numbers.
    waiting: RefCell<Waiting>,
}

type Waiting = SmallVec<[(u64, Waker); 1]>;

impl Signal {
    /// Waits until `condition` returns a value. Calls it now and after each [`Signal::notify`].
    pub(crate) async fn until<T>(&self, mut condition: impl FnMut() -> Option<T>) -> T {
        if let Some(value) = condition() {
            return value;
        }
        let place = Place { signal: self, number: self.next.get() };
        self.next.set(place.number + 1);
        poll_fn(|context| {
            // A task that waits for several things is polled often, and the condition may be
            // costly.
            let is_rung = match self.find(place.number) {
                Ok(at) if self.waiting.borrow()[at].1.will_wake(context.waker()) => {
                    return Poll::Pending;
                }
                found => found.is_err(),
            };
            if is_rung && let Some(value) = condition() {
                return Poll::Ready(value);
            }
            // The condition may have changed the set of waiting tasks.
            let found = self.find(place.number);
            let waiter = (place.number, context.waker().clone());
            let mut waiting = self.waiting.borrow_mut();
            let replaced = match found {
                Ok(at) => Some(std::mem::replace(&mut waiting[at], waiter)),
                Err(at) => {
                    waiting.insert(at, waiter);
                    None
                }
            };
            // Outside the borrow: dropping the last waker of a task may drop the task.
            drop(waiting);
            drop(replaced);
            Poll::Pending
        })
        .await
    }

    fn find(&self, number: u64) -> Result<usize, usize> {
        self.waiting.borrow().binary_search_by_key(&number, |(number, _)| *number)
    }

    /// Wakes every waiting task, the one that has waited longest first.
    pub(crate) fn notify(&self) {
        for (_, waker) in std::mem::take(&mut *self.waiting.borrow_mut()) {
            waker.wake();
        }
    }
}

/// A place among the waiting tasks. Given up when dropped.
struct Place<'a> {
    signal: &'a Signal,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Ok(at) = self.signal.find(self.number) {
            let removed = self.signal.waiting.borrow_mut().remove(at);
            drop(removed);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: every waiting task is woken, and one that gives up leaves nothing behind.
    use super::*;
    use futures_util::task::noop_waker;
    use std::future::Future;
    use std::task::Context;

    #[test]
    fn dropped_wait_leaves_no_waker() {
        let signal = Signal::default();
        let waker = noop_waker();
        for _ in 0..3 {
            let mut wait = Box::pin(signal.until(|| None::<()>));
            assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!(signal.waiting.borrow().len(), 1);
        }
        assert!(signal.waiting.borrow().is_empty());
    }

    #[test]
    fn notify_wakes_every_waiting_task() {
        let (signal, set, waker) = (Signal::default(), Cell::new(false), noop_waker());
        let mut context = Context::from_waker(&waker);
        let wait = || Box::pin(signal.until(|| set.get().then_some(())));
        let (mut first, mut second) = (wait(), wait());
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert_eq!(signal.waiting.borrow().len(), 2);
        set.set(true);
        signal.notify();
        assert!(signal.waiting.borrow().is_empty());
        assert!(first.as_mut().poll(&mut context).is_ready());
        assert!(second.as_mut().poll(&mut context).is_ready());
    }
}
