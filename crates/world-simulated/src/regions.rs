//! The memories that a node exposes to its peers.
//!
//! Invariants: regions ascend by their names, of which none is used again; the peers of each
//! ascend.

use units::{PeerId, RegionId};
use world::payload::Kind;

/// The memories that a node exposes. Whatever comes for one is looked up here.
pub(crate) struct Regions<P: Kind> {
    next: u64,
    exposed: Vec<Region<P>>,
}

struct Region<P: Kind> {
    name: RegionId,
    memory: P::Memory,
    /// Who may read and write it, ascending.
    peers: Vec<PeerId>,
}

impl<P: Kind> Default for Regions<P> {
    fn default() -> Self {
        Self { next: 0, exposed: Vec::new() }
    }
}

impl<P: Kind> Regions<P> {
    /// Exposes a memory to some peers, under a name that no region of this node ever had.
    pub(crate) fn expose(&mut self, memory: P::Memory, peers: &[PeerId]) -> RegionId {
        let name = RegionId(self.next);
        self.next += 1;
        let mut peers = peers.to_vec();
        peers.sort_unstable();
        self.exposed.push(Region { name, memory, peers });
        name
    }

    /// Lets one more peer use a region, if there is one of this name.
    pub(crate) fn expose_to(&mut self, peer: PeerId, name: RegionId) {
        if let Ok(place) = self.exposed.binary_search_by_key(&name, |region| region.name) {
            let peers = &mut self.exposed[place].peers;
            if let Err(place) = peers.binary_search(&peer) {
                peers.insert(place, peer);
            }
        }
    }

    /// Ends a region, if there is one of this name.
    pub(crate) fn withdraw(&mut self, name: RegionId) {
        if let Ok(place) = self.exposed.binary_search_by_key(&name, |region| region.name) {
            self.exposed.remove(place);
        }
    }

    /// Ends all regions.
    pub(crate) fn clear(&mut self) {
        self.exposed.clear();
    }

    /// The memory of this name, if `peer` may reach it.
    #[inline]
    pub(crate) fn exposed(&self, name: RegionId, peer: PeerId) -> Option<&P::Memory> {
        let place = self.exposed.binary_search_by_key(&name, |region| region.name);
        let region = &self.exposed[place.ok()?];
        region.is_for(peer).then_some(&region.memory)
    }
}

impl<P: Kind> Region<P> {
    /// Most often the peers are the servers, whose connections were the first, one after another.
    #[inline]
    fn is_for(&self, peer: PeerId) -> bool {
        self.peers.get(peer.0 as usize) == Some(&peer) || self.peers.binary_search(&peer).is_ok()
    }
}
