//! Tasks of a real node, and the runtime that they run on.
//!
//! Invariants:
//!
//! - All tasks run on one thread.
//! - A task ends when its handle is dropped.
//! - A panic in a task is a defect of the program: it ends [`run`] and is never swallowed.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::any::Any;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;
use std::task::Waker;
use tokio::runtime::Runtime;
use tokio::task::{AbortHandle, LocalSet};

/// Handle of a running task; dropping it cancels the task.
pub struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Payload of a task's panic, kept for [`run`].
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
    start_boxed(future.boxed_local())
}

/// [`start`] for all types of futures: the code of a task of tokio is compiled once, and not in
/// each crate for each place that starts a task.
fn start_boxed(future: LocalBoxFuture<'static, ()>) -> AbortHandle {
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

/// Runs `future` and the tasks that it starts on this thread until `future` ends; then cancels the
/// tasks.
///
/// Worlds live inside: call [`crate::RealWorld::open`] within `future`. Panics when the system
/// refuses a runtime, when called inside another runtime, and when a task panicked.
pub fn run<F: Future>(future: F) -> F::Output {
    EventLoop::new().run(future)
}

/// Runtime of this thread's tasks that also lives between the calls that run them: for programs
/// that are not async themselves.
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
    /// Returns an event loop without tasks. Panics when the system refuses a runtime.
    pub fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the system must have room for one event loop");
        // Discards a panic of an earlier loop that nobody collected.
        PANICKED.set(Panicked::default());
        Self { tasks: LocalSet::new(), runtime }
    }

    /// Runs `future` and all tasks until `future` ends; the tasks stay. Panics as [`run`] does.
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

    /// Polls the tasks and the system once, without waiting.
    pub fn turn(&self) {
        self.run(async {
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
        });
    }
}

/// Number of passes: tasks that wake one another alternate with events of the system.
const TURNS: u32 = 4;
