//! Reasons for which an access is refused.

use super::dimension::Dimension;
use super::limits::{BYTES_MAX, CLIENTS_MAX, DIMENSIONS_MAX, LEVELS_MAX, LIST_ENTRIES_MAX};
use thiserror::Error;
use units::ClientId;

/// Why an access is refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AccessError {
    /// There are no clients, or more than [`CLIENTS_MAX`].
    #[error("an access by {clients} clients is not possible: use 1 to {CLIENTS_MAX}")]
    Clients {
        /// The number that was asked for.
        clients: usize,
    },
    /// The file is larger than [`BYTES_MAX`].
    #[error("a file of {file_bytes} bytes is not possible: the largest has {BYTES_MAX}")]
    FileTooLarge {
        /// Its size in bytes.
        file_bytes: u64,
    },
    /// A whole-file access is longer than the file.
    #[error("an access to {bytes} bytes leaves a file of {file_bytes} bytes")]
    AllTooLarge {
        /// Bytes of the access.
        bytes: u64,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// An array has no dimension, or more than [`DIMENSIONS_MAX`].
    #[error("an array of {dimensions} dimensions is not possible: use 1 to {DIMENSIONS_MAX}")]
    Dimensions {
        /// The number that was asked for.
        dimensions: usize,
    },
    /// Shape, grid and dimensions do not speak of the same array.
    #[error(
        "{dimensions} dimensions are distributed, but the shape has {shape} and the grid {grid}"
    )]
    Ranks {
        /// Number of rules.
        dimensions: usize,
        /// Number of extents.
        shape: usize,
        /// Number of grid extents.
        grid: usize,
    },
    /// A record has no bytes.
    #[error("a record of 0 bytes is not possible: use at least 1")]
    EmptyRecord,
    /// An array has no record along a dimension.
    #[error("dimension {dimension} of the array has extent 0: use at least 1")]
    EmptyDimension {
        /// The dimension, counted from the slowest.
        dimension: usize,
    },
    /// A dimension is dealt in blocks of no index.
    #[error("dimension {dimension} is CYCLIC(0): use CYCLIC(1) or more")]
    CyclicZero {
        /// The dimension, counted from the slowest.
        dimension: usize,
    },
    /// A dimension has no client, or several where it is not distributed.
    #[error(
        "dimension {dimension} is {rule:?} over {clients} clients: \
         a grid needs at least 1, and exactly 1 for NONE"
    )]
    GridExtent {
        /// The dimension, counted from the slowest.
        dimension: usize,
        /// Its rule.
        rule: Dimension,
        /// Clients along it.
        clients: u32,
    },
    /// The grid has more places than there are clients, or there are more than [`CLIENTS_MAX`].
    #[error("a grid of {grid:?} does not fit {clients} clients (at most {CLIENTS_MAX})")]
    Grid {
        /// Clients along each dimension.
        grid: Vec<u32>,
        /// Clients in all.
        clients: u32,
    },
    /// The array is larger than the file.
    #[error(
        "an array of {shape:?} records of {record_bytes} bytes leaves a file of {file_bytes} bytes"
    )]
    ArrayTooLarge {
        /// Records along each dimension.
        shape: Vec<u64>,
        /// Bytes in a record.
        record_bytes: u64,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// A nested access is too deep.
    #[error("{client} has {levels} nested levels: use at most {LEVELS_MAX}")]
    Levels {
        /// Whose access it is.
        client: ClientId,
        /// The number of levels.
        levels: usize,
    },
    /// A list is too long.
    #[error("the lists have {entries} entries: use at most {LIST_ENTRIES_MAX}")]
    Entries {
        /// The number of entries of all clients.
        entries: usize,
    },
    /// A list entry has no bytes.
    #[error("entry {entry} of {client} has 0 bytes: leave it out")]
    EmptyEntry {
        /// Whose list it is.
        client: ClientId,
        /// The number of the entry.
        entry: usize,
    },
    /// An access reaches behind the end of the file.
    #[error("entry {entry} of {client} leaves a file of {file_bytes} bytes")]
    OutsideFile {
        /// Whose access it is.
        client: ClientId,
        /// The number of the entry or level.
        entry: usize,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// An entry or level starts before the one in front of it ends.
    #[error("entry {entry} of {client} runs back in the file: entries must ascend and not overlap")]
    FileOverlap {
        /// Whose access it is.
        client: ClientId,
        /// The number of the entry or level.
        entry: usize,
    },
    /// Two pieces have a byte of memory in common.
    #[error("entry {entry} of {client} overlaps another in memory")]
    MemoryOverlap {
        /// Whose access it is.
        client: ClientId,
        /// The number of the entry, or of the level in the order of strides in memory.
        entry: usize,
    },
    /// A client would need more memory than [`BYTES_MAX`].
    #[error("{client} would need more than {BYTES_MAX} bytes of memory")]
    MemoryTooLarge {
        /// The client.
        client: ClientId,
    },
    /// Two clients would write the same byte.
    #[error("{first} and {second} would both write byte {offset}: writes must not overlap")]
    SharedByte {
        /// One of them.
        first: ClientId,
        /// The other.
        second: ClientId,
        /// A byte of the file that both own.
        offset: u64,
    },
}
