//! Requests of the kernel and their answers.
//!
//! Each request is carried out by the thread that has received it. The kernel checks permissions,
//! follows links, keeps locks, and has data of open files in its page cache for reads; it passes
//! every write on.

use crate::attributes::{node, timestamp};
use crate::extended;
use crate::operations::{Kernel, Outcome, PART_BYTES_MAX, error, place};
use client::{AttributeChanges, EntryKind, RenameManner, Special};
use fuser::{
    Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};
use rustix::fs::OFlags;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Largest read or write of the kernel, in bytes.
const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// Reads that the kernel may have under way ahead of programs.
const BACKGROUND_MAX: u16 = 64;

/// Size of the blocks in which the space of an instance is told, in bytes.
const SPACE_BLOCK_BYTES: u32 = 4096;

/// Bit of `fallocate` that leaves the size of the file as it is.
const KEEP_SIZE: i32 = 1;

/// Bits of a mode that tell the kind of an entry.
const KIND_BITS: u32 = 0o170_000;
const FIFO_BITS: u32 = 0o010_000;
const FILE_BITS: u32 = 0o100_000;
const SOCKET_BITS: u32 = 0o140_000;

thread_local! {
    /// Memory for the data of a read.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Filesystem for Kernel {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Old kernels have smaller limits, and say which.
        let _ = config.set_max_write(TRANSFER_BYTES_MAX);
        if let Err(most) = config.set_max_readahead(TRANSFER_BYTES_MAX) {
            let _ = config.set_max_readahead(most);
        }
        let _ = config.set_max_background(BACKGROUND_MAX);
        for wanted in [
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_ASYNC_DIO,
        ] {
            let _ = config.add_capabilities(wanted);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.reply_entry(self.find(parent, name), reply);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.reply_attributes(self.look(ino), reply);
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changes = AttributeChanges {
            mode: mode.map(|mode| (mode & 0o7777) as u16),
            owner: uid,
            group: gid,
            accessed: atime.map(moment),
            modified: mtime.map(moment),
        };
        let _changing = self.changing(node(ino));
        let sized = match size {
            Some(bytes) => self.with_file(node(ino), |file| file.set_size(bytes)),
            None => Ok(()),
        };
        let changed = sized.and_then(|()| match changes == AttributeChanges::default() {
            true => self.look(ino),
            false => self.connection.change_node(node(ino), changes).map_err(error),
        });
        self.reply_attributes(changed, reply);
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.look(ino).map(|found| found.entry.kind) {
            Ok(EntryKind::Special(Special::Link { target })) => reply.data(target.as_bytes()),
            Ok(_) => reply.error(Errno::EINVAL),
            Err(errno) => reply.error(errno),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let special = |special| {
            let new = Self::new_node(request, parent, name, mode)?;
            self.connection.make_special_node(new, special).map_err(error)
        };
        let made = match mode & KIND_BITS {
            FIFO_BITS => special(Special::Fifo),
            SOCKET_BITS => special(Special::Socket),
            FILE_BITS | 0 => self.make_file(request, parent, name, mode),
            // A device.
            _ => Err(Errno::EPERM),
        };
        self.reply_entry(made, reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let made = Self::new_node(request, parent, name, mode)
            .and_then(|new| self.connection.make_directory_node(new).map_err(error));
        self.reply_entry(made, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(self.remove(parent, name, false), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(self.remove(parent, name, true), reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        link_name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let made = || {
            let target = target.to_str().ok_or(Errno::EILSEQ)?.to_owned();
            let new = Self::new_node(request, parent, link_name, 0o777)?;
            self.connection.make_special_node(new, Special::Link { target }).map_err(error)
        };
        self.reply_entry(made(), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let renamed = || {
            let manner = match flags {
                RenameFlags::RENAME_NOREPLACE => RenameManner::Keep,
                RenameFlags::RENAME_EXCHANGE => RenameManner::Exchange,
                none if none.is_empty() => RenameManner::Replace,
                _ => return Err(Errno::EINVAL),
            };
            let (from, to) = (self.known_place(parent, name)?, place(newparent, newname)?);
            self.connection.rename_node(from, to, manner).map_err(error)
        };
        reply_empty(renamed(), reply);
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let id = node(ino);
        let _changing = self.changing(id);
        let opened = self.open_file(id).and_then(|file| {
            let truncates = flags.0 & TRUNCATE != 0 && file.bytes() > 0;
            match truncates.then(|| file.set_size(0)) {
                Some(Err(failed)) => {
                    let _ = self.files.close(id);
                    Err(error(failed))
                }
                Some(Ok(())) | None => Ok(()),
            }
        });
        match opened {
            Ok(()) => reply.opened(FileHandle(id.0), open_flags(flags.0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let file = match self.opened(node(ino)) {
            Ok(file) => file,
            Err(errno) => return reply.error(errno),
        };
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size as usize {
                buffer.resize(size as usize, 0);
            }
            match file.read_at(&mut buffer[..size as usize], offset) {
                Ok(length) => reply.data(&buffer[..length]),
                Err(failed) => reply.error(error(failed)),
            }
        });
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.opened(node(ino)).and_then(|file| {
            file.write_at(data, offset).map_err(error)?;
            // The kernel sends no further request for a file that was opened with O_SYNC.
            match flags.0 & OFlags::DSYNC.bits() as i32 != 0 {
                true => file.flush(true).map_err(error),
                false => Ok(()),
            }
        });
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // All that was written is at the servers.
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let _changing = self.changing(node(ino));
        reply_empty(self.files.close(node(ino)).map_err(error), reply);
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let synced = self.opened(node(ino)).and_then(|file| file.flush(true).map_err(error));
        reply_empty(synced, reply);
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(self.listings.open(node(ino)), FopenFlags::empty());
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let Some(listing) = self.listings.get(fh) else { return reply.error(Errno::EBADF) };
        let mut listing = listing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match listing.fill(&self.connection, offset, &mut reply) {
            Ok(()) => reply.ok(),
            Err(failed) => reply.error(error(failed)),
        }
    }

    fn releasedir(&self, _: &Request, _: INodeNo, fh: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.listings.close(fh);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        // The catalogue has stored each change before it answered.
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.connection.space() {
            Ok((total, free)) => {
                let block = u64::from(SPACE_BLOCK_BYTES);
                let (total, free) = (total / block, free / block);
                // An instance has as many names as it has room for.
                let (names, part) = (u64::from(u32::MAX), PART_BYTES_MAX as u32);
                let block = SPACE_BLOCK_BYTES;
                reply.statfs(total, free, free, names, names, block, part, block);
            }
            Err(failed) => reply.error(error(failed)),
        }
    }

    fn setxattr(
        &self,
        _: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        _: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let set = || {
            let set = match name.to_str() {
                Some(extended::LAYOUT) => extended::set_layout,
                Some(extended::PROTECTION) => extended::set_protection,
                _ => return Err(Errno::EOPNOTSUPP),
            };
            let found = self.look(ino)?;
            set(&self.connection, &found, value)?;
            self.kept.forget_defaults(found.node);
            // Keeps its record as it is now.
            self.look(ino).map(|_| ())
        };
        reply_empty(set(), reply);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        reply_extended(self.extended(ino, name), size, reply);
    }

    fn listxattr(&self, _: &Request, _: INodeNo, size: u32, reply: ReplyXattr) {
        reply_extended(Ok(Vec::new()), size, reply);
    }

    fn removexattr(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EOPNOTSUPP);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let created = match self.make_file(request, parent, name, mode) {
            // Another client has made it since the kernel looked. The kernel then opens that one.
            Err(errno) if errno.code() == Errno::EEXIST.code() && flags & EXCLUSIVE == 0 => {
                Err(Errno::ESTALE)
            }
            made => made.and_then(|made| self.open_file(made.node).map(|_| made)),
        };
        match created {
            Ok(made) => {
                let (attributes, handle) = (self.attributes(&made), FileHandle(made.node.0));
                let (generation, flags) = (Generation(0), open_flags(flags));
                reply.created(&Duration::ZERO, &attributes, generation, handle, flags);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let extended = || {
            if mode & !KEEP_SIZE != 0 {
                return Err(Errno::EOPNOTSUPP);
            }
            let end = offset.checked_add(length).ok_or(Errno::EFBIG)?;
            let file = self.opened(node(ino))?;
            match mode & KEEP_SIZE != 0 {
                true => Ok(()),
                false => file.grow(end).map_err(error),
            }
        };
        reply_empty(extended(), reply);
    }
}

fn moment(time: TimeOrNow) -> client::Timestamp {
    timestamp(match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    })
}

/// Flag of an open that empties the file.
const TRUNCATE: i32 = OFlags::TRUNC.bits() as i32;

/// Flag of an open that must make the file.
const EXCLUSIVE: i32 = OFlags::EXCL.bits() as i32;

/// Returns what the kernel may do with an open file. It tells of a close before `close` returns
/// only if the file may have been written by a mapping.
fn open_flags(flags: i32) -> FopenFlags {
    match flags & OFlags::ACCMODE.bits() as i32 == OFlags::RDWR.bits() as i32 {
        true => FopenFlags::empty(),
        false => FopenFlags::FOPEN_NOFLUSH,
    }
}

fn reply_empty(done: Outcome<()>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

/// Answers with a value, or with its length if the kernel has no room for it yet.
fn reply_extended(value: Outcome<Vec<u8>>, room: u32, reply: ReplyXattr) {
    match value {
        Err(errno) => reply.error(errno),
        Ok(value) if room == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > room as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
    }
}
