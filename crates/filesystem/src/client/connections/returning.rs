//! Connecting again to servers that were lost.
//!
//! A server that ends, or whose connection breaks, may be started again at its address, with its
//! data or with empty directories in the places of lost ones. A client that waits for it connects
//! again, opens the files there that it has open, and sends once more what may be sent twice
//! ([`wire::Persistence`]).
//!
//! Invariants:
//! - Until the files are open again no other call reaches the new server.
//! - Each connection has a key of its own: a server that still runs may know the old one as that of
//!   a client that has left.
//! - The new server knows no group that was formed before. Collective calls of such a group fail at
//!   all members, which may each move their parts alone.

use super::connection_table::say_hello;
use super::returns::ServerChange;
use crate::client::state::{Client, State};
use crate::scale::rare;
use futures_util::future::{Either, join_all, select};
use std::pin::pin;
use std::rc::{Rc, Weak};
use tracing::{debug, info};
use units::{Duration, PeerId, ServerId};
use wire::{ClientKey, Fault, FileRequest, Message, Request};
use world::World;

/// Time before the first attempt to connect again. It doubles with each attempt.
const PAUSE_MIN: Duration = Duration::from_ms(20);

/// Longest time between two attempts.
const PAUSE_MAX: Duration = Duration::from_ms(500);

/// Maximum number of files that are opened again at the same time.
const OPENS_MAX: usize = 256;

/// Time limit of one attempt, with the opening of files.
const ATTEMPT_TIMEOUT: Duration = Duration::from_ms(5_000);

impl<W: World> Client<W> {
    /// Waits for servers that are lost from now on, each for at most `patience`, and connects to
    /// them again. `observe` hears of each loss, failed attempt and return; if it returns false,
    /// the server is not waited for any longer. Must be called before the client has exposed
    /// memory.
    pub fn await_lost_servers(
        &self,
        patience: Duration,
        observe: impl Fn(ServerId, ServerChange) -> bool + 'static,
    ) {
        let returns = self.0.servers().returns();
        returns.patience.set(patience);
        *returns.observer.borrow_mut() = Some(Rc::new(observe));
    }

    /// True if this client waits for lost servers.
    pub fn awaits_lost_servers(&self) -> bool {
        self.0.servers().returns().are_awaited()
    }

    /// Number of times that any of these servers was lost.
    pub fn losses(&self, servers: impl Iterator<Item = ServerId>) -> u64 {
        let losses = self.0.servers().returns().losses.borrow();
        if losses.is_empty() {
            return 0;
        }
        servers.map(|server| losses.get(&server).copied().unwrap_or(0)).sum()
    }

    /// Notes that a call of a server has failed because its connection has ended, unless that is
    /// known: the client had known of `losses` of it when the call began.
    pub(super) fn note_lost(&self, server: ServerId, losses: u64, fault: &Fault) {
        if self.losses(std::iter::once(server)) == losses {
            self.0.server_left(server, fault);
        }
    }

    /// Key of this client at a server.
    pub(crate) fn key_at(&self, server: ServerId) -> ClientKey {
        let keys = self.0.servers().returns().keys.borrow();
        keys.get(&server).copied().unwrap_or_else(|| self.key())
    }

    /// Waits until a server that has left is there again.
    ///
    /// # Errors
    /// The fault of a server that is not waited for, or not any longer.
    pub(super) async fn until_returned(&self, server: ServerId) -> Result<(), Fault> {
        let servers = self.0.servers();
        let returns = servers.returns();
        let is_decided = || (!returns.awaited.borrow().contains(&server)).then_some(());
        returns.changed.until(is_decided).await;
        servers.why_left(server).map_or(Ok(()), Err)
    }
}

impl<W: World> State<W> {
    /// Begins to connect to a lost server again, if it is waited for.
    pub(in crate::client) fn await_return(self: &Rc<Self>, server: ServerId) {
        let servers = self.servers();
        if !servers.returns().are_awaited() {
            return;
        }
        for ended in servers.connections().lost(server) {
            self.world().disconnect(ended);
        }
        if !servers.returns().lost(server) {
            return;
        }
        let patience = servers.returns().patience.get();
        info!(%server, seconds = patience.as_seconds(), "a server is lost; it is waited for");
        let (world, client) = (self.world().clone(), Rc::downgrade(self));
        self.spawn(async move {
            connect_again(world, client, server, patience).await;
            Ok(())
        });
    }

    /// Opens what this client has open at a server to which it has connected again.
    async fn open_again(self: &Rc<Self>, server: ServerId, peer: PeerId) -> Result<(), Fault> {
        let client = Client(Rc::clone(self));
        let records = self.sizes().open_at(server);
        for some in records.chunks(OPENS_MAX) {
            let opens = some.iter().map(|record| FileRequest::Open(record.clone()).into());
            client.call_early(server, peer, opens).await?;
        }
        Ok(())
    }
}

impl<W: World> Client<W> {
    /// Makes calls of a server that others cannot call yet. Refusals, such as that of a file that
    /// was removed, are met again by later calls.
    async fn call_early(
        &self,
        server: ServerId,
        peer: PeerId,
        requests: impl Iterator<Item = Request>,
    ) -> Result<(), Fault> {
        let calls = requests.map(async |request| {
            let call = self.0.servers().begin_call_anyway(server);
            let header = wire::encode(&Message::Request { id: call.id(), request });
            let sent = self.world().send(peer, world::Message::new(header)).await;
            sent.map_err(|error| crate::client::faults::not_sent(server, &error))?;
            match call.await.result() {
                Err(left @ Fault::ServerLeft { .. }) => Err(left),
                Ok(_) | Err(_) => Ok(()),
            }
        });
        join_all(calls).await.into_iter().collect()
    }
}

/// Tries to connect to a lost server until that succeeds, for at most `patience`.
async fn connect_again<W: World>(
    world: W,
    client: Weak<State<W>>,
    server: ServerId,
    patience: Duration,
) {
    let end = world.now() + patience;
    let mut pause = PAUSE_MIN;
    loop {
        world.sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
        let Some(state) = client.upgrade() else { return };
        let limit = end.since(world.now().min(end)).min(ATTEMPT_TIMEOUT);
        if try_to_connect(&world, &state, server, limit).await {
            info!(%server, "the server is there again");
            state.servers().server_returned(server);
            state.servers().returns().observe(server, ServerChange::Returned);
            state.servers().returns().end_waiting(server);
            return;
        }
        let is_waited_for = state.servers().returns().observe(server, ServerChange::Absent);
        if world.now() >= end || !is_waited_for {
            state.servers().returns().end_waiting(server);
            return;
        }
    }
}

/// Connects to a server and opens what this client has open there. False if that fails, or takes
/// longer than `limit`.
async fn try_to_connect<W: World>(
    world: &W,
    state: &Rc<State<W>>,
    server: ServerId,
    limit: Duration,
) -> bool {
    let connections = state.servers().connections();
    let Some(address) = connections.address(server).cloned() else { return false };
    let key = ClientKey(world.random());
    let connecting = pin!(rare(async {
        let peer = world.connect(&address).await.ok()?;
        connections.reached(server, peer);
        say_hello(world, peer, key).await.ok()?;
        state.open_again(server, peer).await.ok()?;
        Some(peer)
    }));
    let connected = match select(connecting, pin!(world.sleep(limit))).await {
        Either::Left((connected, _)) => connected,
        Either::Right(_) => None,
    };
    // It may have ended meanwhile.
    let connected = connected.filter(|peer| connections.number_of(*peer) == Some(server));
    let Some(peer) = connected else {
        debug!(%server, "the server cannot be reached yet");
        for peer in connections.lost(server) {
            world.disconnect(peer);
        }
        return false;
    };
    connections.greeted(server, peer);
    state.servers().returns().keys.borrow_mut().insert(server, key);
    true
}
