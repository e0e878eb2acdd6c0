//! Requests for the bytes of blocks, which the block cache of a server serves.

use serde::{Deserialize, Serialize};
use units::{FileId, RegionId};

/// Request to the block cache of a server, other than [`ReadRequest`] and [`WriteRequest`].
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BlockRequest {
    /// Writes bytes of one block. The server gets them from the sender's memory when it
    /// has room for them.
    Pull(PullRequest),
    /// Reads a whole block as the body of the reply. The sender can map it from the server's
    /// memory.
    Page {
        /// Number of the file, which must be open.
        file: FileId,
        /// Number of the block in the file.
        block: u64,
    },
    /// Waits for write-behind and prefetches.
    Flush(FlushRequest),
    /// Asks for digests of a block, to compare them with the data that was written.
    Digests(DigestsRequest),
    /// Reads a whole block as [`BlockRequest::Page`]. If the reply is a
    /// [`crate::Reply::Lease`] that is granted, the sender may read from the page again until it
    /// gets a [`crate::Message::RecallPages`].
    PageToKeep {
        /// Number of the file, which must be open.
        file: FileId,
        /// Number of the block in the file.
        block: u64,
    },
    /// Tells that the sender keeps no page of a file any more.
    DroppedPages {
        /// Number of the file.
        file: FileId,
    },
}

/// Caching: request for bytes of one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReadRequest {
    /// Number of the file, which must be open.
    pub file: FileId,
    /// Number of the block in the file.
    pub block: u64,
    /// First byte in the block.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Region of the sender that receives the bytes.
    pub region: RegionId,
    /// First byte in the region.
    pub region_offset: u64,
}

/// Caching: write of bytes of one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WriteRequest {
    /// Number of the file, which must be open.
    pub file: FileId,
    /// Number of the block in the file.
    pub block: u64,
    /// First byte in the block.
    pub offset: u64,
}

/// Caching: offer of bytes of one block, for the server to get.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PullRequest {
    /// Number of the file, which must be open.
    pub file: FileId,
    /// Number of the block in the file.
    pub block: u64,
    /// First byte in the block.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Region of the sender that holds the bytes.
    pub region: RegionId,
    /// First byte in the region.
    pub region_offset: u64,
}

/// Caching: wait until no request of a file is active.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FlushRequest {
    /// Number of the file, which must be open.
    pub file: FileId,
    /// True if the data must be on stable storage, not only handed to the disks.
    pub sync: bool,
}

/// Request for digests of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DigestsRequest {
    /// Number of the file, which must be open.
    pub file: FileId,
    /// Number of the block in the file.
    pub block: u64,
    /// Bytes in a piece. Each piece has a digest; the last piece may be shorter.
    pub piece_bytes: u64,
}
