//! What the catalogue knows: directories and files, by name.

use crate::Fault;
use policy::{BYTES_MAX, Buffering, Pool, Stripe};
use serde::{Deserialize, Serialize};
use units::{FileId, ServerId};

/// One name in the catalogue. Names are paths from the root, their parts separated by `/`, with
/// none at either end; the root itself is the empty name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// Who made it and when.
    pub made: Made,
    /// What it stands for.
    pub kind: EntryKind,
}

/// What a name stands for.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum EntryKind {
    /// A directory, and how files in it are made.
    Directory(FileDefaults),
    /// A file.
    File(FileRecord),
}

/// How new files in a directory are made, where whoever makes them does not say.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FileDefaults {
    /// Bytes of a block.
    pub block_bytes: Option<u64>,
    /// The most servers of a file.
    pub servers: Option<u32>,
    /// The servers that a file may lie on; all of the instance if none is named.
    pub pool: Vec<ServerId>,
    /// The server of each of its first blocks, after which it begins again; then there is no other
    /// pool. Without it, all servers in turn.
    pub map: Vec<ServerId>,
    /// How its servers buffer it.
    pub buffering: Buffering,
}

/// Who made something and when, as the client said that made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Made {
    /// The user's number.
    pub owner: u32,
    /// Seconds since the beginning of 1970.
    pub at_s: u64,
}

/// What a server must know of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its number, never used twice in an instance.
    pub file: FileId,
    /// Its name when this was told; it may have another by now.
    pub name: String,
    /// Its size in bytes …
    pub bytes: u64,
    /// … after it was cut so often ([`FileSize`]).
    pub cuts: u64,
    /// How its blocks map to its servers and their disks.
    pub stripe: Stripe,
    /// Which servers these are.
    pub pool: Pool,
    /// How each of them buffers it: as it was made, or as whoever opened it last has said.
    pub buffering: Buffering,
}

/// How long a file is. Whoever hears of two sizes of a file keeps the greater: one that was said
/// after a cut is greater than all before it, and otherwise the longer one is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct FileSize {
    /// How often the file was made shorter.
    pub cuts: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

impl FileSize {
    /// Refuses more bytes than a file can have.
    pub fn validate(&self) -> Result<(), Fault> {
        if self.bytes > BYTES_MAX {
            let cause = format!("a file has at most {BYTES_MAX} bytes, not {}", self.bytes);
            return Err(Fault::BadRequest { cause });
        }
        Ok(())
    }
}

/// The longest name of a file or a directory, in bytes.
pub const NAME_BYTES_MAX: usize = 1024;

/// The longest part of a name, in bytes.
const PART_BYTES_MAX: usize = 255;

/// Why something cannot be a name, a path from the root; nothing is wrong with the root's, which is
/// empty.
pub fn name_flaw(name: &str) -> Option<&'static str> {
    if name.len() > NAME_BYTES_MAX {
        return Some("it has more than 1024 bytes");
    }
    if name.chars().any(char::is_control) {
        return Some("it holds a control character");
    }
    let parts = || name.split('/').filter(|_| !name.is_empty());
    parts().find_map(|part| match part {
        "" => Some("a part of it is empty"),
        "." | ".." => Some("a part of it is . or .."),
        long if long.len() > PART_BYTES_MAX => Some("a part of it has more than 255 bytes"),
        _ => None,
    })
}

impl Entry {
    /// The file, if it is one.
    pub fn file(&self) -> Option<&FileRecord> {
        match &self.kind {
            EntryKind::File(record) => Some(record),
            EntryKind::Directory(_) => None,
        }
    }
}

impl FileRecord {
    /// How long it is, as far as this record knows.
    pub fn size(&self) -> FileSize {
        FileSize { cuts: self.cuts, bytes: self.bytes }
    }

    /// Learns of a size; returns whether it was news.
    pub fn learn(&mut self, size: FileSize) -> bool {
        let is_news = size > self.size();
        if is_news {
            (self.cuts, self.bytes) = (size.cuts, size.bytes);
        }
        is_news
    }

    /// The servers that hold the file, in the order of its stripe.
    pub fn servers(&self) -> impl Iterator<Item = ServerId> {
        (0..self.stripe.servers).map(|place| self.pool.server(ServerId(place)))
    }

    /// The server that holds a block.
    pub fn server_of(&self, block: u64) -> ServerId {
        self.pool.server(self.stripe.locate(block).server)
    }

    /// Which of the file's servers `server` is, as its stripe numbers them.
    pub fn place_of(&self, server: ServerId) -> Option<ServerId> {
        self.pool.place_of(server, self.stripe.servers)
    }
}
