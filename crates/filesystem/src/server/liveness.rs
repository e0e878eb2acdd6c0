//! Liveness of clients: a server disconnects a client that has stopped while others wait.
//!
//! A server has no time-out of its own. A client that waits for long asks its servers, with its
//! own time-out, to ping the clients that they wait for themselves. So nothing happens to a stopped
//! client as long as nobody waits.
//!
//! Invariants:
//! - Waits with a time-out of their own (for missing members, for range locks) are no reason to
//!   disconnect a client.
//! - A member that answers is not named as missing when it may itself wait for one that does not.

use crate::liveness::is_silent;
use crate::server::groups::Groups;
use crate::server::state::Server;
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::rc::Rc;
use units::{ClientId, Duration, PeerId};
use wire::Reply;
use world::World;

/// Shortest silence for which a client is disconnected.
const SILENCE_MIN: Duration = Duration::from_ms(10);

/// Longest silence of a missing member after which it alone is named.
const MISSING_SILENCE_MAX: Duration = Duration::from_ms(4000);

impl<W: World> Server<W> {
    /// Pings the clients that this server waits for, if a request of `from` may wait for one of
    /// them. Disconnects those that are silent for a time of `silence_ms`.
    pub(crate) async fn probe_clients(self: &Rc<Self>, from: PeerId, silence_ms: u64) -> Reply {
        let _wait = self.clients().bounded_wait(from);
        if self.clients().waits_unbounded(from) {
            let silence = Duration::from_ms(silence_ms).max(SILENCE_MIN);
            let mut owing: BTreeSet<PeerId> = self.world().awaited_peers().into_iter().collect();
            owing.extend(self.leases().recalled_clients());
            owing.extend(self.readers().recalled_clients());
            owing.remove(&from);
            join_all(owing.into_iter().map(|client| self.probe(client, silence))).await;
        }
        Reply::Done
    }

    async fn probe(self: &Rc<Self>, client: PeerId, silence: Duration) {
        let Some(_probe) = self.clients().begin_probe(client) else { return };
        if is_silent(self.world(), client, silence).await {
            self.world().disconnect(client);
            self.forget(client);
        }
    }
}

impl<M> Groups<M> {
    /// Pings the clients of the members of a group for which others have waited in vain for a time
    /// of `waited`. Returns the members that do not answer or have not registered. When all answer,
    /// returns all.
    pub(crate) async fn silent_of<W: World>(
        &self,
        world: &W,
        group: Option<u64>,
        missing: Vec<ClientId>,
        waited: Duration,
    ) -> Vec<ClientId> {
        let Some(group) = group else { return missing };
        let half = Duration::from_ns(waited.as_ns() / 2);
        let silence = half.clamp(SILENCE_MIN, MISSING_SILENCE_MAX);
        let clients = self.joiners_of(group, &missing);
        let distinct: BTreeSet<PeerId> = clients.iter().flatten().copied().collect();
        let pings = distinct
            .into_iter()
            .map(async |client| is_silent(world, client, silence).await.then_some(client));
        let silent: BTreeSet<PeerId> = join_all(pings).await.into_iter().flatten().collect();
        let is_heard = |client: &PeerId| !silent.contains(client);
        let members = missing.iter().zip(clients);
        let unheard = members.filter(|(_, client)| !client.as_ref().is_some_and(is_heard));
        match unheard.map(|(member, _)| *member).collect::<Vec<_>>() {
            none if none.is_empty() => missing,
            some => some,
        }
    }
}
