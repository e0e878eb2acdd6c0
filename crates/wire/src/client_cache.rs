//! Messages of caches at clients, and of their cooperation.
//!
//! A line is a part of one block of a file, or a whole one: it has
//! [`CacheRegistration::line_bytes`] bytes, fewer at the end of the file. Its data is the body of
//! the message.

use crate::request_id::RequestId;
use policy::Cooperation;
use serde::{Deserialize, Serialize};
use units::FileId;

/// Largest size of a line, in bytes.
pub const LINE_BYTES_MAX: u64 = 1 << 20;

/// Largest number of dropped lines in one request.
pub const DROPPED_LINES_MAX: usize = 256;

/// Name of a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct LineName {
    /// Number of the file, which must be open.
    pub file: FileId,
    /// Number of the line in the file.
    pub line: u64,
}

/// Cache that a client begins to use. All clients of a server use the same size of a line and the
/// same cooperation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CacheRegistration {
    /// Number of bytes of a line.
    pub line_bytes: u64,
    /// Cooperation of the caches.
    pub cooperation: Cooperation,
    /// Moves of an unused last copy.
    pub chances: u32,
    /// Number of lines that this server manages.
    pub global_lines: u32,
    /// Address at which other clients reach this one.
    pub address: String,
    /// Secret by which this client recognizes lines that were sent at a server's request.
    pub ticket: u64,
}

/// Request of a client with a cache.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CacheRequest {
    /// Begins to use a cache.
    Register(CacheRegistration),
    /// Reads a line. The reply is the line, or another client sends it ([`SentLine`]).
    Read {
        /// Line.
        line: LineName,
        /// Lines that the client has dropped since its last request.
        dropped: Vec<LineName>,
    },
    /// Writes bytes of a line. The reply comes when no other client has a copy of the line.
    Write {
        /// Line.
        line: LineName,
        /// First byte in the line.
        offset: u64,
        /// True if the client has a copy with the new bytes afterwards.
        keeps: bool,
        /// Lines that the client has dropped since its last request.
        dropped: Vec<LineName>,
    },
    /// Requests the right to write a line without asking, and the line if `fetches`. The reply
    /// comes when no other client has a copy of the line.
    Own {
        /// Line.
        line: LineName,
        /// True if the client does not have the line.
        fetches: bool,
        /// Lines that the client has dropped since its last request.
        dropped: Vec<LineName>,
    },
    /// Writes an owned line back, which ends the right to write it. Has no effect if the client is
    /// not the owner.
    WriteBack {
        /// Line.
        line: LineName,
        /// True if the client keeps its copy.
        keeps: bool,
    },
    /// Asks what to do with a clean line that is evicted. It comes along if it could go to the
    /// server's cache.
    Evict {
        /// Line.
        line: LineName,
        /// Moves that were left to the line, if another client had evicted it.
        chances: Option<u32>,
    },
    /// Waits until all earlier requests about a line have ended.
    Settle {
        /// Line.
        line: LineName,
    },
    /// Ends the use of a cache. Its lines are gone, and no command follows the reply.
    Withdraw,
}

/// Command of a server to a client with a cache. The client answers
/// all but [`CacheCommand::Store`] ([`CacheAnswer`]).
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CacheCommand {
    /// Sends a line to a reader.
    Send {
        /// Number of the answer.
        number: u64,
        /// Line.
        line: LineName,
        /// Place of the reader.
        reader: LineReader,
        /// True if this client must not keep the line.
        moves: bool,
    },
    /// Drops a line, which another client writes.
    Invalidate {
        /// Number of the answer.
        number: u64,
        /// Line.
        line: LineName,
    },
    /// Writes an owned line back, and keeps it. The line comes with the answer.
    WriteBack {
        /// Number of the answer.
        number: u64,
        /// Line.
        line: LineName,
    },
    /// Takes a line, the body, into the part of the cache that the server manages.
    Store {
        /// Line.
        line: LineName,
        /// Line that is dropped for it.
        replaces: Option<LineName>,
    },
    /// Expects a line that another client evicts.
    Expect {
        /// Number of the answer.
        answer: u64,
        /// Number of the move, which comes with the line.
        number: u64,
        /// Line.
        line: LineName,
        /// Moves that are left to it.
        chances: u32,
    },
    /// Answers, which says that all earlier commands are carried out.
    Confirm {
        /// Number of the answer.
        number: u64,
    },
}

/// Client that waits for a line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LineReader {
    /// Address of the client.
    pub address: String,
    /// Its secret.
    pub ticket: u64,
    /// Number of its request.
    pub id: RequestId,
}

/// Answer of a client to a [`CacheCommand`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CacheAnswer {
    /// Number of the command.
    pub number: u64,
    /// True if the client had the line.
    pub was_there: bool,
}

/// Line, the body, that a client sends to another.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SentLine {
    /// Line that the receiver asked a server for.
    Requested {
        /// Secret of the receiver.
        ticket: u64,
        /// Number of its request.
        id: RequestId,
        /// Line.
        line: LineName,
        /// True if the sender has kept no copy.
        is_last_copy: bool,
    },
    /// Last copy of a line that the sender evicts, which the receiver expects.
    Evicted {
        /// Secret of the receiver.
        ticket: u64,
        /// Number of the move.
        number: u64,
        /// Line.
        line: LineName,
    },
}

/// Client that takes an evicted line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LineTaker {
    /// Address of the client.
    pub address: String,
    /// Its secret.
    pub ticket: u64,
    /// Number of the move.
    pub number: u64,
}
