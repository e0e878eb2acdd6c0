//! Interface of a replacement policy.
//!
//! A policy sees neither clock nor disk, so the same policy serves real and simulated caches.

use std::fmt::Debug;

/// Replacement policy of one file. It learns of each use of the file's blocks and ranks them for
/// eviction.
///
/// Invariants:
/// - Each block that is cached and a candidate is named once, and no other block.
/// - [`ReplacementPolicy::count`] is the number of blocks named.
pub trait ReplacementPolicy: Debug {
    /// Learns that a block was inserted or used. `to_its_end` is true when the block was read up to
    /// its last byte.
    fn used(&mut self, block: u64, to_its_end: bool);

    /// Learns that a block is no longer cached.
    fn left(&mut self, block: u64);

    /// Candidates for eviction, the one to be evicted first in front.
    ///
    /// Blocks that the policy has no reason to evict may be missing. The cache's common order then
    /// decides about them. The cache asks at each eviction, and seldom for more than the first.
    fn candidates(&self) -> Box<dyn Iterator<Item = u64> + '_>;

    /// Number of candidates.
    fn count(&self) -> usize;

    /// True if a cached block is a candidate.
    fn is_candidate(&self, _block: u64) -> bool {
        true
    }

    /// True if the candidates are evicted before the blocks of all files without this property.
    fn evicts_before_others(&self) -> bool {
        false
    }
}

/// Constructor of a policy for a file without blocks.
pub type MakePolicy = fn() -> Box<dyn ReplacementPolicy>;
