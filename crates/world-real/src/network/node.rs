//! Network interface of a node: listens, connects, performs handshakes and sends messages.
//!
//! Invariant: the number of a peer is never reused.

use super::blocking::BlockingConnection;
use super::connection::Connection;
use super::frame::{BODY_BYTES_MAX, Frame, Kind};
use super::handshake::{
    HANDSHAKE_SILENCE_TIMEOUT, HANDSHAKE_TIMEOUT, HandshakeError, Handshaker, PROTOCOL_VERSION,
    Role,
};
use super::listener::{Listener, RawStream};
use super::peers::Peers;
use super::process::{NONCE_BYTES, PeerProcess, permit_access};
use super::reader;
use super::record::Session;
use super::socket::Socket;
use super::socket_path::SocketPath;
use crate::arena;
use crate::config::{Endpoint, NodeConfig, OpenError};
use crate::memory::RealPayload;
use crate::tasks;
use crate::wire_protection::WireProtection;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::net::{TcpStream, UnixStream};
use units::PeerId;
use world::{Address, HEADER_BYTES_MAX, Message, NetworkError, Payload, TransferError};

/// Maximum number of attempts to connect to a Unix socket whose accept queue is full, and the pause
/// between them.
const CONNECT_ATTEMPTS_MAX: usize = 100;
const CONNECT_PAUSE: Duration = Duration::from_millis(20);

/// Size from which a body is lent rather than copied. Estimated, not measured.
const LENT_BYTES_MIN: u64 = 16 << 10;

/// Network interface of one node: its address and key, and its peers.
pub(crate) struct Node {
    /// The connections and the exposed regions of this node.
    pub(crate) peers: Rc<Peers>,
    address: Address,
    key: Option<[u8; 32]>,
    /// Least protection of the TCP connections of this node; `None` if the peer decides.
    protection: Option<WireProtection>,
    one_sided: bool,
    /// Secret by which a peer verifies that it reaches the memory of this process. Boxed, so that
    /// its address does not change.
    nonce: Box<[u8; NONCE_BYTES]>,
    next_peer: Cell<u32>,
}

impl Node {
    /// Opens a node that listens at the address of `config`.
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
        let default = || match &listener {
            Some(Listener::Tcp(_)) => address.as_ref().map(WireProtection::default_at),
            _ => None,
        };
        let protection = config.wire.or_else(default);
        if let (Some(address), Some(protection)) = (&address, protection)
            && !protection.is_supported()
        {
            return Err(OpenError::NotProtected { address: address.clone(), protection });
        }
        let node = Rc::new(Self {
            peers: Rc::new(Peers::new(config.lent_bytes_max == 0, config.limits)),
            address: address.unwrap_or_else(|| Address("nowhere:".into())),
            key: config.key,
            protection,
            one_sided,
            nonce,
            next_peer: Cell::new(0),
        });
        if let Some(listener) = listener {
            let accepting = Rc::clone(&node);
            node.peers.run(listener.accept_all(move |stream, admission| {
                let node = Rc::clone(&accepting);
                accepting.peers.run(admission.run(async move |first_message_seen: &Cell<bool>| {
                    node.handshake(stream, Role::Responder, first_message_seen).await
                }));
            }));
        }
        Ok(node)
    }

    /// Returns the address at which peers reach this node.
    pub(crate) fn address(&self) -> Address {
        self.address.clone()
    }

    /// Connects to another node.
    pub(crate) async fn connect(self: &Rc<Self>, to: &Address) -> Result<PeerId, NetworkError> {
        let shake = async |stream| self.handshake(stream, Role::Initiator, &Cell::default()).await;
        self.connect_by(to, shake).await
    }

    /// Connects to another node for one thread that waits for its answers. Its waits ask after each
    /// `pause` whether they go on.
    pub(crate) async fn connect_blocking(
        &self,
        to: &Address,
        pause: Duration,
    ) -> Result<BlockingConnection, NetworkError> {
        let shake = async |stream| {
            let handshaker = Handshaker {
                one_sided: false,
                is_reachable: false,
                ..self.handshaker(Role::Initiator)
            };
            let shaken = self.shake_hands(stream, handshaker, &Cell::default()).await?;
            let made = BlockingConnection::new(shaken.socket, shaken.session, pause);
            made.map_err(|error| HandshakeError::Failed(error.to_string()))
        };
        self.connect_by(to, shake).await
    }

    /// Opens a stream to another node and shakes hands, again if the peer aborts it for others.
    async fn connect_by<T>(
        &self,
        to: &Address,
        shake: impl AsyncFn(RawStream) -> Result<T, HandshakeError>,
    ) -> Result<T, NetworkError> {
        let aborted = RefCell::new(None);
        let connected = async {
            let endpoint = Endpoint::parse(to)?;
            loop {
                let stream = open_stream(&endpoint).await?;
                let began = Instant::now();
                let outcome = shake(stream).await;
                // The peer aborts slow handshakes when others wait; a refusal comes at once.
                let abort_range = HANDSHAKE_SILENCE_TIMEOUT..HANDSHAKE_TIMEOUT;
                match outcome {
                    Err(cause) if abort_range.contains(&began.elapsed()) => {
                        *aborted.borrow_mut() = Some(cause);
                    }
                    outcome => return outcome,
                }
            }
        };
        let outcome = tokio::time::timeout(2 * HANDSHAKE_TIMEOUT, connected).await;
        let outcome = outcome.unwrap_or_else(|_| {
            Err(aborted.take().unwrap_or_else(|| "there was no answer in time".into()))
        });
        outcome.map_err(|error| match (to.clone(), error) {
            (address, HandshakeError::WrongVersion(peer)) => {
                NetworkError::WrongVersion { address, own: PROTOCOL_VERSION, peer }
            }
            (address, HandshakeError::Failed(cause)) => {
                NetworkError::Unreachable { address, cause }
            }
        })
    }

    /// Performs the handshake on `stream` and adds the peer. Sets `first_message_seen` after a
    /// message that shows the key.
    pub(crate) async fn handshake(
        self: &Rc<Self>,
        stream: RawStream,
        role: Role,
        first_message_seen: &Cell<bool>,
    ) -> Result<PeerId, HandshakeError> {
        let Shaken { socket, local, process, protection, session } =
            self.shake_hands(stream, self.handshaker(role), first_message_seen).await?;
        let number = self.next_peer.get();
        self.next_peer.set(number.checked_add(1).ok_or("all peer numbers are used")?);
        let peer = PeerId(number);
        let connection = Connection::new(peer, socket, local, protection, process);
        self.peers.add(&connection);
        self.start(&connection, session);
        Ok(peer)
    }

    fn handshaker(&self, role: Role) -> Handshaker<'_> {
        Handshaker {
            role,
            nonce: &self.nonce,
            one_sided: self.one_sided,
            is_reachable: true,
            version: PROTOCOL_VERSION,
            protection: self.protection,
        }
    }

    /// Performs the handshake on `stream`.
    async fn shake_hands(
        &self,
        stream: RawStream,
        handshaker: Handshaker<'_>,
        first_message_seen: &Cell<bool>,
    ) -> Result<Shaken, HandshakeError> {
        let (socket, credentials) = stream.into_parts().map_err(|error| error.to_string())?;
        let socket = Socket::new(socket).map_err(|error| error.to_string())?;
        let local = credentials.is_some();
        let greeting = async {
            match (credentials, &self.key) {
                (Some(peer), _) => {
                    let process = handshaker.run_local(&socket, peer).await?;
                    Ok((process, (WireProtection::Plain, None)))
                }
                (None, Some(key)) => {
                    let agreed = handshaker.run_remote(&socket, key, first_message_seen).await?;
                    Ok((None, agreed))
                }
                (None, None) => {
                    Err(HandshakeError::from("TCP needs a key, and this node has none"))
                }
            }
        };
        let outcome = tokio::time::timeout(HANDSHAKE_TIMEOUT, greeting).await;
        let (process, (protection, session)) =
            outcome.map_err(|_| "the peer did not complete the handshake in time".to_owned())??;
        Ok(Shaken { socket, local, process, protection, session })
    }

    fn start(&self, connection: &Rc<Connection>, session: Option<Session>) {
        let (sealer, opener) = session.map(|session| (session.sealer, session.opener)).unzip();
        let (peers, reading) = (Rc::clone(&self.peers), Rc::clone(connection));
        let reading = tasks::spawn(reader::read(peers, reading, opener));
        let (peers, writing) = (Rc::clone(&self.peers), Rc::clone(connection));
        let writing = tasks::spawn(async move {
            let (outbox, socket) = (&writing.outbox, &writing.socket);
            let error = match sealer {
                Some(mut sealer) => outbox.write_all_sealed(socket, &mut sealer).await,
                None => outbox.write_all(socket).await,
            };
            peers.end(&writing, &format!("writing failed: {error}"));
        });
        *connection.tasks.borrow_mut() = vec![reading, writing];
        self.peers.regions.announce_open(connection);
        let lends = !self.peers.borrows && connection.process().is_some();
        if let Some(sharing) = arena::sharing().filter(|_| lends) {
            let frame = Frame::new(Kind::Share, 0, 0);
            let answer = connection.request(frame, &sharing.encode(), None);
            let connection = Rc::downgrade(connection);
            self.peers.run(async move {
                let is_seen = matches!(answer.await, Ok(Ok(_)));
                if let Some(connection) = connection.upgrade().filter(|_| is_seen) {
                    connection.begin_lending();
                }
            });
        }
    }

    /// Sends `message`; returns when it is written to the socket.
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
        let connection = self.peers.connection(to).map_err(departed)?;
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
            match self.peers.place(&connection, place, data).await {
                Ok(true) => body = None,
                Ok(false) => {}
                Err(TransferError::Departed { cause, .. }) => return Err(departed(cause)),
                Err(misplaced) => {
                    // The two sides disagree about the region. The receiver would end the
                    // connection for it, so this side does.
                    let cause = format!("a message was misplaced: {misplaced}");
                    self.peers.end(&connection, &cause);
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

    /// Ends all connections and tasks, when the node is dropped.
    pub(crate) fn close(&self) {
        self.peers.close();
    }
}

/// Socket after its handshake.
struct Shaken {
    socket: Socket,
    /// True for a Unix socket.
    local: bool,
    /// Process of the peer, if its memory can be accessed.
    process: Option<PeerProcess>,
    /// Protection of a TCP connection.
    protection: WireProtection,
    /// Keys of a protected connection.
    session: Option<Session>,
}

/// True if a body costs more to copy than to lend and return.
fn is_worth_lending(body: &RealPayload) -> bool {
    (LENT_BYTES_MIN..=BODY_BYTES_MAX).contains(&body.length())
}

async fn open_stream(endpoint: &Endpoint) -> Result<RawStream, String> {
    match endpoint {
        Endpoint::Tcp(host) => {
            let stream = TcpStream::connect(host.as_str()).await;
            stream.map(RawStream::Tcp).map_err(|error| error.to_string())
        }
        Endpoint::Unix(path) => {
            let path = SocketPath::of(path).map_err(|error| error.to_string())?;
            for _ in 0..CONNECT_ATTEMPTS_MAX {
                match UnixStream::connect(&path).await {
                    Ok(stream) => return Ok(RawStream::Unix(stream)),
                    // The accept queue is full; a nonblocking connect does not wait for it.
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                        tokio::time::sleep(CONNECT_PAUSE).await;
                    }
                    Err(error) => return Err(error.to_string()),
                }
            }
            Err("its queue of new connections stays full".into())
        }
    }
}
