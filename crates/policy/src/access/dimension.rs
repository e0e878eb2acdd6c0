//! Distribution of one dimension of an array, as in High-Performance Fortran.

use serde::{Deserialize, Serialize};

/// Distribution of the indices of one dimension to the clients along it.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Dimension {
    /// Not distributed: one client along this dimension has every index.
    None,
    /// Contiguous blocks of ceil(n/p) indices. The last clients may get fewer, or none.
    Block,
    /// Blocks of this many indices, dealt round-robin; at least 1.
    Cyclic(u64),
}
