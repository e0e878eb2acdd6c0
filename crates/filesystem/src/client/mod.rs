//! The client library: one process that uses files, alone or in a group.

mod cached_sizes;
mod calls;
mod catalogue;
mod connect;
mod failure_propagation;
mod faults;
mod file_sizes;
mod group;
mod limits;
mod line_cache;
mod mailbox;
mod member_services;
mod pages;
mod peer_mesh;
mod peers;
mod plans;
mod pool;
mod requests;
mod servers;
mod state;
mod watch;

pub use catalogue::NewFile;
pub(crate) use faults::unexpected;
pub use group::Group;
pub use line_cache::CacheCounts;
pub use member_services::RangeLock;
pub use pages::Page;
pub use peer_mesh::{PeerMesh, SharedMemory};
pub use peers::{PeerCall, PeerTurn, Peers};
pub use plans::{CollectivePlan, PlannedTransfer};
pub use pool::{Buffer, BufferPart, BufferPool};
pub(crate) use requests::Outcome;
pub(crate) use servers::WithdrawnOnDrop;
pub use state::Client;
