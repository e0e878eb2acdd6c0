//! Connections of one client to its servers, and the calls on them.
//!
//! Invariant: after a server has left, every call to it fails until it is there again
//! ([`returning`](super::returning)).

use super::calls::{Answer, Call, Calls};
use super::connection_table::ConnectionTable;
use super::returns::Returns;
use std::collections::BTreeSet;
use std::rc::Rc;
use units::{PeerId, ServerId};
use wire::{Fault, RequestId};
use world::Address;

/// Servers of one client. Answers may bring data of the kind `P`.
pub(crate) struct Servers<P> {
    connections: ConnectionTable,
    calls: Calls<P>,
    returns: Returns,
}

impl<P> Servers<P> {
    /// Makes the table of servers at some addresses, with the connections that exist.
    pub(crate) fn new(addresses: Rc<[Address]>, peers: &[Option<PeerId>]) -> Self {
        let connections = ConnectionTable::new(addresses, peers);
        Self { connections, calls: Calls::default(), returns: Returns::default() }
    }

    /// Number of servers, connected or not.
    pub(crate) fn count(&self) -> u32 {
        self.connections.count()
    }

    /// Returns the connection to a server.
    pub(crate) fn peer(&self, server: ServerId) -> Option<PeerId> {
        self.connections.peer(server)
    }

    /// Returns all connections, also those that are being made.
    pub(crate) fn peers(&self) -> Vec<PeerId> {
        self.connections.peers()
    }

    /// Returns the server at the other end of a connection.
    pub(crate) fn number_of(&self, peer: PeerId) -> Option<ServerId> {
        self.connections.number_of(peer)
    }

    /// The connections that exist or are being made, for those who make them.
    pub(super) fn connections(&self) -> &ConnectionTable {
        &self.connections
    }

    /// Returns the connection to a server, or the fault for which there will be none. `None` while
    /// neither is known.
    pub(super) fn connection(&self, server: ServerId) -> Option<Result<PeerId, Fault>> {
        let peer = self.connections.peer(server).map(Ok);
        peer.or_else(|| self.calls.why_left(server).map(Err))
    }

    /// Registers a call before its request is sent. Fails when the server is known to be gone.
    pub(super) fn begin_call(&self, server: ServerId) -> Result<Call<'_, P>, Fault> {
        self.calls.begin(server)
    }

    /// Registers a call of a server that has left, and to which this client is connecting.
    pub(super) fn begin_call_anyway(&self, server: ServerId) -> Call<'_, P> {
        self.calls.begin_anyway(server)
    }

    /// Servers that come back.
    pub(crate) fn returns(&self) -> &Returns {
        &self.returns
    }

    /// Notes that a server which had left is there again.
    pub(super) fn server_returned(&self, server: ServerId) {
        self.calls.server_returned(server);
    }

    /// Ends a call with its answer. The caller may have given it up.
    pub(crate) fn answered(&self, id: RequestId, answer: Answer<P>) {
        self.calls.answered(id, answer);
    }

    /// Fails all calls to a server that has left or could not be reached, and later ones.
    pub(crate) fn server_left(&self, server: ServerId, fault: &Fault) {
        self.calls.server_left(server, fault);
    }

    /// Fails all calls to a server that has not answered for `waited_ms`, and later ones.
    pub(super) fn server_stalled(&self, server: ServerId, waited_ms: u64) {
        self.calls.server_stalled(server, waited_ms);
    }

    /// Tells if a server is known to have left.
    pub(crate) fn has_left(&self, server: ServerId) -> bool {
        self.calls.has_left(server)
    }

    /// Returns the fault of a server that is known to have left.
    pub(crate) fn why_left(&self, server: ServerId) -> Option<Fault> {
        self.calls.why_left(server)
    }

    /// Returns the fault of the first server that is known to have left.
    pub(crate) fn first_left(&self) -> Option<Fault> {
        self.calls.first_left()
    }

    /// Returns the connections to servers that owe an answer.
    pub(super) fn owing(&self) -> BTreeSet<PeerId> {
        let servers = self.calls.owing_servers().into_iter();
        servers.filter_map(|server| self.connections.peer(server)).collect()
    }

    /// Returns the servers that owe an answer since the last search for them, except `suspects`.
    pub(super) fn silent_since_last_look(&self, suspects: &BTreeSet<PeerId>) -> Vec<ServerId> {
        let is_heard = |server: &ServerId| {
            self.connections.peer(*server).is_some_and(|peer| !suspects.contains(&peer))
        };
        let mut silent = self.calls.silent_since_last_look();
        silent.retain(is_heard);
        silent
    }
}
