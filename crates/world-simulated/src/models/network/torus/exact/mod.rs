//! The exact torus: every flit of every packet is moved, link by link.
//!
//! [`network`] declares it, [`exact_torus`] translates messages into packets, [`flit_network`]
//! moves their flits, and [`identical_ticks`] does equal ticks in one step. The tests compare all
//! of it with a second implementation that shares no code with it.

mod exact_torus;
mod flit_network;
mod identical_ticks;
mod network;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use exact_torus::ExactTorus;
pub use network::{ExactTorusShape, NETWORK};
