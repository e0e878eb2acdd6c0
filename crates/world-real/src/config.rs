//! Configuration of a node, and the errors of opening one.

use crate::wire_protection::WireProtection;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;
use world::{Address, RecordTable};

/// Configuration of a node: its address and its directories.
#[derive(Clone, Default)]
pub struct NodeConfig {
    /// Address to listen on: `unix:/path` or `tcp:host:port` (port 0 lets the system choose one).
    /// `None` for a node that only connects.
    pub listen: Option<Address>,
    /// Disks of the node; empty on a client.
    pub disks: Vec<DiskConfig>,
    /// Tables of records that the node keeps, each with its directory, which must exist. Another
    /// table is empty and cannot be changed.
    pub records: Vec<(RecordTable, PathBuf)>,
    /// Key that nodes share. Required for TCP, unused over Unix sockets.
    pub key: Option<[u8; 32]>,
    /// Least protection of the TCP connections of this node; each has the stronger one of its two
    /// ends. `None`: [`WireProtection::default_at`] the address to listen on, and the peer's choice
    /// for a node that only connects.
    pub wire: Option<WireProtection>,
    /// Size of the memory that this process shares with others on its machine for zero-copy
    /// lending, in bytes. The first node of a process decides. A node with 0 lends nothing and maps
    /// what others lend.
    pub lent_bytes_max: u64,
    /// Time for which no request to a disk, or to the records, ends, after which its requests fail
    /// until one does; `None` to wait without end.
    pub hang_limit: Option<Duration>,
    /// Limits on what peers may make this node hold; `None` for a node that trusts its peers. Two
    /// nodes with limits must not send one another more than a connection buffers: each reads only
    /// while the other does.
    pub limits: Option<ReceiveLimits>,
}

/// Limits of a node on what its peers may make it hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveLimits {
    /// Largest body of a message, in bytes; a larger one ends its connection.
    pub body_bytes_max: u64,
    /// Bytes of all frames that arrive or wait to be received, those of at most 64 KiB not counted.
    /// A single frame may exceed it.
    pub held_bytes_max: u32,
    /// Time for which a frame that does not arrive may keep others waiting for room. Then its peer
    /// is disconnected.
    pub stall_timeout: Duration,
}

/// Configuration of a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskConfig {
    /// Directory that stands for the disk; it must exist.
    pub directory: PathBuf,
    /// Number that no other disk has. An object that comes with its checksums from another disk is
    /// reported as damaged. 0: unknown; objects of any disk are accepted, and any disk accepts
    /// objects written here.
    pub identity: u64,
    /// Number of the present generation of the instance: objects that change get it, and an object
    /// with an earlier number than the disk's log is reported as an older copy. 0: unknown.
    pub generation: u32,
    /// Cause of the loss of a disk that is lost. Its directory, which may be missing, is not
    /// opened. The disk has no objects: reads fail with this cause, and writes fail too.
    pub lost: Option<String>,
    /// Number of the disk in the memory of this process ([`use_memory`](crate::use_memory)), where
    /// its objects are instead of in the directory. Then identity, generation and options do not
    /// matter.
    pub in_memory: Option<u32>,
    /// Options of use.
    pub options: DiskOptions,
}

impl DiskConfig {
    /// A disk in this directory, of which nothing else is known, with the usual options.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        let (directory, options) = (directory.into(), DiskOptions::default());
        Self { directory, identity: 0, generation: 0, lost: None, in_memory: None, options }
    }
}

/// Options of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskOptions {
    /// True to bypass the page cache (O_DIRECT): for devices that many clients share, whose servers
    /// do their own caching.
    pub direct: bool,
    /// True to keep a checksum of every 64 KiB and verify it before data is returned. Without this
    /// option, an object loses its checksums when it is written.
    pub checksums: bool,
    /// True if direct writes preallocate space for the writes that follow, so that objects that
    /// grow in turns have few extents. The page cache needs no preallocation: it delays allocation.
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
            .field("wire", &self.wire)
            .field("lent_bytes_max", &self.lent_bytes_max)
            .field("hang_limit", &self.hang_limit)
            .field("limits", &self.limits)
            .finish()
    }
}

/// Error of opening a node.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum OpenError {
    /// The form of the address is unknown.
    #[error("{address} is not an address: {cause}; write unix:/path or tcp:host:port")]
    BadAddress {
        /// Given address.
        address: Address,
        /// Defect of the address.
        cause: String,
    },
    /// The node is to listen beyond this machine and has no key.
    #[error(
        "cannot listen on {address} without a key: any user who reaches the address could \
             connect"
    )]
    KeyRequired {
        /// Address to listen on.
        address: Address,
    },
    /// The processor lacks what the protection of TCP needs.
    #[error(
        "cannot protect connections to {address} ({protection}): this processor has no \
             instructions for AES-GCM"
    )]
    NotProtected {
        /// Address to listen on.
        address: Address,
        /// Protection that was asked for, or is the default.
        protection: WireProtection,
    },
    /// The address is in use, or the system refused it.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// Address to listen on.
        address: Address,
        /// Error of the system.
        cause: String,
    },
    /// The system refused a resource that every node needs.
    #[error("cannot start a node: {cause}")]
    System {
        /// Error of the system.
        cause: String,
    },
    /// The file system of a directory supports no direct I/O.
    #[error("the file system of {directory:?} does not support O_DIRECT: {cause}")]
    NotDirect {
        /// Directory of the disk.
        directory: PathBuf,
        /// Error of the system.
        cause: String,
    },
    /// Stored records are damaged.
    #[error("the records in {directory:?} are damaged: {cause}")]
    DamagedRecords {
        /// Directory of the records.
        directory: PathBuf,
        /// Kind of damage.
        cause: String,
    },
    /// A directory cannot be used.
    #[error("cannot use {directory:?} as a place for {purpose}: {cause}")]
    Directory {
        /// Directory.
        directory: PathBuf,
        /// Intended use of the directory.
        purpose: &'static str,
        /// Error of the system.
        cause: String,
    },
}

/// Parsed address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Endpoint {
    /// Path of a socket file.
    Unix(PathBuf),
    /// `host:port`.
    Tcp(String),
}

impl Endpoint {
    /// Parses `address`; the error names the defect.
    pub(crate) fn parse(address: &Address) -> Result<Self, String> {
        match address.0.split_once(':') {
            Some(("unix", path)) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(("unix", _)) => Err("the path of a socket must be absolute".into()),
            Some(("tcp", host)) if host.contains(':') => Ok(Self::Tcp(host.into())),
            Some(("tcp", _)) => Err("it has no port".into()),
            _ => Err("it begins with neither unix: nor tcp:".into()),
        }
    }
}
