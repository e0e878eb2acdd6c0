//! The life of a server: it loads its state, listens, starts requests, writes everything back, and
//! ends.
//!
//! Invariants:
//! - When a client leaves, its open files, active requests and buffers are freed at once.
//! - A request is answered exactly once, or its client has left.
//! - No message makes the server panic.

use crate::scale::start;
use crate::server::catalogue::{Catalogue, CatalogueCopy, OtherServer};
use crate::server::clients::session::Session;
use crate::server::config::ServerConfig;
use crate::server::files::kept_sizes::KeptSizes;
use crate::server::files::protections::Protections;
use crate::server::mirrors::Marks;
use crate::server::refill::Lacking;
use crate::server::state::Server;
use crate::server::transfers::active_transfers::TransferKey;
use futures_util::FutureExt;
use futures_util::future::{Either, join, join_all, join3, select};
use std::convert::Infallible;
use std::rc::Rc;
use tracing::debug;
use units::{Duration, PeerId, ServerId};
use wire::{
    CatalogueRequest, Fault, FileRequest, Frequent, Message, Reply, Request, RequestId,
    WriteGathered, WriteRequest,
};
use world::{Incoming, Payload, World};

/// Time without a change of a copy after which a server that ends does not wait for the servers of
/// whose parts it has copies.
const LINGER_IDLE: Duration = Duration::from_ms(2_000);

/// Maximum time that it waits for them.
const LINGER_MAX: Duration = Duration::from_ms(60_000);

/// Time between two checks whether such servers have left.
const LINGER_POLL: Duration = Duration::from_ms(5);

/// Serves until a client asks to stop or `stop_requested` ends. Everything is written back when it
/// returns. Calls `is_ready` when the server is ready to serve.
pub async fn serve<W: World>(
    world: W,
    config: ServerConfig,
    is_ready: impl FnOnce(),
    stop_requested: impl Future<Output = ()>,
) -> Result<(), Fault> {
    let is_ready = || {
        is_ready();
        Vec::new()
    };
    serve_among_others(world, config, is_ready, stop_requested).await
}

/// Serves as [`serve`] does, as one of several servers that know one another. `is_ready` returns
/// the other ones. They keep copies of the catalogue of server 0, of which the first one has each
/// change before it is answered, and copies of mirrored files.
pub async fn serve_among_others<W: World>(
    world: W,
    config: ServerConfig,
    is_ready: impl FnOnce() -> Vec<OtherServer>,
    stop_requested: impl Future<Output = ()>,
) -> Result<(), Fault> {
    let (mut catalogue, mut copy) = (None, None);
    match config.id {
        ServerId(0) => catalogue = Some(Catalogue::load(world.clone()).await?),
        id => copy = Some(CatalogueCopy::load(world.clone(), id).await?),
    }
    let kept_sizes = KeptSizes::load(world.clone(), config.id).await?;
    let protections = Protections::load(world.clone(), config.id).await?;
    let marks = Marks::load(world.clone(), config.id).await?;
    let lacking = Lacking::load(world.clone(), config.id, &config).await?;
    let (others, kept) = (is_ready(), (kept_sizes, protections));
    let server = Server::new(world, config, kept, catalogue, copy, marks, lacking);
    let addresses = others.iter().map(|other| (other.server, other.address.clone()));
    server.others().learn(addresses);
    let copies = server.catalogue().map(Catalogue::copies);
    let copies = copies.filter(|_| server.config().copies_catalogue);
    let copying = copies.into_iter().flat_map(|copies| copies.follow(others.clone()));
    let copying: Vec<_> = copying.collect();
    let renewing = async {
        match server.config().read_only {
            true => server.list_lacking().await,
            false => _ = join(server.mirrors().renew(), server.refill()).await,
        }
    };
    let listening = join3(listen(&server), disconnect_stalled(&server), renewing);
    let listening = std::pin::pin!(join(listening, join_all(copying)));
    let stopping = std::pin::pin!(async {
        let stopped = std::pin::pin!(server.stop().until_requested());
        select(stopped, std::pin::pin!(stop_requested)).await;
        server.recall_before_end().await;
        finish(&server).await
    });
    match select(listening, stopping).await {
        Either::Left(_) => finish(&server).await,
        Either::Right((stored, _)) => stored,
    }
}

/// Disconnects all clients, finishes the changes of the catalogue and writes everything back. Then
/// answers the other servers, until they have written back to the copies here.
async fn finish<W: World>(server: &Rc<Server<W>>) -> Result<(), Fault> {
    server.stop().begin_end();
    if let Some(catalogue) = server.catalogue() {
        // Nobody sends changes to them any more.
        catalogue.copies().give_up();
    }
    // Dropping the sessions ends their active requests.
    let sessions = server.clients().take_all_but_part_owners();
    server.collectives().cancel();
    for (peer, _) in &sessions {
        server.world().disconnect(*peer);
        server.client_caches().leave(*peer);
    }
    drop(sessions);
    let Ok(()) = server.changes().finished().await;
    let mut stored = Ok(());
    if !server.config().read_only {
        stored = server.cache().write_back_all().await;
        for file in server.files().all() {
            server.disks().set_time(&file).await;
        }
        // After the data that must not be lost.
        for (file, protection) in server.files().all_nameless() {
            stored = stored.and(server.drop_file(file, protection).await.map(|_| ()));
        }
        // The records are obsolete; if this fails, the next start finds them again.
        let _ = server.kept_sizes().settle().await;
        let _ = server.lacking().settle().await;
        if let Some(catalogue) = server.catalogue() {
            let _ = catalogue.settle().await;
        }
        let settled = server.disks().settle_copies().await;
        stored = stored.and(settled);
    }
    server.others().leave();
    let begun = server.world().now();
    let is_idle = || {
        let last = server.clients().last_change_of_copy().max(begun);
        server.world().now().since(last) >= LINGER_IDLE
    };
    let is_long = || server.world().now().since(begun) >= LINGER_MAX;
    while server.clients().has_part_owners() && !is_idle() && !is_long() {
        server.world().sleep(LINGER_POLL).await;
    }
    stored
}

async fn listen<W: World>(server: &Rc<Server<W>>) {
    loop {
        match server.world().receive().await {
            Incoming::Message { from, header, body } => server.accept(from, &header, body),
            Incoming::Departed { peer, .. } => server.forget(peer),
        }
    }
}

/// Disconnects clients that stall while others wait for their memory.
async fn disconnect_stalled<W: World>(server: &Rc<Server<W>>) {
    loop {
        let peer = server.memory().watchdog().next_to_disconnect().await;
        server.world().disconnect(peer);
        server.forget(peer);
    }
}

/// True for a request that other servers make as they end.
fn is_of_server(request: &Request) -> bool {
    use CatalogueRequest::{Behind, Files, SetBehind};
    let is_own = |it: &CatalogueRequest| matches!(it, SetBehind { .. } | Behind | Files { .. });
    match request {
        Request::Object(_) => true,
        Request::Catalogue(request) => is_own(request),
        _ => false,
    }
}

impl<W: World> Server<W> {
    /// Accepts one message. Disconnects the sender of an invalid one.
    fn accept(self: &Rc<Self>, from: PeerId, header: &[u8], body: Option<W::Payload>) {
        let accepted = match Frequent::decode(header) {
            Some(Frequent::Read(..) | Frequent::Write(..)) if self.stop().is_ending() => false,
            Some(Frequent::Read(id, read)) => {
                self.begin((from, id), 0, |server| server.answer_read((from, id), read))
            }
            Some(Frequent::Write(id, write)) => self.begin_write((from, id), write, body),
            Some(Frequent::Done(id)) => self.others().accept(from, id, Ok(Reply::Done), body),
            None => match wire::decode(header) {
                Ok(Message::Hello { version, key }) => {
                    self.greet(from, Session::new(self.world().clone(), key, version))
                }
                Ok(Message::HelloAgain { version, key }) => {
                    let session = Session::new(self.world().clone(), key, version);
                    self.clients().greet_again(from, session)
                }
                Ok(Message::Request { .. }) if self.clients().is_further(from) => false,
                Ok(Message::Request { request, .. })
                    if self.stop().is_ending() && !is_of_server(&request) =>
                {
                    false
                }
                Ok(Message::Request { id, request }) => {
                    self.begin_request((from, id), header.len() as u64, request, body)
                }
                Ok(Message::CacheAnswer(answer)) => self.client_caches().accept(from, answer, body),
                // Of a server with a copy of the catalogue, or of files.
                Ok(Message::Reply { id, result }) => {
                    let copies = self.catalogue().map(Catalogue::copies);
                    match copies.filter(|copies| copies.is_at(from)) {
                        Some(copies) => copies.accept(from, result),
                        None => self.others().accept(from, id, result, body),
                    }
                }
                Ok(_) | Err(_) => false,
            },
        };
        if !accepted {
            self.world().disconnect(from);
            self.forget(from);
        }
    }

    /// Opens the session of a client. A client of another version gets the fault with its first
    /// answer.
    fn greet(&self, from: PeerId, session: Session<W>) -> bool {
        let is_new = self.clients().greet(from, session);
        if is_new {
            debug!(client = from.0, "a client has connected");
        }
        is_new
    }

    /// Starts a request of `bytes` bytes in the scope of its client, unless the client speaks
    /// another version.
    fn begin<F: Future<Output = Result<(), Infallible>> + 'static>(
        self: &Rc<Self>,
        (from, id): (PeerId, RequestId),
        bytes: u64,
        answer: impl FnOnce(Rc<Self>) -> F,
    ) -> bool {
        let Some(session) = self.clients().session(from) else { return false };
        if session.is_full() {
            return false;
        }
        self.counters().count_request();
        let server = Rc::clone(self);
        match (session.check_version(), self.memory().hold_request(from, bytes)) {
            (Ok(()), None) => start(session.scope(), || answer(server)),
            (Ok(()), Some(held)) => {
                start(session.scope(), || {
                    answer(server).map(move |done| {
                        drop(held);
                        done
                    })
                });
                self.memory().bound_requests();
            }
            (Err(refused), _) => start(session.scope(), || server.refuse((from, id), refused)),
        }
        true
    }

    /// Starts a write request, and keeps its data if the budget permits.
    fn begin_write(
        self: &Rc<Self>,
        call: (PeerId, RequestId),
        request: WriteRequest,
        body: Option<W::Payload>,
    ) -> bool {
        match self.memory().keep_written(body.as_ref().map_or(0, Payload::length)) {
            Some(permit) => {
                self.begin(call, 0, |server| server.answer_write(call, request, body, permit))
            }
            None => self.begin(call, 0, |server| server.turn_away(call)),
        }
    }

    /// Starts to carry out gathered writes, if the budget permits. `bytes` is the size of their
    /// list. A client that only returns its lease, for which others wait, needs no room.
    fn begin_gathered(
        self: &Rc<Self>,
        call: (PeerId, RequestId),
        bytes: u64,
        request: Box<WriteGathered>,
        body: Option<W::Payload>,
    ) -> bool {
        let bytes = bytes + body.as_ref().map_or(0, Payload::length);
        let permit = self.memory().keep_gathered(bytes);
        if permit.is_none() && !(request.writes.is_empty() && body.is_none()) {
            return self.begin(call, 0, |server| server.turn_away(call));
        }
        self.begin(call, 0, |server| server.answer_gathered(call, request, body, permit))
    }

    /// Starts a request of `bytes` bytes, in the part of the server that serves it. (Numbers of
    /// 2^63 and more in a read or write request are not decoded as [`Frequent`].)
    fn begin_request(
        self: &Rc<Self>,
        call: (PeerId, RequestId),
        bytes: u64,
        request: Request,
        body: Option<W::Payload>,
    ) -> bool {
        match request {
            Request::Read(read) => self.begin(call, 0, |server| server.answer_read(call, read)),
            Request::Write(write) => self.begin_write(call, write, body),
            Request::Cache(request) => {
                let bytes = bytes + body.as_ref().map_or(0, Payload::length);
                self.begin(call, bytes, |server| server.answer_cache(call, *request, body))
            }
            Request::Object(request) => {
                self.begin(call, bytes, |server| server.answer_object(call, request, body))
            }
            Request::Block(request) => {
                self.begin(call, bytes, |server| server.answer_block(call, request))
            }
            Request::Collective(request) => {
                self.begin(call, bytes, |server| server.answer_collective(call, request, body))
            }
            Request::File(FileRequest::WriteGathered(request)) => {
                self.begin_gathered(call, bytes, request, body)
            }
            Request::File(request) => {
                self.begin(call, bytes, |server| server.answer_file(call, request))
            }
            Request::Catalogue(request) => {
                self.begin(call, bytes, |server| server.answer_catalogue(call, request))
            }
            Request::Node(request) => {
                self.begin(call, bytes, |server| server.answer_node(call, request))
            }
            Request::Group(request) => {
                self.begin(call, bytes, |server| server.answer_group(call, request))
            }
            Request::Server(request) => {
                self.begin(call, bytes, |server| server.answer_server(call, request))
            }
        }
    }

    /// Ends the session of a client that has left: its requests end, its buffers are freed, its
    /// collectives fail. Ends calls of this server to a server that has left.
    pub(crate) fn forget(self: &Rc<Self>, peer: PeerId) {
        if let Some(catalogue) = self.catalogue() {
            catalogue.copies().departed(peer);
        }
        if self.others().departed(peer) {
            self.mirrors().notice_ended_connections();
        }
        if let Some(session) = self.clients().depart(peer) {
            debug!(client = peer.0, "a client has left");
            self.leases().leave(peer);
            self.readers().leave(peer);
            self.selections().leave(peer);
            let closed = self.files().close_all(session.files());
            // Ends the client's active requests.
            drop(session);
            self.end_client_cache(peer);
            for further in self.clients().further_of(peer) {
                self.world().disconnect(further);
                self.forget(further);
            }
            for (call, fault) in self.groups().peer_left(peer) {
                self.active_transfers().abort(TransferKey::Call(call), fault);
            }
            closed.into_iter().for_each(|file| _ = self.closed(file));
            self.forget_unopened(peer);
        }
        self.active_transfers().notify();
    }
}
