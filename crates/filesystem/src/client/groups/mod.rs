//! Groups of clients: collective calls, counters, locks, and messages among the members.

mod failure_propagation;
mod group;
pub(super) mod mailbox;
mod member_services;
mod peer_mesh;
mod peers;
mod plans;

pub use group::{Group, Moved};
pub use member_services::RangeLock;
pub use peer_mesh::{PeerMesh, SharedMemory};
pub use peers::{PeerCall, PeerTurn, Peers};
pub use plans::{CollectivePlan, PlannedTransfer};
