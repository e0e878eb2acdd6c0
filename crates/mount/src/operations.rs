//! Operations of a mount by the library: finds, opens, makes and removes entries.

use crate::attributes::{Usual, attributes, inode, node};
use crate::errors::errno;
use crate::extended;
use crate::files::OpenFiles;
use crate::kept::Kept;
use crate::listings::Listings;
use client::{
    Connection, EntryKind, File, FileDefaults, FileId, NewFileNode, NodeEntry, NodePlace, ROOT,
    part_flaw,
};
use fuser::{Errno, FileAttr, Generation, INodeNo, ReplyAttr, ReplyEntry, Request};
use interface::UserError;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time for which the kernel keeps attributes of directories and links, and their names.
const KEPT: Duration = Duration::from_secs(1);

/// Time for which the kernel keeps attributes of files. It asks for the name of a file each time
/// that a program uses it, and gets the attributes of that moment.
const FILE_KEPT: Duration = Duration::from_millis(100);

/// Number of locks of files, which share them by their numbers.
const LOCKS: usize = 64;

/// Largest part of a name, in bytes.
pub(crate) const PART_BYTES_MAX: usize = 255;

/// Serves the kernel as a client of an instance.
pub(crate) struct Kernel {
    pub(crate) connection: Connection,
    disks_per_server: u32,
    usual: Usual,
    pub(crate) files: OpenFiles,
    pub(crate) listings: Listings,
    pub(crate) kept: Kept,
    changing: [Mutex<()>; LOCKS],
}

pub(crate) type Outcome<T> = Result<T, Errno>;

impl Kernel {
    pub(crate) fn new(connection: Connection, disks_per_server: u32, usual: Usual) -> Self {
        let (files, listings, kept) = (OpenFiles::default(), Listings::default(), Kept::default());
        let changing = [const { Mutex::new(()) }; LOCKS];
        Self { connection, disks_per_server, usual, files, listings, kept, changing }
    }

    /// Waits until no other thread closes a file or sets its attributes: a close reports a time of
    /// the last change, which must not come after one that a program has set meanwhile.
    pub(crate) fn changing(&self, id: FileId) -> MutexGuard<'_, ()> {
        let lock = &self.changing[id.0 as usize % LOCKS];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, parent: INodeNo, name: &OsStr) -> Outcome<NodeEntry> {
        let place = self.known_place(parent, name)?;
        let directory = place.directory;
        let guess = self.kept.named(directory, &place.part);
        let found = self.connection.find_node(place, guess);
        found.map_err(error).inspect(|found| self.kept.learn_name(directory, found))
    }

    pub(crate) fn look(&self, inode: INodeNo) -> Outcome<NodeEntry> {
        let guess = self.kept.record(node(inode));
        let found = self.connection.look_at_node(node(inode), guess);
        found.map_err(error).inspect(|found| self.kept.learn(found))
    }

    /// Name that may be there. One that cannot be is not found.
    pub(crate) fn known_place(&self, parent: INodeNo, name: &OsStr) -> Outcome<NodePlace> {
        match place(parent, name) {
            Err(errno) if errno.code() == Errno::ENAMETOOLONG.code() => Err(errno),
            Err(_) => Err(Errno::ENOENT),
            found => found,
        }
    }

    pub(crate) fn attributes(&self, found: &NodeEntry) -> FileAttr {
        attributes(found, self.usual)
    }

    /// Answers with an entry that was found or made.
    pub(crate) fn reply_entry(&self, found: Outcome<NodeEntry>, reply: ReplyEntry) {
        match found {
            Ok(found) => {
                let attributes = self.attributes(&found);
                let (name_kept, kept) = match found.entry.kind {
                    EntryKind::File(_) => (Duration::ZERO, FILE_KEPT),
                    EntryKind::Directory(_) | EntryKind::Special(_) => (KEPT, KEPT),
                };
                reply.entry_with_ttls(&kept, &name_kept, &attributes, Generation(0));
            }
            Err(errno) => reply.error(errno),
        }
    }

    pub(crate) fn reply_attributes(&self, found: Outcome<NodeEntry>, reply: ReplyAttr) {
        match found {
            Ok(found) => {
                let kept = match found.entry.kind {
                    EntryKind::File(_) => FILE_KEPT,
                    EntryKind::Directory(_) | EntryKind::Special(_) => KEPT,
                };
                reply.attr(&kept, &self.attributes(&found));
            }
            Err(errno) => reply.error(errno),
        }
    }

    pub(crate) fn open_file(&self, id: FileId) -> Outcome<File> {
        let record = match self.kept.record(id) {
            Some(record) => record,
            None => {
                let found = self.look(inode(id))?;
                found.entry.into_file().map_err(|_| Errno::EINVAL)?
            }
        };
        self.files.open(&self.connection, record).map_err(error)
    }

    /// A file that the kernel has open.
    pub(crate) fn opened(&self, id: FileId) -> Outcome<File> {
        self.files.get(id).ok_or(Errno::EBADF)
    }

    /// Acts on a file, which is opened for that time if no program has it open.
    pub(crate) fn with_file<T>(
        &self,
        id: FileId,
        act: impl FnOnce(&File) -> Result<T, UserError>,
    ) -> Outcome<T> {
        let file = self.open_file(id)?;
        let done = act(&file).map_err(error);
        let closed = self.files.close(id).map_err(error);
        done.and_then(|done| closed.map(|()| done))
    }

    pub(crate) fn new_node(
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
    ) -> Outcome<NewFileNode> {
        let (owner, group) = (request.uid(), request.gid());
        Ok(NewFileNode { place: place(parent, name)?, owner, group, mode: (mode & 0o7777) as u16 })
    }

    /// Makes an empty file.
    pub(crate) fn make_file(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
    ) -> Outcome<NodeEntry> {
        let new = Self::new_node(request, parent, name, mode)?;
        let defaults = self.defaults(node(parent))?;
        let made = self.connection.make_file_node(new, &defaults, self.disks_per_server);
        made.map_err(error).inspect(|made| self.kept.learn(made))
    }

    pub(crate) fn defaults(&self, directory: FileId) -> Outcome<FileDefaults> {
        if let Some(kept) = self.kept.defaults(directory) {
            return Ok(kept);
        }
        match self.look(inode(directory))?.entry.kind {
            EntryKind::Directory(defaults) => Ok(defaults),
            EntryKind::File(_) | EntryKind::Special(_) => Err(Errno::ENOTDIR),
        }
    }

    pub(crate) fn remove(&self, parent: INodeNo, name: &OsStr, is_directory: bool) -> Outcome<()> {
        let place = self.known_place(parent, name)?;
        self.connection.remove_node(place, is_directory).map_err(error)
    }

    pub(crate) fn extended(&self, inode: INodeNo, name: &OsStr) -> Outcome<Vec<u8>> {
        match name.to_str() {
            Some(extended::INSTANCE) => {
                let directory = self.connection.instance().directory();
                Ok(directory.as_os_str().as_bytes().to_vec())
            }
            // The root has one also when no server answers.
            Some(extended::PATH) if node(inode) == ROOT => Ok(Vec::new()),
            Some(extended::PATH) => {
                self.connection.node_path(node(inode)).map(String::into_bytes).map_err(error)
            }
            Some(extended::LAYOUT) => Ok(extended::layout_text(&self.look(inode)?).into_bytes()),
            Some(extended::PROTECTION) => {
                Ok(extended::protection_word(&self.look(inode)?)?.into_bytes())
            }
            _ => Err(Errno::ENODATA),
        }
    }
}

/// Returns a name in a directory.
pub(crate) fn place(parent: INodeNo, name: &OsStr) -> Outcome<NodePlace> {
    if name.len() > PART_BYTES_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    let part = name.to_str().ok_or(Errno::EILSEQ)?;
    match part_flaw(part) {
        Some(_) => Err(Errno::EINVAL),
        None => Ok(NodePlace { directory: node(parent), part: part.to_owned() }),
    }
}

pub(crate) fn error(failed: UserError) -> Errno {
    errno(&failed)
}
