//! The event engine: a queue of timed actions, and an executor for tasks.
//!
//! Invariants: time never runs backwards; actions at equal instants happen in the order in which
//! they were asked for (a sequence number decides); tasks that are ready run in the order in which
//! they were woken, before time moves on. Nothing here depends on the host, so two runs of one
//! program give the same [`Engine::digest`].

use crate::look_ahead::{self, Foresee, When};
use crate::prefetch::{prefetch, prefetch_future};
use crate::queue::EventQueue;
use crate::timeline::{SharedRecorder, Slice, Timeline};
use crate::waker::{self, TaskKey};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use units::{Duration, Instant};

/// A handle to the engine of one simulation; clones are handles to the same one.
#[derive(Clone)]
pub struct Engine(Rc<Inner>);

struct Inner {
    now: Cell<Instant>,
    events: Cell<u64>,
    digest: Cell<u64>,
    timers: RefCell<EventQueue<Action>>,
    rare: RefCell<Slab<Rare>>,
    /// Those who are called often, by the numbers they were given.
    callees: RefCell<Vec<Weak<dyn Expire>>>,
    /// The one of them that knows what events will touch.
    foreseeing: RefCell<Option<(Callee, Weak<dyn Foresee>)>>,
    /// By node: the task that was last polled right after another one of it, and woken.
    woken_after: RefCell<Vec<Option<u32>>>,
    /// The task that was woken and polled last, with its node.
    last_woken: Cell<(u32, u32)>,
    tasks: RefCell<Vec<Slot>>,
    free: RefCell<Vec<u32>>,
    timeline: Timeline,
}

/// What happens when a timer expires. What is rare is kept apart: entries of the queue move often.
#[derive(Clone, Copy)]
enum Action {
    /// Polls a task of an engine: what most timers are for.
    Poll(TaskKey),
    /// Calls somebody who is called often.
    Tell(Callee, u64),
    /// Anything else, by its place.
    Rare(u32),
}

/// What seldom happens when a timer expires.
enum Rare {
    /// Wakes somebody in between, such as a set of futures that wants to know which of them it is.
    Wake(Waker),
    Call(Rc<dyn Expire>, u64),
}

const _: () = assert!(size_of::<Action>() == 16, "entries of the queue must stay small");

/// Somebody whom an engine calls often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Callee(u32);

/// Something that the engine can call at a set time, without a task.
pub trait Expire {
    /// The time that was asked for has come; `token` is what the asker gave.
    fn expire(&self, token: u64);
}

/// The node of tasks that belong to none.
const ROOT: u32 = u32::MAX;

type BoxedTask = Pin<Box<dyn Future<Output = ()>>>;

/// A place for a task. It keeps its generation until the task has ended or was cancelled; one that
/// was cancelled by its own poll is dropped, and its place free, when that poll returns.
struct Slot {
    generation: u32,
    node: u32,
    /// The task, while it waits: not while it runs, and not in a place that is free.
    waiting: Option<BoxedTask>,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    /// An engine at time zero, with nothing to do.
    pub fn new() -> Self {
        Self::with(Timeline::default())
    }

    /// The same, and `recorder` is told of all that happens.
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
            callees: RefCell::default(),
            foreseeing: RefCell::default(),
            woken_after: RefCell::default(),
            last_woken: Cell::new((ROOT, 0)),
            tasks: RefCell::default(),
            free: RefCell::default(),
            timeline,
        }))
    }

    /// Tells the recorder, if there is one, of a slice that the program knows of.
    pub fn record<'a>(&self, slice: impl FnOnce() -> Slice<'a>) {
        self.0.timeline.slice(slice);
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.0.timeline
    }

    /// The present moment of the simulation.
    pub fn now(&self) -> Instant {
        self.0.now.get()
    }

    /// Number of timers that expired so far.
    pub fn events(&self) -> u64 {
        self.0.events.get()
    }

    /// A number that differs, almost surely, when any event of two runs differs.
    pub fn digest(&self) -> u64 {
        self.0.digest.get()
    }

    /// Mixes a fact of the simulation into the digest: who sent how much to whom, say.
    pub fn audit(&self, fact: u64) {
        let mixed = (self.0.digest.get() ^ fact).wrapping_mul(0x9fb2_1c65_1e98_df25);
        self.0.digest.set(mixed ^ (mixed >> 32));
    }

    /// Calls `target.expire(token)` at the instant `at`, or now when that is past.
    pub fn call_at(&self, at: Instant, target: Rc<dyn Expire>, token: u64) {
        self.push_rare(at, Rare::Call(target, token));
    }

    /// Whoever wants to be called often gets a number; nobody is called who is gone.
    pub(crate) fn register(&self, callee: Weak<dyn Expire>) -> Callee {
        let mut callees = self.0.callees.borrow_mut();
        callees.push(callee);
        Callee(callees.len() as u32 - 1)
    }

    /// The same for one who can foresee what events will touch, also those of tasks.
    pub(crate) fn register_foreseeing<F: Expire + Foresee + 'static>(
        &self,
        own: Weak<F>,
    ) -> Callee {
        let callee = self.register(Weak::<F>::clone(&own));
        *self.0.foreseeing.borrow_mut() = Some((callee, own));
        callee
    }

    /// Calls `callee.expire(token)` at the instant `at`, or now when that is past.
    #[inline]
    pub(crate) fn tell_at(&self, at: Instant, callee: Callee, token: u64) {
        self.push(at, Action::Tell(callee, token));
    }

    /// Returns when the simulation has reached `deadline`.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep { engine: self.clone(), deadline, armed: false }
    }

    /// Returns after `length`.
    pub fn sleep(&self, length: Duration) -> Sleep {
        self.sleep_until(self.now() + length)
    }

    /// Starts a task that belongs to `node`.
    #[inline]
    pub fn spawn(&self, node: u32, future: impl Future<Output = ()> + 'static) -> TaskHandle {
        self.spawn_built(node, || future)
    }

    /// The same with the future that `build` returns, which is built where it stays.
    #[inline]
    pub(crate) fn spawn_built<F>(&self, node: u32, build: impl FnOnce() -> F) -> TaskHandle
    where
        F: Future<Output = ()> + 'static,
    {
        // The room comes first: what is there before has to be kept for whoever drops it when
        // there is no room, and is moved later.
        let room = Box::<F>::new_uninit();
        let task: Pin<Box<F>> = Box::into_pin(Box::write(room, build()));
        let key = self.insert(node, task);
        waker::make_ready(key);
        TaskHandle { engine: self.clone(), key }
    }

    /// Drops every task of `node` that is not running at the moment.
    pub fn cancel_node(&self, node: u32) {
        let mut dropped = Vec::new();
        for (index, slot) in self.0.tasks.borrow_mut().iter_mut().enumerate() {
            if slot.node == node
                && let Some(task) = slot.waiting.take()
            {
                dropped.push(task);
                slot.generation = waker::next_generation();
                self.0.free.borrow_mut().push(index as u32);
            }
        }
        // Outside the borrow: destructors may cancel or start tasks.
        drop(dropped);
    }

    /// Runs the simulation until `program` returns. `Err` when nothing is left to do and it has
    /// not returned: every task waits for another.
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
            let ready = match waker::take_ready() {
                Some(ready) => {
                    if self.looks_ahead() {
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
                        // At once: no other task is ready when time moves on.
                        Action::Poll(task) => task,
                        Action::Tell(callee, token) => {
                            self.tell(callee, token);
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

    /// Moves on to the next event, and says what is to be done.
    #[inline(always)]
    fn expire_next(&self) -> Option<Action> {
        let (key, action) = self.0.timers.borrow_mut().pop()?;
        self.0.now.set(key.at);
        self.0.events.set(self.0.events.get() + 1);
        self.audit(key.at.as_ns() ^ key.sequence.rotate_left(40));
        if self.looks_ahead() {
            self.look_ahead();
        }
        Some(action)
    }

    #[inline]
    fn looks_ahead(&self) -> bool {
        self.0.tasks.borrow().len() >= look_ahead::TASKS_MIN
    }

    /// Remembers which task was woken after which.
    #[inline(never)]
    fn note_woken(&self, index: u32) {
        let node = self.0.tasks.borrow().get(index as usize).map_or(ROOT, |slot| slot.node);
        let (node_before, before) = self.0.last_woken.replace((node, index));
        if node == node_before && index != before && node != ROOT {
            let woken = &mut *self.0.woken_after.borrow_mut();
            woken.resize(woken.len().max(node as usize + 1), None);
            woken[node as usize] = Some(index);
        }
    }

    /// The task that was last polled right after another one of `node`, and woken.
    pub(crate) fn woken_before(&self, node: u32) -> Option<u32> {
        *self.0.woken_after.borrow().get(node as usize)?
    }

    /// Has what later events touch brought to the caches ([`look_ahead`]).
    #[inline(never)]
    fn look_ahead(&self) {
        let foreseeing = self.0.foreseeing.borrow();
        let Some((own, foreseeing)) = &*foreseeing else { return };
        let Some(foreseeing) = foreseeing.upgrade() else { return };
        let is_front_new = self.0.timers.borrow_mut().is_front_new();
        let timers = self.0.timers.borrow();
        let foresee = |action: Action, when| match action {
            Action::Poll(TaskKey { index, .. }) => {
                if let Some(node) = self.foresee_task(index, when) {
                    foreseeing.foresee_task_of(node, when);
                }
            }
            Action::Tell(callee, token) if callee == *own => foreseeing.foresee(token, when),
            Action::Tell(..) | Action::Rare(_) => {}
        };
        if is_front_new {
            timers.next_front().for_each(|action| foresee(action, When::Later));
            let first = (0..look_ahead::SOON).filter_map(|distance| timers.upcoming(distance));
            first.for_each(|action| foresee(action, When::Soon));
        }
        if let Some(action) = timers.upcoming(look_ahead::SOON) {
            foresee(action, When::Soon);
        }
    }

    /// Has what a poll of a task touches brought to the caches; returns the node of the task.
    pub(crate) fn foresee_task(&self, index: u32, when: When) -> Option<u32> {
        let tasks = self.0.tasks.borrow();
        let slot = tasks.get(index as usize)?;
        match (when, &slot.waiting) {
            (When::Later, _) => prefetch(slot, usize::MAX),
            (When::Soon, Some(task)) => prefetch_future(&**task),
            (When::Soon, None) => {}
        }
        Some(slot.node)
    }

    /// Does what is rare. (Outside the borrow: it may ask for more of it.)
    fn act(&self, place: u32) {
        let rare = self.0.rare.borrow_mut().remove(place as usize);
        match rare {
            Rare::Wake(waker) => waker.wake(),
            Rare::Call(target, token) => target.expire(token),
        }
    }

    fn tell(&self, callee: Callee, token: u64) {
        let callee = self.0.callees.borrow()[callee.0 as usize].upgrade();
        if let Some(callee) = callee {
            callee.expire(token);
        }
    }

    /// Whether `deadline` has come; if not, sees to it, once, that whoever polls is woken then.
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
        match waker::task_of(waker) {
            Some(task) => self.push(deadline, Action::Poll(task)),
            None => self.push_rare(deadline, Rare::Wake(waker.clone())),
        }
    }

    fn push_rare(&self, at: Instant, rare: Rare) {
        let place = self.0.rare.borrow_mut().insert(rare);
        self.push(at, Action::Rare(place as u32));
    }

    /// (Not inlined: there is one queue, and it is used everywhere.)
    #[inline(never)]
    fn push(&self, at: Instant, action: Action) {
        self.0.timers.borrow_mut().push(at, action);
    }

    fn insert(&self, node: u32, task: BoxedTask) -> TaskKey {
        let generation = waker::next_generation();
        let slot = Slot { generation, node, waiting: Some(task) };
        let mut tasks = self.0.tasks.borrow_mut();
        let reused = self.0.free.borrow_mut().pop();
        let index = reused.unwrap_or(tasks.len() as u32);
        match tasks.get_mut(index as usize) {
            Some(free) => *free = slot,
            None => tasks.push(slot),
        }
        self.0.timeline.task_waits(index);
        TaskKey { index, generation }
    }

    #[inline(always)]
    fn poll(&self, key: TaskKey) {
        let Some(mut task) = self.begin_poll(key) else { return };
        // To drop it would do nothing.
        let waker = ManuallyDrop::new(waker::waker_of(key));
        let outcome = task.as_mut().poll(&mut Context::from_waker(&waker));
        let mut tasks = self.0.tasks.borrow_mut();
        let slot = &mut tasks[key.index as usize];
        if outcome.is_pending() && slot.generation == key.generation {
            slot.waiting = Some(task);
            self.0.timeline.task_waits(key.index);
            return;
        }
        slot.generation = waker::next_generation();
        self.0.free.borrow_mut().push(key.index);
        // Outside the borrow: destructors may cancel or start tasks.
        drop(tasks);
        drop(task);
    }

    #[inline(always)]
    fn begin_poll(&self, key: TaskKey) -> Option<BoxedTask> {
        let mut tasks = self.0.tasks.borrow_mut();
        let slot = tasks.get_mut(key.index as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        let task = slot.waiting.take()?;
        self.0.timeline.task_runs(key.index);
        Some(task)
    }

    fn cancel(&self, key: TaskKey) {
        let dropped = {
            // A task may be cancelled while the engine itself is being dropped.
            let Ok(mut tasks) = self.0.tasks.try_borrow_mut() else { return };
            let Some(slot) = tasks.get_mut(key.index as usize) else { return };
            if slot.generation != key.generation {
                return;
            }
            slot.generation = waker::next_generation();
            let waiting = slot.waiting.take();
            if waiting.is_some() {
                self.0.free.borrow_mut().push(key.index);
            }
            waiting
        };
        drop(dropped);
    }

    /// Drops every task; breaks the cycle between tasks and the engine they hold.
    pub fn shut_down(&self) {
        loop {
            let tasks = std::mem::take(&mut *self.0.tasks.borrow_mut());
            self.0.free.borrow_mut().clear();
            if tasks.is_empty() {
                break;
            }
            drop(tasks);
        }
        let timers = std::mem::take(&mut *self.0.timers.borrow_mut());
        let rare = std::mem::take(&mut *self.0.rare.borrow_mut());
        drop((timers, rare));
        waker::release_room();
    }
}

/// Cancels its task when dropped.
pub struct TaskHandle {
    engine: Engine,
    key: TaskKey,
}

impl Drop for TaskHandle {
    fn drop(&mut self) {
        self.engine.cancel(self.key);
    }
}

/// A wait for an instant of simulated time.
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

/// Nothing can happen any more, and the program has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("every task of the simulation waits for another, {} ns after its start", .at.as_ns())]
pub struct Deadlock {
    /// When the last event happened.
    pub at: Instant,
}

#[cfg(test)]
mod tests {
    //! Proves: order of time, order at equal instants, cancellation, and that a deadlock is told.
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
