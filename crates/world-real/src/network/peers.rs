//! Connections of one node, its receive queue and its exposed memory.
//!
//! Invariants:
//!
//! - A peer that leaves is announced once, after its last message.
//! - A task of the node ends with the node.

use super::connection::Connection;
use super::inbox::Inbox;
use super::receive_pool::ReceivePool;
use super::regions::Regions;
use crate::config::ReceiveLimits;
use crate::memory::RealMemory;
use crate::tasks::{self, Task};
use crate::wire_protection::WireProtection;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use units::{PeerId, RegionId};
use world::{Incoming, NetworkError};

/// Peers of one node.
pub(crate) struct Peers {
    /// Messages and departures that the program has not received yet.
    pub(crate) inbox: Inbox,
    /// Memory that this node exposes.
    pub(crate) regions: Regions,
    /// Limits on what peers may make this node hold, with the room for frames that arrive.
    pub(crate) limits: Option<(ReceiveLimits, Rc<ReceivePool>)>,
    /// True if this node maps the memory that peers lend. A node that lends does not: its memory
    /// must not depend on the peers that it serves.
    pub(crate) borrows: bool,
    connections: RefCell<BTreeMap<PeerId, Rc<Connection>>>,
    /// The accept task, the handshakes, and tasks that return loans.
    tasks: RefCell<BTreeMap<u64, Task>>,
    next_task: Cell<u64>,
}

impl Peers {
    /// Returns the peers of a node without connections.
    pub(crate) fn new(borrows: bool, limits: Option<ReceiveLimits>) -> Self {
        let pool = |limits: ReceiveLimits| {
            (limits, ReceivePool::new(limits.held_bytes_max, limits.stall_timeout))
        };
        Self {
            limits: limits.map(pool),
            inbox: Inbox::default(),
            regions: Regions::default(),
            borrows,
            connections: RefCell::default(),
            tasks: RefCell::default(),
            next_task: Cell::new(0),
        }
    }

    /// Runs `work` as a task that ends with the node.
    pub(crate) fn run(self: &Rc<Self>, work: impl Future<Output = ()> + 'static) {
        let number = self.next_task.get();
        self.next_task.set(number + 1);
        let peers = Rc::clone(self);
        let task = tasks::spawn(async move {
            work.await;
            let own = peers.tasks.borrow_mut().remove(&number);
            drop(own);
        });
        self.tasks.borrow_mut().insert(number, task);
    }

    /// Adds a connection whose handshake succeeded.
    pub(super) fn add(&self, connection: &Rc<Connection>) {
        self.connections.borrow_mut().insert(connection.peer, Rc::clone(connection));
    }

    /// Ends `connection` and announces the departure of its peer, unless it has ended already.
    pub(crate) fn end(&self, connection: &Rc<Connection>, cause: &str) {
        if connection.end(cause) {
            let (peer, cause) = (connection.peer, cause.to_owned());
            self.inbox.push(connection, Incoming::Departed { peer, cause }, 0, None);
        }
    }

    /// Drops the state of an ended connection.
    pub(crate) fn forget(&self, connection: &Connection) {
        self.regions.forget(connection.peer);
        let own = self.connections.borrow_mut().remove(&connection.peer);
        let tasks = connection.tasks.take();
        drop((own, tasks));
    }

    /// Ends the connection with `peer`, without announcing the departure here.
    pub(crate) fn disconnect(&self, peer: PeerId) {
        if let Ok(connection) = self.connection(peer) {
            connection.end("this node ended the connection");
            self.inbox.forget(&connection);
        }
    }

    /// Returns the connection with `peer`; the error says why there is none.
    pub(crate) fn connection(&self, peer: PeerId) -> Result<Rc<Connection>, String> {
        let connection = self.connections.borrow().get(&peer).cloned();
        let connection = connection.ok_or("the connection has ended")?;
        match connection.departed() {
            Some(cause) => Err(cause),
            None => Ok(connection),
        }
    }

    /// Asks a peer for a sign of life; the error is the cause of the end of the connection.
    pub(crate) async fn ping(&self, peer: PeerId) -> Result<(), String> {
        let connection = self.connection(peer)?;
        let answer = connection.ping().await;
        answer.map(|_| ()).map_err(|_| connection.departed().unwrap_or_default())
    }

    /// Number of bytes that have moved over the connection with `peer`.
    pub(crate) fn moved_bytes(&self, peer: PeerId) -> u64 {
        self.connections.borrow().get(&peer).map_or(0, |connection| connection.moved_bytes())
    }

    /// Protection of the TCP connection with `peer`; `None` if there is none.
    pub(crate) fn protection(&self, peer: PeerId) -> Option<WireProtection> {
        let connection = self.connection(peer).ok().filter(|connection| !connection.local)?;
        Some(connection.protection)
    }

    /// Number of bytes that have come from `peer`.
    pub(crate) fn received_bytes(&self, peer: PeerId) -> u64 {
        let connections = self.connections.borrow();
        connections.get(&peer).map_or(0, |connection| connection.received_bytes.get())
    }

    /// Returns the peers that this node waits for.
    pub(crate) fn awaited(&self) -> Vec<PeerId> {
        let connections = self.connections.borrow();
        let awaited = connections.values().filter(|connection| connection.is_awaited());
        awaited.map(|connection| connection.peer).collect()
    }

    /// Exposes `memory` to `peers`; returns when all of them have acknowledged it.
    pub(crate) async fn expose(
        &self,
        memory: &RealMemory,
        peers: &[PeerId],
    ) -> Result<RegionId, NetworkError> {
        let region = self.regions.add(memory, peers);
        let withdrawn_unless_done = WithdrawnOnDrop { peers: self, region };
        self.announce(region, memory, peers).await?;
        std::mem::forget(withdrawn_unless_done);
        Ok(region)
    }

    /// Exposes `memory` to all peers, also to later ones. The region id cannot be guessed.
    pub(crate) fn expose_to_all(&self, memory: &RealMemory) -> RegionId {
        let connections: Vec<_> = self.connections.borrow().values().cloned().collect();
        self.regions.add_open(memory, &connections)
    }

    /// Sends the exposure of a region to `peers`; returns when all of them have acknowledged it.
    async fn announce(
        &self,
        region: RegionId,
        memory: &RealMemory,
        peers: &[PeerId],
    ) -> Result<(), NetworkError> {
        let mut answers = Vec::with_capacity(peers.len());
        for &peer in peers {
            let connection = self.connection(peer);
            let connection = connection.map_err(|cause| NetworkError::Departed { peer, cause })?;
            let answer = connection.expose(region, memory);
            answers.push((connection, answer));
        }
        for (connection, answer) in answers {
            // A peer never refuses an exposure; the channel closes when the connection ends.
            if answer.await.is_err() {
                let cause = connection.departed().unwrap_or_default();
                return Err(NetworkError::Departed { peer: connection.peer, cause });
            }
        }
        Ok(())
    }

    /// Withdraws `region`. Begins at once, also when the returned future is dropped; the future
    /// ends when no connected peer uses the region. A foreign memory, which only this process
    /// writes, is withdrawn without a wait.
    pub(crate) fn withdraw(&self, region: RegionId) -> impl Future<Output = ()> + use<> {
        let withdrawal = self.regions.remove(region, |peer, withdrawal| {
            let connection = self.connections.borrow().get(&peer).cloned();
            match connection {
                Some(connection) => connection.withdraw(region, withdrawal),
                None => withdrawal.peer_done(),
            }
        });
        async move {
            if let Some(withdrawal) = withdrawal {
                withdrawal.finished().await;
            }
        }
    }

    /// Ends all connections and tasks.
    pub(super) fn close(&self) {
        self.regions.leak_all();
        let connections = std::mem::take(&mut *self.connections.borrow_mut());
        for connection in connections.values() {
            connection.end("this node has stopped");
            connection.leak_loans();
            let tasks = connection.tasks.take();
            drop(tasks);
        }
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        drop(tasks);
        self.inbox.clear();
    }
}

/// Withdraws a region whose exposure was not completed.
struct WithdrawnOnDrop<'a> {
    peers: &'a Peers,
    region: RegionId,
}

impl Drop for WithdrawnOnDrop<'_> {
    fn drop(&mut self) {
        drop(self.peers.withdraw(self.region));
    }
}
