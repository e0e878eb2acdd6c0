//! The parallel file system: servers, clients, and the strategies by which data moves between them.
//!
//! Everything here is generic over [`world::World`] and runs unchanged on real machines and on
//! simulated ones. Policy decides, this crate acts, the world waits and measures.

mod client;
pub mod collective;
mod costs;
mod line_locks;
mod liveness;
mod scale;
mod server;
mod signal;
mod task_lock;
mod to_its_end;

pub use client::{
    Activity, Added, Buffer, BufferPart, BufferPool, CacheCounts, Client, CollectivePlan,
    CopiedCatalogue, GatheredBatch, GatheredStore, Group, Kept, KeptPages, KeptStore, Moved,
    NewFile, Page, PeerCall, PeerMesh, PeerTurn, Peers, PendingWrites, PlannedTransfer, RangeLock,
    ServerChange, SharedMemory, SmallCalls, TakenWrites,
};
pub use costs::{BytesCost, Costs};
pub use server::{
    COPIES_MAX, COPY_POSITION_KEY, OtherServer, ServerConfig, copy_position, serve,
    serve_among_others,
};
pub use wire::Fault;
