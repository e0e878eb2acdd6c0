//! Disk-directed I/O: the clients make one request, the servers direct the transfer.
//!
//! ```text
//! clients:                                       each server:
//!   barrier, so that all memory is ready           find which blocks are here
//!   client 0: one request to each server           sort them as they lie on each disk
//!             wait for all servers                 with two buffers for each disk:
//!   agree, so that all know it is done               read a block (or memget its pieces)
//!                                                    memput its pieces (or write the block)
//!                                                  answer client 0
//! ```
//!
//! The second barrier of Figure 2c carries the outcome, so that a fault reaches every client.

pub(crate) mod carried;
pub(crate) mod client;
pub(crate) mod participants;
pub(crate) mod plan;
pub(crate) mod server;
