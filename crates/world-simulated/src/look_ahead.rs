//! Looking ahead: what the next events will touch is brought to the processor's caches while those
//! before them happen. The events of one instant belong to many nodes, so that nearly all that an
//! event touches was pushed out of the caches since its node had the last one
//! ([decision 27](../../../docs/decisions/0027-events-are-foreseen.md)).
//!
//! Nothing here changes what happens, or when.

use crate::engine::Engine;
use crate::flights::{Stage, Token};
use crate::machine::{Machine, Node};
use crate::prefetch::prefetch;
use crate::waker;
use world::payload::Kind;

/// From how many tasks on it is worth its while: what fewer need stays in the caches.
pub(crate) const TASKS_MIN: usize = 500;

/// How far ahead. What lies behind a pointer can be foreseen when the pointer is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// After those that stand in the front of the queue: time for what is known at once.
    Later,
    /// After [`SOON`] other events: time for what that leads to.
    Soon,
}

/// Events before one that comes soon.
pub(crate) const SOON: usize = 2;

/// Somebody who knows what events will touch.
pub(crate) trait Foresee {
    /// He will be told this token.
    fn foresee(&self, token: u64, when: When);

    /// A task of `node` will be polled.
    fn foresee_task_of(&self, node: u32, when: When);
}

/// The most of a node's links that is brought at once: those to its partners in a group.
const LINKS_BYTES_MAX: usize = 256;

impl<P: Kind> Foresee for Machine<P> {
    fn foresee(&self, token: u64, when: When) {
        let token = Token(token);
        let node = &*self.nodes[token.node() as usize];
        if when == When::Later {
            prefetch(self.flights.borrow().bound(token.place()), usize::MAX);
        }
        match (when, token.stage()) {
            (When::Later, Stage::Leaves) => {}
            (When::Later, Stage::Arrives) => prefetch(node, usize::MAX),
            (When::Later, Stage::TakenIn) => {
                prefetch(node, usize::MAX);
                prefetch(self.flights.borrow_mut().get(token.place()), usize::MAX);
            }
            (When::Soon, Stage::Leaves | Stage::Arrives) => {}
            (When::Soon, Stage::TakenIn) => {
                let link = self.flights.borrow().bound(token.place()).to.theirs;
                if let Some(link) = node.links.borrow().get(link.0 as usize) {
                    prefetch(link, usize::MAX);
                }
                foresee_receiver(&self.engine, node);
            }
        }
    }

    fn foresee_task_of(&self, node: u32, when: When) {
        let Some(node) = self.nodes.get(node as usize) else { return };
        match when {
            When::Later => prefetch(&**node, usize::MAX),
            When::Soon => prefetch(&node.links.borrow()[..], LINKS_BYTES_MAX),
        }
    }
}

/// Whoever receives for a node is polled when something has come, and then, most often, the task
/// that it woke the last time, which sends to a partner.
fn foresee_receiver<P: Kind>(engine: &Engine, node: &Node<P>) {
    let receiver = node.receiver.borrow();
    if let Some(task) = receiver.as_ref().and_then(waker::task_of) {
        engine.foresee_task(task.index, When::Soon);
    }
    if let Some(task) = engine.woken_before(node.index) {
        engine.foresee_task(task, When::Soon);
        prefetch(&node.links.borrow()[..], LINKS_BYTES_MAX);
    }
}
