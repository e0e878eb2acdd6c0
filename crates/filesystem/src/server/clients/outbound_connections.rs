//! Connections that this server has opened to clients of a roster that have no session here.
//!
//! Invariants:
//! - A connection is opened for a requester, the client that asked for the transfer. It ends with
//!   the requester's session.
//! - A client may have several outbound connections, one for each requester.

use crate::scale::Table;
use std::cell::RefCell;
use std::collections::BTreeMap;
use units::PeerId;
use wire::ClientKey;

/// Outbound connections by peer. There may be as many as clients.
#[derive(Default)]
pub(crate) struct OutboundConnections(RefCell<Table<PeerId, OutboundConnection>>);

struct OutboundConnection {
    requester: PeerId,
    key: ClientKey,
}

impl OutboundConnections {
    /// Adds the connection `peer` to the client `key`, opened for `requester`.
    pub(crate) fn add(&self, requester: PeerId, key: ClientKey, peer: PeerId) {
        self.0.borrow_mut().insert(peer, OutboundConnection { requester, key });
    }

    pub(crate) fn count(&self) -> usize {
        self.0.borrow().count()
    }

    pub(crate) fn contains(&self, peer: PeerId) -> bool {
        self.0.borrow().contains(peer)
    }

    /// Returns the connections that were opened for a requester, by the clients' keys.
    pub(crate) fn of(&self, requester: PeerId) -> BTreeMap<ClientKey, PeerId> {
        let all = self.0.borrow();
        let own = all.iter().filter(|(_, connection)| connection.requester == requester);
        own.map(|(peer, connection)| (connection.key, peer)).collect()
    }

    /// Removes a connection that has ended.
    pub(crate) fn remove(&self, peer: PeerId) {
        self.0.borrow_mut().remove(peer);
    }

    /// Removes the connections of a requester that has left, and returns them.
    pub(crate) fn remove_all_of(&self, requester: PeerId) -> Vec<PeerId> {
        let mut all = self.0.borrow_mut();
        if all.iter().all(|(_, connection)| connection.requester != requester) {
            return Vec::new();
        }
        let (own, others): (Vec<_>, Vec<_>) = std::mem::take(&mut *all)
            .into_iter()
            .partition(|(_, connection)| connection.requester == requester);
        *all = others.into_iter().collect();
        own.into_iter().map(|(peer, _)| peer).collect()
    }
}

#[cfg(test)]
mod tests {
    //! Proves: each requester has its own outbound connections, and they go with it.
    use super::*;

    #[test]
    fn each_requester_has_its_own_connections_until_it_leaves() {
        let (one, other) = (PeerId(1), PeerId(2));
        let of = |outbound: &OutboundConnections, requester| {
            let all = outbound.of(requester).into_iter();
            all.map(|(key, peer)| (key.0, peer.0)).collect::<Vec<_>>()
        };
        let outbound = OutboundConnections::default();
        for (requester, key, peer) in [(one, 7, 3), (other, 7, 4), (one, 5, 5), (other, 6, 6)] {
            outbound.add(requester, ClientKey(key), PeerId(peer));
        }
        assert_eq!(of(&outbound, one), [(5, 5), (7, 3)]);
        assert_eq!(of(&outbound, other), [(6, 6), (7, 4)]);
        outbound.remove(PeerId(4));
        outbound.remove(PeerId(9));
        assert_eq!(of(&outbound, other), [(6, 6)]);
        assert!(!outbound.contains(PeerId(4)) && outbound.contains(PeerId(6)));
        assert_eq!(outbound.remove_all_of(one), [PeerId(3), PeerId(5)]);
        assert_eq!(of(&outbound, one), []);
        assert!(!outbound.contains(PeerId(3)) && outbound.contains(PeerId(6)));
        assert_eq!(outbound.remove_all_of(PeerId(9)), []);
    }
}
