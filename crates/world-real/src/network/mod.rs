//! The network of a real node: Unix sockets and TCP, with one-sided copies where processes can
//! reach each other's memory.
//!
//! From the outside in: [`Node`] connects and listens; a [`handshake`] finds out who the peer is; a
//! [`connection`] has a reader task, which turns [`frame`]s into entries of the [`inbox`], and a
//! writer task, which empties its [`outbox`] into the [`socket`]; [`transfer`] is one-sided memory,
//! by a [`process`]'s own memory or by frames; [`borrowed`] is data that a peer lends.

mod backlog;
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
mod reader;
mod regions;
mod socket;
mod transfer;

pub(crate) use borrowed::Borrowed;
pub(crate) use node::Node;
pub(crate) use socket::watch;
