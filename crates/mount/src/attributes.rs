//! Attributes of entries, as the kernel wants them.

use client::{Attributes, EntryKind, FileId, NodeEntry, ROOT, Special, Timestamp};
use fuser::{FileAttr, FileType, INodeNo};
use std::time::{Duration, SystemTime};

/// Size of the blocks in which the system counts the space of a file, in bytes.
const COUNTED_BYTES: u64 = 512;

/// Size of accesses that programs are told to prefer, in bytes.
const PREFERRED_BYTES: u32 = 1 << 20;

/// Attributes of entries that have none of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usual {
    /// User id of the owner.
    pub(crate) owner: u32,
    /// Group id.
    pub(crate) group: u32,
    /// Time of a root directory that nothing was ever in.
    pub(crate) time: SystemTime,
}

/// Returns the number of an entry for the kernel, which wants 1 for the root.
pub(crate) fn inode(node: FileId) -> INodeNo {
    INodeNo(node.0 + 1)
}

/// Returns the number of an entry that the kernel names.
pub(crate) fn node(inode: INodeNo) -> FileId {
    FileId(inode.0.saturating_sub(1))
}

/// Returns the kind of an entry.
pub(crate) fn file_type(kind: &EntryKind) -> FileType {
    match kind {
        EntryKind::Directory(_) => FileType::Directory,
        EntryKind::File(_) => FileType::RegularFile,
        EntryKind::Special(Special::Link { .. }) => FileType::Symlink,
        EntryKind::Special(Special::Fifo) => FileType::NamedPipe,
        EntryKind::Special(Special::Socket) => FileType::Socket,
    }
}

/// Returns the attributes of an entry.
pub(crate) fn attributes(found: &NodeEntry, usual: Usual) -> FileAttr {
    let NodeEntry { node, is_named, entry, attributes } = found;
    let Attributes { mode, owner, group, accessed, changed } = *attributes;
    let size = match &entry.kind {
        EntryKind::File(record) => record.bytes,
        EntryKind::Special(Special::Link { target }) => target.len() as u64,
        EntryKind::Directory(_) | EntryKind::Special(_) => 0,
    };
    let time = |known: Timestamp| match known == Timestamp::default() && *node == ROOT {
        true => usual.time,
        false => system_time(known),
    };
    FileAttr {
        ino: inode(*node),
        size,
        blocks: size.div_ceil(COUNTED_BYTES),
        atime: time(accessed),
        mtime: time(entry.modified),
        ctime: time(changed),
        crtime: system_time(entry.made.at()),
        kind: file_type(&entry.kind),
        perm: mode,
        nlink: u32::from(*is_named || *node == ROOT),
        uid: owner.unwrap_or(usual.owner),
        gid: group.unwrap_or(usual.group),
        rdev: 0,
        blksize: PREFERRED_BYTES,
        flags: 0,
    }
}

fn system_time(time: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(time.as_ns())
}

/// Returns a time of the system. Those before 1970 become its start.
pub(crate) fn timestamp(time: SystemTime) -> Timestamp {
    let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_ns(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX))
}
