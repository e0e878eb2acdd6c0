//! Scopes: tasks that end together (structured concurrency).
//!
//! Invariants:
//!
//! - A task never outlives its scope.
//! - When a task fails, its siblings are cancelled before the failure is reported.
//! - A cancelled task does not run any further.

use crate::Tasks;
use crate::places::Places;
use futures_util::FutureExt;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Tasks of one node that fail and end together. Dropping the scope cancels them all.
///
/// `E` is the error of its tasks.
pub struct Scope<W: Tasks, E: 'static> {
    world: W,
    state: Rc<RefCell<State<W::Task, E>>>,
}

struct State<T, E> {
    started: u64,
    tasks: Places<Started<T>>,
    failure: Option<E>,
    closed: bool,
    waiting: Option<Waker>,
}

/// A task with its sequence number in its scope; places in the table are reused.
struct Started<T> {
    number: u64,
    task: T,
}

impl<W: Tasks, E: 'static> Scope<W, E> {
    /// Creates an empty scope on the node of `world`.
    pub fn new(world: W) -> Self {
        let tasks = Places::default();
        let state = State { started: 0, tasks, failure: None, closed: false, waiting: None };
        Self { world, state: Rc::new(RefCell::new(state)) }
    }

    /// Starts a task in the scope. After a failure no task starts any more.
    pub fn spawn(&self, future: impl Future<Output = Result<(), E>> + 'static) {
        self.spawn_built(|| future);
    }

    /// Starts a task with the future that `build` returns ([`Tasks::spawn_built`]). `build` is
    /// called only if the task starts.
    #[inline]
    pub fn spawn_built<F>(&self, build: impl FnOnce() -> F)
    where
        F: Future<Output = Result<(), E>> + 'static,
    {
        let Some(place) = self.next_place() else { return };
        let shared = Rc::clone(&self.state);
        // Not a block that awaits the future: that would store it twice, as a capture and as the
        // awaited value.
        let end = move |outcome| end_task(&shared, place, outcome);
        let task = self.world.spawn_built(|| build().map(end));
        self.enter(place, task);
    }

    /// Returns place and sequence number of the next task.
    fn next_place(&self) -> Option<(u32, u64)> {
        let mut state = self.state.borrow_mut();
        if state.closed {
            return None;
        }
        state.started += 1;
        Some((state.tasks.next(), state.started))
    }

    fn enter(&self, (place, number): (u32, u64), task: W::Task) {
        let inserted = self.state.borrow_mut().tasks.insert(Started { number, task });
        debug_assert!(inserted == place, "a task must not run before its spawn returns");
    }

    /// Number of tasks that have not ended.
    pub fn running(&self) -> usize {
        self.state.borrow().tasks.count()
    }

    /// Cancels every task at once. The scope can be used again afterwards.
    pub fn cancel(&self) {
        let tasks = std::mem::take(&mut self.state.borrow_mut().tasks);
        drop(tasks);
        wake(&self.state);
    }

    /// Waits until no task runs. Returns the first failure, if any, after cancelling the other
    /// tasks. One caller at a time may wait.
    pub async fn finished(&self) -> Result<(), E> {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if let Some(failure) = state.failure.take() {
                return Poll::Ready(Err(failure));
            }
            if state.tasks.count() == 0 {
                return Poll::Ready(Ok(()));
            }
            state.waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl<W: Tasks, E> Drop for Scope<W, E> {
    fn drop(&mut self) {
        self.state.borrow_mut().closed = true;
        self.cancel();
    }
}

fn end_task<T, E>(
    state: &RefCell<State<T, E>>,
    (place, number): (u32, u64),
    outcome: Result<(), E>,
) {
    let (own, siblings) = match outcome {
        Ok(()) => {
            let tasks = &mut state.borrow_mut().tasks;
            let own = tasks.remove_if(place, |started| started.number == number);
            (own.map(|started| started.task), None)
        }
        Err(error) => {
            let mut state = state.borrow_mut();
            state.closed = true;
            state.failure.get_or_insert(error);
            (None, Some(std::mem::take(&mut state.tasks)))
        }
    };
    // Outside the borrow: dropping a sibling runs its destructors, which may use the scope.
    drop((own, siblings));
    wake(state);
}

fn wake<T, E>(state: &RefCell<State<T, E>>) {
    let waiting = state.borrow_mut().waiting.take();
    if let Some(waker) = waiting {
        waker.wake();
    }
}
