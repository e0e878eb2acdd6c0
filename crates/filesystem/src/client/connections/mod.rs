//! Connections of a client to the servers, and the requests that it sends on them.

mod attempts;
pub(super) mod calls;
mod connect;
pub(super) mod connection_table;
mod requests;
mod returning;
mod returns;
pub(super) mod servers;
mod watch;

pub(crate) use connection_table::greet;
pub use requests::CopiedCatalogue;
pub(crate) use requests::Outcome;
pub use returns::ServerChange;
