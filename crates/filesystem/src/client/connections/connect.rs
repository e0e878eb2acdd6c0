//! Connecting to servers when they are needed, and letting them reach memory.

use super::connection_table::say_hello;
use crate::client::faults::server_left;
use crate::client::state::{Client, State};
use futures_util::future::try_join_all;
use std::rc::{Rc, Weak};
use units::{PeerId, RegionId, ServerId};
use wire::Fault;
use world::{Address, NetworkError, World};

impl<W: World> Client<W> {
    /// Returns the server at the other end of a connection.
    pub(crate) fn server_at(&self, peer: PeerId) -> Option<ServerId> {
        self.0.servers().number_of(peer)
    }

    /// Connects to those of some servers to which this client has no connection yet.
    ///
    /// # Errors
    /// The fault of the first server that cannot be reached.
    pub(crate) async fn reach(&self, servers: impl FnOnce() -> Vec<ServerId>) -> Result<(), Fault> {
        if self.0.servers().connections().are_all_connected() {
            return Ok(());
        }
        let connected = servers().into_iter().map(|server| self.connect_to(server));
        try_join_all(connected).await.map(|_| ())
    }

    /// Returns the connection to a server, and makes it first if there is none.
    pub(crate) async fn connect_to(&self, server: ServerId) -> Result<PeerId, Fault> {
        let servers = self.0.servers();
        if server.0 >= servers.count() {
            let cause = format!("there is no {server}; there are {}", servers.count());
            return Err(Fault::BadRequest { cause });
        }
        if servers.returns().are_awaited() {
            self.until_returned(server).await?;
        }
        if let Some(known) = servers.connection(server) {
            return known;
        }
        // In a task of its own, so that dropping this call leaves no half-made connection.
        if let Some(address) = servers.connections().begin_connecting(server) {
            let (world, client) = (self.world().clone(), Rc::downgrade(&self.0));
            self.0.spawn(async move {
                let connected = connect(&world, &address, server, &client).await;
                if let Some(client) = client.upgrade() {
                    client.has_connected(server, connected);
                }
                Ok(())
            });
        }
        servers.connections().until(|| servers.connection(server)).await
    }

    /// Exposes `memory` to servers: to all connected ones, or to whoever connects if this client
    /// connects on demand, or again.
    pub(crate) async fn expose_to_servers(&self, memory: &W::Memory) -> Result<RegionId, Fault> {
        let (world, servers) = (self.world(), self.0.servers());
        if servers.connections().is_on_demand() || servers.returns().are_awaited() {
            return Ok(world.expose_to_all(memory).await);
        }
        let region = world.expose(memory, &servers.peers()).await;
        region.map_err(|error| self.not_exposed(&error))
    }

    /// Lets the servers reach `memory`, and waits for none of them: a server that has stopped holds
    /// up nobody here. A message that names the memory comes after it on each connection.
    pub(crate) async fn expose_at_once(&self, memory: &W::Memory) -> RegionId {
        self.world().expose_to_all(memory).await
    }

    fn not_exposed(&self, error: &NetworkError) -> Fault {
        let server = match error {
            NetworkError::Departed { peer, .. } => self.server_at(*peer),
            NetworkError::Unreachable { .. }
            | NetworkError::WrongVersion { .. }
            | NetworkError::TooLarge { .. } => None,
        };
        match server {
            Some(server) => server_left(server, error),
            None => Fault::TransferFailed { cause: error.to_string() },
        }
    }
}

/// Makes a connection for a client that may be dropped meanwhile.
async fn connect<W: World>(
    world: &W,
    address: &Address,
    server: ServerId,
    client: &Weak<State<W>>,
) -> Result<(), NetworkError> {
    let peer = world.connect(address).await?;
    let Some(key) = client.upgrade().map(|client| {
        client.servers().connections().reached(server, peer);
        client.key()
    }) else {
        world.disconnect(peer);
        return Ok(());
    };
    say_hello(world, peer, key).await?;
    if let Some(client) = client.upgrade() {
        client.servers().connections().greeted(server, peer);
    }
    Ok(())
}

impl<W: World> State<W> {
    fn has_connected(self: &Rc<Self>, server: ServerId, connected: Result<(), NetworkError>) {
        if let Err(error) = connected {
            self.server_left(server, &server_left(server, &error));
        }
        self.servers().connections().end_connecting(server);
    }
}
