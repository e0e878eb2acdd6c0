//! Constants of the client that several of its files use.

use units::ServerId;

/// Server that keeps the catalogue.
pub(super) const CATALOGUE: ServerId = ServerId(0);

/// Maximum number of servers at which one client opens a file at the same time. Many clients open a
/// file together, and all pending requests occupy memory at once.
pub(super) const OPENING_MAX: usize = 16;
