//! Limits of accesses.
//!
//! Invariant: below these limits, no sum and no product of offsets in this folder overflows.

/// Largest number of clients of one access.
pub const CLIENTS_MAX: u32 = 1 << 20;

/// Largest size of a file and of a client's memory, in bytes (4 EiB). Sums and doubles of offsets
/// then fit in 64 bits.
pub const BYTES_MAX: u64 = 1 << 62;

/// Largest number of dimensions of a distributed array.
pub const DIMENSIONS_MAX: usize = 16;

/// Largest number of levels of a nested access.
pub const LEVELS_MAX: usize = 16;

/// Largest number of entries of the list of one client.
pub const LIST_ENTRIES_MAX: usize = 1 << 20;
