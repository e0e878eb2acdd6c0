//! The clients of a server: their sessions, and pings of those that others wait for.

pub(crate) mod connected;
mod departed_keys;
pub(crate) mod probes;
pub(crate) mod session;
