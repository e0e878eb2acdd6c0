//! Messages of clients and servers.

use crate::request_id::RequestId;
use crate::{
    AllGatherRequest, CacheAnswer, CacheCommand, CacheRequest, ClientKey, CounterRequest, Entry,
    Fault, FileDefaults, FileRecord, FileSize, JoinRequest, LeaveRequest, LineName, LineTaker,
    LockRequest, Made, RegisterRequest, SentLine, TransferName, UnlockRequest,
};
use policy::{Access, Direction, DiskOrder};
use serde::{Deserialize, Serialize};
use units::{ClientId, DiskId, FileId, RegionId, ServerId, Timestamp};

/// Largest number of clients in one collective.
pub const PARTICIPANTS_MAX: usize = 1 << 16;

/// Header of anything that is sent.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Message {
    /// First message of a client to a server.
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
}

/// Request of a client to a server.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Catalogue: creates a file. The catalogue chooses its number and ignores `record.file`.
    Create {
        /// Record of the file.
        record: FileRecord,
        /// Owner and time of the creation.
        made: Made,
    },
    /// Catalogue: creates a directory.
    MakeDirectory {
        /// Name of the entry.
        name: String,
        /// Owner and time of the creation.
        made: Made,
    },
    /// Catalogue: looks up a name.
    Stat {
        /// Name of the entry.
        name: String,
    },
    /// Catalogue: lists a directory in the order of its names, one part at a time.
    List {
        /// Name of the entry.
        directory: String,
        /// Last part of the name to begin after. Without it, the list begins with the first name.
        after: Option<String>,
    },
    /// Catalogue: renames a file, or a directory with its contents.
    Rename {
        /// Name of the entry.
        from: String,
        /// New name.
        to: String,
        /// True if a file with the new name is replaced atomically. The reply names that file, and
        /// the sender must drop its data. If false, the new name must be free.
        replace: bool,
    },
    /// Catalogue: removes an empty directory, or the name of a file. The reply names that file, and
    /// the sender must drop its data.
    Remove {
        /// Name of the entry.
        name: String,
    },
    /// Opens a file at this server for the rest of the connection. The reply is its size.
    Open(FileRecord),
    /// Undoes [`Request::Open`].
    Close {
        /// Number of the file.
        file: FileId,
        /// Size that the catalogue has; the smallest size if the client does not know it.
        recorded: FileSize,
    },
    /// Asks for the buffer statistics of a file since it was opened.
    Buffers {
        /// Number of the file, which must be open.
        file: FileId,
    },
    /// Frees all data at this server of a file without a name, once no client has it open. The
    /// reply is [`Reply::InUse`] if one has.
    Drop {
        /// Number of the file.
        file: FileId,
    },
    /// Caching: reads bytes of one block into the sender's memory.
    Read(ReadRequest),
    /// Caching: writes bytes of one block. The data is the body of the message.
    Write(WriteRequest),
    /// Caching: waits for write-behind and prefetches.
    Flush(FlushRequest),
    /// Asks for the status of the server.
    Status,
    /// Stops the server: it finishes active requests, writes all data back, and ends.
    Stop,
    /// Disk-directed: cancels a transfer of the sender, which has failed at another server.
    Cancel(TransferName),
    /// Disk-directed, non-collective: requests the part of one client.
    Part(Box<PartRequest>),
    /// Caching: writes bytes of one block. The server gets them from the sender's memory when it
    /// has room for them.
    Pull(PullRequest),
    /// Asks for digests of a block, to compare them with the data that was written.
    Digests(DigestsRequest),
    /// Catalogue: sets the defaults of new files in a directory. Existing files keep theirs.
    SetDefaults {
        /// Name of the directory.
        directory: String,
        /// Defaults of new files.
        defaults: FileDefaults,
    },
    /// Reads a whole block as the body of the reply. The sender can map it from the server's
    /// memory.
    Page {
        /// Number of the file, which must be open.
        file: FileId,
        /// Number of the block in the file.
        block: u64,
    },
    /// Sets the size of an open file at this server, if it is greater than the known one
    /// ([`FileSize`]). The reply comes after the bytes beyond it are freed.
    Resize {
        /// Number of the file, which must be open.
        file: FileId,
        /// New size; the smallest size to only ask for the known one.
        size: FileSize,
    },
    /// Catalogue: records the size of a file, if it is greater than the known one, after all its
    /// servers know it.
    RecordSize {
        /// Number of the file.
        file: FileId,
        /// Size of the file.
        size: FileSize,
    },
    /// Asks for the size and the time of a file, open or not, as far as this server knows them.
    Measure(FileRecord),
    /// Asks for the sizes and times of the files that are open at this server.
    OpenSizes {
        /// File to begin after, in the order of file numbers.
        after: Option<FileId>,
    },
    /// Stores the size of an open file durably, since it does not follow from the file's data.
    KeepSize {
        /// Number of the file.
        file: FileId,
    },
    /// Catalogue: lists the files without a name that may still have data at their servers.
    Nameless {
        /// File to begin after, in the order of file numbers.
        after: Option<FileId>,
    },
    /// Catalogue: forgets a file without a name, because no server has data of it any more.
    Forget {
        /// Number of the file.
        file: FileId,
    },
    /// Brings bytes to an all-gather, and waits for those of the others.
    AllGather(Box<AllGatherRequest>),
    /// Registers members of a group.
    Register(Box<RegisterRequest>),
    /// Ends the registration of members of a group.
    Leave(LeaveRequest),
    /// Disk-directed: joins a collective call of a group. It is boxed because it is large and other
    /// requests are moved often.
    Join(Box<JoinRequest>),
    /// Returns and changes the counter of a group.
    Counter(CounterRequest),
    /// Requests a lock of a byte range for a member of a group, and waits until it is held.
    Lock(LockRequest),
    /// Releases a lock, or withdraws the request for it.
    Unlock(UnlockRequest),
    /// Disk-directed: asks what a collective would do on one disk, without doing it.
    Plan(Box<PlanRequest>),
    /// Request of a client with a cache.
    Cache(Box<CacheRequest>),
    /// Sets the time of the last change of an open file at this server.
    SetModified {
        /// Number of the file, which must be open.
        file: FileId,
        /// Time of the last change.
        modified: Timestamp,
    },
    /// Catalogue: records the time of the last change of a file.
    RecordModified {
        /// Number of the file.
        file: FileId,
        /// Time of the last change, as its servers know it.
        modified: Timestamp,
        /// True if a user has set the time, which is then on stable storage before the reply. If
        /// false, a later recorded time stays.
        is_set: bool,
    },
    /// Asks the server to ping the clients that it waits for, and to disconnect those that are
    /// silent. Its other requests may wait for them.
    Probe {
        /// Silence after which a client counts as stopped, in milliseconds.
        silence_ms: u64,
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

/// Caching: wait until no request of a file is active.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FlushRequest {
    /// Number of the file, which must be open.
    pub file: FileId,
    /// True if the data must be on stable storage, not only handed to the disks.
    pub sync: bool,
}

/// Disk-directed: question for the blocks that a collective would transfer on one disk.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlanRequest {
    /// Read or write.
    pub direction: Direction,
    /// Number of the file, which must be open.
    pub file: FileId,
    /// Bytes of each client.
    pub access: Access,
    /// Order in which each disk serves its blocks.
    pub order: DiskOrder,
    /// Disk of the server.
    pub disk: DiskId,
    /// Number of blocks to leave out, which the server looked at before.
    pub skipped: u64,
}

/// Block that a collective would transfer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlannedBlock {
    /// Number of the block in the file.
    pub block: u64,
    /// Physical address of the block, of which only the order counts.
    pub address: u64,
    /// Clients that have bytes of the block, and how many, in the order in which the server asks
    /// them.
    pub shares: Vec<(ClientId, u64)>,
}

/// Disk-directed, non-collective: transfer between one client and this server. Written data stays
/// in the server's cache until a [`FlushRequest`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PartRequest {
    /// Number among the active parts of the sender.
    pub number: u64,
    /// Read or write.
    pub direction: Direction,
    /// Number of the file, which must be open.
    pub file: FileId,
    /// Bytes of each client.
    pub access: Access,
    /// Client of the access that the sender is.
    pub client: ClientId,
    /// Memory that the sender exposed to the servers.
    pub region: RegionId,
    /// Order in which each disk serves its blocks.
    pub order: DiskOrder,
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
    Status(ServerStatus),
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
    /// client must offer it again ([`Request::Pull`]).
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

/// Status of a server.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Number of connected clients.
    pub clients: u32,
    /// Requests answered since the start.
    pub requests: u64,
    /// Bytes read from and written to clients since the start.
    pub bytes_moved: u64,
    /// Bytes of blocks in the cache.
    pub cache_bytes: u64,
    /// Bytes of dirty blocks in the cache, partly or completely dirty.
    pub dirty_bytes: u64,
    /// Bytes of buffers that collectives hold.
    pub collective_bytes: u64,
    /// Capacity and free bytes of each disk.
    pub disks: Vec<(u64, u64)>,
    /// Number of files on each server that has files. Only the catalogue's server reports it.
    pub files: Vec<(ServerId, u64)>,
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
