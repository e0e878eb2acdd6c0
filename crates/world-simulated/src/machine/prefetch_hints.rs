//! Prefetch hints of a machine: the data that its timers and tasks will touch.

use super::assembly::Machine;
use super::flights::{Stage, Token};
use super::node::Node;
use crate::engine::{Engine, PrefetchDistance, PrefetchHints, Wakeup, prefetch};
use world::payload::Kind;

/// Largest part of a node's connections that is prefetched, in bytes: those to its partners in a
/// group.
const LINKS_BYTES_MAX: usize = 256;

impl<P: Kind> PrefetchHints for Machine<P> {
    fn prefetch_for_timer(&self, token: u64, distance: PrefetchDistance) {
        let token = Token(token);
        let node = &*self.nodes[token.node() as usize];
        if distance == PrefetchDistance::Far {
            prefetch(self.flights.borrow().bound(token.place()), usize::MAX);
        }
        match (distance, token.stage()) {
            (PrefetchDistance::Far, Stage::Leaves) => {}
            (PrefetchDistance::Far, Stage::Arrives) => prefetch(node, usize::MAX),
            (PrefetchDistance::Far, Stage::TakenIn) => {
                prefetch(node, usize::MAX);
                prefetch(self.flights.borrow_mut().get(token.place()), usize::MAX);
            }
            (PrefetchDistance::Near, Stage::Leaves | Stage::Arrives) => {}
            (PrefetchDistance::Near, Stage::TakenIn) => {
                let link = self.flights.borrow().bound(token.place()).to.theirs;
                if let Some(link) = node.links.borrow().get(link.0 as usize) {
                    prefetch(link, usize::MAX);
                }
                prefetch_receiver(&self.engine, node);
            }
        }
    }

    fn prefetch_for_poll(&self, node: u32, distance: PrefetchDistance) {
        let Some(node) = self.nodes.get(node as usize) else { return };
        match distance {
            PrefetchDistance::Far => prefetch(&**node, usize::MAX),
            PrefetchDistance::Near => prefetch(&node.links.borrow()[..], LINKS_BYTES_MAX),
        }
    }
}

/// Prefetches the tasks that an arrival wakes: the receiver of the node, then, most often, the task
/// that it woke the last time, which sends to a partner.
fn prefetch_receiver<P: Kind>(engine: &Engine, node: &Node<P>) {
    let receiver = node.receiver.borrow();
    if let Some(task) = receiver.as_ref().and_then(Wakeup::task_index) {
        engine.prefetch_task(task, PrefetchDistance::Near);
    }
    if let Some(task) = engine.task_woken_second(node.index) {
        engine.prefetch_task(task, PrefetchDistance::Near);
        prefetch(&node.links.borrow()[..], LINKS_BYTES_MAX);
    }
}
