//! What clients and servers say to one another.

use crate::{
    EnrolRequest, Entry, Fault, FileDefaults, FileRecord, FileSize, Introduction, JoinRequest,
    Made, MeetRequest, Regions,
};
use policy::{Access, Direction, DiskOrder};
use serde::{Deserialize, Serialize};
use units::{ClientId, FileId, RegionId, ServerId};

/// The most clients that take part in one collective.
pub const PARTICIPANTS_MAX: usize = 1 << 16;

/// Names one request of one client until it is answered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// Names one client process to all servers; drawn at random by the client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ClientKey(pub u64);

/// Everything that travels as a header.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The first message of a client to a server.
    Hello {
        /// The sender's [`crate::PROTOCOL_VERSION`].
        version: u16,
        /// Who it is.
        key: ClientKey,
    },
    /// A client asks a server.
    Request {
        /// To be repeated in the answer.
        id: RequestId,
        /// What is asked.
        request: Request,
    },
    /// A server answers.
    Reply {
        /// Of the request.
        id: RequestId,
        /// What came of it.
        result: Result<Reply, Fault>,
    },
    /// A client tells another of its group something.
    Group(GroupMessage),
    /// A server tells a participant that a collective has failed.
    CollectiveFailed {
        /// Number of the collective within its group.
        collective: u64,
        /// Why.
        fault: Fault,
    },
}

/// What a client can ask of a server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Catalogue: makes a file; the catalogue numbers it, whatever `record.file` says.
    Create {
        /// The file.
        record: FileRecord,
        /// Who makes it and when.
        made: Made,
    },
    /// Catalogue: makes a directory.
    MakeDirectory {
        /// Its name.
        name: String,
        /// Who makes it and when.
        made: Made,
    },
    /// Catalogue: what is known of a name.
    Stat {
        /// The name.
        name: String,
    },
    /// Catalogue: what a directory holds, in the order of its names, a part of it at a time.
    List {
        /// Its name.
        directory: String,
        /// The last part of the name behind which to begin; without it, at the first.
        after: Option<String>,
    },
    /// Catalogue: gives a file or a directory, with all that is in it, another name.
    Rename {
        /// Its name.
        from: String,
        /// Its new name.
        to: String,
        /// Whether a file may have that name, which it loses in the same instant: the answer says
        /// which, and its data is for the sender to drop. Without it, the name must be free.
        replace: bool,
    },
    /// Catalogue: forgets a file whose data every server has dropped, or an empty directory.
    Remove {
        /// Its name.
        name: String,
    },
    /// Makes a file known to this server for the rest of the connection; the answer is its size.
    Open(FileRecord),
    /// Undoes [`Request::Open`].
    Close {
        /// Which file.
        file: FileId,
        /// The size of which the catalogue has heard; the least one where that is not known.
        recorded: FileSize,
    },
    /// How the server has buffered a file since it was opened.
    Buffers {
        /// Which file; it must be open.
        file: FileId,
    },
    /// Frees what this server holds of a file.
    Drop {
        /// Which file.
        file: FileId,
    },
    /// Caching: bytes of one block, into the sender's memory.
    Read(ReadRequest),
    /// Caching: bytes of one block; the data is the message's body.
    Write(WriteRequest),
    /// Caching: waits for write-behind and prefetches.
    Flush(FlushRequest),
    /// Disk-directed: the one request of a collective. It is large, and all others move often.
    Collective(Box<NamedCollective>),
    /// What this server is and does.
    Status,
    /// Finish what is under way, write everything back, and end.
    Stop,
    /// Disk-directed: give up a collective, or the part of one client, that has failed at another
    /// server.
    Cancel {
        /// Its number, as in the request that began it.
        collective: u64,
    },
    /// Disk-directed, non-collective: the one request of one client.
    Part(Box<PartRequest>),
    /// Caching: bytes of one block, which the server gets from the sender's memory when it has room
    /// for them.
    Pull(PullRequest),
    /// What a block holds, to compare it with what was written there.
    Digests(DigestsRequest),
    /// Catalogue: says how new files in a directory are made; those in it stay as they are.
    SetDefaults {
        /// The directory's name.
        directory: String,
        /// How.
        defaults: FileDefaults,
    },
    /// A whole block, as the answer's body, which the sender may see in the server's memory.
    Page {
        /// Which file; it must be open.
        file: FileId,
        /// Which block of it.
        block: u64,
    },
    /// What this server knows of the size of an open file from now on, if it is news. It answers
    /// when the bytes beyond are freed.
    Resize {
        /// Which file; it must be open.
        file: FileId,
        /// The size; the least one, to ask only.
        size: FileSize,
    },
    /// Catalogue: the size of a file, if it is news, after all its servers know it.
    RecordSize {
        /// Which file.
        file: FileId,
        /// The size.
        size: FileSize,
    },
    /// The size of a file as far as this server knows it, open or not.
    Measure(FileRecord),
    /// The sizes of the files that are open here.
    OpenSizes {
        /// Of those behind this one, in the order of their numbers.
        after: Option<FileId>,
    },
    /// As [`Request::Drop`], but when nobody has the file open any more: another has its name.
    DropUnused {
        /// The file.
        file: FileId,
    },
    /// Keeps the size of an open file on stable storage: no data shows it.
    KeepSize {
        /// Which file.
        file: FileId,
    },
    /// Catalogue: the files that have lost their names, and may have data at their servers.
    Nameless {
        /// Of those behind this one, in the order of their numbers.
        after: Option<FileId>,
    },
    /// Catalogue: a file that has lost its name has no data at any of its servers any more.
    Forget {
        /// The file.
        file: FileId,
    },
    /// Tells where the members of a group are, for its transfers.
    Introduce(Box<Introduction>),
    /// Disk-directed: the one request of a collective of a group that was introduced.
    GroupCollective(Box<GroupCollective>),
    /// Brings bytes to a meeting, and waits for those of the others.
    Meet(Box<MeetRequest>),
    /// Makes the sender known as a member of a group, or ends that.
    Enrol(EnrolRequest),
    /// Disk-directed: joins a collective call of a group.
    Join(Box<JoinRequest>),
}

/// Caching: asks for bytes of one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReadRequest {
    /// Which file; it must be open.
    pub file: FileId,
    /// Which block of it.
    pub block: u64,
    /// First byte within the block.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Where they go: a region of the sender …
    pub region: RegionId,
    /// … and the first byte in it.
    pub region_offset: u64,
}

/// Caching: brings bytes of one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WriteRequest {
    /// Which file; it must be open.
    pub file: FileId,
    /// Which block of it.
    pub block: u64,
    /// First byte within the block.
    pub offset: u64,
}

/// Caching: offers bytes of one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PullRequest {
    /// Which file; it must be open.
    pub file: FileId,
    /// Which block of it.
    pub block: u64,
    /// First byte within the block.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Where they are: a region of the sender …
    pub region: RegionId,
    /// … and the first byte in it.
    pub region_offset: u64,
}

/// Asks for the digests of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DigestsRequest {
    /// Which file; it must be open.
    pub file: FileId,
    /// Which block of it.
    pub block: u64,
    /// Bytes of a piece; there is a digest of each, the last of which may be shorter.
    pub piece_bytes: u64,
}

/// Caching: waits until nothing is under way for a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FlushRequest {
    /// Which file; it must be open.
    pub file: FileId,
    /// Whether the data must be on stable storage, not only with the disks.
    pub sync: bool,
}

/// Disk-directed: the whole transfer in one request, but for who takes part.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CollectiveRequest {
    /// Number of the collective within its group.
    pub collective: u64,
    /// Whether the clients read or write.
    pub direction: Direction,
    /// Which file; it must be open.
    pub file: FileId,
    /// Which bytes belong to whom.
    pub access: Access,
    /// In which order each disk is used.
    pub order: DiskOrder,
    /// Whether written data must be on stable storage at the end.
    pub sync: bool,
}

/// Disk-directed: a collective of clients that are connected.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NamedCollective {
    /// What is to be done.
    pub request: CollectiveRequest,
    /// Who takes part and where their memory is, by rank.
    pub participants: Vec<Participant>,
}

/// Disk-directed: a collective of the members of an introduced group. To name thousands of them to
/// each server again would take longer than many a transfer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GroupCollective {
    /// What is to be done.
    pub request: CollectiveRequest,
    /// Number of the group among the sender's.
    pub group: u64,
    /// Where the members' memory is, by rank.
    pub regions: Regions,
}

/// Disk-directed, non-collective: all that one client wants of this server, in one request. What
/// it writes stays in the server's cache until a [`FlushRequest`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PartRequest {
    /// Its number among the sender's collectives and parts that are under way.
    pub number: u64,
    /// Whether the client reads or writes.
    pub direction: Direction,
    /// Which file; it must be open.
    pub file: FileId,
    /// Which bytes belong to whom.
    pub access: Access,
    /// Which client of the access the sender is.
    pub client: ClientId,
    /// The memory that the sender exposed to the servers.
    pub region: RegionId,
    /// In which order each disk is used.
    pub order: DiskOrder,
}

/// One client of a collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Participant {
    /// Who it is.
    pub key: ClientKey,
    /// The memory it exposed to the servers.
    pub region: RegionId,
}

/// What a server answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// It is done.
    Done,
    /// It is done, and so many bytes moved.
    Moved {
        /// Bytes between this server and clients.
        bytes: u64,
    },
    /// What the catalogue knows of a name.
    Entry(Entry),
    /// What a directory holds.
    Entries {
        /// Some of it, in the order of names.
        entries: Vec<Entry>,
        /// Whether there is more behind them.
        more: bool,
    },
    /// What the server is and does.
    Status(ServerStatus),
    /// How the server has buffered a file.
    Buffers(BufferStatistics),
    /// The digests of a block, piece by piece.
    Digests(Vec<u32>),
    /// The size of a file, as it is known there now.
    Size(FileSize),
    /// The sizes of several files.
    Sizes {
        /// Those of some, in the order of their numbers.
        sizes: Vec<(FileId, FileSize)>,
        /// Whether there are more behind them.
        more: bool,
    },
    /// The data that came with a write was not kept, since too much waits for room already; the
    /// server gets it ([`Request::Pull`]) when there is some.
    NoRoom,
    /// It will be done when nobody has the file open any more.
    InUse,
    /// Bytes that the members of a meeting have brought, by rank.
    Met(Vec<Vec<u8>>),
}

/// How a server has buffered a file, counted in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BufferStatistics {
    /// Reads whose bytes were there.
    pub hits: u64,
    /// Reads that had to wait for the disk.
    pub misses: u64,
    /// Blocks that were read before anyone asked for them.
    pub prefetched: u64,
    /// Those of them that left before anyone did.
    pub prefetched_unused: u64,
    /// Blocks that left to make room.
    pub evictions: u64,
}

/// What a server is and does.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Clients connected at the moment.
    pub clients: u32,
    /// Requests answered since the start.
    pub requests: u64,
    /// Bytes read from and written to clients since the start.
    pub bytes_moved: u64,
    /// Bytes of blocks in the cache.
    pub cache_bytes: u64,
    /// Bytes of those of them that the disks do not have yet, in part or in full.
    pub dirty_bytes: u64,
    /// Bytes of buffers that collectives hold at the moment.
    pub collective_bytes: u64,
    /// For each disk: capacity and free bytes.
    pub disks: Vec<(u64, u64)>,
    /// Of the server that keeps the catalogue: the servers that files lie on, with the number of
    /// files of each.
    pub files: Vec<(ServerId, u64)>,
}

/// What the clients of a group tell one another.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum GroupMessage {
    /// I am this member.
    Join {
        /// The number of the group, so that strangers are not taken for members.
        group: u64,
        /// My rank.
        client: ClientId,
    },
    /// One step of an agreement among all members.
    Agree {
        /// Which agreement: they are numbered from 0.
        number: u64,
        /// Which step of it.
        round: u32,
        /// What I know so far and is meant for you or those behind you, by rank.
        values: Vec<(ClientId, u64)>,
        /// The least of the faults that I know of, in the order of the table: all members end with
        /// the same one.
        fault: Option<Fault>,
    },
    /// I am leaving because I am done.
    Leave,
    /// I take part in no further agreement.
    Broken {
        /// Why.
        fault: Fault,
    },
}
