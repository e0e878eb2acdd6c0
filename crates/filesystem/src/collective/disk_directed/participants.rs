//! Connections to the participants of a collective.

use crate::scale::{Table, rare};
use crate::server::Server;
use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::{ClientId, PeerId, RegionId};
use wire::{ClientKey, Fault, GroupRoster, Participant, Regions};
use world::{Address, World};

/// Participants of one collective, as one server knows them. The server connects to participants
/// with an address when it has data for them.
pub(super) struct Participants<W: World> {
    server: Rc<Server<W>>,
    members: Members,
    /// Connection of the client that asked for the collective.
    requester: PeerId,
    peers: RefCell<Table<ClientId, PeerId>>,
    /// Connections that this server has opened for the requester before.
    outbound: BTreeMap<ClientKey, PeerId>,
    /// Participants to which the transfer of some block is connecting.
    connecting: RefCell<BTreeSet<ClientId>>,
    /// Notified when a participant was connected.
    reached: Signal,
}

/// Keys and regions of the participants, by rank.
pub(super) enum Members {
    /// Participants that must be connected to this server.
    Named(Vec<Participant>),
    /// Members of a group roster, and as many regions.
    Roster(Rc<GroupRoster>, Regions),
}

impl Members {
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Named(named) => named.len(),
            Self::Roster(group, _) => group.members.len(),
        }
    }

    /// Returns the address of a participant, if it has one.
    fn address(&self, client: ClientId) -> Option<&str> {
        match self {
            Self::Named(_) => None,
            Self::Roster(group, _) => group.addresses.get(client.0 as usize),
        }
    }

    fn key(&self, client: ClientId) -> Option<ClientKey> {
        let place = client.0 as usize;
        match self {
            Self::Named(named) => named.get(place).map(|one| one.key),
            Self::Roster(group, _) => group.members.get(place).copied(),
        }
    }

    fn region(&self, client: ClientId) -> Option<RegionId> {
        match self {
            Self::Named(named) => named.get(client.0 as usize).map(|one| one.region),
            Self::Roster(_, regions) => regions.get(client),
        }
    }
}

impl<W: World> Participants<W> {
    pub(super) fn new(server: &Rc<Server<W>>, members: Members, requester: PeerId) -> Self {
        // Participants with an address are looked up when there is data for them.
        let ranks = (0..members.count() as u32).map(ClientId);
        let connected = ranks.filter(|rank| members.address(*rank).is_none());
        let peers = connected.filter_map(|rank| Some((rank, server.peer_of(members.key(rank)?)?)));
        Self {
            server: Rc::clone(server),
            requester,
            peers: RefCell::new(peers.collect()),
            members,
            outbound: server.outbound.of(requester),
            connecting: RefCell::default(),
            reached: Signal::default(),
        }
    }

    /// Returns the connection to a participant, and its region.
    ///
    /// # Errors
    /// [`Fault::ClientLeft`] when it cannot be reached.
    pub(super) async fn place_of(&self, client: ClientId) -> Result<(PeerId, RegionId), Fault> {
        let there = self.peer(client);
        let peer = match there {
            Some(peer) => peer,
            None => rare(self.connect(client)).await?,
        };
        let region = self.members.region(client).ok_or_else(|| not_named(client))?;
        Ok((peer, region))
    }

    fn peer(&self, client: ClientId) -> Option<PeerId> {
        self.peers.borrow().get(client).copied()
    }

    /// Finds a participant, or connects to it. Dropped only together with the whole collective.
    async fn connect(&self, client: ClientId) -> Result<PeerId, Fault> {
        let left = |cause: String| Fault::ClientLeft { client, cause };
        let key = self.members.key(client).ok_or_else(|| not_named(client))?;
        let Some(address) = self.members.address(client) else {
            return Err(left("it is not connected to this server".to_owned()));
        };
        let known = self.server.peer_of(key).or_else(|| self.outbound.get(&key).copied());
        if let Some(peer) = known.filter(|peer| self.server.is_here(*peer)) {
            self.peers.borrow_mut().insert(client, peer);
            return Ok(peer);
        }
        if !self.connecting.borrow_mut().insert(client) {
            return Ok(self.reached.until(|| self.peer(client)).await);
        }
        let world = &self.server.world;
        let connected = world.connect(&Address(address.to_owned())).await;
        let peer = connected.map_err(|error| left(error.to_string()))?;
        self.server.outbound.add(self.requester, key, peer);
        self.peers.borrow_mut().insert(client, peer);
        self.connecting.borrow_mut().remove(&client);
        self.reached.notify();
        Ok(peer)
    }

    /// Returns a participant whose connection has ended.
    pub(super) fn first_gone(&self) -> Option<ClientId> {
        let peers = self.peers.borrow();
        let gone = peers.iter().find(|(_, peer)| !self.server.is_here(**peer));
        gone.map(|(client, _)| client)
    }

    /// Returns the connections of participants that accept messages from this server.
    pub(super) fn listeners(&self) -> Vec<PeerId> {
        let peers = self.peers.borrow();
        let here = peers.iter().map(|(_, peer)| *peer);
        here.filter(|peer| self.server.sessions.borrow().contains(*peer)).collect()
    }
}

fn not_named(client: ClientId) -> Fault {
    Fault::BadRequest { cause: format!("{client} does not take part in the collective") }
}
