//! The client library: one process that uses files, alone or in a group.

mod calls;
mod catalogue;
mod group;
mod mailbox;
mod news;
mod pages;
mod pool;

pub use catalogue::NewFile;
pub use group::{Group, SharedMemory};
pub(crate) use mailbox::Expected;
pub use pages::Page;
pub use pool::{Buffer, BufferPart, BufferPool};

use crate::Costs;
use crate::client::calls::Calls;
use crate::client::mailbox::Mailbox;
use std::convert::Infallible;
use std::rc::{Rc, Weak};
use units::{PeerId, ServerId};
use wire::{ClientKey, Fault, Message, PROTOCOL_VERSION, Reply, Request};
use world::{Address, Incoming, NetworkError, Scope, World};

/// A client, connected to every server of an instance. Clones are handles to the same client;
/// the connections end with the last of them.
pub struct Client<W: World>(Rc<State<W>>);

struct State<W: World> {
    world: W,
    key: ClientKey,
    costs: Costs,
    servers: Vec<PeerId>,
    calls: Calls<W::Payload>,
    mailbox: Mailbox,
    listening: Scope<W, Infallible>,
}

impl<W: World> Drop for State<W> {
    fn drop(&mut self) {
        for server in &self.servers {
            self.world.disconnect(*server);
        }
    }
}

impl<W: World> Clone for Client<W> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<W: World> Client<W> {
    /// Connects to the servers, which are numbered in the order given. The client's own work
    /// takes as long as `costs` say.
    pub async fn connect(world: W, servers: &[Address], costs: Costs) -> Result<Self, Fault> {
        let key = ClientKey(world.random());
        let mut peers = Vec::with_capacity(servers.len());
        for (number, address) in servers.iter().enumerate() {
            let server = ServerId(number as u32);
            let left = |error: NetworkError| server_left(server, &error);
            let peer = world.connect(address).await.map_err(left)?;
            let hello = wire::encode(&Message::Hello { version: PROTOCOL_VERSION, key });
            world.send(peer, world::Message::new(hello)).await.map_err(left)?;
            peers.push(peer);
        }
        let state = Rc::new(State {
            listening: Scope::new(world.clone()),
            world: world.clone(),
            key,
            costs,
            servers: peers,
            calls: Calls::default(),
            mailbox: Mailbox::default(),
        });
        // The listener must not keep the client alive that owns it.
        let listener = Rc::downgrade(&state);
        state.listening.spawn(async move {
            listen(world, listener).await;
            Ok(())
        });
        Ok(Self(state))
    }

    /// The world this client lives in.
    pub fn world(&self) -> &W {
        &self.0.world
    }

    /// Number of servers.
    pub fn servers(&self) -> u32 {
        self.0.servers.len() as u32
    }

    pub(crate) fn costs(&self) -> &Costs {
        &self.0.costs
    }

    pub(crate) fn key(&self) -> ClientKey {
        self.0.key
    }

    pub(crate) fn server_peers(&self) -> &[PeerId] {
        &self.0.servers
    }

    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.0.mailbox
    }

    /// Asks a server and waits for its answer.
    pub(crate) async fn call(&self, server: ServerId, request: Request) -> Result<Reply, Fault> {
        self.call_with(server, request, None).await
    }

    /// Asks a server, with data that goes along, and waits for its answer.
    pub(crate) async fn call_with(
        &self,
        server: ServerId,
        request: Request,
        body: Option<W::Payload>,
    ) -> Result<Reply, Fault> {
        self.call_for_data(server, request, body).await.map(|(reply, _)| reply)
    }

    /// Asks a server, with data that goes along, and waits for its answer and the data that comes
    /// with that.
    async fn call_for_data(
        &self,
        server: ServerId,
        request: Request,
        body: Option<W::Payload>,
    ) -> Result<(Reply, Option<W::Payload>), Fault> {
        let peer = self.0.servers[server.0 as usize];
        let call = self.0.calls.begin(server)?;
        let header = wire::encode(&Message::Request { id: call.id(), request });
        let message = world::Message { header, body, place: None, loan: None };
        let sent = self.0.world.send(peer, message).await;
        sent.map_err(|error| not_sent(server, &error))?;
        call.answer().await
    }

    /// Asks some servers the same and waits for all answers; the first fault ends it.
    pub(crate) async fn call_servers(
        &self,
        servers: impl Iterator<Item = ServerId>,
        request: &Request,
    ) -> Result<(), Fault> {
        let calls = servers.map(|server| self.call(server, request.clone()));
        futures_util::future::try_join_all(calls).await.map(|_| ())
    }

    /// What each server is and does, by number.
    pub async fn status(&self) -> Vec<Result<wire::ServerStatus, Fault>> {
        let mut statuses = Vec::new();
        for server in 0..self.servers() {
            let reply = self.call(ServerId(server), Request::Status).await;
            statuses.push(reply.and_then(|reply| match reply {
                Reply::Status(status) => Ok(status),
                other => Err(unexpected(&other)),
            }));
        }
        statuses
    }

    /// Asks every server to finish, write everything back, and end.
    pub async fn stop_servers(&self) -> Result<(), Fault> {
        self.call_servers((0..self.servers()).map(ServerId), &Request::Stop).await
    }
}

/// The fault of a request that did not go out.
fn not_sent(server: ServerId, error: &NetworkError) -> Fault {
    match error {
        NetworkError::TooLarge { .. } => {
            Fault::BadRequest { cause: format!("it does not fit a message: {error}") }
        }
        NetworkError::Departed { .. } | NetworkError::Unreachable { .. } => {
            server_left(server, error)
        }
    }
}

/// The fault of a connection to a server that failed.
pub(crate) fn server_left(server: ServerId, error: &NetworkError) -> Fault {
    Fault::ServerLeft { server, cause: error.to_string() }
}

/// The fault of an answer that does not belong to the question.
pub(crate) fn unexpected(reply: &Reply) -> Fault {
    let cause = format!("the server answered something else than was asked: {reply:?}");
    Fault::BadRequest { cause }
}

/// Hands everything that reaches the client to the task that waits for it.
async fn listen<W: World>(world: W, client: Weak<State<W>>) {
    loop {
        let incoming = world.receive().await;
        let Some(client) = client.upgrade() else { return };
        match incoming {
            Incoming::Message { from, header, body } => client.accept(from, &header, body),
            Incoming::Departed { peer, cause } => client.forget(peer, &cause),
        }
    }
}

impl<W: World> State<W> {
    fn accept(self: &Rc<Self>, from: PeerId, header: &[u8], body: Option<W::Payload>) {
        match wire::decode(header) {
            Ok(Message::Reply { id, result }) if self.servers.contains(&from) => {
                self.calls.answered(id, result.map(|reply| (reply, body)));
            }
            Ok(Message::CollectiveFailed { collective, fault }) if self.servers.contains(&from) => {
                self.mailbox.collective_failed(collective, fault);
            }
            Ok(Message::Group(message)) => self.pass_on(self.mailbox.accept(from, message)),
            // A peer that speaks another language is no peer.
            Ok(_) | Err(_) => {
                self.world.disconnect(from);
                self.forget(from, "it sent something that is no message to a client");
            }
        }
    }

    fn forget(&self, peer: PeerId, cause: &str) {
        if let Some(number) = self.servers.iter().position(|server| *server == peer) {
            self.calls.server_left(ServerId(number as u32), cause);
            self.mailbox.wake();
        }
        self.mailbox.peer_left(peer, cause);
    }
}
