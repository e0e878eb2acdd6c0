//! Networks between the nodes of a machine: their kinds, and the models that carry messages.
//!
//! A network of switches (crossbar, fat tree) reserves its links in the order of the calls, so it
//! names the arrival of a message when the message is sent. A torus with wormhole routing cannot
//! always do so. A blocked packet keeps the virtual channels behind its head, and later messages
//! contend with those under way. Such a network is *driven by events*: its driver asks it for
//! arrivals at the instants that it names.
//!
//! All models charge a message that meets no contention the same: one hop time for each switch on
//! its route, and the transfer time of its bytes once.
//!
//! | kind | models | hops of a message |
//! |---|---|---|
//! | torus | modelled ([`torus::modelled`]), exact ([`torus::exact`]) | links between routers |
//! | crossbar | modelled ([`crossbar`]) | 1 |
//! | fat tree | modelled ([`fat_tree`]) | 1 within a leaf, 3 otherwise |
//!
//! To add a network: write its file with its shape, its [`ModelInfo`](super::ModelInfo), its check
//! and its constructor. Then name it in [`NetworkKind`], and in [`Switched`] or [`EventDriven`].

pub mod crossbar;
mod error;
mod event_driven;
pub mod fat_tree;
mod kind;
mod links;
mod switched;
pub mod torus;

pub use error::{NODES_MAX, UnfitNetwork};
pub(crate) use event_driven::EventDriven;
pub use fat_tree::FatTreeShape;
pub(crate) use kind::Network;
pub use kind::{NetworkKind, NetworkSpec};
pub use links::LinkSpec;
pub(crate) use switched::Switched;
pub use torus::{TorusForm, TorusSize};
