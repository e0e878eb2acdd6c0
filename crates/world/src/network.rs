//! Messages between nodes.

use crate::Payloads;
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::rc::Rc;
use thiserror::Error;
use units::{Duration, PeerId, RegionId};

/// The largest header a node accepts, in bytes. A header holds one request, which may hold a list
/// of file ranges; data never travels in a header.
pub const HEADER_BYTES_MAX: usize = 4 << 20;

/// The encoded form of one message of the file system; always real bytes.
pub type Header = SmallVec<[u8; 32]>;

/// Where a node can be reached. What it means is the world's business: `node:3`,
/// `unix:/run/x/server-0.sock`, `tcp:127.0.0.1:7001`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address(pub String);

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A place in the exposed memory of the node a message goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// A region that the receiver exposed to the sender.
    pub region: RegionId,
    /// Where in it, in bytes.
    pub offset: u64,
}

/// A header, and data that travels with it.
#[derive(Clone, Debug)]
pub struct Message<P> {
    /// The message itself.
    pub header: Header,
    /// Data that goes along.
    pub body: Option<P>,
    /// Where the body lands, without an intermediate copy; `None` for a fresh payload that the
    /// receiver gets with the header.
    pub place: Option<Place>,
    /// What the sender keeps as long as the receiver holds the body, if the body is lent.
    pub loan: Option<Loan>,
}

/// What the sender of a lent body keeps until it is given back.
pub type Loan = Rc<dyn Any>;

impl<P> Message<P> {
    /// A message without data.
    pub fn new(header: Header) -> Self {
        Self { header, body: None, place: None, loan: None }
    }

    /// A message whose data the receiver gets as a fresh payload.
    pub fn with_body(header: Header, body: P) -> Self {
        Self { header, body: Some(body), place: None, loan: None }
    }

    /// A message whose data lands in the receiver's memory before the header is received.
    pub fn placed(header: Header, body: P, place: Place) -> Self {
        Self { header, body: Some(body), place: Some(place), loan: None }
    }

    /// A message whose data the receiver may see in the sender's memory, without a copy. The
    /// sender's transport keeps `body` and `loan` until the receiver has dropped every clone of
    /// what it got, or the connection has ended; where the receiver got a copy, only until that is
    /// sent.
    pub fn lent(header: Header, body: P, loan: Loan) -> Self {
        Self { header, body: Some(body), place: None, loan: Some(loan) }
    }
}

/// What reaches a node.
#[derive(Debug)]
pub enum Incoming<P> {
    /// A message.
    Message {
        /// Who sent it.
        from: PeerId,
        /// The message itself.
        header: Header,
        /// Its data; `None` also when the data landed in its place.
        body: Option<P>,
    },
    /// The connection with a peer ended, by its will or not. Nothing comes from it any more.
    Departed {
        /// Who left.
        peer: PeerId,
        /// What the transport knows about why.
        cause: String,
    },
}

/// This node's end of the network: reliable, ordered between two nodes, with failure made known.
///
/// Peers are numbered from 0 as connections begin, by either side; a number is not used again
/// while anything of the old connection remains.
pub trait Network: Payloads {
    /// Where others can reach this node.
    fn address(&self) -> Address;

    /// Begins a connection. Fails, never hangs, when nobody is there.
    fn connect(&self, to: &Address) -> impl Future<Output = Result<PeerId, NetworkError>>;

    /// Sends a message. Returns when it needs nothing more of the caller: it goes out before what
    /// this node sends to that peer later, and before the connection ends by this node's will.
    /// Waits while the receiver is slow.
    fn send(
        &self,
        to: PeerId,
        message: Message<Self::Payload>,
    ) -> impl Future<Output = Result<(), NetworkError>>;

    /// Sends a message after `cost` of processor time ([`Processor::compute`]), without a pause in
    /// between.
    ///
    /// [`Processor::compute`]: crate::Processor::compute
    fn send_after(
        &self,
        cost: Duration,
        to: PeerId,
        message: Message<Self::Payload>,
    ) -> impl Future<Output = Result<(), NetworkError>>;

    /// The next thing that reaches this node. One task at a time may wait here.
    fn receive(&self) -> impl Future<Output = Incoming<Self::Payload>>;

    /// Ends a connection; the other side receives [`Incoming::Departed`]. This side receives
    /// nothing more over it, also of what has arrived.
    fn disconnect(&self, peer: PeerId);
}

/// Why a message or a connection did not go through.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NetworkError {
    /// Nobody listens there, or they refused.
    #[error("cannot connect to {address}: {cause}")]
    Unreachable {
        /// Where.
        address: Address,
        /// What the system said.
        cause: String,
    },
    /// The peer has left.
    #[error("{peer} has left: {cause}")]
    Departed {
        /// Who.
        peer: PeerId,
        /// Why, as far as the transport knows.
        cause: String,
    },
    /// The message is larger than a receiver accepts.
    #[error("a {what} of {bytes} bytes is over the limit of {bytes_max}")]
    TooLarge {
        /// What of it: `header` or `body`.
        what: &'static str,
        /// Its size.
        bytes: u64,
        /// The largest size that is accepted.
        bytes_max: u64,
    },
}
