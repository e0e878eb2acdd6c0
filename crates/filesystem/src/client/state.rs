//! A client, its state, and the messages that reach it.

use super::connections::calls::Answer;
use super::connections::connection_table::greet;
use super::connections::servers::Servers;
use super::faults::server_left;
use super::files::cached_sizes::Sizes;
use super::gathering::{Gatherings, KeptFiles};
use super::groups::mailbox::Mailbox;
use super::line_cache::LineCache;
use crate::Costs;
use futures_util::future::{Either, join_all, select};
use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::pin;
use std::rc::{Rc, Weak};
use tracing::debug;
use units::{Duration, PeerId, ServerId};
use wire::{ClientKey, Fault, Frequent, Message, PROTOCOL_VERSION, Reply};
use world::{Address, Incoming, Scope, World};

/// A client of the servers of an instance. Clones are handles to the same client. Dropping the last
/// one closes the connections.
pub struct Client<W: World>(pub(super) Rc<State<W>>);

/// State of a client: its parts, and the tasks that end with it.
pub(super) struct State<W: World> {
    world: W,
    key: ClientKey,
    costs: Costs,
    servers: Servers<W::Payload>,
    mailbox: Mailbox,
    sizes: Sizes,
    /// Files of which it gathers writes.
    gatherings: Gatherings<W::Payload>,
    /// Files of which it keeps pages.
    kept_files: KeptFiles,
    /// Cache for reads and writes of this client alone.
    line_cache: RefCell<Option<Rc<LineCache<W>>>>,
    tasks: Scope<W, Infallible>,
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
    /// Connects to all servers, which are numbered in the order given. `costs` is the processor
    /// time of the client's own work.
    ///
    /// # Errors
    /// [`Fault::ServerLeft`] when one cannot be reached.
    pub async fn connect(world: W, servers: &[Address], costs: Costs) -> Result<Self, Fault> {
        let key = ClientKey(world.random());
        let mut peers = Vec::with_capacity(servers.len());
        for (server, address) in (0..).map(ServerId).zip(servers) {
            let peer = greet(&world, address, key).await;
            peers.push(Some(peer.map_err(|error| server_left(server, &error))?));
        }
        let servers = Servers::new(servers.into(), &peers);
        Ok(Self::of(world, key, servers, costs))
    }

    /// Connects as [`Client::connect`], and [watches](Client::watch) the servers. Each gets a time
    /// of `limit` to answer.
    ///
    /// # Errors
    /// [`Fault::ServerLeft`] when one cannot be reached, [`Fault::ServerStalled`] when one does not
    /// answer.
    pub async fn connect_watched(
        world: W,
        servers: &[Address],
        costs: Costs,
        (limit, timeout): (Duration, Duration),
    ) -> Result<Self, Fault> {
        let key = ClientKey(world.random());
        let mut peers = Vec::with_capacity(servers.len());
        for (server, address) in (0..).map(ServerId).zip(servers) {
            let greeted = pin!(greet(&world, address, key));
            match select(greeted, pin!(world.sleep(limit))).await {
                Either::Left((peer, _)) => {
                    peers.push(Some(peer.map_err(|error| server_left(server, &error))?));
                }
                Either::Right(_) => {
                    return Err(Fault::ServerStalled { server, waited_ms: limit.as_ms() });
                }
            }
        }
        let client = Self::of(world, key, Servers::new(servers.into(), &peers), costs);
        client.watch(timeout);
        Ok(client)
    }

    /// Connects to the servers that can be reached. The others count as departed. For clients that
    /// only inspect an instance.
    pub async fn connect_to_some(world: W, servers: &[Address], costs: Costs) -> Self {
        let key = ClientKey(world.random());
        let greeted = join_all(servers.iter().map(|address| greet(&world, address, key))).await;
        let peers: Vec<_> = greeted.iter().map(|peer| peer.as_ref().ok().copied()).collect();
        let servers = Servers::new(servers.into(), &peers);
        let client = Self::of(world, key, servers, costs);
        for (server, greeted) in (0..).map(ServerId).zip(greeted) {
            if let Err(error) = greeted {
                client.0.servers.server_left(server, &server_left(server, &error));
            }
        }
        client
    }

    /// Makes a client that connects to a server on demand. With thousands of clients and hundreds
    /// of servers, most pairs never need a connection. The client may use a file that another
    /// client has open ([`Client::open_beside`]). Its memory is open to whoever connects.
    pub fn connecting_when_needed(
        world: W,
        servers: impl Into<Rc<[Address]>>,
        costs: Costs,
    ) -> Self {
        let key = ClientKey(world.random());
        Self::of(world, key, Servers::new(servers.into(), &[]), costs)
    }

    fn of(world: W, key: ClientKey, servers: Servers<W::Payload>, costs: Costs) -> Self {
        debug!(servers = servers.count(), "this client begins to use the servers");
        let state = Rc::new(State {
            tasks: Scope::new(world.clone()),
            world: world.clone(),
            key,
            costs,
            servers,
            mailbox: Mailbox::default(),
            sizes: Sizes::default(),
            gatherings: Gatherings::default(),
            kept_files: KeptFiles::default(),
            line_cache: RefCell::default(),
        });
        // The listener must not keep the client alive that owns it.
        let listener = Rc::downgrade(&state);
        state.tasks.spawn(async move {
            listen(world, listener).await;
            Ok(())
        });
        Self(state)
    }

    /// Returns the world of this client.
    pub fn world(&self) -> &W {
        &self.0.world
    }

    /// First message of a further connection of this client to a server, for reads and writes.
    pub fn hello_again(&self, server: ServerId) -> Message {
        Message::HelloAgain { version: PROTOCOL_VERSION, key: self.key_at(server) }
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

    /// Files of which this client gathers writes.
    pub(super) fn gatherings(&self) -> &Gatherings<W::Payload> {
        &self.0.gatherings
    }

    /// Files of which this client keeps pages.
    pub(super) fn kept_files(&self) -> &KeptFiles {
        &self.0.kept_files
    }

    /// Starts a task that ends with this client at the latest.
    pub(super) fn spawn(&self, task: impl Future<Output = Result<(), Infallible>> + 'static) {
        self.0.spawn(task);
    }

    /// Returns a handle that does not keep the client.
    pub(super) fn downgrade(&self) -> WeakClient<W> {
        WeakClient(Rc::downgrade(&self.0))
    }
}

/// Handle that does not keep a client.
pub(super) struct WeakClient<W: World>(Weak<State<W>>);

impl<W: World> WeakClient<W> {
    /// Returns the client if it is still there.
    pub(super) fn upgrade(&self) -> Option<Client<W>> {
        self.0.upgrade().map(Client)
    }
}

/// Hands every incoming message to the task that waits for it.
async fn listen<W: World>(world: W, client: Weak<State<W>>) {
    loop {
        let incoming = world.receive().await;
        let Some(client) = client.upgrade() else { return };
        match incoming {
            Incoming::Message { from, header, body } => client.accept(from, &header, body),
            Incoming::Departed { peer, cause } => client.peer_left(peer, &cause),
        }
    }
}

impl<W: World> State<W> {
    pub(super) fn world(&self) -> &W {
        &self.world
    }

    pub(super) fn key(&self) -> ClientKey {
        self.key
    }

    pub(super) fn costs(&self) -> &Costs {
        &self.costs
    }

    /// The servers, and calls to them.
    pub(super) fn servers(&self) -> &Servers<W::Payload> {
        &self.servers
    }

    /// Messages of members of groups.
    pub(super) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Sizes of the files that this client has open.
    pub(super) fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The cache of this client, if it has one.
    pub(super) fn line_cache(&self) -> Option<Rc<LineCache<W>>> {
        self.line_cache.borrow().clone()
    }

    /// True if this client has a cache.
    pub(super) fn has_line_cache(&self) -> bool {
        self.line_cache.borrow().is_some()
    }

    /// Begins or ends the use of a cache.
    pub(super) fn set_line_cache(&self, cache: Option<Rc<LineCache<W>>>) {
        *self.line_cache.borrow_mut() = cache;
    }

    /// Starts a task that ends with this client at the latest.
    pub(super) fn spawn(&self, task: impl Future<Output = Result<(), Infallible>> + 'static) {
        self.tasks.spawn(task);
    }

    fn accept(self: &Rc<Self>, from: PeerId, header: &[u8], body: Option<W::Payload>) {
        let is_server = || self.servers.number_of(from).is_some();
        if let Some(Frequent::Done(id)) = Frequent::decode(header)
            && is_server()
        {
            let answer = match body {
                None => Answer::Done,
                body => Answer::of(Ok(Reply::Done), body),
            };
            return self.servers.answered(id, answer);
        }
        match wire::decode(header) {
            Ok(Message::Reply { id, result }) if is_server() => {
                if let Ok(Reply::Line { line, .. }) = result {
                    self.line_arrives(line, body.is_some());
                }
                self.servers.answered(id, Answer::of(result, body));
            }
            Ok(Message::Group(message)) => {
                self.propagate_failure(self.mailbox.accept(from, message))
            }
            Ok(Message::Recall { file, ends })
                if let Some(server) = self.servers.number_of(from) =>
            {
                Client(Rc::clone(self)).recalled(server, file, ends);
            }
            Ok(Message::RecallPages { file })
                if let Some(server) = self.servers.number_of(from) =>
            {
                Client(Rc::clone(self)).pages_recalled(file, server);
            }
            Ok(Message::CacheCommand(command)) if is_server() && self.has_line_cache() => {
                self.cache_command(from, command, body);
            }
            Ok(Message::SentLine(sent)) if self.accept_line(sent, body.clone()) => {}
            // Disconnects a peer that speaks another protocol.
            Ok(_) | Err(_) => {
                self.world.disconnect(from);
                self.peer_left(from, "it sent a message that no client accepts");
            }
        }
    }

    pub(super) fn peer_left(self: &Rc<Self>, peer: PeerId, cause: &str) {
        if let Some(server) = self.servers.number_of(peer) {
            self.server_left(server, &Fault::ServerLeft { server, cause: cause.to_owned() });
        } else {
            self.cache_peer_left(peer);
        }
        self.mailbox.peer_left(peer, cause);
    }

    pub(super) fn server_left(self: &Rc<Self>, server: ServerId, fault: &Fault) {
        self.servers.server_left(server, fault);
        self.server_is_gone(server);
    }

    /// Ends what depends on the connection to a server, of which calls have failed.
    pub(super) fn server_is_gone(self: &Rc<Self>, server: ServerId) {
        self.mailbox.wake();
        self.await_return(server);
        Client(Rc::clone(self)).lose_leases_of(server);
    }
}
