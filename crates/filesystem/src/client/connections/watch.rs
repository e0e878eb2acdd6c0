//! Watch of the peers that a client waits for: servers, and members of its groups.
//!
//! Eight times in a time-out the watch looks for peers that owe something: an answer to a request,
//! a token of an agreement, the end of a transfer to or from their memory. A peer that has owed
//! something since the last look, and sent nothing, is pinged. One that stays silent for half of
//! the time-out is disconnected. From then on it counts as a peer that has left, so that every wait
//! for it ends, whichever the strategy.
//!
//! A server may live and wait itself, for another client that has stopped. So the watch also asks
//! servers with old requests to look after their clients ([`ServerRequest::Probe`]).
//!
//! Invariants:
//! - A peer is disconnected at most 7/8 of the time-out after it has stopped, or after the client
//!   has begun to wait for it. That is sooner than members count as missing.
//! - No message is sent while nothing is owed from one look to the next.

use crate::client::state::{Client, State};
use crate::liveness::is_silent;
use futures_util::future::{Either, pending, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::rc::{Rc, Weak};
use units::{Duration, PeerId, ServerId};
use wire::{Fault, ServerRequest};
use world::World;

/// Number of looks in a time-out.
const LOOKS: u64 = 8;

/// Number of silences in a time-out after which a peer is given up.
const SILENCES: u64 = 2;

impl<W: World> Client<W> {
    /// Begins to watch the peers that this client waits for, until the client is dropped.
    pub fn watch(&self, timeout: Duration) {
        let (world, client) = (self.world().clone(), Rc::downgrade(&self.0));
        self.0.spawn(async move {
            watch(world, client, timeout).await;
            Ok(())
        });
    }

    /// Pings a server, for a caller that waits for its answer over another connection, and has it
    /// ping the clients for which it may wait itself.
    ///
    /// # Errors
    /// [`Fault::ServerStalled`] when it stays silent for half of `timeout`, [`Fault::ServerLeft`]
    /// when it has left. Then it has left for this client too.
    pub async fn check_server(&self, server: ServerId, timeout: Duration) -> Result<(), Fault> {
        let servers = self.0.servers();
        let silence = Duration::from_ns(timeout.as_ns() / SILENCES);
        if let Some(peer) = servers.peer(server).filter(|_| !servers.has_left(server))
            && is_silent(self.world(), peer, silence).await
        {
            self.0.give_up(peer, silence);
            return Err(Fault::ServerStalled { server, waited_ms: silence.as_ms() });
        }
        if let Some(left) = servers.why_left(server) {
            return Err(left);
        }
        let probe = ServerRequest::Probe { silence_ms: silence.as_ms() };
        self.notify_servers(std::iter::once(server), probe);
        Ok(())
    }
}

async fn watch<W: World>(world: W, client: Weak<State<W>>, timeout: Duration) {
    let interval = Duration::from_ns((timeout.as_ns() / LOOKS).max(1));
    let silence = Duration::from_ns(timeout.as_ns() / SILENCES);
    // Bytes that had come at the last look, by peers that owed something then. (Bytes that were
    // sent tell nothing: the watch itself sends requests.)
    let mut owing = BTreeMap::<PeerId, u64>::new();
    let mut suspects = BTreeSet::new();
    let mut pings = FuturesUnordered::new();
    loop {
        let mut look = pin!(world.sleep(interval));
        loop {
            let ended = pin!(async {
                match pings.next().await {
                    Some(ended) => ended,
                    None => pending().await,
                }
            });
            let Either::Right(((peer, is_silent), _)) = select(look.as_mut(), ended).await else {
                break;
            };
            suspects.remove(&peer);
            let Some(client) = client.upgrade() else { return };
            if is_silent {
                client.give_up(peer, silence);
            }
        }
        let Some(client) = client.upgrade() else { return };
        client.have_clients_probed(silence, &suspects);
        let before = std::mem::take(&mut owing);
        for peer in client.owing_peers() {
            let received = world.received_bytes(peer);
            owing.insert(peer, received);
            if before.get(&peer) == Some(&received) && suspects.insert(peer) {
                let world = &world;
                pings.push(async move { (peer, is_silent(world, peer, silence).await) });
            }
        }
    }
}

impl<W: World> State<W> {
    /// Returns the peers that owe this client something.
    fn owing_peers(&self) -> BTreeSet<PeerId> {
        let mut peers = self.servers().owing();
        peers.extend(self.mailbox().owing_members());
        peers.extend(self.world().awaited_peers());
        peers
    }

    /// Asks the servers that have owed an answer since the last time to look after their clients.
    /// Nothing is sent to suspects, which have not answered a ping: bytes that move are a sign of
    /// life.
    fn have_clients_probed(self: &Rc<Self>, silence: Duration, suspects: &BTreeSet<PeerId>) {
        let servers = self.servers().silent_since_last_look(suspects);
        if !servers.is_empty() {
            let probe = ServerRequest::Probe { silence_ms: silence.as_ms() };
            Client(Rc::clone(self)).notify_servers(servers.into_iter(), probe);
        }
    }

    /// Disconnects a silent peer, and ends all that waits for it.
    fn give_up(self: &Rc<Self>, peer: PeerId, silence: Duration) {
        self.world().disconnect(peer);
        match self.servers().number_of(peer) {
            Some(server) => {
                self.servers().server_stalled(server, silence.as_ms());
                self.server_is_gone(server);
            }
            None => {
                let seconds = silence.as_ms() as f64 / 1000.0;
                self.peer_left(peer, &format!("it has not answered for {seconds} s"));
            }
        }
    }
}
