//! The clients of a server, as it sees them.

use crate::server::files::OpenFiles;
use std::convert::Infallible;
use units::PeerId;
use wire::{ClientKey, Fault, PROTOCOL_VERSION};
use world::{Scope, World};

/// Everything a server does for one client; dropping it ends all of that.
pub(crate) struct Session<W: World> {
    /// The client's name.
    pub(crate) key: ClientKey,
    /// The version it speaks.
    version: u16,
    /// The files it has opened.
    pub(crate) open: OpenFiles,
    /// The requests it waits for.
    pub(crate) scope: Scope<W, Infallible>,
}

impl<W: World> Session<W> {
    pub(crate) fn new(world: W, key: ClientKey, version: u16) -> Self {
        Self { key, version, open: OpenFiles::default(), scope: Scope::new(world) }
    }

    /// Whether it and this server understand one another.
    pub(crate) fn check_version(&self) -> Result<(), Fault> {
        match self.version {
            PROTOCOL_VERSION => Ok(()),
            client => Err(Fault::WrongVersion { client, server: PROTOCOL_VERSION }),
        }
    }
}

/// The sessions of all clients, by their connections, ascending. Every request is looked up here; a
/// tree of thousands is a few misses of the caches.
pub(crate) struct Sessions<W: World> {
    by_peer: Vec<(PeerId, Box<Session<W>>)>,
}

impl<W: World> Default for Sessions<W> {
    fn default() -> Self {
        Self { by_peer: Vec::new() }
    }
}

impl<W: World> Sessions<W> {
    pub(crate) fn get(&self, peer: PeerId) -> Option<&Session<W>> {
        // As long as nobody has left, a client is at its number: worlds count connections from 0.
        let session = match self.by_peer.get(peer.0 as usize) {
            Some((there, session)) if *there == peer => session,
            _ => &self.by_peer[self.place_of(peer).ok()?].1,
        };
        Some(session)
    }

    /// Adds a session of a client that has none.
    pub(crate) fn insert(&mut self, peer: PeerId, session: Session<W>) {
        let (Ok(place) | Err(place)) = self.place_of(peer);
        self.by_peer.insert(place, (peer, Box::new(session)));
    }

    pub(crate) fn remove(&mut self, peer: PeerId) -> Option<Box<Session<W>>> {
        let place = self.place_of(peer).ok()?;
        Some(self.by_peer.remove(place).1)
    }

    /// Number of sessions.
    pub(crate) fn count(&self) -> usize {
        self.by_peer.len()
    }

    /// The connections that have a session, ascending.
    pub(crate) fn peers(&self) -> impl Iterator<Item = PeerId> + '_ {
        self.by_peer.iter().map(|(peer, _)| *peer)
    }

    /// Where a session is, or would be.
    fn place_of(&self, peer: PeerId) -> Result<usize, usize> {
        self.by_peer.binary_search_by_key(&peer, |(peer, _)| *peer)
    }
}
