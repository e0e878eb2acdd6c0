//! Block that has left the cache.

use super::block_locks::BlockKey;

/// Clean block that was evicted.
pub(crate) struct EvictedBlock<P> {
    pub(crate) key: BlockKey,
    /// Number of bytes of the blocks of its file.
    pub(crate) block_bytes: u64,
    pub(crate) payload: P,
}
