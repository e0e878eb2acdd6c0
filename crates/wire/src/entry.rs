//! Entries of the catalogue: directories and files, by name.

use crate::Fault;
use policy::{BYTES_MAX, Buffering, Pool, Protection, Stripe};
use serde::{Deserialize, Serialize};
use units::{FileId, ServerId, Timestamp};

/// Entry of the catalogue.
///
/// A name is a path from the root with `/` between its parts and none at either end. The name of
/// the root is empty.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Name of the entry.
    pub name: String,
    /// Owner and time of its creation.
    pub made: Made,
    /// Time of the last change of a file's data or size. Of a directory, that of its creation or,
    /// once a mount has set attributes, of the last change of its entries.
    pub modified: Timestamp,
    /// Kind of entry.
    pub kind: EntryKind,
}

/// Kind of an entry.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum EntryKind {
    /// Directory, with the defaults of new files in it.
    Directory(FileDefaults),
    /// File.
    File(FileRecord),
    /// Entry that only a mount knows how to use.
    Special(Special),
}

/// Entry without data at the servers, which the system of a mount carries out.
// Stored and sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Special {
    /// Symbolic link.
    Link {
        /// Path that it stands for, as it was written.
        target: String,
    },
    /// Named pipe.
    Fifo,
    /// Socket.
    Socket,
}

impl Special {
    /// Kind, as a message names it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Link { .. } => "a symbolic link",
            Self::Fifo => "a named pipe",
            Self::Socket => "a socket",
        }
    }
}

/// Defaults of new files in a directory, for values that the creator leaves out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FileDefaults {
    /// Bytes in a block.
    pub block_bytes: Option<u64>,
    /// Largest number of servers of a file.
    pub servers: Option<u32>,
    /// Servers that a file can use; empty for all servers of the instance.
    pub pool: Vec<ServerId>,
    /// Server of each block, repeated; it replaces the pool. If empty, blocks go to all servers in
    /// turn.
    pub map: Vec<ServerId>,
    /// Buffering at each server.
    pub buffering: Buffering,
    /// Protection against the loss of a server, if the directory says something.
    pub protection: Option<Protection>,
}

/// Owner and time of a creation, as the creating client states them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Made {
    /// User id of the owner.
    pub owner: u32,
    /// Seconds since the start of 1970.
    pub at_s: u64,
}

/// Record of a file: all that a server must know to serve it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileRecord {
    /// Number of the file, never used twice in an instance.
    pub file: FileId,
    /// Name when the record was sent. The file may have been renamed since.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of times that the file was cut ([`FileSize`]).
    pub cuts: u64,
    /// Mapping from blocks to servers and their disks.
    pub stripe: Stripe,
    /// Servers of the instance that the stripe numbers.
    pub pool: Pool,
    /// Buffering at each server: as at the creation, or as the last client that opened it asked.
    pub buffering: Buffering,
    /// Protection against the loss of a server.
    pub protection: Protection,
}

/// Size of a file. Of two sizes of a file the greater one is valid.
///
/// Invariant: a size after a cut is greater than all sizes before it. With equal cuts, the longer
/// size is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct FileSize {
    /// Number of times that the file was made shorter.
    pub cuts: u64,
    /// Size in bytes.
    pub bytes: u64,
}

impl FileSize {
    /// Refuses a size above [`BYTES_MAX`].
    pub fn validate(&self) -> Result<(), Fault> {
        if self.bytes > BYTES_MAX {
            let cause = format!("a file has at most {BYTES_MAX} bytes, not {}", self.bytes);
            return Err(Fault::BadRequest { cause });
        }
        Ok(())
    }
}

impl Made {
    /// Time of the creation.
    pub fn at(&self) -> Timestamp {
        Timestamp::from_seconds(self.at_s)
    }
}

impl Entry {
    /// Returns the record, if the entry is a file.
    pub fn file(&self) -> Option<&FileRecord> {
        match &self.kind {
            EntryKind::File(record) => Some(record),
            EntryKind::Directory(_) | EntryKind::Special(_) => None,
        }
    }

    /// Tells if it is a directory.
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, EntryKind::Directory(_))
    }

    /// Returns the record of a file.
    ///
    /// # Errors
    /// [`Fault::IsADirectory`] or [`Fault::IsSpecial`] for another kind of entry.
    pub fn into_file(self) -> Result<FileRecord, Fault> {
        match self.kind {
            EntryKind::File(record) => Ok(record),
            EntryKind::Directory(_) => Err(Fault::IsADirectory { name: self.name }),
            EntryKind::Special(special) => {
                Err(Fault::IsSpecial { name: self.name, kind: special.kind().to_owned() })
            }
        }
    }
}

impl FileRecord {
    /// Size of the file according to this record.
    pub fn size(&self) -> FileSize {
        FileSize { cuts: self.cuts, bytes: self.bytes }
    }

    /// Takes over a size if it is greater than the known one, and returns true if so.
    pub fn learn(&mut self, size: FileSize) -> bool {
        let is_news = size > self.size();
        if is_news {
            (self.cuts, self.bytes) = (size.cuts, size.bytes);
        }
        is_news
    }

    /// Servers of the file, in the order of its stripe.
    pub fn servers(&self) -> impl Iterator<Item = ServerId> {
        (0..self.stripe.servers).map(|place| self.pool.server(ServerId(place)))
    }

    /// Server that holds a block.
    pub fn server_of(&self, block: u64) -> ServerId {
        self.pool.server(self.stripe.locate(block).server)
    }

    /// Number of `server` in the stripe, if it holds blocks of the file.
    pub fn place_of(&self, server: ServerId) -> Option<ServerId> {
        self.pool.place_of(server, self.stripe.servers)
    }
}
