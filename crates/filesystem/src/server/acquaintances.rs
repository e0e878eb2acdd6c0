//! Clients on whom this server called, because a transfer named them that have no session here.
//!
//! Invariants: an acquaintance is made for the client that asked for such a transfer, its sponsor,
//! and its connection ends with the sponsor's session; a client may be an acquaintance for several
//! sponsors, over a connection each.

use crate::table::Table;
use std::cell::RefCell;
use std::collections::BTreeMap;
use units::PeerId;
use wire::ClientKey;

/// All of them, by their connections: there may be as many as there are clients, most are added in
/// the order of their connections, and each is looked up by its name for a later transfer only.
#[derive(Default)]
pub(crate) struct Acquaintances(RefCell<Table<PeerId, Acquaintance>>);

struct Acquaintance {
    sponsor: PeerId,
    key: ClientKey,
}

impl Acquaintances {
    /// Remembers the connection `peer` to the client `key`, made for `sponsor`.
    pub(crate) fn add(&self, sponsor: PeerId, key: ClientKey, peer: PeerId) {
        self.0.borrow_mut().insert(peer, Acquaintance { sponsor, key });
    }

    pub(crate) fn count(&self) -> usize {
        self.0.borrow().count()
    }

    pub(crate) fn contains(&self, peer: PeerId) -> bool {
        self.0.borrow().contains(peer)
    }

    /// The connections that were made for a sponsor, by the names of the clients.
    pub(crate) fn of(&self, sponsor: PeerId) -> BTreeMap<ClientKey, PeerId> {
        let all = self.0.borrow();
        let own = all.iter().filter(|(_, acquaintance)| acquaintance.sponsor == sponsor);
        own.map(|(peer, acquaintance)| (acquaintance.key, peer)).collect()
    }

    /// One has left.
    pub(crate) fn remove(&self, peer: PeerId) {
        self.0.borrow_mut().remove(peer);
    }

    /// A sponsor has left: forgets its acquaintances, and returns their connections.
    pub(crate) fn remove_all_of(&self, sponsor: PeerId) -> Vec<PeerId> {
        let mut all = self.0.borrow_mut();
        if all.iter().all(|(_, acquaintance)| acquaintance.sponsor != sponsor) {
            return Vec::new();
        }
        let (own, others): (Vec<_>, Vec<_>) = std::mem::take(&mut *all)
            .into_iter()
            .partition(|(_, acquaintance)| acquaintance.sponsor == sponsor);
        *all = others.into_iter().collect();
        own.into_iter().map(|(peer, _)| peer).collect()
    }
}

#[cfg(test)]
mod tests {
    //! Proves: each sponsor has its own acquaintances, and they go with it.
    use super::*;

    #[test]
    fn acquaintances_are_their_sponsors() {
        let (one, other) = (PeerId(1), PeerId(2));
        let of = |acquaintances: &Acquaintances, sponsor| {
            let all = acquaintances.of(sponsor).into_iter();
            all.map(|(key, peer)| (key.0, peer.0)).collect::<Vec<_>>()
        };
        let acquaintances = Acquaintances::default();
        for (sponsor, key, peer) in [(one, 7, 3), (other, 7, 4), (one, 5, 5), (other, 6, 6)] {
            acquaintances.add(sponsor, ClientKey(key), PeerId(peer));
        }
        assert_eq!(of(&acquaintances, one), [(5, 5), (7, 3)]);
        assert_eq!(of(&acquaintances, other), [(6, 6), (7, 4)]);
        acquaintances.remove(PeerId(4));
        acquaintances.remove(PeerId(9));
        assert_eq!(of(&acquaintances, other), [(6, 6)]);
        assert!(!acquaintances.contains(PeerId(4)) && acquaintances.contains(PeerId(6)));
        assert_eq!(acquaintances.remove_all_of(one), [PeerId(3), PeerId(5)]);
        assert_eq!(of(&acquaintances, one), []);
        assert!(!acquaintances.contains(PeerId(3)) && acquaintances.contains(PeerId(6)));
        assert_eq!(acquaintances.remove_all_of(PeerId(9)), []);
    }
}
