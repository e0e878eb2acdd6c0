//! The memory regions that a node exposes to its peers.
//!
//! Invariants:
//!
//! - Regions ascend by name; no name is reused.
//! - The peers of each region ascend.

use units::{PeerId, RegionId};
use world::payload::Kind;

/// The exposed regions of a node. Every one-sided transfer looks its region up here.
pub(crate) struct Regions<P: Kind> {
    next: u64,
    exposed: Vec<Region<P>>,
}

struct Region<P: Kind> {
    name: RegionId,
    memory: P::Memory,
    users: Users,
}

/// Peers that may read and write a region.
enum Users {
    All,
    /// These peers, ascending.
    Some(Vec<PeerId>),
}

impl<P: Kind> Default for Regions<P> {
    fn default() -> Self {
        Self { next: 0, exposed: Vec::new() }
    }
}

impl<P: Kind> Regions<P> {
    /// Exposes a memory to some peers, under a new name.
    pub(crate) fn expose(&mut self, memory: P::Memory, peers: &[PeerId]) -> RegionId {
        let mut peers = peers.to_vec();
        peers.sort_unstable();
        self.add(memory, Users::Some(peers))
    }

    /// Exposes a memory to all peers, including later ones, under a new name.
    pub(crate) fn expose_to_all(&mut self, memory: P::Memory) -> RegionId {
        self.add(memory, Users::All)
    }

    fn add(&mut self, memory: P::Memory, users: Users) -> RegionId {
        let name = RegionId(self.next);
        self.next += 1;
        self.exposed.push(Region { name, memory, users });
        name
    }

    /// Withdraws a region, if it exists.
    pub(crate) fn withdraw(&mut self, name: RegionId) {
        if let Ok(place) = self.exposed.binary_search_by_key(&name, |region| region.name) {
            self.exposed.remove(place);
        }
    }

    /// Withdraws all regions.
    pub(crate) fn clear(&mut self) {
        self.exposed.clear();
    }

    /// Returns the memory of a region if `peer` may access it.
    #[inline]
    pub(crate) fn exposed(&self, name: RegionId, peer: PeerId) -> Option<&P::Memory> {
        let place = self.exposed.binary_search_by_key(&name, |region| region.name);
        let region = &self.exposed[place.ok()?];
        region.is_for(peer).then_some(&region.memory)
    }
}

impl<P: Kind> Region<P> {
    /// True if `peer` may access the region. (Most often the peers are the servers, whose
    /// connections were the first, so their index is tried before a search.)
    #[inline]
    fn is_for(&self, peer: PeerId) -> bool {
        let Users::Some(peers) = &self.users else { return true };
        peers.get(peer.0 as usize) == Some(&peer) || peers.binary_search(&peer).is_ok()
    }
}
