//! Calls of this server to the other servers of its instance. For them it is a client.
//!
//! Invariants:
//! - At most one connection to each other server. It names this server first, so that the other one
//!   ends an earlier connection before it takes anything from this one.
//! - A call ends with the answer, or with a fault once the other server has left or is silent. One
//!   that answers pings may take as long as its disk.

use crate::client::greet;
use crate::liveness::is_silent;
use crate::signal::Signal;
use futures_util::future::{Either, select};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use tracing::debug;
use units::{Duration, Instant, PeerId, ServerId};
use wire::{ClientKey, Fault, Message, ObjectRequest, Reply, Request, RequestId};
use world::{Address, Scope, World};

/// Time limit of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_ms(2_000);

/// Time after a failed connection in which no further one is tried.
const CONNECT_PAUSE: Duration = Duration::from_ms(1_000);

/// Time for which an answer is waited for before the other server is pinged.
const PING_INTERVAL: Duration = Duration::from_ms(500);

/// Silence after which the other server counts as lost.
const SILENCE_TIMEOUT: Duration = Duration::from_ms(1_500);

/// Answer to a call: the reply, and its body.
type Answer<P> = (Result<Reply, Fault>, Option<P>);

/// The other servers of an instance.
pub(crate) struct OtherServers<W: World> {
    world: W,
    own: ServerId,
    links: RefCell<BTreeMap<ServerId, Rc<Link<W::Payload>>>>,
    next: Cell<u64>,
    connecting: Scope<W, Infallible>,
}

/// Connection to one of them.
struct Link<P> {
    server: ServerId,
    address: Address,
    peer: Cell<Option<PeerId>>,
    /// True once the other server knows who this one is.
    is_ready: Cell<bool>,
    is_connecting: Cell<bool>,
    /// Number of connections that have ended.
    ended: Cell<u64>,
    /// Instant and cause of the last failed connection.
    failed: RefCell<Option<(Instant, String)>>,
    /// Answers to the active calls, as they come.
    answers: RefCell<BTreeMap<RequestId, Option<Answer<P>>>>,
    /// Notified when a call is answered, and when the connection begins or ends.
    changed: Signal,
}

/// Place of an active call. Given up when dropped.
struct Call<'a, P>(&'a Link<P>, RequestId);

impl<P> Drop for Call<'_, P> {
    fn drop(&mut self) {
        let answer = self.0.answers.borrow_mut().remove(&self.1);
        drop(answer);
    }
}

impl<P> Link<P> {
    fn left(&self, cause: impl ToString) -> Fault {
        Fault::ServerLeft { server: self.server, cause: cause.to_string() }
    }

    fn end(&self) {
        self.ended.update(|ended| ended + 1);
        self.peer.set(None);
        self.is_ready.set(false);
        self.changed.notify();
    }
}

impl<W: World> OtherServers<W> {
    /// Knows of no other server yet.
    pub(crate) fn new(world: W, own: ServerId) -> Self {
        let connecting = Scope::new(world.clone());
        Self { world, own, links: RefCell::default(), next: Cell::new(1), connecting }
    }

    /// Learns of the other servers.
    pub(crate) fn learn(&self, servers: impl IntoIterator<Item = (ServerId, Address)>) {
        let others = servers.into_iter().filter(|(server, _)| *server != self.own);
        let link = |(server, address)| {
            let link = Link {
                server,
                address,
                peer: Cell::new(None),
                is_ready: Cell::new(false),
                is_connecting: Cell::new(false),
                ended: Cell::new(0),
                failed: RefCell::default(),
                answers: RefCell::default(),
                changed: Signal::default(),
            };
            (server, Rc::new(link))
        };
        *self.links.borrow_mut() = others.map(link).collect();
    }

    /// Tells if this server knows where the others are.
    pub(crate) fn are_known(&self) -> bool {
        !self.links.borrow().is_empty()
    }

    /// Tells if there is a connection to a server.
    pub(crate) fn is_connected(&self, server: ServerId) -> bool {
        self.links.borrow().get(&server).is_some_and(|link| link.is_ready.get())
    }

    /// Sends a server a request; returns its reply, with the body if it has one.
    ///
    /// # Errors
    /// [`Fault::ServerLeft`] when it cannot be reached, leaves or is silent; else what it answers.
    pub(crate) async fn call(
        self: &Rc<Self>,
        server: ServerId,
        request: impl Into<Request>,
        body: Option<W::Payload>,
    ) -> Result<(Reply, Option<W::Payload>), Fault> {
        let link = self.link(server)?;
        let peer = self.connected(&link).await?;
        self.ask(&link, peer, request.into(), body).await
    }

    /// Connects to a server, if there is no connection, even if that has just failed.
    ///
    /// # Errors
    /// As for [`OtherServers::reach`].
    pub(crate) async fn reach_again(self: &Rc<Self>, server: ServerId) -> Result<(), Fault> {
        self.link(server)?.failed.take();
        self.reach(server).await
    }

    /// Connects to a server, if there is no connection.
    ///
    /// # Errors
    /// [`Fault::ServerLeft`] when it cannot be reached.
    pub(crate) async fn reach(self: &Rc<Self>, server: ServerId) -> Result<(), Fault> {
        let link = self.link(server)?;
        self.connected(&link).await.map(|_| ())
    }

    fn link(&self, server: ServerId) -> Result<Rc<Link<W::Payload>>, Fault> {
        self.links.borrow().get(&server).cloned().ok_or_else(|| {
            let cause = format!("{} does not know where {server} is", self.own);
            Fault::BadRequest { cause }
        })
    }

    async fn ask(
        &self,
        link: &Link<W::Payload>,
        peer: PeerId,
        request: Request,
        body: Option<W::Payload>,
    ) -> Result<(Reply, Option<W::Payload>), Fault> {
        let id = RequestId(self.next.replace(self.next.get() + 1));
        link.answers.borrow_mut().insert(id, None);
        let _call = Call(link, id);
        let header = wire::encode(&Message::Request { id, request });
        let message = match body {
            Some(body) => world::Message::with_body(header, body),
            None => world::Message::new(header),
        };
        let answered = async {
            self.world.send(peer, message).await.map_err(|error| link.left(error))?;
            let answer = || {
                let answer = link.answers.borrow_mut().get_mut(&id).and_then(Option::take);
                let is_gone = link.peer.get() != Some(peer);
                answer.map(Ok).or(is_gone.then(|| Err(link.left("its connection ended"))))
            };
            let (result, body) = link.changed.until(answer).await?;
            result.map(|reply| (reply, body))
        };
        let mut answered = pin!(answered);
        loop {
            let look = async {
                self.world.sleep(PING_INTERVAL).await;
                is_silent(&self.world, peer, SILENCE_TIMEOUT).await
            };
            match select(answered.as_mut(), pin!(look)).await {
                Either::Left((answer, _)) => return answer,
                Either::Right((false, _)) => {}
                Either::Right((true, _)) => {
                    self.world.disconnect(peer);
                    if link.peer.get() == Some(peer) {
                        link.end();
                    }
                    return Err(link.left("it does not answer"));
                }
            }
        }
    }

    /// Returns the connection of a link, and makes it first if there is none.
    async fn connected(self: &Rc<Self>, link: &Rc<Link<W::Payload>>) -> Result<PeerId, Fault> {
        loop {
            if let Some(peer) = link.peer.get().filter(|_| link.is_ready.get()) {
                return Ok(peer);
            }
            if let Some((at, cause)) = link.failed.borrow().as_ref()
                && self.world.now().since(*at) < CONNECT_PAUSE
            {
                return Err(link.left(cause));
            }
            if !link.is_connecting.replace(true) {
                // In a task of its own, so that dropping this call leaves no half-made connection.
                let (others, link) = (Rc::clone(self), Rc::clone(link));
                self.connecting.spawn(async move {
                    others.connect(&link).await;
                    Ok(())
                });
            }
            link.changed.until(|| (!link.is_connecting.get()).then_some(())).await;
        }
    }

    async fn connect(&self, link: &Link<W::Payload>) {
        let key = ClientKey(self.world.random());
        let greeted = async {
            let peer = greet(&self.world, &link.address, key).await;
            let peer = peer.map_err(|error| error.to_string())?;
            link.peer.set(Some(peer));
            let hello = ObjectRequest::Hello { server: self.own }.into();
            let said = self.ask(link, peer, hello, None).await;
            said.map_err(|fault| fault.to_string())
        };
        let greeted = match select(pin!(greeted), pin!(self.world.sleep(CONNECT_TIMEOUT))).await {
            Either::Left((greeted, _)) => greeted.map(|_| ()),
            Either::Right(_) => Err("it does not answer".to_owned()),
        };
        *link.failed.borrow_mut() = match greeted {
            Ok(()) => {
                link.is_ready.set(link.peer.get().is_some());
                None
            }
            Err(cause) => {
                debug!(server = link.server.0, cause, "another server cannot be reached");
                if let Some(peer) = link.peer.get() {
                    self.world.disconnect(peer);
                    link.end();
                }
                Some((self.world.now(), cause))
            }
        };
        link.is_connecting.set(false);
        link.changed.notify();
    }

    fn link_at(&self, peer: PeerId) -> Option<Rc<Link<W::Payload>>> {
        self.links.borrow().values().find(|link| link.peer.get() == Some(peer)).cloned()
    }

    /// Takes the answer of another server. Returns `false` if it is from nobody else.
    pub(crate) fn accept(
        &self,
        peer: PeerId,
        id: RequestId,
        result: Result<Reply, Fault>,
        body: Option<W::Payload>,
    ) -> bool {
        let Some(link) = self.link_at(peer) else { return false };
        // A call that was given up has no place any more.
        if let Some(place) = link.answers.borrow_mut().get_mut(&id) {
            *place = Some((result, body));
        }
        link.changed.notify();
        true
    }

    /// Notes that a peer has departed. True if it was another server.
    pub(crate) fn departed(&self, peer: PeerId) -> bool {
        let Some(link) = self.link_at(peer) else { return false };
        link.end();
        true
    }

    /// Number of connections to a server that have ended. What it had not stored may be lost since.
    pub(crate) fn ended(&self, server: ServerId) -> u64 {
        self.links.borrow().get(&server).map_or(0, |link| link.ended.get())
    }

    /// Ends all connections, because the server ends.
    pub(crate) fn leave(&self) {
        let links: Vec<_> = self.links.borrow().values().cloned().collect();
        for link in links {
            if let Some(peer) = link.peer.get() {
                self.world.disconnect(peer);
            }
            link.end();
        }
    }
}
