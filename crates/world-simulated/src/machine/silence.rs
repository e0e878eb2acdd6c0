//! Silence: nodes that have stopped, and connections that were cut. Nothing arrives from them any
//! more, and no peer gets a departure.
//!
//! A machine on which this has not happened pays for the test of a flag.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;
use units::PeerId;

/// The silent nodes and connections of a machine.
#[derive(Default)]
pub(super) struct Silence {
    /// True from the first such fault on.
    pub(super) has_begun: Cell<bool>,
    pub(super) stopped: RefCell<BTreeSet<u32>>,
    /// Cut connections, by the numbers that they have at each of their nodes.
    pub(super) cut: RefCell<BTreeSet<(u32, PeerId)>>,
    /// Transfers and pings that wait for a silent peer, by a number.
    pub(super) waiting: RefCell<BTreeMap<u64, Waiting>>,
    pub(super) next: Cell<u64>,
}

/// Wait of a node for a silent peer.
pub(super) struct Waiting {
    pub(super) node: u32,
    pub(super) peer: PeerId,
    pub(super) waker: Option<Waker>,
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
            waiting.values_mut().filter_map(|wait| wait.waker.take()).collect();
        drop(waiting);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns the connections over which transfers of `node` wait.
    pub(super) fn awaited_by(&self, node: u32) -> Vec<PeerId> {
        let waiting = self.waiting.borrow();
        let of_node = waiting.values().filter(|wait| wait.node == node);
        let peers: BTreeSet<PeerId> = of_node.map(|wait| wait.peer).collect();
        peers.into_iter().collect()
    }
}
