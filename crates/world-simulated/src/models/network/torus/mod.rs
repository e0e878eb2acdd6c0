//! A two-dimensional torus with wormhole routing, in two forms.
//!
//! A message is a *packet* of flits. Its head opens the route link by link, its tail follows
//! without a gap, and a blocked packet keeps the links behind its head except for what the routers
//! buffer. Flow control is by credits: a flit moves only when the next buffer has room. Each link
//! has two *virtual channels*, so that packets around a ring cannot deadlock.
//!
//! - [`modelled`] moves heads only, and only those that contend with others.
//! - [`exact`] moves every flit.
//!
//! Both share the geometry of [`grid`] and the parameters of [`size`].

pub mod exact;
pub mod grid;
pub mod modelled;
pub mod size;
#[cfg(test)]
mod test_messages;

pub use grid::TorusSize;
