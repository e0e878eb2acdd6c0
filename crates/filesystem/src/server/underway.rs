//! What a server does for longer than a block takes: collectives, and the parts of single clients.
//!
//! Invariant: an entry, and the bytes counted for a buffer, go with whoever works on them, however
//! that ends.

use crate::server::Server;
use std::collections::btree_map::Entry;
use units::{FileId, PeerId};
use wire::Fault;
use world::World;

/// A transfer under way.
pub(crate) struct Underway {
    pub(crate) file: FileId,
    /// Why it must end, once it must.
    pub(crate) verdict: Option<Fault>,
}

/// A transfer's entry among those under way, as long as it is.
pub(crate) struct Running<'a, W: World> {
    server: &'a Server<W>,
    key: (PeerId, u64),
}

impl<'a, W: World> Running<'a, W> {
    /// Enters the transfer `key`: who asked for it, and its number.
    pub(crate) fn new(
        server: &'a Server<W>,
        key: (PeerId, u64),
        file: FileId,
    ) -> Result<Self, Fault> {
        match server.collectives.borrow_mut().entry(key) {
            Entry::Occupied(_) => {
                let cause = format!("collective {} is already under way", key.1);
                Err(Fault::BadRequest { cause })
            }
            Entry::Vacant(vacant) => {
                vacant.insert(Underway { file, verdict: None });
                Ok(Self { server, key })
            }
        }
    }

    /// Why it must end, once it must.
    pub(crate) fn verdict(&self) -> Option<Fault> {
        self.server.collectives.borrow().get(&self.key)?.verdict.clone()
    }
}

impl<W: World> Drop for Running<'_, W> {
    fn drop(&mut self) {
        self.server.collectives.borrow_mut().remove(&self.key);
        self.server.departures.notify();
    }
}

/// Counts the bytes of a buffer as long as it is held.
pub(crate) struct Held<'a, W: World> {
    server: &'a Server<W>,
    bytes: u64,
}

impl<'a, W: World> Held<'a, W> {
    pub(crate) fn new(server: &'a Server<W>, bytes: u64) -> Self {
        let held = &server.counters.collective_bytes;
        held.set(held.get() + bytes);
        Self { server, bytes }
    }
}

impl<W: World> Drop for Held<'_, W> {
    fn drop(&mut self) {
        let held = &self.server.counters.collective_bytes;
        held.set(held.get() - self.bytes);
    }
}
