//! The servers, as one client knows them.
//!
//! Invariants: there is at most one connection to each server, and it is made once; from the moment
//! at which it is there, its end is the server's; whoever is connected can reach every memory that
//! was exposed to the servers, also those that were before.

use crate::client::{Client, State, server_left};
use crate::signal::Signal;
use crate::table::Table;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};
use units::{FileId, PeerId, RegionId, ServerId};
use wire::{ClientKey, Fault, Message, PROTOCOL_VERSION, Request};
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
    /// The memories that all servers can reach.
    regions: RefCell<BTreeSet<RegionId>>,
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
            connected: RefCell::new(connected.collect()),
            connecting: RefCell::default(),
            regions: RefCell::default(),
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

    /// The servers that are connected, with their connections.
    fn connected(&self) -> Vec<(ServerId, PeerId)> {
        self.connected.borrow().iter().map(|(server, peer)| (server, *peer)).collect()
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

    /// Connects to those of some servers that this client has not needed before. When this
    /// returns, they know it: whoever else they hear of it from may come later.
    ///
    /// # Errors
    /// The first of those that cannot be reached.
    pub(crate) async fn reach(&self, servers: impl FnOnce() -> Vec<ServerId>) -> Result<(), Fault> {
        if self.0.servers.are_all_connected() {
            return Ok(());
        }
        let is_new = |server: &ServerId| self.0.servers.peer(*server).is_none();
        let new: Vec<ServerId> = servers().into_iter().filter(is_new).collect();
        // To ask for nothing; the answer comes after the greeting was taken in.
        let nothing = Request::OpenSizes { after: Some(FileId(u64::MAX)) };
        self.call_servers(new.into_iter(), &nothing).await
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

    /// Lets the servers reach `memory` (and nobody else), for transfers of this client alone.
    pub(crate) async fn expose_to_servers(&self, memory: &W::Memory) -> Result<RegionId, Fault> {
        let (world, servers) = (self.world(), &self.0.servers);
        let told = servers.connected();
        let peers: Vec<PeerId> = told.iter().map(|(_, peer)| *peer).collect();
        let region =
            world.expose(memory, &peers).await.map_err(|error| self.not_exposed(&error))?;
        if told.len() == servers.addresses.len() {
            servers.regions.borrow_mut().insert(region);
            return Ok(region);
        }
        let exposed = Exposed { client: self, region };
        servers.regions.borrow_mut().insert(region);
        // One that was connected meanwhile may not have been told.
        let told: BTreeSet<ServerId> = told.into_iter().map(|(server, _)| server).collect();
        for (server, peer) in servers.connected() {
            if !told.contains(&server) {
                let exposed = world.expose_to(peer, region).await;
                exposed.map_err(|error| server_left(server, &error))?;
            }
        }
        std::mem::forget(exposed);
        Ok(region)
    }

    /// Ends what [`Client::expose_to_servers`] began.
    pub(crate) async fn withdraw_from_servers(&self, region: RegionId) {
        self.0.servers.regions.borrow_mut().remove(&region);
        self.world().withdraw(region).await;
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

/// A memory that is exposed no longer when this is dropped.
struct Exposed<'a, W: World> {
    client: &'a Client<W>,
    region: RegionId,
}

impl<W: World> Drop for Exposed<'_, W> {
    fn drop(&mut self) {
        self.client.0.servers.regions.borrow_mut().remove(&self.region);
        // It begins at once, and nobody can wait for it.
        drop(self.client.world().withdraw(self.region));
    }
}

/// Connects a client that lives as long as it wants to, and lets the server reach its memories.
async fn connect<W: World>(
    world: &W,
    address: &Address,
    server: ServerId,
    client: &Weak<State<W>>,
) -> Result<Option<PeerId>, NetworkError> {
    let peer = world.connect(address).await?;
    let Some(key) = client.upgrade().map(|client| {
        client.servers.numbers.borrow_mut().insert(peer, server);
        client.key
    }) else {
        world.disconnect(peer);
        return Ok(None);
    };
    say_hello(world, peer, key).await?;
    let mut told = BTreeSet::new();
    loop {
        let Some(client) = client.upgrade() else { return Ok(None) };
        let untold = client.servers.regions.borrow().difference(&told).next().copied();
        let Some(region) = untold else {
            client.servers.connected.borrow_mut().insert(server, peer);
            return Ok(Some(peer));
        };
        drop(client);
        world.expose_to(peer, region).await?;
        told.insert(region);
    }
}

impl<W: World> State<W> {
    fn has_connected(&self, server: ServerId, connected: Result<Option<PeerId>, NetworkError>) {
        if let Err(error) = connected {
            self.server_left(server, &error.to_string());
        }
        self.servers.connecting.borrow_mut().remove(&server);
        self.servers.changed.notify();
    }
}
