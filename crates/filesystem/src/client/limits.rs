//! Constants of the client that several of its files use.

use units::ServerId;

/// The server that keeps the catalogue.
pub(super) const CATALOGUE: ServerId = ServerId(0);

/// The most servers at which one client opens a file at the same time. Many clients open a file
/// together, and what waits in all of them and at all servers is held at once.
pub(super) const OPENING_MAX: usize = 16;
