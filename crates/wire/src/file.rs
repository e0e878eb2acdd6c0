//! Requests for files at one of their servers: opening, sizes, times.

use crate::{FileRecord, FileSize, ScrubRequest};
use policy::{GatheredWrite, Protection};
use serde::{Deserialize, Serialize};
use units::{FileId, Timestamp};

/// Request for a file at one of its servers.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum FileRequest {
    /// Opens a file at this server for the rest of the connection. The reply is its size.
    Open(FileRecord),
    /// Undoes [`FileRequest::Open`].
    Close {
        /// Number of the file.
        file: FileId,
        /// Size that the catalogue has; the smallest size if the client does not know it.
        recorded: FileSize,
    },
    /// Sets the size of an open file at this server, if it is greater than the known one
    /// ([`FileSize`]). The reply comes after the bytes beyond it are freed.
    Resize {
        /// Number of the file, which must be open.
        file: FileId,
        /// New size; the smallest size to only ask for the known one.
        size: FileSize,
    },
    /// Stores the size of an open file durably, since it does not follow from the file's data.
    KeepSize {
        /// Number of the file.
        file: FileId,
    },
    /// Sets the time of the last change of an open file at this server.
    SetModified {
        /// Number of the file, which must be open.
        file: FileId,
        /// Time of the last change.
        modified: Timestamp,
    },
    /// Asks for the size and the time of a file, open or not, as far as this server knows them.
    Measure(FileRecord),
    /// Asks for the sizes and times of the files that are open at this server.
    OpenSizes {
        /// File to begin after, in the order of file numbers.
        after: Option<FileId>,
    },
    /// Asks for the buffer statistics of a file since it was opened.
    Buffers {
        /// Number of the file, which must be open.
        file: FileId,
    },
    /// Frees all data at this server of a file without a name, once no client has it open. The
    /// reply is [`crate::Reply::InUse`] if one has.
    Drop {
        /// Number of the file.
        file: FileId,
        /// Protection of the file, which says whether there is a copy here.
        protection: Protection,
    },
    /// Asks for a lease of an open file: the right to gather writes of it. The reply is
    /// [`crate::Reply::Lease`]. The server recalls the lease ([`crate::Message::Recall`]) before it
    /// answers a request of another client that must see these writes.
    Lease {
        /// Number of the file.
        file: FileId,
        /// Clock of the stamps. All clients with a lease of the file have the same.
        clock: u64,
        /// Present time by this clock, in ns.
        since: u64,
    },
    /// Writes what the client has gathered at this server. The data is the body of the message: the
    /// bytes of the writes, one after the other.
    WriteGathered(Box<WriteGathered>),
    /// Reads, verifies and repairs a part of a file, open or not. The reply is
    /// [`Reply::Scrubbed`](crate::Reply::Scrubbed).
    Scrub(Box<ScrubRequest>),
    /// Sets the protection of a file, open or not, to that of the record. With a copy, the reply
    /// comes when it is recorded that the copy is behind: it is written then. Without one, it comes
    /// when nothing is written to the copy any more.
    Protect(Box<FileRecord>),
    /// Removes the copy that this server has of another one's part of a file, which is not
    /// protected any more.
    DropCopy {
        /// Number of the file.
        file: FileId,
    },
    /// Asks server 0 for the record of an ordinary file, on which servers work at its own path. It
    /// has one record while a client has it open, and is not in the catalogue. The reply is
    /// [`Reply::Entry`](crate::Reply::Entry).
    NumberInPlace {
        /// Absolute path, without links.
        path: String,
        /// Number of the file in its file system, as the client sees it.
        inode: u64,
        /// Bytes in a block, if it has no record yet.
        block_bytes: u64,
    },
}

/// Request of a client with a lease to carry out gathered writes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WriteGathered {
    /// Number of the file.
    pub file: FileId,
    /// Time in ns that the stamps of `writes` are relative to.
    pub since: u64,
    /// Writes in the order in which they were made, at most [`GATHERED_WRITES_MAX`], each within
    /// one block. None for a client that has written nothing, or has lost it.
    pub writes: Vec<GatheredWrite>,
    /// Time in ns: the client has no other write up to it.
    pub until: u64,
    /// True if the client returns the lease, once the writes are carried out.
    pub returns: bool,
}

/// Maximum number of writes in one [`WriteGathered`].
pub const GATHERED_WRITES_MAX: usize = 1 << 14;

/// Maximum number of bytes of a [`WriteGathered`].
pub const GATHERED_BYTES_MAX: u64 = 1 << 20;
