//! Network of a real node: Unix sockets and TCP, with one-sided copies where a process can access
//! the memory of the other.
//!
//! From the outside in:
//!
//! - [`Node`] listens and connects, and sends messages.
//! - [`peers`] holds the connections, [`regions`] the exposed memory.
//! - [`listener`] accepts connections; a [`handshake`] finds out who the peer is.
//! - [`connection`] is the state of one connection. Its [`reader`] task turns [`frame`]s into
//!   entries of the [`inbox`], limited by [`backlog`] and [`receive_pool`]; its writer task sends
//!   the [`outbox`] to the [`socket`]. On a protected TCP connection frames travel in [`record`]s,
//!   which [`read_ahead`] opens and the outbox makes.
//! - [`transfer`] is one-sided memory access, by a [`process`]'s own memory or by frames.
//! - [`borrowed`] is data that a peer lends.
//! - [`blocking`] is a connection that the event loop makes for one thread and then leaves to it.

mod backlog;
mod blocking;
mod borrowed;
mod connection;
mod frame;
mod handshake;
mod inbox;
mod listener;
mod node;
mod outbox;
mod peers;
mod process;
mod read_ahead;
mod reader;
mod receive_buffer;
mod receive_pool;
mod record;
mod regions;
mod socket;
mod socket_path;
mod transfer;

pub use blocking::BlockingConnection;
pub(crate) use node::Node;
pub(crate) use socket::watch;
pub(crate) use transfer::TURN_BYTES;
