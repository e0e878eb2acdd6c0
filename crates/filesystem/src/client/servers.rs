//! The servers, as one client knows them.
//!
//! Invariants: this client makes at most one connection to each server, and makes it once; from the
//! moment at which it is there, its end is the server's.

use crate::client::{Client, State, server_left};
use crate::signal::Signal;
use crate::table::Table;
use futures_util::future::try_join_all;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};
use units::{PeerId, RegionId, ServerId};
use wire::{ClientKey, Fault, Message, PROTOCOL_VERSION};
use world::{Address, NetworkError, World};

/// Which servers there are, and to which of them this client is connected.
pub(super) struct Servers {
    /// Where each listens, by number.
    addresses: Rc<[Address]>,
    connected: RefCell<Table<ServerId, PeerId>>,
    /// The same by their connections, with those that are about to be connected: every message of
    /// a server is looked up.
    numbers: RefCell<Table<PeerId, ServerId>>,
    /// Those that some task connects to.
    connecting: RefCell<BTreeSet<ServerId>>,
    /// Whether connections are made when they are needed.
    when_needed: bool,
    /// Rung when a server was connected, or could not be.
    changed: Signal,
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

    fn are_all_connected(&self) -> bool {
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

async fn say_hello<W: World>(world: &W, peer: PeerId, key: ClientKey) -> Result<(), NetworkError> {
    let hello = wire::encode(&Message::Hello { version: PROTOCOL_VERSION, key });
    world.send(peer, world::Message::new(hello)).await
}

impl<W: World> Client<W> {
    /// Which server is at the other end of a connection, if one is.
    pub(crate) fn server_at(&self, peer: PeerId) -> Option<ServerId> {
        self.0.servers.number_of(peer)
    }

    /// Connects to those of some servers that this client has not needed before.
    ///
    /// # Errors
    /// The first of those that cannot be reached.
    pub(crate) async fn reach(&self, servers: impl FnOnce() -> Vec<ServerId>) -> Result<(), Fault> {
        if self.0.servers.are_all_connected() {
            return Ok(());
        }
        let connected = servers().into_iter().map(|server| self.connect_to(server));
        try_join_all(connected).await.map(|_| ())
    }

    /// Connects to a server, unless that was done; returns the connection.
    pub(super) async fn connect_to(&self, server: ServerId) -> Result<PeerId, Fault> {
        let servers = &self.0.servers;
        if server.0 >= servers.count() {
            let cause = format!("there is no {server}; there are {}", servers.count());
            return Err(Fault::BadRequest { cause });
        }
        let come = || {
            let peer = servers.peer(server).map(Ok);
            peer.or_else(|| self.0.calls.why_left(server).map(Err))
        };
        if let Some(come) = come() {
            return come;
        }
        // By a task of its own, so that a call that is given up leaves nothing half done.
        if servers.connecting.borrow_mut().insert(server) {
            let (world, address) =
                (self.0.world.clone(), servers.addresses[server.0 as usize].clone());
            let client = Rc::downgrade(&self.0);
            self.0.listening.spawn(async move {
                let connected = connect(&world, &address, server, &client).await;
                if let Some(client) = client.upgrade() {
                    client.has_connected(server, connected);
                }
                Ok(())
            });
        }
        servers.changed.until(come).await
    }

    /// Lets the servers reach `memory`: those to which it is connected or, if it connects to them
    /// when it needs them, whoever connects to it.
    pub(crate) async fn expose_to_servers(&self, memory: &W::Memory) -> Result<Exposed, Fault> {
        let (world, servers) = (self.world(), &self.0.servers);
        if servers.when_needed {
            return Ok(Exposed { region: world.expose_to_all(memory).await, is_open: true });
        }
        let region = world.expose(memory, &servers.peers()).await;
        let region = region.map_err(|error| self.not_exposed(&error))?;
        Ok(Exposed { region, is_open: false })
    }

    fn not_exposed(&self, error: &NetworkError) -> Fault {
        let server = match error {
            NetworkError::Departed { peer, .. } => self.server_at(*peer),
            NetworkError::Unreachable { .. } | NetworkError::TooLarge { .. } => None,
        };
        match server {
            Some(server) => server_left(server, error),
            None => Fault::TransferFailed { cause: error.to_string() },
        }
    }
}

/// A memory that servers can reach.
#[derive(Clone, Copy)]
pub(crate) struct Exposed {
    /// Its name.
    pub(crate) region: RegionId,
    /// Whether it is open to whoever connects to its owner.
    pub(crate) is_open: bool,
}

/// Withdraws a memory when a transfer is dropped before its end. Forgotten where the withdrawal is
/// waited for.
pub(crate) struct WithdrawnOnDrop<'a, W: World> {
    pub(crate) world: &'a W,
    pub(crate) exposed: Exposed,
}

impl<W: World> Drop for WithdrawnOnDrop<'_, W> {
    fn drop(&mut self) {
        // It begins at once; nobody waits for its end.
        drop(self.world.withdraw(self.exposed.region));
    }
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

/// Connects a client that lives as long as it wants to.
async fn connect<W: World>(
    world: &W,
    address: &Address,
    server: ServerId,
    client: &Weak<State<W>>,
) -> Result<(), NetworkError> {
    let peer = world.connect(address).await?;
    let Some(key) = client.upgrade().map(|client| {
        client.servers.numbers.borrow_mut().insert(peer, server);
        client.key
    }) else {
        world.disconnect(peer);
        return Ok(());
    };
    say_hello(world, peer, key).await?;
    if let Some(client) = client.upgrade() {
        client.servers.connected.borrow_mut().insert(server, peer);
    }
    Ok(())
}

impl<W: World> State<W> {
    fn has_connected(&self, server: ServerId, connected: Result<(), NetworkError>) {
        if let Err(error) = connected {
            self.server_left(server, &error.to_string());
        }
        self.servers.connecting.borrow_mut().remove(&server);
        self.servers.changed.notify();
    }
}
