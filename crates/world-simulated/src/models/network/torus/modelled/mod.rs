//! The modelled torus: only heads of packets are moved, and only where packets contend.
//!
//! [`network`] declares it, [`state`] holds the data, [`send`] sends packets that find their route
//! free, and [`contention`] moves those that do not. [`virtual_channels`] says when each channel is
//! free, by the formula of [`release_times`].

mod contention;
mod network;
mod release_times;
mod send;
mod state;
#[cfg(test)]
mod tests;
mod virtual_channels;

pub use network::{ModelledTorusShape, NETWORK};
pub use state::Torus;
