//! The event engine: a queue of timers, and an executor of tasks.
//!
//! Invariants:
//!
//! - Time never runs backwards.
//! - Timers of one instant expire in the order in which they were set; a sequence number decides.
//! - Ready tasks run in the order in which they were woken, before time moves on.
//! - Nothing depends on the host, so two runs of one program give the same [`Engine::digest`].

use super::event_queue::EventQueue;
use super::prefetch::{NEAR_EVENTS, PREFETCH_TASKS_MIN, PrefetchDistance, PrefetchHints};
use super::task_table::TaskTable;
use super::waker::TaskKey;
use crate::timeline::{SharedRecorder, Slice, Timeline};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use units::{Duration, Instant, Timestamp};

/// Handle to the engine of one simulation; clones are handles to the same engine.
#[derive(Clone)]
pub struct Engine(Rc<Inner>);

struct Inner {
    now: Cell<Instant>,
    events: Cell<u64>,
    digest: Cell<u64>,
    timers: RefCell<EventQueue<Action>>,
    rare: RefCell<Slab<Rare>>,
    /// Registered timer handlers, by their [`HandlerId`].
    handlers: RefCell<Vec<Weak<dyn TimerHandler>>>,
    /// The handler that gives prefetch hints.
    hints: RefCell<Option<(HandlerId, Weak<dyn PrefetchHints>)>>,
    /// For each node: its task that was last polled right after another one of it, by a wake.
    woken_after: RefCell<Vec<Option<u32>>>,
    /// Node and index of the task that was last polled by a wake.
    last_woken: Cell<(u32, u32)>,
    tasks: TaskTable,
    /// Key of the task that is being polled, and the data pointer of its waker.
    running: Cell<Option<(TaskKey, *const ())>>,
    timeline: Timeline,
}

/// Effect of a timer that expires. Rare effects are stored apart: queue entries move often.
#[derive(Clone, Copy)]
enum Action {
    /// Polls a task of this engine: the purpose of most timers.
    Poll(TaskKey),
    /// Invokes a registered handler with a token.
    Invoke(HandlerId, u64),
    /// Any other effect, by its place in `rare`.
    Rare(u32),
}

/// A rare effect of a timer that expires.
enum Rare {
    /// Wakes a waker that is not a task's own, such as that of a set of futures.
    Wake(Waker),
    Call(Rc<dyn TimerHandler>, u64),
}

const _: () = assert!(size_of::<Action>() == 16, "entries of the queue must stay small");

/// Number of a registered timer handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HandlerId(u32);

/// A handler that the engine invokes at a set time, without a task.
pub trait TimerHandler {
    /// Handles a timer that has expired; `token` is the one given when the timer was set.
    fn on_timer(&self, token: u64);
}

/// The means to continue a waiting task. A key of a task of this engine costs less than a waker.
pub(crate) enum Wakeup {
    /// A task of this engine.
    Task(TaskKey),
    /// Any other waker.
    Waker(Waker),
}

impl Wakeup {
    /// Index of the task in the engine's table, if this is a task's own wakeup.
    pub(crate) fn task_index(&self) -> Option<u32> {
        match self {
            Self::Task(key) => Some(key.index),
            Self::Waker(_) => None,
        }
    }
}

/// Node number of tasks that belong to no node.
const ROOT: u32 = u32::MAX;

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    /// Creates an engine at time zero, with nothing to do.
    pub fn new() -> Self {
        Self::with(Timeline::default())
    }

    /// Creates an engine that reports all that happens to `recorder`.
    pub fn recorded(recorder: SharedRecorder) -> Self {
        Self::with(Timeline::to(recorder))
    }

    fn with(timeline: Timeline) -> Self {
        Self(Rc::new(Inner {
            now: Cell::new(Instant::START),
            events: Cell::new(0),
            digest: Cell::new(0x9e37_79b9_7f4a_7c15),
            timers: RefCell::default(),
            rare: RefCell::default(),
            handlers: RefCell::default(),
            hints: RefCell::default(),
            woken_after: RefCell::default(),
            last_woken: Cell::new((ROOT, 0)),
            tasks: TaskTable::default(),
            running: Cell::new(None),
            timeline,
        }))
    }

    /// Reports a slice that the program knows of to the recorder, if there is one.
    pub fn record<'a>(&self, slice: impl FnOnce() -> Slice<'a>) {
        self.0.timeline.slice(slice);
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.0.timeline
    }

    /// Present instant of the simulation.
    pub fn now(&self) -> Instant {
        self.0.now.get()
    }

    /// Present time of day: simulations begin with the year 2000.
    pub fn timestamp(&self) -> Timestamp {
        const START_S: u64 = 946_684_800;
        Timestamp::from_ns(Timestamp::from_seconds(START_S).as_ns() + self.now().as_ns())
    }

    /// Number of timers that have expired so far.
    pub fn events(&self) -> u64 {
        self.0.events.get()
    }

    /// Hash of all events so far: almost surely different when any event of two runs differs.
    pub fn digest(&self) -> u64 {
        self.0.digest.get()
    }

    /// Mixes a fact of the simulation into the digest, such as sender, receiver and bytes of a
    /// message.
    pub fn audit(&self, fact: u64) {
        let mixed = (self.0.digest.get() ^ fact).wrapping_mul(0x9fb2_1c65_1e98_df25);
        self.0.digest.set(mixed ^ (mixed >> 32));
    }

    /// Invokes `target.on_timer(token)` at the instant `at`, or now when that is past.
    pub fn call_at(&self, at: Instant, target: Rc<dyn TimerHandler>, token: u64) {
        self.push_rare(at, Rare::Call(target, token));
    }

    /// Registers a handler that is invoked often. Once the handler is dropped, its timers have no
    /// effect.
    pub(crate) fn register(&self, handler: Weak<dyn TimerHandler>) -> HandlerId {
        let mut handlers = self.0.handlers.borrow_mut();
        handlers.push(handler);
        HandlerId(handlers.len() as u32 - 1)
    }

    /// Registers a handler that gives prefetch hints for its own timers and for polls of tasks.
    pub(crate) fn register_with_hints<H: TimerHandler + PrefetchHints + 'static>(
        &self,
        handler: Weak<H>,
    ) -> HandlerId {
        let id = self.register(Weak::<H>::clone(&handler));
        *self.0.hints.borrow_mut() = Some((id, handler));
        id
    }

    /// Invokes `handler.on_timer(token)` at the instant `at`, or now when that is past.
    #[inline]
    pub(crate) fn invoke_at(&self, at: Instant, handler: HandlerId, token: u64) {
        self.push(at, Action::Invoke(handler, token));
    }

    /// Returns a future that completes when the simulation has reached `deadline`.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep { engine: self.clone(), deadline, armed: false }
    }

    /// Returns a future that completes after `length`.
    pub fn sleep(&self, length: Duration) -> Sleep {
        self.sleep_until(self.now() + length)
    }

    /// Starts a task that belongs to `node`.
    #[inline]
    pub fn spawn(&self, node: u32, future: impl Future<Output = ()> + 'static) -> TaskHandle {
        self.spawn_built(node, || future)
    }

    /// Starts a task with the future that `build` returns, which is built in its final place.
    #[inline]
    pub(crate) fn spawn_built<F>(&self, node: u32, build: impl FnOnce() -> F) -> TaskHandle
    where
        F: Future<Output = ()> + 'static,
    {
        // The box comes first. If its allocation could fail after `build`, the compiler would keep
        // the future on the stack and move it later.
        let room = Box::<F>::new_uninit();
        let task: Pin<Box<F>> = Box::into_pin(Box::write(room, build()));
        let key = self.0.tasks.insert(node, task);
        self.0.timeline.task_waits(key.index);
        self.0.tasks.ready.push(key);
        TaskHandle { engine: self.clone(), key }
    }

    /// Drops every task of `node`, except the one that is running.
    pub fn cancel_node(&self, node: u32) {
        self.0.tasks.cancel_node(node);
    }

    /// Runs the simulation until `program` returns.
    ///
    /// # Errors
    /// Fails when nothing is left to do and `program` has not returned: every task waits for
    /// another.
    pub fn run<R: 'static>(
        &self,
        program: impl Future<Output = R> + 'static,
    ) -> Result<R, Deadlock> {
        let result = Rc::new((Cell::new(false), RefCell::new(None)));
        let shared = Rc::clone(&result);
        let _root = self.spawn(ROOT, async move {
            let output = program.await;
            *shared.1.borrow_mut() = Some(output);
            shared.0.set(true);
        });
        loop {
            let ready = match self.0.tasks.ready.take() {
                Some(ready) => {
                    if self.is_large() {
                        self.note_woken(ready.index);
                    }
                    ready
                }
                None => {
                    if result.0.get()
                        && let Some(output) = result.1.borrow_mut().take()
                    {
                        return Ok(output);
                    }
                    let Some(action) = self.expire_next() else {
                        return Err(Deadlock { at: self.now() });
                    };
                    match action {
                        // Polled at once: no other task is ready when time moves on.
                        Action::Poll(task) => task,
                        Action::Invoke(handler, token) => {
                            self.invoke(handler, token);
                            continue;
                        }
                        Action::Rare(place) => {
                            self.act(place);
                            continue;
                        }
                    }
                }
            };
            self.poll(ready);
        }
    }

    /// Moves time on to the next timer. Returns its effect.
    #[inline(always)]
    fn expire_next(&self) -> Option<Action> {
        let (key, action) = self.0.timers.borrow_mut().pop()?;
        self.0.now.set(key.at);
        self.0.events.set(self.0.events.get() + 1);
        self.audit(key.at.as_ns() ^ key.sequence.rotate_left(40));
        if self.is_large() {
            self.prefetch_upcoming();
        }
        Some(action)
    }

    /// True when there are so many tasks that prefetches pay off.
    #[inline]
    fn is_large(&self) -> bool {
        self.0.tasks.len() >= PREFETCH_TASKS_MIN
    }

    /// Records the order in which tasks of one node are woken.
    #[inline(never)]
    fn note_woken(&self, index: u32) {
        let node = self.0.tasks.node_of(index).unwrap_or(ROOT);
        let (node_before, before) = self.0.last_woken.replace((node, index));
        if node == node_before && index != before && node != ROOT {
            let woken = &mut *self.0.woken_after.borrow_mut();
            woken.resize(woken.len().max(node as usize + 1), None);
            woken[node as usize] = Some(index);
        }
    }

    /// Index of the task of `node` that was last polled, by a wake, right after another one of it.
    pub(crate) fn task_woken_second(&self, node: u32) -> Option<u32> {
        *self.0.woken_after.borrow().get(node as usize)?
    }

    /// Prefetches the data of later events ([`prefetch`](super::prefetch)).
    #[inline(never)]
    fn prefetch_upcoming(&self) {
        let hints = self.0.hints.borrow();
        let Some((own, hints)) = &*hints else { return };
        let Some(hints) = hints.upgrade() else { return };
        let is_front_new = self.0.timers.borrow_mut().is_front_new();
        let timers = self.0.timers.borrow();
        let prefetch_for = |action: Action, distance| match action {
            Action::Poll(TaskKey { index, .. }) => {
                if let Some(node) = self.prefetch_task(index, distance) {
                    hints.prefetch_for_poll(node, distance);
                }
            }
            Action::Invoke(handler, token) if handler == *own => {
                hints.prefetch_for_timer(token, distance);
            }
            Action::Invoke(..) | Action::Rare(_) => {}
        };
        if is_front_new {
            timers.next_front().for_each(|action| prefetch_for(action, PrefetchDistance::Far));
            let first = (0..NEAR_EVENTS).filter_map(|distance| timers.upcoming(distance));
            first.for_each(|action| prefetch_for(action, PrefetchDistance::Near));
        }
        if let Some(action) = timers.upcoming(NEAR_EVENTS) {
            prefetch_for(action, PrefetchDistance::Near);
        }
    }

    /// Prefetches the data that a poll of a task touches. Returns the node of the task.
    pub(crate) fn prefetch_task(&self, index: u32, distance: PrefetchDistance) -> Option<u32> {
        self.0.tasks.prefetch(index, distance)
    }

    /// Carries out a rare effect, outside the borrow: it may add more of them.
    fn act(&self, place: u32) {
        let rare = self.0.rare.borrow_mut().remove(place as usize);
        match rare {
            Rare::Wake(waker) => waker.wake(),
            Rare::Call(target, token) => target.on_timer(token),
        }
    }

    fn invoke(&self, handler: HandlerId, token: u64) {
        let handler = self.0.handlers.borrow()[handler.0 as usize].upgrade();
        if let Some(handler) = handler {
            handler.on_timer(token);
        }
    }

    /// Returns `Ready` if `deadline` has come. Otherwise sets, once, a timer that wakes the caller
    /// then.
    #[inline]
    pub(crate) fn wait_until(
        &self,
        deadline: Instant,
        armed: &mut bool,
        context: &Context<'_>,
    ) -> Poll<()> {
        if self.now() >= deadline {
            return Poll::Ready(());
        }
        if !*armed {
            self.arm(deadline, context.waker());
            *armed = true;
        }
        Poll::Pending
    }

    fn arm(&self, deadline: Instant, waker: &Waker) {
        match self.wakeup(waker) {
            Wakeup::Task(task) => self.push(deadline, Action::Poll(task)),
            Wakeup::Waker(waker) => self.push_rare(deadline, Rare::Wake(waker)),
        }
    }

    /// Returns the wakeup of the running task if `waker` is its own, otherwise a clone of `waker`.
    #[inline]
    pub(crate) fn wakeup(&self, waker: &Waker) -> Wakeup {
        match self.0.running.get() {
            Some((task, data)) if data == waker.data() => Wakeup::Task(task),
            _ => Wakeup::Waker(waker.clone()),
        }
    }

    /// Wakes a task.
    #[inline]
    pub(crate) fn wake(&self, wakeup: Wakeup) {
        match wakeup {
            Wakeup::Task(task) => self.0.tasks.ready.push(task),
            Wakeup::Waker(waker) => waker.wake(),
        }
    }

    fn push_rare(&self, at: Instant, rare: Rare) {
        let place = self.0.rare.borrow_mut().insert(rare);
        self.push(at, Action::Rare(place as u32));
    }

    /// Appends a timer. (Not inlined: the one copy of the queue's code is used everywhere.)
    #[inline(never)]
    fn push(&self, at: Instant, action: Action) {
        self.0.timers.borrow_mut().push(at, action);
    }

    #[inline(always)]
    fn poll(&self, key: TaskKey) {
        let Some(mut polled) = self.0.tasks.take(key) else { return };
        self.0.timeline.task_runs(key.index);
        self.0.running.set(Some((key, polled.waker.data())));
        let outcome = polled.task.as_mut().poll(&mut Context::from_waker(&polled.waker));
        self.0.running.set(None);
        if self.0.tasks.put_back(key, polled, outcome.is_ready()) {
            self.0.timeline.task_waits(key.index);
        }
    }

    /// Drops every task, which breaks the cycle between tasks and the engine that they hold.
    pub fn shut_down(&self) {
        self.0.tasks.clear();
        let timers = std::mem::take(&mut *self.0.timers.borrow_mut());
        let rare = std::mem::take(&mut *self.0.rare.borrow_mut());
        drop((timers, rare));
        self.0.tasks.ready.clear();
    }
}

/// Handle to a task; dropping it cancels the task.
pub struct TaskHandle {
    engine: Engine,
    key: TaskKey,
}

impl Drop for TaskHandle {
    fn drop(&mut self) {
        self.engine.0.tasks.cancel(self.key);
    }
}

/// Future that completes at an instant of simulated time.
pub struct Sleep {
    engine: Engine,
    deadline: Instant,
    armed: bool,
}

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { engine, deadline, armed } = self.get_mut();
        engine.wait_until(*deadline, armed, context)
    }
}

/// Error of a simulation in which nothing can happen any more, although its program has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "deadlock: all tasks of the simulation wait for one another, {} ns after its start",
    .at.as_ns()
)]
pub struct Deadlock {
    /// Instant of the last event.
    pub at: Instant,
}

#[cfg(test)]
mod tests {
    //! Proves: order of time, order at equal instants, cancellation, and the report of a deadlock.
    use super::*;

    fn log() -> (Rc<RefCell<Vec<u32>>>, impl Fn(u32) + Clone) {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let writer = Rc::clone(&seen);
        (seen, move |n| writer.borrow_mut().push(n))
    }

    #[test]
    fn equal_instants_keep_the_order_of_asking() {
        let engine = Engine::new();
        let (seen, note) = log();
        let mut handles = Vec::new();
        for n in 0..10 {
            let (engine, note) = (engine.clone(), note.clone());
            handles.push(engine.clone().spawn(0, async move {
                engine.sleep(Duration::from_us(u64::from(n % 2))).await;
                note(n);
            }));
        }
        let own = engine.clone();
        engine.run(async move { own.sleep(Duration::from_ms(1)).await }).unwrap();
        assert_eq!(*seen.borrow(), [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]);
    }

    #[test]
    fn a_dropped_task_runs_no_further() {
        let engine = Engine::new();
        let (seen, note) = log();
        let own = engine.clone();
        let task = engine.spawn(0, async move {
            own.sleep(Duration::from_us(5)).await;
            note(1);
        });
        let own = engine.clone();
        engine
            .run(async move {
                own.sleep(Duration::from_us(1)).await;
                drop(task);
                own.sleep(Duration::from_us(9)).await;
            })
            .unwrap();
        assert!(seen.borrow().is_empty());
    }

    #[test]
    fn waiting_for_nothing_is_a_deadlock() {
        let engine = Engine::new();
        assert!(engine.run(std::future::pending::<()>()).is_err());
    }
}
