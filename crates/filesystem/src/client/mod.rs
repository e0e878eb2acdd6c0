//! The client library: one process that uses files, alone or in a group.

mod calls;
mod catalogue;
mod failure_propagation;
mod group;
mod mailbox;
mod pages;
mod pool;
mod rendezvous;
mod servers;
mod sizes;

pub use catalogue::NewFile;
pub use group::{Group, SharedMemory};
pub(crate) use mailbox::Expected;
pub use pages::Page;
pub use pool::{Buffer, BufferPart, BufferPool};
pub use rendezvous::Membership;
pub(crate) use servers::Exposed;

use crate::Costs;
use crate::client::calls::{Answer, Calls};
use crate::client::mailbox::Mailbox;
use crate::client::servers::{Servers, greet};
use crate::client::sizes::Sizes;
use futures_util::future::join_all;
use std::convert::Infallible;
use std::rc::{Rc, Weak};
use units::{Duration, PeerId, ServerId};
use wire::{
    ClientKey, FREQUENT_BYTES_MAX, Fault, Frequent, Message, PreparedRequest, Reply, Request,
    RequestId,
};
use world::{Address, Header, Incoming, NetworkError, Scope, World};

/// A client of the servers of an instance. Clones are handles to the same client;
/// the connections end with the last of them.
pub struct Client<W: World>(Rc<State<W>>);

/// What came of something small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It is done.
    Done,
    /// The server has no room for the data that went along.
    NoRoom,
}

struct State<W: World> {
    world: W,
    key: ClientKey,
    costs: Costs,
    servers: Servers,
    calls: Calls<W::Payload>,
    mailbox: Mailbox,
    sizes: Sizes,
    listening: Scope<W, Infallible>,
}

impl<W: World> Drop for State<W> {
    fn drop(&mut self) {
        for server in self.servers.peers() {
            self.world.disconnect(server);
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
    ///
    /// # Errors
    /// [`Fault::ServerLeft`] when one cannot be reached.
    pub async fn connect(world: W, servers: &[Address], costs: Costs) -> Result<Self, Fault> {
        let key = ClientKey(world.random());
        let mut peers = Vec::with_capacity(servers.len());
        for (number, address) in servers.iter().enumerate() {
            let peer = greet(&world, address, key).await;
            let left = |error| server_left(ServerId(number as u32), &error);
            peers.push(Some(peer.map_err(left)?));
        }
        let servers = Servers::new(servers.into(), &peers);
        Ok(Self::of(world, key, servers, costs))
    }

    /// The same, but to those servers that are there: the others have left, as far as this client
    /// is concerned. For whoever only looks.
    pub async fn connect_to_some(world: W, servers: &[Address], costs: Costs) -> Self {
        let key = ClientKey(world.random());
        let greeted = join_all(servers.iter().map(|address| greet(&world, address, key))).await;
        let peers: Vec<_> = greeted.iter().map(|peer| peer.as_ref().ok().copied()).collect();
        let servers = Servers::new(servers.into(), &peers);
        let client = Self::of(world, key, servers, costs);
        for (server, greeted) in (0..).map(ServerId).zip(greeted) {
            if let Err(error) = greeted {
                client.0.calls.server_left(server, &error.to_string());
            }
        }
        client
    }

    /// A client that connects to a server when it first needs it: where there are thousands of
    /// clients and hundreds of servers, most never need one another. It may have a file open that
    /// another client has ([`Client::open_beside`]). Servers that direct a transfer connect to it,
    /// so it must listen where its group says; its memory is open to whoever may do so.
    pub fn connecting_when_needed(
        world: W,
        servers: impl Into<Rc<[Address]>>,
        costs: Costs,
    ) -> Self {
        let key = ClientKey(world.random());
        Self::of(world, key, Servers::new(servers.into(), &[]), costs)
    }

    fn of(world: W, key: ClientKey, servers: Servers, costs: Costs) -> Self {
        let state = Rc::new(State {
            listening: Scope::new(world.clone()),
            world: world.clone(),
            key,
            costs,
            servers,
            calls: Calls::default(),
            mailbox: Mailbox::default(),
            sizes: Sizes::default(),
        });
        // The listener must not keep the client alive that owns it.
        let listener = Rc::downgrade(&state);
        state.listening.spawn(async move {
            listen(world, listener).await;
            Ok(())
        });
        Self(state)
    }

    /// The world this client lives in.
    pub fn world(&self) -> &W {
        &self.0.world
    }

    /// Number of servers.
    pub fn servers(&self) -> u32 {
        self.0.servers.count()
    }

    pub(crate) fn costs(&self) -> &Costs {
        &self.0.costs
    }

    pub(crate) fn key(&self) -> ClientKey {
        self.0.key
    }

    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.0.mailbox
    }

    /// Asks a server and waits for its answer.
    pub(crate) async fn call(&self, server: ServerId, request: Request) -> Result<Reply, Fault> {
        self.call_for_data(server, request).await.map(|(reply, _)| reply)
    }

    /// The same with what is asked of several servers.
    pub(crate) async fn call_prepared(
        &self,
        server: ServerId,
        request: &PreparedRequest,
    ) -> Result<Reply, Fault> {
        let answered = self.call_with(server, |id| request.encode(id)).await;
        answered.map(|(reply, _)| reply)
    }

    /// Asks a server and waits for its answer, and the data that comes with it.
    async fn call_for_data(
        &self,
        server: ServerId,
        request: Request,
    ) -> Result<(Reply, Option<W::Payload>), Fault> {
        self.call_with(server, |id| wire::encode(&Message::Request { id, request })).await
    }

    async fn call_with(
        &self,
        server: ServerId,
        header: impl FnOnce(RequestId) -> Header,
    ) -> Result<(Reply, Option<W::Payload>), Fault> {
        let call = self.0.calls.begin(server)?;
        let peer = match self.0.servers.peer(server) {
            Some(peer) => peer,
            None => Box::pin(self.connect_to(server)).await?,
        };
        let message = world::Message::new(header(call.id()));
        let sent = self.0.world.send(peer, message).await;
        sent.map_err(|error| not_sent(server, &error))?;
        call.await.result()
    }

    /// Does work that costs `cost`, asks a server for something small of which there is much, with
    /// data that goes along, and waits for what comes of it.
    pub(crate) async fn call_often(
        &self,
        cost: Duration,
        server: ServerId,
        request: impl FnOnce(RequestId) -> Frequent,
        body: Option<W::Payload>,
    ) -> Result<Outcome, Fault> {
        let call = self.0.calls.begin(server)?;
        let header = frequent_header(&request(call.id()));
        let message = world::Message { header, body, place: None, loan: None };
        let peer = match self.0.servers.peer(server) {
            Some(peer) => peer,
            None => Box::pin(self.connect_to(server)).await?,
        };
        let sent = self.0.world.send_after(cost, peer, message).await;
        sent.map_err(|error| not_sent(server, &error))?;
        match call.await {
            Answer::Done => Ok(Outcome::Done),
            Answer::Other(result) => match *result {
                Ok((Reply::NoRoom, _)) => Ok(Outcome::NoRoom),
                Ok((reply, _)) => Err(unexpected(&reply)),
                Err(fault) => Err(fault),
            },
        }
    }

    /// Asks some servers the same and waits for all answers; the first fault ends it.
    pub(crate) async fn call_servers(
        &self,
        servers: impl Iterator<Item = ServerId>,
        request: &Request,
    ) -> Result<(), Fault> {
        let request = PreparedRequest::new(request);
        let calls = servers.map(|server| self.call_prepared(server, &request));
        futures_util::future::try_join_all(calls).await.map(|_| ())
    }

    /// The same, but all are asked whatever others answer. The first fault is returned.
    pub(crate) async fn call_each_server(
        &self,
        servers: impl Iterator<Item = ServerId>,
        request: &Request,
    ) -> Result<(), Fault> {
        let request = PreparedRequest::new(request);
        let calls = servers.map(|server| self.call_prepared(server, &request));
        let answers = join_all(calls).await;
        answers.into_iter().collect::<Result<Vec<Reply>, Fault>>().map(|_| ())
    }

    /// Asks some servers something whose answers nobody waits for.
    pub(crate) fn notify_servers(
        &self,
        servers: impl Iterator<Item = ServerId>,
        request: &Request,
    ) {
        let request = PreparedRequest::new(request);
        let messages: Vec<(PeerId, Header)> = servers
            .filter_map(|server| {
                let (call, peer) = (self.0.calls.begin(server).ok()?, self.0.servers.peer(server)?);
                Some((peer, request.encode(call.id())))
            })
            .collect();
        let world = self.0.world.clone();
        self.0.listening.spawn(async move {
            let send = |(peer, header)| world.send(peer, world::Message::new(header));
            join_all(messages.into_iter().map(send)).await;
            Ok(())
        });
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

/// The bytes of a message of which there are many.
pub(crate) fn frequent_header(message: &Frequent) -> Header {
    let mut room = [0; FREQUENT_BYTES_MAX];
    let length = message.encode(&mut room).len();
    // Most are short: so many bytes, whatever they mean, are copied as two words of a processor.
    match room.first_chunk() {
        Some(short) if length <= short.len() => Header::from_buf_and_len(*short, length),
        _ => Header::from_slice(&room[..length]),
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
        let is_server = || self.servers.number_of(from).is_some();
        if let Some(Frequent::Done(id)) = Frequent::decode(header)
            && is_server()
        {
            let answer = match body {
                None => Answer::Done,
                body => Answer::of(Ok(Reply::Done), body),
            };
            return self.calls.answered(id, answer);
        }
        match wire::decode(header) {
            Ok(Message::Reply { id, result }) if is_server() => {
                self.calls.answered(id, Answer::of(result, body));
            }
            Ok(Message::CollectiveFailed { collective, fault }) if is_server() => {
                self.mailbox.collective_failed(collective, fault);
            }
            Ok(Message::Group(message)) => {
                self.propagate_failure(self.mailbox.accept(from, message))
            }
            // A peer that speaks another language is no peer.
            Ok(_) | Err(_) => {
                self.world.disconnect(from);
                self.forget(from, "it sent something that is no message to a client");
            }
        }
    }

    fn forget(&self, peer: PeerId, cause: &str) {
        if let Some(server) = self.servers.number_of(peer) {
            self.server_left(server, cause);
        }
        self.mailbox.peer_left(peer, cause);
    }

    fn server_left(&self, server: ServerId, cause: &str) {
        self.calls.server_left(server, cause);
        self.mailbox.wake();
    }
}
