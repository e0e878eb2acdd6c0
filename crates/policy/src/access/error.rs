//! Reasons for which an access is refused.

use super::dimension::Dimension;
use super::limits::{BYTES_MAX, CLIENTS_MAX, DIMENSIONS_MAX, LEVELS_MAX};
use thiserror::Error;
use units::ClientId;

/// Reason for which an access is refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AccessError {
    /// There are no clients, or more than [`CLIENTS_MAX`].
    #[error("an access by {clients} clients is not possible: use 1 to {CLIENTS_MAX}")]
    Clients {
        /// Number that was requested.
        clients: usize,
    },
    /// The file is larger than [`BYTES_MAX`].
    #[error("a file of {file_bytes} bytes is not possible: the largest has {BYTES_MAX}")]
    FileTooLarge {
        /// Size of the file in bytes.
        file_bytes: u64,
    },
    /// A whole-file access is longer than the file.
    #[error("an access to {bytes} bytes goes past the end of a file of {file_bytes} bytes")]
    AllTooLarge {
        /// Bytes of the access.
        bytes: u64,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// An array has no dimension, or more than [`DIMENSIONS_MAX`].
    #[error("an array of {dimensions} dimensions is not possible: use 1 to {DIMENSIONS_MAX}")]
    Dimensions {
        /// Number that was requested.
        dimensions: usize,
    },
    /// Shape, grid and dimensions are not of the same array.
    #[error(
        "{dimensions} dimensions are distributed, but the shape has {shape} and the grid {grid}"
    )]
    Ranks {
        /// Number of distributed dimensions.
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
        /// Number of the dimension, from the slowest.
        dimension: usize,
    },
    /// A dimension is cyclic with blocks without an index.
    #[error("dimension {dimension} is CYCLIC(0): use CYCLIC(1) or more")]
    CyclicZero {
        /// Number of the dimension, from the slowest.
        dimension: usize,
    },
    /// A dimension has no client, or several where it is not distributed.
    #[error(
        "dimension {dimension} is {rule:?} over {clients} clients: \
         a grid needs at least 1, and exactly 1 for NONE"
    )]
    GridExtent {
        /// Number of the dimension, from the slowest.
        dimension: usize,
        /// Distribution of the dimension.
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
        "an array of {shape:?} records of {record_bytes} bytes goes past the end of a file of \
         {file_bytes} bytes"
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
        /// Client of the access.
        client: ClientId,
        /// Number of levels.
        levels: usize,
    },
    /// A list is too long.
    #[error("a part has {entries} entries: use at most {most}")]
    Entries {
        /// Number of entries.
        entries: usize,
        /// Largest number of them.
        most: usize,
    },
    /// A list entry has no bytes.
    #[error("entry {entry} of {client} has 0 bytes: leave it out")]
    EmptyEntry {
        /// Client of the list.
        client: ClientId,
        /// Number of the entry.
        entry: usize,
    },
    /// An access goes past the end of the file.
    #[error("entry {entry} of {client} goes past the end of a file of {file_bytes} bytes")]
    OutsideFile {
        /// Client of the access.
        client: ClientId,
        /// Number of the entry or level.
        entry: usize,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// An entry or level starts before the previous one ends.
    #[error(
        "entry {entry} of {client} does not ascend in the file: entries must ascend and not \
             overlap"
    )]
    FileOverlap {
        /// Client of the access.
        client: ClientId,
        /// Number of the entry or level.
        entry: usize,
    },
    /// Two pieces have a byte of memory in common.
    #[error("entry {entry} of {client} overlaps another in memory")]
    MemoryOverlap {
        /// Client of the access.
        client: ClientId,
        /// Number of the entry, or of the level in the order of strides in memory.
        entry: usize,
    },
    /// A client would need more memory than [`BYTES_MAX`].
    #[error("{client} would need more than {BYTES_MAX} bytes of memory")]
    MemoryTooLarge {
        /// Client that needs the memory.
        client: ClientId,
    },
    /// Two clients would write the same byte.
    #[error("{first} and {second} would both write byte {offset}: writes must not overlap")]
    SharedByte {
        /// First owner of the byte.
        first: ClientId,
        /// Second owner of the byte.
        second: ClientId,
        /// Offset of the byte in the file.
        offset: u64,
    },
}
