//! The client library: one process that uses files, alone or in a group.
//!
//! | where | what |
//! |---|---|
//! | `state.rs` | the client, its state, and the messages that reach it |
//! | `faults.rs` | faults that a client detects itself |
//! | `connections/` | the servers, connections to them, requests and their answers |
//! | `files/` | files by name, and their sizes |
//! | `gathering/` | small calls: writes that are sent together, pages to read from |
//! | `groups/` | groups: their calls, counters, locks, and messages among members |
//! | `memory/` | memory that a client and its servers share |
//! | `line_cache/` | the cache of a client |

mod connections;
mod faults;
mod files;
mod gathering;
mod groups;
mod line_cache;
mod memory;
mod state;

pub use connections::{CopiedCatalogue, ServerChange};
pub(crate) use connections::{Outcome, greet};
pub(crate) use faults::unexpected;
pub use files::NewFile;
pub use gathering::{
    Activity, Added, GatheredBatch, GatheredStore, Kept, KeptPages, KeptStore, PendingWrites,
    SmallCalls, TakenWrites,
};
pub use groups::{
    CollectivePlan, Group, Moved, PeerCall, PeerMesh, PeerTurn, Peers, PlannedTransfer, RangeLock,
    SharedMemory,
};
pub use line_cache::CacheCounts;
pub(crate) use memory::WithdrawnOnDrop;
pub use memory::{Buffer, BufferPart, BufferPool, Page};
pub use state::Client;
