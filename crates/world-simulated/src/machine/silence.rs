//! Silence: nodes that have stopped, and connections that were cut. Nothing arrives from them any
//! more, and no peer gets a departure.
//!
//! A machine on which this has not happened pays for the test of a flag.

use super::assembly::Machine;
use super::node::{Arrival, Node};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use units::PeerId;
use world::payload::Kind;

/// The silent nodes and connections of a machine.
#[derive(Default)]
pub(super) struct Silence {
    /// True from the first such fault on.
    has_begun: Cell<bool>,
    stopped: RefCell<BTreeSet<u32>>,
    /// Cut connections, by the numbers that they have at each of their nodes.
    cut: RefCell<BTreeSet<(u32, PeerId)>>,
    /// Transfers and pings that wait for a silent peer, by a number: their node, the connection,
    /// and the waker.
    waiting: RefCell<BTreeMap<u64, (u32, PeerId, Option<Waker>)>>,
    next: Cell<u64>,
}

impl Silence {
    /// True if some node has stopped or some connection was cut.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    pub(super) fn is_stopped(&self, node: u32) -> bool {
        self.has_begun() && self.stopped.borrow().contains(&node)
    }

    /// True if nothing arrives at `node` over the connection `peer`.
    pub(super) fn swallows(&self, node: u32, peer: PeerId) -> bool {
        self.is_stopped(node) || self.has_begun() && self.cut.borrow().contains(&(node, peer))
    }

    /// Notes that a stopped node was killed.
    pub(super) fn end(&self, node: u32) {
        self.stopped.borrow_mut().remove(&node);
    }

    /// Wakes everything that waits, after the end of a connection.
    pub(super) fn wake(&self) {
        if !self.has_begun() {
            return;
        }
        let mut waiting = self.waiting.borrow_mut();
        let wakers: Vec<Waker> =
            waiting.values_mut().filter_map(|(_, _, waker)| waker.take()).collect();
        drop(waiting);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns the connections over which transfers of `node` wait.
    pub(super) fn awaited_by(&self, node: u32) -> Vec<PeerId> {
        let waiting = self.waiting.borrow();
        let of_node = waiting.values().filter(|(of, ..)| *of == node);
        let peers: BTreeSet<PeerId> = of_node.map(|(_, peer, _)| *peer).collect();
        peers.into_iter().collect()
    }
}

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
        silence.waiting.borrow_mut().insert(number, (node.index, peer, None));
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
            entry.2 = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl<P: Kind> Drop for UntilEnded<'_, P> {
    fn drop(&mut self) {
        self.machine.silence.waiting.borrow_mut().remove(&self.number);
    }
}
