//! Requests for the records of a file that match a predicate.
//!
//! A client names its selection by a random number. Each server looks at the records that begin in
//! its blocks and keeps those that match, until the client ends the selection or leaves. Others may
//! take records of it too.

use policy::{DiskOrder, Reduced, Selection};
use serde::{Deserialize, Serialize};
use units::{FileId, RegionId};

/// Largest number of bytes of the starts of blocks in one message.
pub const HEADS_BYTES_MAX: u64 = 1 << 20;

/// Largest number of blocks in one message about counts of records.
pub const COUNTED_BLOCKS_MAX: usize = 1 << 16;

/// Request for records that match.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum SelectRequest {
    /// Looks at all records that lie whole in a block of this server. The reply is
    /// [`SelectReply::Begun`].
    Begin {
        /// Name of the selection, which is new.
        number: u64,
        /// Number of the file, which must be open.
        file: FileId,
        /// Records that are wanted.
        selection: Box<Selection>,
        /// Order in which each disk serves its blocks.
        order: DiskOrder,
    },
    /// Asks for the starts of blocks that belong to records which begin in the block before. The
    /// reply is [`SelectReply::Heads`], with their bytes as its body.
    Heads {
        /// Name of the selection.
        number: u64,
        /// First block.
        from: u64,
    },
    /// Brings the rests of records that begin in blocks of this server, as the body, and looks at
    /// these records.
    Complete {
        /// Name of the selection.
        number: u64,
        /// Blocks in which the records begin, ascending, with the lengths of their rests.
        rests: Vec<(u64, u32)>,
    },
    /// Asks for the number that was computed. The reply is [`SelectReply::Number`].
    Number {
        /// Name of the selection.
        number: u64,
    },
    /// Asks for the numbers of records of a destination. The reply is [`SelectReply::Counts`].
    Counts {
        /// Name of the selection.
        number: u64,
        /// Destination of the records.
        destination: u32,
        /// First block.
        from: u64,
    },
    /// Puts records of a destination into the memory of the sender.
    Take {
        /// Name of the selection.
        number: u64,
        /// Destination of the records.
        destination: u32,
        /// Memory that the sender has exposed.
        region: RegionId,
        /// Records, and where they go.
        places: Vec<TakenRecords>,
    },
    /// Ends the selection.
    End {
        /// Name of the selection.
        number: u64,
    },
    /// Keeps the summary that the selection has computed, so that later selections leave out blocks
    /// in which no record matches.
    Keep {
        /// Name of the selection.
        number: u64,
    },
}

/// Records of a block and a destination, in the order of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TakenRecords {
    /// Number of the block in the file.
    pub block: u64,
    /// Number of records of the block that are left out before them.
    pub skipped: u32,
    /// Number of records.
    pub count: u32,
    /// First byte of the memory for them.
    pub at: u64,
}

/// Reply to a [`SelectRequest`].
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum SelectReply {
    /// All records that lie whole in a block here were looked at.
    Begun {
        /// Number of blocks here that were looked at.
        blocks: u64,
        /// Number of blocks here that were not read, since no record of them matches.
        skipped: u64,
        /// Bytes that belong to records which begin in other blocks.
        head_bytes: u64,
    },
    /// Starts of blocks.
    Heads {
        /// Blocks, ascending, with the lengths of their starts.
        heads: Vec<(u64, u32)>,
        /// True if more follow.
        more: bool,
    },
    /// Number that was computed from the records here.
    Number(Reduced),
    /// Numbers of records.
    Counts {
        /// Blocks with records of the destination, ascending, with their numbers.
        counts: Vec<(u64, u32)>,
        /// True if more follow.
        more: bool,
    },
}
