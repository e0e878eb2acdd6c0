//! The clients of a server: their sessions, and the connections that the server opens to them.

pub(crate) mod outbound_connections;
pub(crate) mod probes;
pub(crate) mod session;
