//! Requests for a server as a whole.

use policy::Unprotected;
use serde::{Deserialize, Serialize};
use units::{FileId, ServerId};

/// Request for a server as a whole.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ServerRequest {
    /// Asks for the status of the server.
    Status,
    /// Stops the server: it finishes active requests, writes all data back, and ends.
    Stop,
    /// Asks the server to ping the clients that it waits for, and to disconnect those that are
    /// silent. Its other requests may wait for them.
    Probe {
        /// Silence after which a client counts as stopped, in milliseconds.
        silence_ms: u64,
    },
    /// Asks for the copy of the catalogue at this server, in the order of the keys of its records.
    /// The reply is [`Reply::CatalogueCopy`](crate::Reply::CatalogueCopy).
    CatalogueCopy {
        /// Key to begin after.
        after: Option<u64>,
    },
    /// Asks for the protected files of which something at this server is not protected now. The
    /// reply is [`crate::Reply::Unprotected`].
    Unprotected {
        /// File to begin with, in the order of file numbers.
        from: FileId,
        /// Maximum number of files in the reply. The server may have a smaller one.
        count: u32,
    },
}

/// Protected files of which something at a server is not protected now.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct UnprotectedFiles {
    /// Files in the order of their numbers.
    pub files: Vec<(FileId, Unprotected)>,
    /// True if more files follow.
    pub more: bool,
    /// False while the server does not know yet what its new data directories lack, and if nothing
    /// may be changed because directories are lost.
    pub is_all_known: bool,
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
    /// Bytes that each server has of protected files, as far as the catalogue knows their sizes.
    /// Only the catalogue's server reports it.
    pub protected_parts: Vec<(ServerId, u64)>,
    /// Servers that have a copy of the catalogue with its last change. Only the catalogue's server
    /// reports them.
    pub copies: Vec<ServerId>,
    /// Servers of whose parts of mirrored files some copies may be behind. Only the catalogue's
    /// server reports them.
    pub behind: Vec<ServerId>,
    /// Number of mirrored files of whose part at this server the copy may be behind.
    pub files_behind: u64,
    /// Number of damaged ranges of mirrored files that were repaired since the start.
    pub repaired: u64,
    /// Refill of data directories that took the place of lost ones.
    pub refill: RefillStatus,
    /// Processor time since the start of the server.
    pub processor: ProcessorUse,
}

/// Processor time of a server since its start: of all its threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ProcessorUse {
    /// Time in the program itself, in nanoseconds.
    pub user_ns: u64,
    /// Time in the operating system, in nanoseconds.
    pub system_ns: u64,
}

/// State of the data directories of a server that took the place of lost ones, and are filled again
/// from copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RefillStatus {
    /// Number of disks of which it is not known yet what they lack.
    pub unlisted_disks: u32,
    /// Number of files of which something is still to be filled.
    pub files: u64,
    /// Bytes of these files that are still to be filled, as far as the catalogue knows their sizes.
    pub bytes: u64,
    /// Bytes that were filled since the start of the server.
    pub filled_bytes: u64,
    /// Time since the start of the server, in milliseconds.
    pub elapsed_ms: u64,
    /// Number of files that have lost bytes, since there is no copy that is sure to have them.
    pub lost_files: u64,
}
