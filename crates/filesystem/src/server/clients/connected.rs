//! Clients of a server: those that are connected, and those that have departed.
//!
//! Invariants:
//! - A key names at most one first connection, and none again after its client has departed.
//! - Further connections of a client end with its first one. They serve reads and writes only.

use super::departed_keys::DepartedKeys;
use super::probes::{BoundedWait, Probe, Probes};
use super::session::Session;
use crate::scale::Table;
use crate::signal::Signal;
use std::cell::{Cell, Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use units::{Instant, PeerId, ServerId};
use wire::ClientKey;
use world::World;

/// Maximum number of further connections of one client.
const FURTHER_MAX: usize = 4;

/// Clients of one server.
pub(crate) struct Clients<W: World> {
    sessions: RefCell<Table<PeerId, Box<Session<W>>>>,
    /// Connection of each client, by its key.
    peers: RefCell<BTreeMap<ClientKey, PeerId>>,
    /// First connection of the client of each further one.
    further: RefCell<BTreeMap<PeerId, PeerId>>,
    /// Connections of servers, which count as no client.
    servers: RefCell<BTreeSet<PeerId>>,
    /// Latest connection of each server of whose parts of files this one has copies.
    part_owners: RefCell<BTreeMap<ServerId, PeerId>>,
    /// Instant of the last change of a copy.
    last_change_of_copy: Cell<Instant>,
    departed: DepartedKeys,
    /// Notified when a client has sent its greeting.
    greeted: Signal,
    /// Clients that are being pinged.
    probes: Probes,
}

impl<W: World> Default for Clients<W> {
    fn default() -> Self {
        Self {
            sessions: RefCell::default(),
            peers: RefCell::default(),
            further: RefCell::default(),
            servers: RefCell::default(),
            part_owners: RefCell::default(),
            last_change_of_copy: Cell::default(),
            departed: DepartedKeys::default(),
            greeted: Signal::default(),
            probes: Probes::default(),
        }
    }
}

impl<W: World> Clients<W> {
    /// Opens the session of a client. False when its connection or its key has one.
    pub(crate) fn greet(&self, peer: PeerId, session: Session<W>) -> bool {
        let mut sessions = self.sessions.borrow_mut();
        let mut peers = self.peers.borrow_mut();
        if peers.contains_key(&session.key()) || sessions.contains(peer) {
            return false;
        }
        peers.insert(session.key(), peer);
        sessions.insert(peer, Box::new(session));
        drop((sessions, peers));
        self.greeted.notify();
        true
    }

    /// Opens the session of a further connection of a client. False when the client has no first
    /// one, or too many.
    pub(crate) fn greet_again(&self, peer: PeerId, session: Session<W>) -> bool {
        let Some(first) = self.peer_of(session.key()) else { return false };
        let is_full = self.further_of(first).count() >= FURTHER_MAX;
        let mut sessions = self.sessions.borrow_mut();
        if is_full || sessions.contains(peer) {
            return false;
        }
        sessions.insert(peer, Box::new(session));
        self.further.borrow_mut().insert(peer, first);
        true
    }

    /// Returns the further connections of the client with this first one.
    pub(crate) fn further_of(&self, first: PeerId) -> impl Iterator<Item = PeerId> + use<W> {
        let further = self.further.borrow();
        let of_client = further.iter().filter(|(_, one)| **one == first);
        of_client.map(|(peer, _)| *peer).collect::<Vec<_>>().into_iter()
    }

    /// Returns the first connection of the client with this connection.
    pub(crate) fn first_of(&self, peer: PeerId) -> PeerId {
        self.further.borrow().get(&peer).copied().unwrap_or(peer)
    }

    /// True for a further connection of a client.
    pub(crate) fn is_further(&self, peer: PeerId) -> bool {
        self.further.borrow().contains_key(&peer)
    }

    /// Removes the session of a client that departs, or of a further connection. Its active
    /// requests end when it is dropped.
    pub(crate) fn depart(&self, peer: PeerId) -> Option<Box<Session<W>>> {
        let session = self.sessions.borrow_mut().remove(peer)?;
        self.servers.borrow_mut().remove(&peer);
        self.part_owners.borrow_mut().retain(|_, owner| *owner != peer);
        if self.further.borrow_mut().remove(&peer).is_some() {
            return Some(session);
        }
        self.peers.borrow_mut().remove(&session.key());
        self.departed.add(session.key());
        Some(session)
    }

    /// Removes all sessions, because the server ends, other than those of servers of whose parts of
    /// files this one has copies.
    pub(crate) fn take_all_but_part_owners(&self) -> Vec<(PeerId, Box<Session<W>>)> {
        let mut sessions = self.sessions.borrow_mut();
        let all: Vec<PeerId> = sessions.iter().map(|(peer, _)| peer).collect();
        let others = all.into_iter().filter(|peer| !self.is_part_owner(*peer));
        others.filter_map(|peer| Some((peer, sessions.remove(peer)?))).collect()
    }

    /// Returns the session of a client, if it is connected.
    pub(crate) fn session(&self, peer: PeerId) -> Option<Ref<'_, Session<W>>> {
        let sessions = self.sessions.borrow();
        Ref::filter_map(sessions, |all| all.get(peer).map(Box::as_ref)).ok()
    }

    /// Tells if a client is connected.
    pub(crate) fn is_here(&self, peer: PeerId) -> bool {
        self.sessions.borrow().contains(peer)
    }

    /// Number of connected clients.
    pub(crate) fn count(&self) -> usize {
        self.peers.borrow().len() - self.servers.borrow().len()
    }

    /// Notes that a connected client is a server.
    pub(crate) fn note_server(&self, peer: PeerId) {
        if self.is_here(peer) && !self.is_further(peer) {
            self.servers.borrow_mut().insert(peer);
        }
    }

    /// Notes that a connected client is the server of that number, of whose parts of files this one
    /// has copies. Returns its earlier connection, which must end.
    pub(crate) fn note_part_owner(&self, peer: PeerId, server: ServerId) -> Option<PeerId> {
        self.note_server(peer);
        let earlier = self.part_owners.borrow_mut().insert(server, peer);
        earlier.filter(|earlier| *earlier != peer)
    }

    /// True for the latest connection of a server of whose parts of files this one has copies.
    pub(crate) fn is_part_owner(&self, peer: PeerId) -> bool {
        self.part_owners.borrow().values().any(|owner| *owner == peer)
    }

    /// True if a server of whose parts of files this one has copies is connected.
    pub(crate) fn has_part_owners(&self) -> bool {
        !self.part_owners.borrow().is_empty()
    }

    /// Notes a change of a copy.
    pub(crate) fn note_change_of_copy(&self, now: Instant) {
        self.last_change_of_copy.set(now);
    }

    /// Instant of the last change of a copy.
    pub(crate) fn last_change_of_copy(&self) -> Instant {
        self.last_change_of_copy.get()
    }

    /// Returns the connection of the client with this key.
    pub(crate) fn peer_of(&self, key: ClientKey) -> Option<PeerId> {
        self.peers.borrow().get(&key).copied()
    }

    /// Tells if the client with this key is known to have departed.
    pub(crate) fn has_departed(&self, key: ClientKey) -> bool {
        self.departed.contains(key)
    }

    /// Waits until `find` has a result. Calls it now and after each greeting.
    pub(crate) async fn until_greeted<R>(&self, find: impl FnMut() -> Option<R>) -> R {
        self.greeted.until(find).await
    }

    /// Counts a request of a client as one whose wait has a time-out of its own.
    pub(crate) fn bounded_wait(&self, peer: PeerId) -> Option<BoundedWait> {
        self.session(peer).map(|session| session.bounded_wait())
    }

    /// Tells if a client has a request that may wait without a time-out of its own, on any of its
    /// connections.
    pub(crate) fn waits_unbounded(&self, peer: PeerId) -> bool {
        let mut all = std::iter::once(peer).chain(self.further_of(peer));
        all.any(|peer| self.session(peer).is_some_and(|session| session.unbounded_waits() > 0))
    }

    /// Begins to ping a client, unless it is being pinged already.
    pub(crate) fn begin_probe(&self, peer: PeerId) -> Option<Probe<'_>> {
        self.probes.begin(peer)
    }
}
