//! The servers as one client knows them.
//!
//! Invariants:
//! - This client has at most one connection to each server.
//! - The end of that connection is the end of the server for this client, unless the client
//!   [connects again](super::returning).

use crate::scale::Table;
use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use units::{PeerId, ServerId};
use wire::{ClientKey, Message, PROTOCOL_VERSION};
use world::{Address, NetworkError, World};

/// Addresses of the servers, and this client's connections to them.
pub(super) struct ConnectionTable {
    /// Addresses by number.
    addresses: Rc<[Address]>,
    connected: RefCell<Table<ServerId, PeerId>>,
    /// Numbers by connection, with connections that are being made.
    numbers: RefCell<Table<PeerId, ServerId>>,
    /// Servers to which some task connects.
    connecting: RefCell<BTreeSet<ServerId>>,
    /// True when the client connects on demand.
    is_on_demand: bool,
    /// Notified when a server was connected, or could not be.
    changed: Signal,
}

impl ConnectionTable {
    /// Makes the table of servers at some addresses, with the connections that exist.
    pub(super) fn new(addresses: Rc<[Address]>, peers: &[Option<PeerId>]) -> Self {
        let numbered = (0..).map(ServerId).zip(peers);
        let connected = numbered.filter_map(|(number, peer)| Some((number, (*peer)?)));
        Self {
            addresses,
            numbers: RefCell::new(connected.clone().map(|(number, peer)| (peer, number)).collect()),
            is_on_demand: connected.clone().next().is_none(),
            connected: RefCell::new(connected.collect()),
            connecting: RefCell::default(),
            changed: Signal::default(),
        }
    }

    /// Number of servers, connected or not.
    pub(super) fn count(&self) -> u32 {
        self.addresses.len() as u32
    }

    /// Returns the connection to a server.
    pub(super) fn peer(&self, server: ServerId) -> Option<PeerId> {
        self.connected.borrow().get(server).copied()
    }

    /// Returns the server at the other end of a connection.
    pub(super) fn number_of(&self, peer: PeerId) -> Option<ServerId> {
        self.numbers.borrow().get(peer).copied()
    }

    /// Returns all connections, also those that are being made.
    pub(super) fn peers(&self) -> Vec<PeerId> {
        self.numbers.borrow().iter().map(|(peer, _)| peer).collect()
    }

    pub(super) fn are_all_connected(&self) -> bool {
        self.connected.borrow().count() == self.addresses.len()
    }

    /// True when the client connects on demand.
    pub(super) fn is_on_demand(&self) -> bool {
        self.is_on_demand
    }

    /// Returns the address of a server to which the caller must connect now, because no other task
    /// does so.
    pub(super) fn begin_connecting(&self, server: ServerId) -> Option<Address> {
        let address = self.addresses.get(server.0 as usize)?;
        self.connecting.borrow_mut().insert(server).then(|| address.clone())
    }

    /// Notes the connection to a server, on which no greeting has been sent yet.
    pub(super) fn reached(&self, server: ServerId, peer: PeerId) {
        self.numbers.borrow_mut().insert(peer, server);
    }

    /// Notes that the greeting was sent on a connection.
    pub(super) fn greeted(&self, server: ServerId, peer: PeerId) {
        self.connected.borrow_mut().insert(server, peer);
    }

    /// Forgets the connections to a server, and returns them.
    pub(super) fn lost(&self, server: ServerId) -> Vec<PeerId> {
        self.connected.borrow_mut().remove(server);
        let of_server = |(peer, number): (PeerId, &ServerId)| (*number == server).then_some(peer);
        let ended: Vec<PeerId> = self.numbers.borrow().iter().filter_map(of_server).collect();
        let mut numbers = self.numbers.borrow_mut();
        for peer in &ended {
            numbers.remove(*peer);
        }
        ended
    }

    /// Returns the address of a server.
    pub(super) fn address(&self, server: ServerId) -> Option<&Address> {
        self.addresses.get(server.0 as usize)
    }

    /// Ends the work that [`begin_connecting`](Self::begin_connecting) has begun.
    pub(super) fn end_connecting(&self, server: ServerId) {
        self.connecting.borrow_mut().remove(&server);
        self.changed.notify();
    }

    /// Waits until `find` has a result. Calls it now and after each end of connecting.
    pub(super) async fn until<R>(&self, find: impl FnMut() -> Option<R>) -> R {
        self.changed.until(find).await
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
