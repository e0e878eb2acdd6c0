//! The machine: nodes with processors and disks, and the network between them.
//!
//! [`assembly`] builds a machine from its [`config`] and moves messages between its [`node`]s,
//! which may share the cores of a host ([`host_member`](crate::host_member)). [`computation`] is
//! the work of programs; [`world`] is the view of one node's program. [`transport`] drives the
//! network model, [`flights`] stores messages on their way, and [`faults`] carries out a plan of
//! disruptions. [`silence`] keeps stopped nodes and cut connections.

mod assembly;
mod computation;
mod config;
mod connection;
mod faults;
mod flights;
mod message_costs;
mod node;
mod prefetch_hints;
mod records;
mod regions;
mod silence;
mod stops;
mod transport;
mod world;

pub use assembly::Machine;
pub use config::{HostConfig, MachineConfig, MachineError, NodeConfig};
pub use faults::{Disruption, FaultPlan, PlannedFault};
pub use message_costs::{DirectCopies, MessageCosts, Pieces, PutCopier};
pub use world::SimulatedWorld;
