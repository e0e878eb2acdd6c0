//! The servers as one client knows them.
//!
//! Invariants:
//! - This client makes at most one connection to each server, and only once.
//! - The end of that connection is the end of the server for this client.

use crate::scale::Table;
use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use units::{PeerId, RegionId, ServerId};
use wire::{ClientKey, Message, PROTOCOL_VERSION};
use world::{Address, NetworkError, World};

/// Addresses of the servers, and this client's connections to them.
pub(crate) struct Servers {
    /// Addresses by number.
    pub(crate) addresses: Rc<[Address]>,
    pub(crate) connected: RefCell<Table<ServerId, PeerId>>,
    /// Numbers by connection, with connections that are being made.
    pub(crate) numbers: RefCell<Table<PeerId, ServerId>>,
    /// Servers to which some task connects.
    pub(crate) connecting: RefCell<BTreeSet<ServerId>>,
    /// True when the client connects on demand.
    pub(crate) when_needed: bool,
    /// Notified when a server was connected, or could not be.
    pub(crate) changed: Signal,
}

impl Servers {
    /// Makes the table of servers at some addresses, with the connections that exist.
    pub(crate) fn new(addresses: Rc<[Address]>, peers: &[Option<PeerId>]) -> Self {
        let numbered = (0..).map(ServerId).zip(peers);
        let connected = numbered.filter_map(|(number, peer)| Some((number, (*peer)?)));
        Self {
            addresses,
            numbers: RefCell::new(connected.clone().map(|(number, peer)| (peer, number)).collect()),
            when_needed: connected.clone().next().is_none(),
            connected: RefCell::new(connected.collect()),
            connecting: RefCell::default(),
            changed: Signal::default(),
        }
    }

    /// Number of servers, connected or not.
    pub(crate) fn count(&self) -> u32 {
        self.addresses.len() as u32
    }

    /// Returns the connection to a server.
    pub(crate) fn peer(&self, server: ServerId) -> Option<PeerId> {
        self.connected.borrow().get(server).copied()
    }

    /// Returns the server at the other end of a connection.
    pub(crate) fn number_of(&self, peer: PeerId) -> Option<ServerId> {
        self.numbers.borrow().get(peer).copied()
    }

    /// Returns all connections, also those that are being made.
    pub(crate) fn peers(&self) -> Vec<PeerId> {
        self.numbers.borrow().iter().map(|(peer, _)| peer).collect()
    }

    pub(crate) fn are_all_connected(&self) -> bool {
        self.connected.borrow().count() == self.addresses.len()
    }
}

/// Connects to a server and sends this client's greeting.
pub(crate) async fn greet<W: World>(
    world: &W,
    address: &Address,
    key: ClientKey,
) -> Result<PeerId, NetworkError> {
    let peer = world.connect(address).await?;
    say_hello(world, peer, key).await.map(|()| peer)
}

pub(crate) async fn say_hello<W: World>(
    world: &W,
    peer: PeerId,
    key: ClientKey,
) -> Result<(), NetworkError> {
    let hello = wire::encode(&Message::Hello { version: PROTOCOL_VERSION, key });
    world.send(peer, world::Message::new(hello)).await
}

/// Withdraws a memory when a transfer is dropped before its end. Forgotten where the withdrawal is
/// waited for.
pub(crate) struct WithdrawnOnDrop<'a, W: World> {
    pub(crate) world: &'a W,
    pub(crate) region: RegionId,
}

impl<W: World> Drop for WithdrawnOnDrop<'_, W> {
    fn drop(&mut self) {
        // It begins at once; nobody waits for its end.
        drop(self.world.withdraw(self.region));
    }
}
