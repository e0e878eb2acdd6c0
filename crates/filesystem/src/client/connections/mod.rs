//! Connections of a client to the servers, and the requests that it sends on them.

pub(super) mod calls;
mod connect;
mod requests;
pub(super) mod servers;
mod watch;

pub(crate) use requests::Outcome;
pub(crate) use servers::WithdrawnOnDrop;
