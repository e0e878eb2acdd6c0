//! Table of the errors between clients and servers, with their messages and help texts.
//!
//! Invariant: members of a group that know different faults agree on the smallest one, in the order
//! of the table.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{ClientId, ServerId};

/// Error as it is sent. Its text describes the failure; [`Fault::help`] tells what to do.
// Sent, pinned by wire/tests/pinned_bytes.rs. A new fault goes before `Cancelled`, since members
// of a group agree on the smallest fault. That changes the bytes of `Cancelled`, so it needs a new
// `PROTOCOL_VERSION`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Error, Serialize, Deserialize)]
pub enum Fault {
    /// No file has this name.
    #[error("there is no file {name:?}")]
    NoSuchFile {
        /// Name that was requested.
        name: String,
    },
    /// A file with this name exists already.
    #[error("there is already a file {name:?}")]
    FileExists {
        /// Name that was requested.
        name: String,
    },
    /// The name is not valid.
    #[error("{name:?} cannot name a file: {cause}")]
    BadName {
        /// Name that was requested.
        name: String,
        /// Reason for the refusal.
        cause: String,
    },
    /// No directory has this name.
    #[error("there is no directory {name:?}")]
    NoSuchDirectory {
        /// Name that was requested.
        name: String,
    },
    /// The name is that of a file, but a directory is needed.
    #[error("{name:?} is a file, not a directory")]
    NotADirectory {
        /// Name that was requested.
        name: String,
    },
    /// The name is that of a directory, but a file is needed.
    #[error("{name:?} is a directory, not a file")]
    IsADirectory {
        /// Name that was requested.
        name: String,
    },
    /// The directory is not empty.
    #[error("the directory {name:?} is not empty")]
    DirectoryNotEmpty {
        /// Name that was requested.
        name: String,
    },
    /// The access does not fit the file.
    #[error("the access does not fit the file: {cause}")]
    BadAccess {
        /// Mismatch of access and file.
        cause: String,
    },
    /// The request is not valid.
    #[error("the server refused the request: {cause}")]
    BadRequest {
        /// Reason for the refusal.
        cause: String,
    },
    /// Client and server have different versions of the protocol.
    #[error("the client has version {client} of the protocol, and the server has version {server}")]
    WrongVersion {
        /// Version of the client.
        client: u16,
        /// Version of the server.
        server: u16,
    },
    /// A disk is full.
    #[error("{server} has no space left: {cause}")]
    NoSpace {
        /// Server of the disk.
        server: ServerId,
        /// Disk, and data that was written.
        cause: String,
    },
    /// Bytes of a file do not match their checksum. They were not delivered.
    #[error(
        "bytes {offset} to {} of {file:?} are damaged on {server}: {cause}",
        offset.saturating_add(*length)
    )]
    Corrupt {
        /// Name of the file.
        file: String,
        /// First damaged byte, as an offset in the file.
        offset: u64,
        /// Number of bytes that share the checksum of the damaged ones.
        length: u64,
        /// Server of the disk.
        server: ServerId,
        /// Disk and object.
        cause: String,
    },
    /// A disk failed or is gone.
    #[error("a disk of {server} failed: {cause}")]
    DiskFailed {
        /// Server of the disk.
        server: ServerId,
        /// Disk, operation that was attempted, and error of the system.
        cause: String,
    },
    /// A member of the collective disconnected before its end.
    #[error("{client} disconnected during a collective: {cause}")]
    ClientLeft {
        /// Client that disconnected.
        client: ClientId,
        /// Reason, as far as it is known.
        cause: String,
    },
    /// A server disconnected.
    #[error("{server} disconnected: {cause}")]
    ServerLeft {
        /// Server that disconnected.
        server: ServerId,
        /// Reason, as far as it is known.
        cause: String,
    },
    /// The catalogue could not be read or changed.
    #[error("the catalogue failed: {cause}")]
    CatalogueFailed {
        /// Error of the record store.
        cause: String,
    },
    /// The connection or the memory of a client failed in an unexpected way.
    #[error("a transfer failed: {cause}")]
    TransferFailed {
        /// Error of the transport.
        cause: String,
    },
    /// The request goes past the end of the file.
    #[error("the request goes past the end of {file:?}, which has {bytes} bytes")]
    PastEnd {
        /// Name of the file.
        file: String,
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// Some members of a group did not join a call in which the others wait.
    #[error(
        "{} did not join {call}, in which the other members wait (waited {} s)",
        ranks(.missing),
        seconds(*.waited_ms)
    )]
    MembersMissing {
        /// Ranks of the missing members, ascending.
        missing: Vec<ClientId>,
        /// Call that the others are in.
        call: String,
        /// Time that was waited, in milliseconds.
        waited_ms: u64,
    },
    /// Members of a group made different calls.
    #[error("the members of the group made different calls: {cause}")]
    CallsDiffer {
        /// Two of the members, and their calls.
        cause: String,
    },
    /// A server does not answer, though its connection is there.
    #[error("{server} has not answered for {} s", seconds(*.waited_ms))]
    ServerStalled {
        /// Server that does not answer.
        server: ServerId,
        /// Time that was waited, in milliseconds.
        waited_ms: u64,
    },
    /// The counter of a group cannot be as large as its new value.
    #[error("the counter of the group is {value}; with {add} more it would not fit 64 bits")]
    CounterOverflow {
        /// Value of the counter.
        value: u64,
        /// Number that was to be added.
        add: u64,
    },
    /// Another member of the group holds a lock for longer than the request may wait.
    #[error(
        "rank {} holds a lock of bytes {start} to {end}, for which the request waited {} s",
        .holder.0,
        seconds(*.waited_ms)
    )]
    LockTimedOut {
        /// Member that holds the lock.
        holder: ClientId,
        /// First byte of its range.
        start: u64,
        /// One past the last byte.
        end: u64,
        /// Time that was waited, in milliseconds.
        waited_ms: u64,
    },
    /// Nothing can be changed: the instance was started without some of its data.
    #[error("the instance was started with --degraded, so nothing in it can be changed")]
    ReadOnly,
    /// The name is that of an entry that only a mount knows how to use.
    #[error("{name:?} is {kind}, not a file")]
    IsSpecial {
        /// Name that was requested.
        name: String,
        /// Kind of entry, with its article.
        kind: String,
    },
    /// Data that clients had written may be lost, with a server that had not stored it.
    #[error("what was written and no sync had stored may be lost: {cause}")]
    WritesLost {
        /// Server or file, and what happened.
        cause: String,
    },
    /// Records cannot be selected so.
    #[error("the records cannot be selected: {cause}")]
    BadSelection {
        /// Mismatch of records, condition, key, file and memory.
        cause: String,
    },
    /// The client that made the request cancelled it.
    #[error("the client that made the request cancelled it")]
    Cancelled,
}

impl Fault {
    /// Advice for the user, in one sentence.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NoSuchFile { .. } => "`unisono ls` lists the files",
            Self::FileExists { .. } => "choose another name, or remove the file first",
            Self::BadName { .. } => {
                "use parts of 1 to 255 bytes, 4096 in all, separated by /, none of them . or .."
            }
            Self::NoSuchDirectory { .. } => "make it first: `unisono mkdir -p DIRECTORY`",
            Self::NotADirectory { .. } => {
                "name a directory; `unisono ls` lists directories and files"
            }
            Self::IsADirectory { .. } => {
                "name a file, or use --recursive if the command has this \
                                          option"
            }
            Self::DirectoryNotEmpty { .. } => {
                "remove the entries of the directory first, for example with `unisono rm -r`"
            }
            Self::BadAccess { .. } => "choose a pattern, record and size that fit the file",
            Self::BadRequest { .. } => "install the same build of client and servers",
            Self::WrongVersion { .. } => "use client and servers of the same release",
            Self::NoSpace { .. } => {
                "remove files, or free space in the data directories, or add servers"
            }
            Self::Corrupt { .. } => {
                "put the file again from a copy, or put back the directory that the cause names; \
                 if it recurs, replace that disk"
            }
            Self::DiskFailed { .. } => {
                "check the data directory named in the cause, then restart its server"
            }
            Self::ClientLeft { .. } => {
                "check why that client ended; the other clients can continue"
            }
            Self::ServerLeft { .. } => {
                "`unisono status` lists the servers that run; the log of the server has the reason \
                 (servers disconnect clients that stall while others wait for their buffers)"
            }
            Self::CatalogueFailed { .. } => "check the file system of the first data directory",
            Self::PastEnd { .. } => "open the file again: another program has made it shorter",
            Self::MembersMissing { .. } => {
                "every member must make the call, with an empty part if it has nothing to move"
            }
            Self::CallsDiffer { .. } => {
                "all members must make the same collective calls in the same order"
            }
            Self::ServerStalled { .. } => {
                "check that server's process and disks, or set a longer time-out"
            }
            Self::CounterOverflow { .. } => "set the counter to a smaller value first",
            Self::LockTimedOut { .. } => {
                "check that this member releases its locks, or set a longer time-out"
            }
            Self::ReadOnly => {
                "copy what is left to another instance, or restore the lost directories and start \
                 without --degraded"
            }
            Self::IsSpecial { .. } => "use it in a mount of the instance (`unisono mount DIR`)",
            Self::WritesLost { .. } => {
                "write again what was written since the last sync; this error comes once"
            }
            Self::BadSelection { .. } => {
                "correct the type of the records, the condition, the key or the module, or give \
                 more memory"
            }
            Self::Cancelled => "see the error that was reported first",
            Self::TransferFailed { .. } => "repeat the transfer; if it fails again, report it",
        }
    }
}

/// Ranks that are named in an error; of more, their number is told.
const RANKS_NAMED_MAX: usize = 8;

/// "rank 3", or "ranks 1, 2 and 3".
fn ranks(ranks: &[ClientId]) -> String {
    let named: Vec<String> =
        ranks.iter().take(RANKS_NAMED_MAX).map(|rank| rank.0.to_string()).collect();
    let more = ranks.len().saturating_sub(RANKS_NAMED_MAX);
    match (&named[..], more) {
        ([], _) => "no rank".to_owned(),
        ([one], 0) => format!("rank {one}"),
        ([first @ .., last], 0) => format!("ranks {} and {last}", first.join(", ")),
        (all, more) => format!("ranks {} and {more} more", all.join(", ")),
    }
}

/// Seconds with one digit behind the point, without it when that is 0.
fn seconds(milliseconds: u64) -> String {
    let (whole, tenths) = (milliseconds / 1000, milliseconds % 1000 / 100);
    if tenths == 0 { whole.to_string() } else { format!("{whole}.{tenths}") }
}
