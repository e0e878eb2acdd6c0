//! The block cache of a server, and the locks of blocks that collectives write.

pub(crate) mod block_locks;
mod cache;
mod dirty;
mod entry;
mod evicted;
mod evicted_block;
mod of_file;
mod pin;
mod prefetch;
mod room;
mod shares;
mod write_back;

pub(crate) use cache::BlockCache;
