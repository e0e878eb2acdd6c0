//! Stops of nodes and cuts of connections, and the waits for silent peers.

use super::assembly::Machine;
use super::node::{Arrival, Node};
use super::silence::Waiting;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use units::PeerId;
use world::payload::Kind;

impl<P: Kind> Machine<P> {
    /// Stops `node`, as a process that gets SIGSTOP: it does nothing any more, and no peer learns
    /// of it. Its connections remain until a peer ends them, or the node is [killed](Self::kill).
    pub fn stop(&self, node: u32) {
        self.silence.has_begun.set(true);
        self.silence.stopped.borrow_mut().insert(node);
        for arrival in self.nodes[node as usize].inbox.take() {
            if let Arrival::Message { place } = arrival {
                self.forget(place);
            }
        }
        self.engine.cancel_node(node);
    }

    /// Cuts every connection between two nodes: from now on nothing arrives over it, and no side
    /// learns of it. New connections work.
    pub fn cut(&self, one: u32, other: u32) {
        self.silence.has_begun.set(true);
        let node = &self.nodes[one as usize];
        let links = node.links.borrow();
        for (here, link) in (0..).map(PeerId).zip(&*links) {
            if link.unless_ended().is_some_and(|link| link.node == other) {
                self.silence.cut.borrow_mut().extend([(one, here), (other, link.theirs)]);
            }
        }
    }

    /// True if nothing comes back to `node` over the connection `peer`.
    pub(super) fn is_silent(&self, node: &Node<P>, peer: PeerId) -> bool {
        let silence = &self.silence;
        silence.has_begun()
            && node.link(peer).is_some_and(|link| {
                silence.is_stopped(link.node) || silence.swallows(node.index, peer)
            })
    }
}

/// Future of the end of a connection on the side of one node.
pub(super) struct UntilEnded<'a, P: Kind> {
    machine: &'a Machine<P>,
    node: &'a Node<P>,
    peer: PeerId,
    number: u64,
}

impl<'a, P: Kind> UntilEnded<'a, P> {
    pub(super) fn new(machine: &'a Machine<P>, node: &'a Node<P>, peer: PeerId) -> Self {
        let silence = &machine.silence;
        let number = silence.next.replace(silence.next.get() + 1);
        let wait = Waiting { node: node.index, peer, waker: None };
        silence.waiting.borrow_mut().insert(number, wait);
        Self { machine, node, peer, number }
    }
}

impl<P: Kind> Future for UntilEnded<'_, P> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.node.link(self.peer).is_none() {
            return Poll::Ready(());
        }
        if let Some(entry) = self.machine.silence.waiting.borrow_mut().get_mut(&self.number) {
            entry.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl<P: Kind> Drop for UntilEnded<'_, P> {
    fn drop(&mut self) {
        self.machine.silence.waiting.borrow_mut().remove(&self.number);
    }
}
