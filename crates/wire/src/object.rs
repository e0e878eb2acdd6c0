//! Requests of a server for copies that another server has of its part of mirrored files, or it has
//! of the other one's.

use crate::{FileRecord, FileSize};
use serde::{Deserialize, Serialize};
use units::{DiskId, FileId, ServerId};

/// Request of a server for a copy of its part of a file, at the server that has the copy. `file` is
/// the number of the file, and `disk` the number of the disk at both servers.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ObjectRequest {
    /// First request on a connection: names the sender. Earlier connections of that server end, so
    /// that no write that was sent before comes later.
    Hello {
        /// Number of the server that sends.
        server: ServerId,
    },
    /// Writes the body of the message, at most [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX) bytes.
    Write {
        /// Number of the file.
        file: FileId,
        /// Number of the disk.
        disk: DiskId,
        /// First byte in the object.
        offset: u64,
    },
    /// Reads bytes, as the body of the reply.
    Read {
        /// Number of the file.
        file: FileId,
        /// Number of the disk.
        disk: DiskId,
        /// First byte in the object.
        offset: u64,
        /// Number of bytes, at most [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX).
        length: u64,
    },
    /// Asks for the digest of bytes. The reply is [`Reply::Digests`](crate::Reply::Digests).
    Digest {
        /// Number of the file.
        file: FileId,
        /// Number of the disk.
        disk: DiskId,
        /// First byte in the object.
        offset: u64,
        /// Number of bytes, at most [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX).
        length: u64,
    },
    /// Waits until a copy is on stable storage.
    Sync {
        /// Number of the file.
        file: FileId,
        /// Number of disks of each server that the file uses.
        disks: u32,
    },
    /// Frees everything beyond the first bytes, durably.
    Truncate {
        /// Number of the file.
        file: FileId,
        /// Number of the disk.
        disk: DiskId,
        /// Number of bytes that stay.
        length: u64,
    },
    /// Asks for the length. The reply is [`Reply::Length`](crate::Reply::Length).
    Length {
        /// Number of the file.
        file: FileId,
        /// Number of the disk.
        disk: DiskId,
    },
    /// Says that the sender compares or writes a whole copy anew, whatever it lacks. The reply is
    /// [`Reply::LostCopy`](crate::Reply::LostCopy) if the copy was lost with its directory. Until
    /// [`ObjectRequest::Renewed`] it is not read.
    Renewing {
        /// Number of the file.
        file: FileId,
    },
    /// Says that a copy that was lost is whole again, and on stable storage.
    Renewed {
        /// Number of the file.
        file: FileId,
    },
    /// Says that the sender has lost its copy of the receiver's part of a file. The reply comes
    /// when the receiver has recorded that the copy is behind.
    LostCopy {
        /// Record of the file.
        record: Box<FileRecord>,
    },
    /// Keeps, with a copy, a size that the sender keeps of the file: no data shows it.
    KeepSize {
        /// Number of the file.
        file: FileId,
        /// Size that it has, or had and may have exceeded since.
        size: FileSize,
    },
    /// Asks for the size that is kept with a copy, or the least one. The reply is
    /// [`Reply::Size`](crate::Reply::Size).
    KeptSize {
        /// Number of the file.
        file: FileId,
    },
    /// Combines the body of the message, at most [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX) bytes,
    /// with bytes of the object with parity, by exclusive or. It is the difference between what
    /// the sender had and what it has.
    Combine {
        /// Number of the file.
        file: FileId,
        /// Number of the disk.
        disk: DiskId,
        /// First byte in the object.
        offset: u64,
        /// Size of the file, as far as the change shows it.
        size: FileSize,
    },
    /// Asks for the exclusive or of a piece of what the receiver and further servers hold of a row.
    /// It is the body of the reply. While the receiver asks the next one, its piece does not
    /// change.
    Gather(Box<RowRequest>),
    /// Combines what the receiver holds of a row with the body, if there is one, and has further
    /// servers do the same. The last one stores the result as parity. Until it has, no piece
    /// changes.
    Encode(Box<RowRequest>),
    /// Asks for the size of a file, as far as the receiver has data or parity of it, or keeps
    /// sizes. The reply is [`Reply::Size`](crate::Reply::Size).
    Reach {
        /// Record of the file.
        record: Box<FileRecord>,
    },
    /// Says how far the data of the sender reaches that the receiver has parity of. The reply comes
    /// when that is on stable storage.
    Reached {
        /// Number of the file.
        file: FileId,
        /// Size of the file, as far as that data shows it.
        size: FileSize,
    },
    /// Frees the parity of the rows beyond the end of a file that was cut, unless the receiver has
    /// heard of that cut before. The reply is [`Reply::Length`](crate::Reply::Length) with what it
    /// has beyond that end.
    CutParity {
        /// Record of the file.
        record: Box<FileRecord>,
        /// Size that the file has since the cut.
        size: FileSize,
    },
    /// Asks for the digests of a piece of what the receiver and further servers hold of a row, the
    /// parity first. The reply is [`Reply::Digests`](crate::Reply::Digests). While the receiver
    /// asks the next one, its piece does not change.
    RowDigests(Box<RowRequest>),
}

/// Piece of a row, and the servers that combine it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RowRequest {
    /// Record of the file.
    pub record: FileRecord,
    /// Number of the row.
    pub row: u64,
    /// First byte of the piece in each block.
    pub offset: u64,
    /// Number of bytes, at most [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX).
    pub length: u64,
    /// Places of the servers that follow the receiver, in order.
    pub rest: Vec<ServerId>,
}
