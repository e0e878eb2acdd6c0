//! The one table of errors: what can go wrong between a client and the servers.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{ClientId, ServerId};

/// An error as it travels. Its text says what happened; [`Fault::help`] says what to do.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Error, Serialize, Deserialize)]
pub enum Fault {
    /// There is no file of this name.
    #[error("there is no file {name:?}")]
    NoSuchFile {
        /// The name.
        name: String,
    },
    /// There is already a file of this name.
    #[error("there is already a file {name:?}")]
    FileExists {
        /// The name.
        name: String,
    },
    /// The name cannot be one of a file.
    #[error("{name:?} cannot name a file: {cause}")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        cause: String,
    },
    /// There is no directory of this name, where one must be.
    #[error("there is no directory {name:?}")]
    NoSuchDirectory {
        /// The name.
        name: String,
    },
    /// The name is a file's, where a directory's must be.
    #[error("{name:?} is a file, not a directory")]
    NotADirectory {
        /// The name.
        name: String,
    },
    /// The name is a directory's, where a file's must be.
    #[error("{name:?} is a directory, not a file")]
    IsADirectory {
        /// The name.
        name: String,
    },
    /// The directory holds something.
    #[error("the directory {name:?} is not empty")]
    DirectoryNotEmpty {
        /// The name.
        name: String,
    },
    /// The access does not fit the file.
    #[error("the access does not fit the file: {cause}")]
    BadAccess {
        /// What does not fit.
        cause: String,
    },
    /// The request makes no sense to the server.
    #[error("the server refused the request: {cause}")]
    BadRequest {
        /// What is wrong with it.
        cause: String,
    },
    /// The two sides speak different versions.
    #[error("the client speaks version {client} of the protocol, the server {server}")]
    WrongVersion {
        /// The client's.
        client: u16,
        /// The server's.
        server: u16,
    },
    /// A disk is full.
    #[error("{server} has no space left: {cause}")]
    NoSpace {
        /// Whose disk.
        server: ServerId,
        /// Which disk, and what was written.
        cause: String,
    },
    /// Bytes of a file are not those that were written, and were not given out.
    #[error(
        "bytes {offset} to {} of {file:?} are damaged on {server}: {cause}",
        offset.saturating_add(*length)
    )]
    Corrupt {
        /// The name of the file.
        file: String,
        /// The first byte, in the file, of what is damaged.
        offset: u64,
        /// How many bytes cannot be told from the damaged ones.
        length: u64,
        /// Whose disk.
        server: ServerId,
        /// Which disk and which object.
        cause: String,
    },
    /// A disk failed or vanished.
    #[error("a disk of {server} failed: {cause}")]
    DiskFailed {
        /// Whose disk.
        server: ServerId,
        /// Which disk, what was attempted, and what the system said.
        cause: String,
    },
    /// A member of the collective has left before its end.
    #[error("{client} left in the middle of a collective: {cause}")]
    ClientLeft {
        /// Who.
        client: ClientId,
        /// What is known of why.
        cause: String,
    },
    /// A server has left.
    #[error("{server} has left: {cause}")]
    ServerLeft {
        /// Who.
        server: ServerId,
        /// What is known of why.
        cause: String,
    },
    /// The catalogue could not be read or changed.
    #[error("the catalogue failed: {cause}")]
    CatalogueFailed {
        /// What the store said.
        cause: String,
    },
    /// The connection or the memory of a client failed in an unforeseen way.
    #[error("a transfer failed: {cause}")]
    TransferFailed {
        /// What the transport said.
        cause: String,
    },
    /// The file ends before the bytes that were asked for.
    #[error("{file:?} has {bytes} bytes, which are fewer than were asked for")]
    PastEnd {
        /// The name of the file.
        file: String,
        /// Its size in bytes.
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
    /// The client that asked for a collective gave it up.
    #[error("the collective was cancelled by the client that asked for it")]
    Cancelled,
}

impl Fault {
    /// What the user can do about it, in one sentence.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NoSuchFile { .. } => "`unisono ls` shows the files there are",
            Self::FileExists { .. } => "choose another name, or remove the file first",
            Self::BadName { .. } => {
                "use parts of 1 to 255 bytes, 1024 in all, with / between them and no . or .. part"
            }
            Self::NoSuchDirectory { .. } => "make it first: `unisono mkdir -p DIRECTORY`",
            Self::NotADirectory { .. } => "name a directory; `unisono ls` shows what there is",
            Self::IsADirectory { .. } => "name a file, or say --recursive where a command has it",
            Self::DirectoryNotEmpty { .. } => "remove what is in it first: `unisono rm -r` does",
            Self::BadAccess { .. } => "state a pattern, record and size that cover the file",
            Self::BadRequest { .. } => "client and servers may be of different builds; update both",
            Self::WrongVersion { .. } => "run client and servers of the same release",
            Self::NoSpace { .. } => "free space in the data directories or add servers",
            Self::Corrupt { .. } => {
                "remove the file and put it again from a copy; if it recurs, replace that disk"
            }
            Self::DiskFailed { .. } => "look at the data directory named, then restart its server",
            Self::ClientLeft { .. } => "look at why that client ended; the others are unharmed",
            Self::ServerLeft { .. } => {
                "`unisono status` shows who runs; its log says why it ended (a client that stands \
                 still while others wait is let go)"
            }
            Self::CatalogueFailed { .. } => "look at the first data directory's file system",
            Self::PastEnd { .. } => {
                "ask for bytes that it has: another program may have made it shorter"
            }
            Self::MembersMissing { .. } => {
                "every member must make the call, with an empty part if it has nothing to move"
            }
            Self::CallsDiffer { .. } => {
                "all members must make the same collective calls in the same order"
            }
            Self::ServerStalled { .. } => {
                "look at that server's process and disks; a longer time-out waits longer"
            }
            Self::Cancelled => "another server's error, told before this one, is the reason",
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
