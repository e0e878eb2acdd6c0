//! Places of nodes, and of the threads of their disks, on hosts whose cores they share.

use crate::engine::{Engine, Wakeup};
use crate::models::host::{ComputationId, Host};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Duration, Instant};

/// A host, and the tasks that wait for computations on it.
pub(crate) struct SharedHost {
    host: RefCell<Host>,
    /// Task of each computation that waits, in the order in which they began to.
    waiting: RefCell<Vec<(ComputationId, Wakeup)>>,
}

impl SharedHost {
    pub(crate) fn new(cores: u32, members: usize) -> Rc<Self> {
        let host = RefCell::new(Host::new(cores, members));
        Rc::new(Self { host, waiting: RefCell::default() })
    }
}

/// Place of a node or of a disk's thread on a host.
#[derive(Clone)]
pub(crate) struct HostMember {
    shared: Rc<SharedHost>,
    member: usize,
}

impl HostMember {
    pub(crate) fn new(shared: &Rc<SharedHost>, member: usize) -> Self {
        Self { shared: Rc::clone(shared), member }
    }

    /// Accepts urgent work that takes `length` on a core of its own, after the work before it.
    /// Returns its length with the present load.
    pub(crate) fn stretch(&self, now: Instant, length: Duration) -> Duration {
        self.shared.host.borrow_mut().stretch(self.member, now, length)
    }

    /// Notes until when the node has urgent work.
    pub(crate) fn note_urgent(&self, until: Instant) {
        self.shared.host.borrow_mut().note_urgent(self.member, until);
    }

    /// Begins a computation that takes `length` on a core of its own.
    pub(crate) fn begin(&self, now: Instant, length: Duration) -> ComputationId {
        self.shared.host.borrow_mut().begin(self.member, now, length)
    }

    /// Begins a wait in which the node polls.
    pub(crate) fn begin_polling(&self, now: Instant) {
        self.shared.host.borrow_mut().begin_polling(self.member, now);
    }

    /// Ends such a wait, and leaves its core to the others.
    pub(crate) fn end_polling(&self, engine: &Engine) {
        self.shared.host.borrow_mut().end_polling(self.member, engine.now());
        self.wake_others(engine);
    }

    /// Returns the end of a computation if no further work comes; nothing if it has ended.
    pub(crate) fn end_of(&self, now: Instant, id: ComputationId) -> Option<Instant> {
        self.shared.host.borrow_mut().end_of(self.member, now, id)
    }

    /// Lets the task of a computation look again, once, when another one of the host has ended.
    pub(crate) fn wait(&self, id: ComputationId, task: Wakeup) {
        let mut waiting = self.shared.waiting.borrow_mut();
        match waiting.iter_mut().find(|(waiting, _)| *waiting == id) {
            // It looked again for another reason.
            Some((_, known)) => *known = task,
            None => waiting.push((id, task)),
        }
    }

    /// Ends a computation, and leaves its cores to the others.
    pub(crate) fn end(&self, engine: &Engine, id: ComputationId) {
        self.shared.host.borrow_mut().cancel(self.member, engine.now(), id);
        self.wake_others(engine);
    }

    /// Lets tasks look again at the ends of their computations.
    fn wake_others(&self, engine: &Engine) {
        for (_, waiting) in self.shared.waiting.take() {
            engine.wake(waiting);
        }
    }
}
