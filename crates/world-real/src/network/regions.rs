//! Memory regions that one node exposes to its peers.
//!
//! Invariant: a region can be reached only by the peers that it was exposed to, or by all if it is
//! open.

use super::connection::{Connection, NO_REGION, Withdrawal};
use crate::memory::RealMemory;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{PeerId, RegionId};

/// Smallest id of an open region. Ids of open regions are drawn at random from here to twice this
/// value; the others are counted from 1, and [`NO_REGION`] is reserved.
const OPEN_REGIONS_FROM: u64 = 1 << 60;

/// The exposed regions of one node.
pub(crate) struct Regions {
    regions: RefCell<BTreeMap<RegionId, Region>>,
    next: Cell<u64>,
}

struct Region {
    memory: RealMemory,
    /// Peers that were sent the exposure.
    peers: Vec<PeerId>,
    /// True if later peers are sent the exposure too.
    is_open: bool,
}

impl Default for Regions {
    fn default() -> Self {
        Self { regions: RefCell::default(), next: Cell::new(NO_REGION + 1) }
    }
}

impl Regions {
    /// Adds a region that `peers` may reach. Sends nothing.
    pub(super) fn add(&self, memory: &RealMemory, peers: &[PeerId]) -> RegionId {
        let region = RegionId(self.next.get());
        self.next.set(region.0 + 1);
        let own = Region { memory: memory.clone(), peers: peers.to_vec(), is_open: false };
        self.regions.borrow_mut().insert(region, own);
        region
    }

    /// Adds a region that all peers may reach, and announces it on `connections`.
    pub(super) fn add_open(&self, memory: &RealMemory, connections: &[Rc<Connection>]) -> RegionId {
        let mut random = [0; 8];
        crate::fill_random(&mut random);
        let region = RegionId(OPEN_REGIONS_FROM + u64::from_le_bytes(random) % OPEN_REGIONS_FROM);
        let mut own = Region { memory: memory.clone(), peers: Vec::new(), is_open: true };
        connections.iter().for_each(|connection| own.announce(region, connection));
        self.regions.borrow_mut().insert(region, own);
        region
    }

    /// Announces the open regions on a new connection, as its first frames.
    pub(super) fn announce_open(&self, connection: &Connection) {
        let mut regions = self.regions.borrow_mut();
        let open = regions.iter_mut().filter(|(_, own)| own.is_open);
        open.for_each(|(region, own)| own.announce(*region, connection));
    }

    /// Removes a departed peer from the open regions.
    pub(super) fn forget(&self, peer: PeerId) {
        let mut regions = self.regions.borrow_mut();
        for open in regions.values_mut().filter(|own| own.is_open) {
            open.peers.retain(|own| *own != peer);
        }
    }

    /// Removes `region`, and calls `withdraw` for each peer that may use it. Returns the
    /// withdrawal, which ends when all those peers are done; `None` when there is no such region,
    /// or when its memory is foreign: only this process writes foreign memory.
    pub(super) fn remove(
        &self,
        region: RegionId,
        withdraw: impl Fn(PeerId, &Rc<Withdrawal>),
    ) -> Option<Rc<Withdrawal>> {
        let Region { memory, peers, .. } = self.regions.borrow_mut().remove(&region)?;
        let is_foreign = memory.is_foreign();
        let withdrawal = Withdrawal::new(memory, peers.len());
        peers.into_iter().for_each(|peer| withdraw(peer, &withdrawal));
        (!is_foreign).then_some(withdrawal)
    }

    /// Returns the memory of `region`, if it is exposed to `peer` and not revoked.
    pub(crate) fn memory(&self, region: RegionId, peer: PeerId) -> Option<RealMemory> {
        let regions = self.regions.borrow();
        let own = regions.get(&region)?;
        let is_there = (own.is_open || own.peers.contains(&peer)) && !own.memory.is_revoked();
        is_there.then(|| own.memory.clone())
    }

    /// Removes all regions and leaks their memory, when the node closes. Peers that do not know yet
    /// may still copy into it, so this process must not reuse it.
    pub(super) fn leak_all(&self) {
        let regions = std::mem::take(&mut *self.regions.borrow_mut());
        regions.into_values().for_each(|region| region.memory.leak());
    }
}

impl Region {
    /// Sends the exposure to one peer without waiting for the answer. A peer that learns the id
    /// from another node first asks this one ([`Connection::await_exposure`]).
    fn announce(&mut self, region: RegionId, connection: &Connection) {
        self.peers.push(connection.peer);
        drop(connection.expose(region, &self.memory));
    }
}
