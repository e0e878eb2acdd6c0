//! Clock, tasks, processor and randomness of a real node, and the runtime they live on.
//!
//! Invariants: everything runs on one thread; a task ends when its handle is dropped; a panic in a
//! task is a wrong program and ends [`run`], it is never swallowed.

use futures_util::FutureExt;
use std::any::Any;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;
use std::task::Waker;
use tokio::task::{AbortHandle, LocalSet};

/// A running task; dropping it cancels it.
pub struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a panicking task leaves for [`run`].
#[derive(Default)]
struct Panicked {
    payload: Option<Box<dyn Any + Send>>,
    waiting: Option<Waker>,
}

thread_local! {
    static PANICKED: RefCell<Panicked> = RefCell::default();
}

/// Starts `future` as a task of this thread.
pub(crate) fn spawn(future: impl Future<Output = ()> + 'static) -> Task {
    let guarded = async move {
        if let Err(payload) = AssertUnwindSafe(future).catch_unwind().await {
            let waiting = PANICKED.with_borrow_mut(|panicked| {
                panicked.payload.get_or_insert(payload);
                panicked.waiting.take()
            });
            if let Some(waker) = waiting {
                waker.wake();
            }
        }
    };
    Task(tokio::task::spawn_local(guarded).abort_handle())
}

/// Runs `future` and the tasks it starts on this thread until `future` ends; then cancels them.
///
/// Worlds live inside: call [`crate::RealWorld::open`] within `future`. Panics when the system
/// cannot give a runtime, when called within another runtime, and when a task panicked.
pub fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system must have room for one event loop");
    let tasks = LocalSet::new();
    // A panic of an earlier run that nobody was left to see is not this one's.
    PANICKED.set(Panicked::default());
    tasks.block_on(&runtime, async {
        let mut future = pin!(future);
        poll_fn(|context| {
            let panic = PANICKED.with_borrow_mut(|panicked| {
                panicked.waiting = Some(context.waker().clone());
                panicked.payload.take()
            });
            match panic {
                Some(payload) => resume_unwind(payload),
                None => future.as_mut().poll(context),
            }
        })
        .await
    })
}
