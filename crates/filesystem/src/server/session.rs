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

/// The sessions of all clients, each at the number of its connection: worlds number connections
/// from 0. Every request is looked up here; a tree of thousands is a few misses of the caches.
/// Eight bytes remain of each connection that has ended while later ones last.
pub(crate) struct Sessions<W: World> {
    by_peer: Vec<Option<Box<Session<W>>>>,
    count: usize,
}

impl<W: World> Default for Sessions<W> {
    fn default() -> Self {
        Self { by_peer: Vec::new(), count: 0 }
    }
}

impl<W: World> Sessions<W> {
    pub(crate) fn get(&self, peer: PeerId) -> Option<&Session<W>> {
        self.by_peer.get(peer.0 as usize)?.as_deref()
    }

    /// Adds a session of a client that has none.
    pub(crate) fn insert(&mut self, peer: PeerId, session: Session<W>) {
        let place = peer.0 as usize;
        if self.by_peer.len() <= place {
            self.by_peer.resize_with(place + 1, || None);
        }
        self.by_peer[place] = Some(Box::new(session));
        self.count += 1;
    }

    pub(crate) fn remove(&mut self, peer: PeerId) -> Option<Box<Session<W>>> {
        let session = self.by_peer.get_mut(peer.0 as usize)?.take()?;
        self.count -= 1;
        while let Some(None) = self.by_peer.last() {
            self.by_peer.pop();
        }
        Some(session)
    }

    /// Number of sessions.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The connections that have a session, ascending.
    pub(crate) fn peers(&self) -> impl Iterator<Item = PeerId> + '_ {
        let is_there = |(_, session): &(u32, &Option<Box<Session<W>>>)| session.is_some();
        (0..).zip(&self.by_peer).filter(is_there).map(|(peer, _)| PeerId(peer))
    }
}
