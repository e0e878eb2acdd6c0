//! What a node needs to know to begin, and why it may not begin.

use std::path::PathBuf;
use thiserror::Error;
use world::{Address, Shelf};

/// What makes a node: where it listens, and where it keeps things.
#[derive(Clone, Default)]
pub struct NodeConfig {
    /// `unix:/path` or `tcp:host:port` (port 0 lets the system choose one); `None` for a node
    /// that only connects.
    pub listen: Option<Address>,
    /// The disks; none on a client.
    pub disks: Vec<DiskConfig>,
    /// The shelves of records that it has, and the directory of each, which must exist.
    pub records: Vec<(Shelf, PathBuf)>,
    /// The secret that nodes share. Required for TCP, unused over Unix sockets.
    pub key: Option<[u8; 32]>,
    /// How much of its memory the process of this node shares with others on its machine, so that
    /// they see in place what it lends them, in bytes; the first node of a process decides. A node
    /// with 0 sees what others lend.
    pub lent_bytes_max: u64,
}

/// What makes a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskConfig {
    /// The directory that stands for it, which must exist.
    pub directory: PathBuf,
    /// A number that no other disk has: an object that was brought here from another disk, with its
    /// checksums, is damage. 0 where that is not known: then objects of any disk are taken, and
    /// what is written may be taken by any.
    pub identity: u64,
    /// How it is used.
    pub options: DiskOptions,
}

/// How a disk is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskOptions {
    /// Whether data goes past the page cache (O_DIRECT): for devices that many clients share, whose
    /// servers keep what is worth keeping themselves.
    pub direct: bool,
    /// Whether every 64 KiB have a checksum, verified before data is given out. Without, an object
    /// loses the checksums that it has when it is written.
    pub checksums: bool,
    /// Whether writes past the page cache take room for those that follow, so that objects which
    /// grow in turns lie in long pieces. The page cache sees to that itself.
    pub preallocate: bool,
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self { direct: false, checksums: true, preallocate: true }
    }
}

impl std::fmt::Debug for NodeConfig {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("NodeConfig")
            .field("listen", &self.listen)
            .field("disks", &self.disks)
            .field("records", &self.records)
            .field("key", &self.key.map(|_| "secret"))
            .field("lent_bytes_max", &self.lent_bytes_max)
            .finish()
    }
}

/// Why a node could not begin.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum OpenError {
    /// The address is not of a known form.
    #[error("{address} is no address: {cause}; write unix:/path or tcp:host:port")]
    BadAddress {
        /// What was given.
        address: Address,
        /// What is wrong with it.
        cause: String,
    },
    /// The node was told to listen beyond this machine without a key.
    #[error("cannot listen on {address} without a key: anyone who reaches it could use it")]
    KeyRequired {
        /// Where it was told to listen.
        address: Address,
    },
    /// The address is in use, or the system refused it.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// Where.
        address: Address,
        /// What the system said.
        cause: String,
    },
    /// The system refused something that every node needs.
    #[error("cannot begin a node: {cause}")]
    System {
        /// What the system said.
        cause: String,
    },
    /// The file system of a directory cannot move data past the page cache.
    #[error("the file system of {directory:?} does not let data past the page cache: {cause}")]
    NotDirect {
        /// Which.
        directory: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// Records are not what was written there.
    #[error("the records in {directory:?} are damaged: {cause}")]
    DamagedRecords {
        /// Which.
        directory: PathBuf,
        /// What is wrong with them.
        cause: String,
    },
    /// A directory could not be used.
    #[error("cannot use {directory:?} as a place for {purpose}: {cause}")]
    Directory {
        /// Which.
        directory: PathBuf,
        /// What for.
        purpose: &'static str,
        /// What the system said.
        cause: String,
    },
}

/// An address, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Endpoint {
    /// A socket file.
    Unix(PathBuf),
    /// `host:port`.
    Tcp(String),
}

impl Endpoint {
    /// Takes `address` apart; the error says what is wrong with it.
    pub(crate) fn parse(address: &Address) -> Result<Self, String> {
        match address.0.split_once(':') {
            Some(("unix", path)) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(("unix", _)) => Err("the path of a socket must be absolute".into()),
            Some(("tcp", host)) if host.contains(':') => Ok(Self::Tcp(host.into())),
            Some(("tcp", _)) => Err("there is no port".into()),
            _ => Err("it names no kind of network".into()),
        }
    }
}
