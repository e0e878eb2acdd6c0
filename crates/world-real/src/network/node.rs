//! This node's end of the network: its connections, its inbox, its exposed memory.
//!
//! Invariants: a peer's number is never used again; each peer that leaves is announced once, after
//! its last message; a region can be reached only by the peers it was exposed to, or by
//! all if it is open.

use super::connection::{Connection, NO_REGION, Withdrawal};
use super::frame::{BODY_BYTES_MAX, Exposure, Frame, Kind};
use super::handshake::{Greeter, HANDSHAKE_PATIENCE, HANDSHAKE_TIMEOUT, Role};
use super::inbox::Inbox;
use super::listener::{Caller, Listener};
use super::process::{NONCE_BYTES, permit_access};
use super::reader;
use super::socket::Socket;
use crate::arena;
use crate::config::{Endpoint, NodeConfig, OpenError};
use crate::memory::{RealMemory, RealPayload};
use crate::tasks::{self, Task};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::net::{TcpStream, UnixStream};
use units::{PeerId, RegionId};
use world::{
    Address, HEADER_BYTES_MAX, Incoming, Memory, Message, NetworkError, Payload, TransferError,
};

/// How often a Unix socket is tried whose queue of callers is full, and the pause in between.
const CONNECT_ATTEMPTS_MAX: usize = 100;
const CONNECT_PAUSE: Duration = Duration::from_millis(20);

/// Smaller bodies are copied rather than lent. Estimated, not measured.
const LENT_BYTES_MIN: u64 = 16 << 10;

/// Open regions have names from here to twice as much, drawn at random; the others are counted, and
/// [`NO_REGION`] is none.
const OPEN_REGIONS_FROM: u64 = 1 << 60;

/// The network of one node.
pub(crate) struct Node {
    /// What has arrived.
    pub(crate) inbox: Inbox,
    address: Address,
    key: Option<[u8; 32]>,
    one_sided: bool,
    /// Whether it looks at what peers lend. Who lends does not: what it holds must not depend on
    /// those that it serves.
    pub(crate) borrows: bool,
    /// Boxed, so that it stays where peers look for it.
    nonce: Box<[u8; NONCE_BYTES]>,
    connections: RefCell<BTreeMap<PeerId, Rc<Connection>>>,
    regions: RefCell<BTreeMap<RegionId, Region>>,
    next_peer: Cell<u32>,
    next_region: Cell<u64>,
    /// The accepting task and the handshakes.
    tasks: RefCell<BTreeMap<u64, Task>>,
    next_task: Cell<u64>,
}

struct Region {
    memory: RealMemory,
    /// Those that were told of it.
    peers: Vec<PeerId>,
    /// Whether those that come later are.
    is_open: bool,
}

impl Region {
    /// Tells a peer of it, and waits for nothing: whoever hears its name from others asks first
    /// ([`Connection::hear_of`]).
    fn tell(&mut self, name: RegionId, connection: &Connection) {
        self.peers.push(connection.peer);
        let exposure = exposure_of(&self.memory).encode();
        drop(connection.request(expose_frame(name), &exposure, None));
    }
}

impl Node {
    /// A node that listens where `config` says.
    pub(crate) fn open(config: &NodeConfig, one_sided: bool) -> Result<Rc<Self>, OpenError> {
        let listening = match &config.listen {
            Some(address) => Some(Listener::open(address, config.key.is_some())?),
            None => None,
        };
        let mut nonce = Box::new([0; NONCE_BYTES]);
        crate::fill_random(&mut nonce[..]);
        permit_access();
        if config.lent_bytes_max > 0 {
            arena::open(config.lent_bytes_max);
        }
        let (listener, address) = listening.unzip();
        let node = Rc::new(Self {
            inbox: Inbox::default(),
            address: address.unwrap_or_else(|| Address("nowhere:".into())),
            key: config.key,
            one_sided,
            borrows: config.lent_bytes_max == 0,
            nonce,
            connections: RefCell::default(),
            regions: RefCell::default(),
            next_peer: Cell::new(0),
            next_region: Cell::new(NO_REGION + 1),
            tasks: RefCell::default(),
            next_task: Cell::new(0),
        });
        if let Some(listener) = listener {
            node.run(listener.accept_all(Rc::clone(&node)));
        }
        Ok(node)
    }

    /// Where it can be reached.
    pub(crate) fn address(&self) -> Address {
        self.address.clone()
    }

    /// Runs `work` as a task of the node that ends with it.
    pub(crate) fn run(self: &Rc<Self>, work: impl Future<Output = ()> + 'static) {
        let number = self.next_task.get();
        self.next_task.set(number + 1);
        let node = Rc::clone(self);
        let task = tasks::spawn(async move {
            work.await;
            let own = node.tasks.borrow_mut().remove(&number);
            drop(own);
        });
        self.tasks.borrow_mut().insert(number, task);
    }

    /// Connects to another node.
    pub(crate) async fn connect(self: &Rc<Self>, to: &Address) -> Result<PeerId, NetworkError> {
        let given_up = RefCell::new(None);
        let connected = async {
            let endpoint = Endpoint::parse(to)?;
            loop {
                let caller = call(&endpoint).await?;
                let began = Instant::now();
                let greeted = self.greet(caller, Role::Caller, &Cell::default()).await;
                // The peer gives up long ones when others wait; who refuses, does so at once.
                let may_be_given_up = HANDSHAKE_PATIENCE..HANDSHAKE_TIMEOUT;
                match greeted {
                    Err(cause) if may_be_given_up.contains(&began.elapsed()) => {
                        *given_up.borrow_mut() = Some(cause);
                    }
                    greeted => return greeted,
                }
            }
        };
        let outcome = tokio::time::timeout(2 * HANDSHAKE_TIMEOUT, connected).await;
        let outcome = outcome.unwrap_or_else(|_| {
            Err(given_up.take().unwrap_or_else(|| "nobody answered in time".into()))
        });
        outcome.map_err(|cause| NetworkError::Unreachable { address: to.clone(), cause })
    }

    /// Shakes hands with `caller` and makes it a peer; notes when it has said something that shows
    /// that it may be one.
    pub(crate) async fn greet(
        self: &Rc<Self>,
        caller: Caller,
        role: Role,
        has_spoken: &Cell<bool>,
    ) -> Result<PeerId, String> {
        let (socket, credentials) = caller.take_apart().map_err(|error| error.to_string())?;
        let socket = Socket::new(socket).map_err(|error| error.to_string())?;
        let greeter = Greeter { role, nonce: &self.nonce, one_sided: self.one_sided };
        let local = credentials.is_some();
        let greeting = async {
            match (credentials, &self.key) {
                (Some(peer), _) => greeter.greet_local(&socket, peer).await,
                (None, Some(key)) => {
                    greeter.greet_remote(&socket, key, has_spoken).await.map(|()| None)
                }
                (None, None) => Err("TCP needs a key, and this node has none".into()),
            }
        };
        let greeted = tokio::time::timeout(HANDSHAKE_TIMEOUT, greeting).await;
        let process = greeted.map_err(|_| "the peer did not greet in time".to_owned())??;
        let number = self.next_peer.get();
        self.next_peer.set(number.checked_add(1).ok_or("the numbers of peers are used up")?);
        let peer = PeerId(number);
        let connection = Connection::new(peer, socket, local, process);
        self.connections.borrow_mut().insert(peer, Rc::clone(&connection));
        self.start(&connection);
        Ok(peer)
    }

    fn start(self: &Rc<Self>, connection: &Rc<Connection>) {
        let reading = tasks::spawn(reader::read(Rc::clone(self), Rc::clone(connection)));
        let (node, writing) = (Rc::clone(self), Rc::clone(connection));
        let writing = tasks::spawn(async move {
            let error = writing.outbox.write_all(&writing.socket).await;
            node.end(&writing, &format!("writing failed: {error}"));
        });
        *connection.tasks.borrow_mut() = vec![reading, writing];
        self.tell_of_open_regions(connection);
        let lends = !self.borrows && connection.process().is_some();
        if let Some(sharing) = arena::sharing().filter(|_| lends) {
            let frame = Frame::new(Kind::Share, 0, 0);
            let answer = connection.request(frame, &sharing.encode(), None);
            let connection = Rc::downgrade(connection);
            self.run(async move {
                let is_seen = matches!(answer.await, Ok(Ok(_)));
                if let Some(connection) = connection.upgrade().filter(|_| is_seen) {
                    connection.begin_lending();
                }
            });
        }
    }

    /// Ends `connection`, unless it has ended, and announces that.
    pub(crate) fn end(&self, connection: &Rc<Connection>, cause: &str) {
        if connection.end(cause) {
            let (peer, cause) = (connection.peer, cause.to_owned());
            self.inbox.push(connection, Incoming::Departed { peer, cause }, 0);
        }
    }

    /// Drops what is left of an ended connection.
    pub(crate) fn forget(&self, connection: &Connection) {
        let mut regions = self.regions.borrow_mut();
        for open in regions.values_mut().filter(|own| own.is_open) {
            open.peers.retain(|peer| *peer != connection.peer);
        }
        drop(regions);
        let own = self.connections.borrow_mut().remove(&connection.peer);
        let tasks = connection.tasks.take();
        drop((own, tasks));
    }

    /// Ends the connection with `peer`, without announcing it here.
    pub(crate) fn disconnect(&self, peer: PeerId) {
        if let Ok(connection) = self.connection(peer) {
            connection.end("this node ended the connection");
            self.inbox.forget(&connection);
        }
    }

    /// The connection with `peer`; the error says why there is none.
    pub(crate) fn connection(&self, peer: PeerId) -> Result<Rc<Connection>, String> {
        let connection = self.connections.borrow().get(&peer).cloned();
        let connection = connection.ok_or("the connection has ended")?;
        match connection.departed() {
            Some(cause) => Err(cause),
            None => Ok(connection),
        }
    }

    /// Sends `message`; returns when it is written.
    pub(crate) async fn send(
        self: &Rc<Self>,
        to: PeerId,
        message: Message<RealPayload>,
    ) -> Result<(), NetworkError> {
        let Message { header, body, place, loan } = message;
        if header.len() > HEADER_BYTES_MAX {
            let (bytes, bytes_max) = (header.len() as u64, HEADER_BYTES_MAX as u64);
            return Err(NetworkError::TooLarge { what: "header", bytes, bytes_max });
        }
        let departed = |cause| NetworkError::Departed { peer: to, cause };
        let connection = self.connection(to).map_err(departed)?;
        let mut frame = Frame::new(Kind::Message, 0, 0);
        let mut body = body;
        if let Some(loan) = &loan
            && let Some(data) = body.take_if(|data| is_worth_lending(data))
        {
            match connection.lend(&data, loan) {
                Some((number, offset)) => {
                    frame = Frame::new(Kind::Lent, number, offset);
                    frame.body_bytes = data.length();
                }
                None => body = Some(data),
            }
        }
        if let (Some(place), Some(data)) = (place, &body) {
            frame.placed = true;
            (frame.region, frame.number) = (place.region.0, place.offset);
            match self.place(&connection, place, data).await {
                Ok(true) => body = None,
                Ok(false) => {}
                Err(TransferError::Departed { cause, .. }) => return Err(departed(cause)),
                Err(misplaced) => {
                    // The two sides disagree about the region: the receiver would end the
                    // connection for it, so this side does.
                    let cause = format!("a message was misplaced: {misplaced}");
                    self.end(&connection, &cause);
                    return Err(departed(cause));
                }
            }
        }
        if let Some(data) = body.as_ref().filter(|data| data.length() > BODY_BYTES_MAX) {
            let (bytes, bytes_max) = (data.length(), BODY_BYTES_MAX);
            return Err(NetworkError::TooLarge { what: "body", bytes, bytes_max });
        }
        let ended = |_| departed(connection.departed().unwrap_or_default());
        connection.outbox.room().await.map_err(ended)?;
        let end = connection.push(frame, &header, body.as_ref());
        drop(body);
        connection.outbox.written(end).await.map_err(ended)
    }

    /// Lets `peers` use `memory`.
    pub(crate) async fn expose(
        &self,
        memory: &RealMemory,
        peers: &[PeerId],
    ) -> Result<RegionId, NetworkError> {
        let region = RegionId(self.next_region.get());
        self.next_region.set(region.0 + 1);
        let own = Region { memory: memory.clone(), peers: peers.to_vec(), is_open: false };
        self.regions.borrow_mut().insert(region, own);
        let withdrawn_unless_done = WithdrawnOnDrop { node: self, region };
        self.announce(region, memory, peers).await?;
        std::mem::forget(withdrawn_unless_done);
        Ok(region)
    }

    /// Lets all peers use `memory`, also those that come later. Nobody guesses its name.
    pub(crate) fn expose_to_all(&self, memory: &RealMemory) -> RegionId {
        let mut random = [0; 8];
        crate::fill_random(&mut random);
        let region = RegionId(OPEN_REGIONS_FROM + u64::from_le_bytes(random) % OPEN_REGIONS_FROM);
        let connections: Vec<_> = self.connections.borrow().values().cloned().collect();
        let mut own = Region { memory: memory.clone(), peers: Vec::new(), is_open: true };
        connections.iter().for_each(|connection| own.tell(region, connection));
        self.regions.borrow_mut().insert(region, own);
        region
    }

    /// The first thing that is said over a connection.
    fn tell_of_open_regions(&self, connection: &Connection) {
        let mut regions = self.regions.borrow_mut();
        let open = regions.iter_mut().filter(|(_, own)| own.is_open);
        open.for_each(|(region, own)| own.tell(*region, connection));
    }

    /// Tells peers where the memory of a region is; returns when they know.
    async fn announce(
        &self,
        region: RegionId,
        memory: &RealMemory,
        peers: &[PeerId],
    ) -> Result<(), NetworkError> {
        let (frame, exposure) = (expose_frame(region), exposure_of(memory));
        let mut answers = Vec::with_capacity(peers.len());
        for &peer in peers {
            let connection = self.connection(peer);
            let connection = connection.map_err(|cause| NetworkError::Departed { peer, cause })?;
            let answer = connection.request(frame, &exposure.encode(), None);
            answers.push((connection, answer));
        }
        for (connection, answer) in answers {
            // An exposure is never refused; the channel closes when the connection ends.
            if answer.await.is_err() {
                let cause = connection.departed().unwrap_or_default();
                return Err(NetworkError::Departed { peer: connection.peer, cause });
            }
        }
        Ok(())
    }

    /// Ends `region`: begins at once, also when the returned future is dropped. Of a foreign memory,
    /// which only this process writes, nobody is waited for.
    pub(crate) fn withdraw(&self, region: RegionId) -> impl Future<Output = ()> + use<> {
        let own = self.regions.borrow_mut().remove(&region);
        let is_foreign = own.as_ref().is_some_and(|own| own.memory.is_foreign());
        let withdrawal = own.map(|Region { memory, peers, .. }| {
            let withdrawal = Withdrawal::new(memory, peers.len());
            for peer in peers {
                let connection = self.connections.borrow().get(&peer).cloned();
                match connection {
                    Some(connection) => connection.withdraw(region, &withdrawal),
                    None => withdrawal.peer_done(),
                }
            }
            withdrawal
        });
        async move {
            if let Some(withdrawal) = withdrawal.filter(|_| !is_foreign) {
                withdrawal.finished().await;
            }
        }
    }

    /// The memory of `region`, if it is exposed to `peer`.
    pub(crate) fn region_of(&self, region: RegionId, peer: PeerId) -> Option<RealMemory> {
        let regions = self.regions.borrow();
        let own = regions.get(&region)?;
        let is_there = (own.is_open || own.peers.contains(&peer)) && !own.memory.is_revoked();
        is_there.then(|| own.memory.clone())
    }

    /// Ends everything, when the node is no longer used.
    pub(crate) fn close(&self) {
        let regions = std::mem::take(&mut *self.regions.borrow_mut());
        // Peers that have not heard yet may still copy into these memories, or look at what they
        // borrowed; so that is not used for anything else in the life of this process.
        regions.into_values().for_each(|region| region.memory.leak());
        let connections = std::mem::take(&mut *self.connections.borrow_mut());
        for connection in connections.values() {
            connection.end("this node has stopped");
            connection.leak_loans();
            let tasks = connection.tasks.take();
            drop(tasks);
        }
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        drop(tasks);
        self.inbox.clear();
    }
}

fn expose_frame(region: RegionId) -> Frame {
    Frame::new(Kind::Expose, region.0, 0)
}

fn exposure_of(memory: &RealMemory) -> Exposure {
    let may_be_written = !memory.is_foreign();
    Exposure { address: memory.pointer() as u64, length: memory.length(), may_be_written }
}

/// Withdraws a region whose exposure was not completed.
struct WithdrawnOnDrop<'a> {
    node: &'a Node,
    region: RegionId,
}

impl Drop for WithdrawnOnDrop<'_> {
    fn drop(&mut self) {
        drop(self.node.withdraw(self.region));
    }
}

/// Whether a body is dearer to copy than to lend and to take back.
fn is_worth_lending(body: &RealPayload) -> bool {
    (LENT_BYTES_MIN..=BODY_BYTES_MAX).contains(&body.length())
}

async fn call(endpoint: &Endpoint) -> Result<Caller, String> {
    match endpoint {
        Endpoint::Tcp(host) => {
            let stream = TcpStream::connect(host.as_str()).await;
            stream.map(Caller::Tcp).map_err(|error| error.to_string())
        }
        Endpoint::Unix(path) => {
            for _ in 0..CONNECT_ATTEMPTS_MAX {
                match UnixStream::connect(path).await {
                    Ok(stream) => return Ok(Caller::Unix(stream)),
                    // The queue of callers is full; the system does not wait by itself here.
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                        tokio::time::sleep(CONNECT_PAUSE).await;
                    }
                    Err(error) => return Err(error.to_string()),
                }
            }
            Err("its queue of callers stays full".into())
        }
    }
}
