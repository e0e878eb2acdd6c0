//! Leases: clients gather small writes of a file, or keep pages of it, and this server recalls them
//! before it answers anyone who must see the writes, or changes the file
//! ([0080](../../../../../docs/decisions/0080-clients-gather-small-writes-under-leases.md)).
//!
//! Invariants:
//! - A request that reads a file, its size or its time begins after all gathered writes that were
//!   made before it have been carried out, or their clients have left.
//! - Carrying out gathered writes never waits for a lease of a client that waits for it.

mod file_leases;
mod pages;
mod readers;
mod requests;

pub(crate) use file_leases::Leases;
pub(crate) use readers::Readers;
