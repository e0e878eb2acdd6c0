//! The servers, as one client knows them.
//!
//! Invariants: this client makes at most one connection to each server, and makes it once; from the
//! moment at which it is there, its end is the server's.

use crate::signal::Signal;
use crate::table::Table;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use units::{PeerId, RegionId, ServerId};
use wire::{ClientKey, Message, PROTOCOL_VERSION};
use world::{Address, NetworkError, World};

/// Which servers there are, and to which of them this client is connected.
pub(super) struct Servers {
    /// Where each listens, by number.
    pub(super) addresses: Rc<[Address]>,
    pub(super) connected: RefCell<Table<ServerId, PeerId>>,
    /// The same by their connections, with those that are about to be connected: every message of
    /// a server is looked up.
    pub(super) numbers: RefCell<Table<PeerId, ServerId>>,
    /// Those that some task connects to.
    pub(super) connecting: RefCell<BTreeSet<ServerId>>,
    /// Whether connections are made when they are needed.
    pub(super) when_needed: bool,
    /// Rung when a server was connected, or could not be.
    pub(super) changed: Signal,
}

impl Servers {
    /// Those at some addresses, each with its connection if there is one.
    pub(super) fn new(addresses: Rc<[Address]>, peers: &[Option<PeerId>]) -> Self {
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
    pub(super) fn count(&self) -> u32 {
        self.addresses.len() as u32
    }

    /// The connection to a server, if there is one.
    #[inline]
    pub(super) fn peer(&self, server: ServerId) -> Option<PeerId> {
        self.connected.borrow().get(server).copied()
    }

    /// Which server is at the other end of a connection, if one is.
    #[inline]
    pub(super) fn number_of(&self, peer: PeerId) -> Option<ServerId> {
        self.numbers.borrow().get(peer).copied()
    }

    /// All connections, also those that are being made.
    pub(super) fn peers(&self) -> Vec<PeerId> {
        self.numbers.borrow().iter().map(|(peer, _)| peer).collect()
    }

    pub(super) fn are_all_connected(&self) -> bool {
        self.connected.borrow().count() == self.addresses.len()
    }
}

/// Connects to a server and says who this is.
pub(super) async fn greet<W: World>(
    world: &W,
    address: &Address,
    key: ClientKey,
) -> Result<PeerId, NetworkError> {
    let peer = world.connect(address).await?;
    say_hello(world, peer, key).await.map(|()| peer)
}

pub(super) async fn say_hello<W: World>(
    world: &W,
    peer: PeerId,
    key: ClientKey,
) -> Result<(), NetworkError> {
    let hello = wire::encode(&Message::Hello { version: PROTOCOL_VERSION, key });
    world.send(peer, world::Message::new(hello)).await
}

/// A memory that servers can reach.
#[derive(Clone, Copy)]
pub(crate) struct Exposed {
    /// Its name.
    pub(crate) region: RegionId,
    /// Whether it is open to whoever connects to its owner.
    pub(crate) is_open: bool,
}

impl Exposed {
    /// As one number, for an agreement.
    pub(super) fn encode(self) -> u64 {
        self.region.0 << 1 | u64::from(self.is_open)
    }

    /// The reverse of [`Exposed::encode`].
    pub(super) fn decode(number: u64) -> Self {
        Self { region: RegionId(number >> 1), is_open: number & 1 == 1 }
    }
}
