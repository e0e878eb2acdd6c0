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
use tokio::runtime::Runtime;
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
    Task(start(future))
}

/// Starts `future` as a task of this thread, which nothing cancels but its handle.
fn start(future: impl Future<Output = ()> + 'static) -> AbortHandle {
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
    tokio::task::spawn_local(guarded).abort_handle()
}

/// Starts `future` as a task of this thread's event loop, which ends by itself or with the loop.
pub fn detach(future: impl Future<Output = ()> + 'static) {
    // This handle does not cancel the task when it is dropped, as [`Task`] does.
    drop(start(future));
}

/// Runs `future` and the tasks it starts on this thread until `future` ends; then cancels them.
///
/// Worlds live inside: call [`crate::RealWorld::open`] within `future`. Panics when the system
/// cannot give a runtime, when called within another runtime, and when a task panicked.
pub fn run<F: Future>(future: F) -> F::Output {
    EventLoop::new().run(future)
}

/// What tasks of this thread live on, also between the calls that let them run: for programs that
/// are not made of tasks themselves.
pub struct EventLoop {
    tasks: LocalSet,
    runtime: Runtime,
}

impl Default for EventLoop {
    fn default() -> Self {
        Self::new()
    }
}

impl EventLoop {
    /// One without tasks. Panics when the system cannot give one.
    pub fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the system must have room for one event loop");
        // A panic of an earlier loop that nobody was left to see is not this one's.
        PANICKED.set(Panicked::default());
        Self { tasks: LocalSet::new(), runtime }
    }

    /// Runs `future`, and all tasks, until `future` ends; the tasks stay. Panics as [`run`] does.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        self.tasks.block_on(&self.runtime, async {
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

    /// Lets the tasks do what they can without waiting.
    pub fn turn(&self) {
        self.run(async {
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
        });
    }
}

/// Tasks that wake one another, and what the system has for them, come in turns.
const TURNS: u32 = 4;
