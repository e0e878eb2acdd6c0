//! Messages between nodes.

use crate::Payloads;
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::rc::Rc;
use thiserror::Error;
use units::{Duration, PeerId, RegionId};

/// Largest header that a node accepts, in bytes. A header holds one request, which may hold a list
/// of file ranges; data never travels in a header.
pub const HEADER_BYTES_MAX: usize = 4 << 20;

/// The encoded form of one message of the file system; always real bytes.
pub type Header = SmallVec<[u8; 32]>;

/// Address at which a node can be reached. Each world defines its form: `node:3`,
/// `unix:/run/x/server-0.sock`, `tcp:127.0.0.1:7001`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address(pub String);

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A place in the exposed memory of the receiver of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// A region that the receiver exposed to the sender.
    pub region: RegionId,
    /// Offset in the region, in bytes.
    pub offset: u64,
}

/// A header, with data that travels with it.
#[derive(Clone, Debug)]
pub struct Message<P> {
    /// Encoded message of the file system.
    pub header: Header,
    /// Data that travels along.
    pub body: Option<P>,
    /// Destination of the body, without an intermediate copy; `None` for a fresh payload that the
    /// receiver gets with the header.
    pub place: Option<Place>,
    /// Guard that the sender holds as long as the receiver holds a lent body.
    pub loan: Option<Loan>,
}

/// Guard that the sender of a lent body holds until the body is returned.
pub type Loan = Rc<dyn Any>;

impl<P> Message<P> {
    /// Creates a message without data.
    pub fn new(header: Header) -> Self {
        Self { header, body: None, place: None, loan: None }
    }

    /// Creates a message whose data the receiver gets as a fresh payload.
    pub fn with_body(header: Header, body: P) -> Self {
        Self { header, body: Some(body), place: None, loan: None }
    }

    /// Creates a message whose data lands in the receiver's memory before the header is received.
    pub fn placed(header: Header, body: P, place: Place) -> Self {
        Self { header, body: Some(body), place: Some(place), loan: None }
    }

    /// Creates a message whose data the receiver may map from the sender's memory, without a copy.
    /// The sender's transport holds `body` and `loan` until the receiver has dropped every clone of
    /// its payload, or the connection has ended. If the receiver gets a copy, it holds them only
    /// until that is sent.
    pub fn lent(header: Header, body: P, loan: Loan) -> Self {
        Self { header, body: Some(body), place: None, loan: Some(loan) }
    }
}

/// Event that a node receives.
#[derive(Debug)]
pub enum Incoming<P> {
    /// A message.
    Message {
        /// Sender.
        from: PeerId,
        /// Encoded message of the file system.
        header: Header,
        /// Its data; `None` also when the data landed in its place.
        body: Option<P>,
    },
    /// The connection with a peer ended, on purpose or not. Nothing more arrives from it.
    Departed {
        /// Peer that left.
        peer: PeerId,
        /// Reason, as far as the transport knows it.
        cause: String,
    },
}

/// This node's end of the network: reliable, ordered between two nodes, with notification of
/// failures.
///
/// Peers are numbered from 0 as connections begin, from either side. A number is not reused while
/// anything of the old connection remains.
pub trait Network: Payloads {
    /// Returns the address at which others can reach this node.
    fn address(&self) -> Address;

    /// Connects to a node. Fails, and never hangs, when no node listens there.
    fn connect(&self, to: &Address) -> impl Future<Output = Result<PeerId, NetworkError>>;

    /// Sends a message. Returns when it needs nothing more from the caller: it goes out before
    /// later messages of this node to that peer, and before this node disconnects. Waits while the
    /// receiver is slow (flow control).
    fn send(
        &self,
        to: PeerId,
        message: Message<Self::Payload>,
    ) -> impl Future<Output = Result<(), NetworkError>>;

    /// Sends a message after `cost` of processor time ([`Processor::compute`]), without a gap in
    /// between.
    ///
    /// [`Processor::compute`]: crate::Processor::compute
    fn send_after(
        &self,
        cost: Duration,
        to: PeerId,
        message: Message<Self::Payload>,
    ) -> impl Future<Output = Result<(), NetworkError>>;

    /// Receives the next message or departure. One task at a time may wait here.
    fn receive(&self) -> impl Future<Output = Incoming<Self::Payload>>;

    /// Ends a connection; the other side receives [`Incoming::Departed`]. This side receives
    /// nothing more over it, not even messages that have arrived.
    fn disconnect(&self, peer: PeerId);

    /// Asks the node of a peer for a sign of life, and waits for it. The node answers without its
    /// program, even while that computes. A process that is stopped does not answer, and neither
    /// does a host that cannot be reached.
    ///
    /// # Errors
    /// [`NetworkError::Departed`] when the connection has ended, or ends meanwhile.
    fn ping(&self, peer: PeerId) -> impl Future<Output = Result<(), NetworkError>>;

    /// Returns the number of bytes that have moved over a connection in either direction, as far as
    /// this node knows. While it grows, the peer lives.
    fn moved_bytes(&self, peer: PeerId) -> u64;

    /// Returns the part of [`Network::moved_bytes`] that has come from the peer.
    fn received_bytes(&self, peer: PeerId) -> u64;

    /// Returns the peers that this node waits for in the network itself: for the end of a one-sided
    /// transfer, of an exposure or withdrawal, or for room for messages to them.
    fn awaited_peers(&self) -> Vec<PeerId>;
}

/// Error of a message or connection.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NetworkError {
    /// No node listens there, or it refused.
    #[error("cannot connect to {address}: {cause}")]
    Unreachable {
        /// Address of the attempt.
        address: Address,
        /// Message of the system.
        cause: String,
    },
    /// The node there has another version of the protocol of connections.
    #[error("{address} has version {peer} of the protocol, and this node has version {own}")]
    WrongVersion {
        /// Address of the attempt.
        address: Address,
        /// Version of this node.
        own: u16,
        /// Version of the node there.
        peer: u16,
    },
    /// The peer has left.
    #[error("{peer} has left: {cause}")]
    Departed {
        /// Peer that left.
        peer: PeerId,
        /// Reason, as far as the transport knows it.
        cause: String,
    },
    /// The message is larger than a receiver accepts.
    #[error("a {what} of {bytes} bytes is over the limit of {bytes_max}")]
    TooLarge {
        /// Part that is too large: `header` or `body`.
        what: &'static str,
        /// Its size in bytes.
        bytes: u64,
        /// Largest size that is accepted, in bytes.
        bytes_max: u64,
    },
}
