//! Messages of clients and servers.

use crate::request_id::RequestId;
use crate::{
    CacheAnswer, CacheCommand, ClientKey, Entry, Fault, FileSize, LineName, LineTaker, NodeEntry,
    PlannedBlock, Request, Scrubbed, SelectReply, SentLine, ServerStatus, UnprotectedFiles,
};
use serde::{Deserialize, Serialize};
use units::{ClientId, FileId, ServerId, Timestamp};

/// Header of anything that is sent.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Message {
    /// First message of a client to a server. Its bytes are the same in all versions, so that each
    /// side learns of the version of the other.
    Hello {
        /// [`crate::PROTOCOL_VERSION`] of the sender.
        version: u16,
        /// Name of the client.
        key: ClientKey,
    },
    /// Request of a client to a server.
    Request {
        /// Number that the reply repeats.
        id: RequestId,
        /// Request itself.
        request: Request,
    },
    /// Reply of a server.
    Reply {
        /// Number of the request.
        id: RequestId,
        /// Result of the request.
        result: Result<Reply, Fault>,
    },
    /// Message of a client to another of its group.
    Group(GroupMessage),
    /// Command of a server to a client with a cache.
    CacheCommand(CacheCommand),
    /// Answer of a client to a command for its cache.
    CacheAnswer(CacheAnswer),
    /// Line of a client's cache, to another client.
    SentLine(SentLine),
    /// First message of a further connection of a client, for its reads and writes. The client has
    /// said hello on another.
    HelloAgain {
        /// [`crate::PROTOCOL_VERSION`] of the sender.
        version: u16,
        /// Name of the client.
        key: ClientKey,
    },
    /// Command of a server to a client with a lease of a file: it must send all writes that it has
    /// gathered ([`crate::WriteGathered`]).
    Recall {
        /// Number of the file.
        file: FileId,
        /// True if the client must also return the lease.
        ends: bool,
    },
    /// Command of a server to a client that may keep pages of a file: it must drop them, and say so
    /// ([`crate::BlockRequest::DroppedPages`]).
    RecallPages {
        /// Number of the file.
        file: FileId,
    },
}

/// Reply of a server.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The request is done.
    Done,
    /// The request is done and moved this many bytes.
    Moved {
        /// Bytes moved between this server and clients.
        bytes: u64,
    },
    /// Entry of the catalogue.
    Entry(Entry),
    /// Part of a directory.
    Entries {
        /// Entries in the order of their names.
        entries: Vec<Entry>,
        /// True if more entries follow.
        more: bool,
    },
    /// Status of the server.
    Status(Box<ServerStatus>),
    /// Buffer statistics of a file.
    Buffers(BufferStatistics),
    /// Digest of each piece of a block.
    Digests(Vec<u32>),
    /// Size of a file, as the server knows it now.
    Size(FileSize),
    /// Sizes of several files.
    Sizes {
        /// Files in the order of their numbers, with their sizes and times of the last change.
        sizes: Vec<(FileId, FileSize, Timestamp)>,
        /// True if more files follow.
        more: bool,
    },
    /// The server did not keep the data of a write, since too much data waits for room already. The
    /// client must offer it again ([`crate::BlockRequest::Pull`]).
    NoRoom,
    /// The request will be done when no client has the file open any more.
    InUse,
    /// Bytes that the members have brought to an all-gather, by rank.
    Gathered(Vec<Vec<u8>>),
    /// Counter of a group.
    Counter {
        /// Value before the request changed it.
        before: u64,
    },
    /// Blocks that a collective would transfer on a disk.
    Plan {
        /// Blocks in the order of their transfer.
        blocks: Vec<PlannedBlock>,
        /// Number of blocks that the server looked at. Some have no bytes of the access.
        looked_at: u64,
        /// True if more blocks follow.
        more: bool,
    },
    /// Line that a client's cache asked for, as the body.
    Line {
        /// Name of the line.
        line: LineName,
        /// True if no other client has a copy.
        is_last_copy: bool,
    },
    /// The client has the line already: the server has just sent it there.
    HasLine,
    /// The client must send the line that it evicts to another client.
    SendLine(LineTaker),
    /// The file is closed. It has no name any more and no client here has it open, so its data at
    /// this server goes. The sender must drop the file at all of its servers.
    Nameless,
    /// Size of a file and time of its last change, as the server knows them now.
    Measured {
        /// Size of the file.
        size: FileSize,
        /// Time of the last change at this server; the start of 1970 if it has no data.
        modified: Timestamp,
    },
    /// The file is closed. It was changed at this server since the first of its clients opened it.
    Modified {
        /// Time of the last change.
        at: Timestamp,
    },
    /// Entry of the catalogue, with its number.
    Node(Box<NodeEntry>),
    /// Part of a directory, with the numbers of the entries.
    Nodes {
        /// Entries in the order of their names.
        entries: Vec<NodeEntry>,
        /// True if more entries follow.
        more: bool,
    },
    /// The collective call is done, as with [`Reply::Moved`]. All members get this answer.
    MovedTogether {
        /// Bytes moved between this server and clients.
        bytes: u64,
        /// Number of the next calls of the group on this file that each member makes alone: it
        /// reads and writes its parts by itself, and joins none of these calls.
        calls_alone: u32,
    },
    /// Answer to a request for a lease.
    Lease {
        /// True if the client has the lease now.
        is_granted: bool,
    },
    /// Position of the copy of the catalogue at this server. It is on stable storage.
    Copied {
        /// Number of the last change that it has; 0 if it is not whole.
        position: u64,
    },
    /// Length of a copy.
    Length {
        /// One past its last byte; `None` if there is none.
        bytes: Option<u64>,
    },
    /// Some servers.
    Servers(Vec<ServerId>),
    /// Outcome of a scrub.
    Scrubbed(Scrubbed),
    /// The copy was lost with its directory, and is being written anew.
    LostCopy,
    /// Reply to a request for records that match.
    Select(Box<SelectReply>),
    /// A part of the copy of the catalogue at a server.
    CatalogueCopy {
        /// Number of the last change that the copy has; 0 if it is not whole.
        position: u64,
        /// Some of its records, by their keys.
        records: Vec<(u64, Vec<u8>)>,
        /// True if there are further ones.
        more: bool,
    },
    /// Files that are not protected in full.
    Unprotected(UnprotectedFiles),
}

/// Buffer statistics of a file at a server, in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BufferStatistics {
    /// Reads of bytes that were cached.
    pub hits: u64,
    /// Reads that had to wait for the disk.
    pub misses: u64,
    /// Blocks that were read before a client requested them.
    pub prefetched: u64,
    /// Prefetched blocks that were evicted before a client requested them.
    pub prefetched_unused: u64,
    /// Blocks that were evicted to make room.
    pub evictions: u64,
}

/// Message between the clients of a group.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum GroupMessage {
    /// Names the member that the sender is.
    Join {
        /// Number of the group, by which a member recognizes another.
        group: u64,
        /// Rank of the sender.
        client: ClientId,
    },
    /// One round of an agreement among all members.
    Agree {
        /// Number of the agreement, from 0.
        number: u64,
        /// Number of the round, from 0.
        round: u32,
        /// Values that the sender knows so far and that are for the receiver or for members that it
        /// sends to, by rank.
        values: Vec<(ClientId, u64)>,
        /// Smallest fault that the sender knows, in the order of the table. All members end with
        /// the smallest of all.
        fault: Option<Fault>,
    },
    /// Tells that the sender is done and disconnects.
    Leave,
    /// Tells that the sender takes part in no further agreement.
    Broken {
        /// Reason.
        fault: Fault,
    },
}
