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
//! [`spec`] is the interface of a kind of network and of its declaration, [`NETWORKS`] lists those
//! that have a name, and [`contract`] tests them.

mod built_in;
mod built_network;
pub mod contract;
pub mod crossbar;
mod error;
pub mod fat_tree;
mod links;
pub mod spec;
pub mod torus;

pub use built_in::NETWORKS;
pub use built_network::{BuiltNetwork, EventDrivenNetwork, SwitchedNetwork};
pub use error::{NODES_MAX, UnfitNetwork};
pub use fat_tree::FatTreeShape;
pub use links::LinkSpec;
pub use spec::{NetworkDeclaration, NetworkKind, NetworkShape, NetworkSpec};
pub use torus::TorusSize;
