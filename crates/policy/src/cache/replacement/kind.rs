//! Replacement policy of a file, as it is stored and sent.

use super::name::PolicyName;
use serde::{Deserialize, Serialize};

/// Replacement policy of a file: which of its blocks is evicted first from a full cache.
///
/// Names, help texts and constructors are in the files of the policies.
// Stored and sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Replacement {
    /// Least recently used block.
    Lru,
    /// Most recently used block.
    Mru,
    /// Blocks that were read to their end.
    TossImmediate,
    /// Block that is needed last in a loop over the file.
    LoopAware,
    /// Random block.
    Random,
    /// Block that a policy of the servers' program chooses ([`crate::ReplacementPolicies::with`]).
    Custom(PolicyName),
}
