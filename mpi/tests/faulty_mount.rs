//! A file system without direct I/O whose writes fail or wait, for tests: it passes all else to a
//! directory below it.

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime};

/// Time for which the kernel keeps what it has learned of a file: none.
const TTL: Duration = Duration::ZERO;

/// Flag of an open for direct I/O.
const DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits() as i32;

/// Fate of writes.
#[derive(Default)]
struct Plan {
    /// Number of writes that succeed before others fail with an error of the system.
    failing: Option<(u32, Errno)>,
    /// True while writes wait.
    holds: bool,
    /// Number of writes that have begun to wait.
    held: u32,
}

/// Plan that the file system and the test share.
#[derive(Default)]
struct Shared {
    plan: Mutex<Plan>,
    changed: Condvar,
}

/// A mounted file system; it is unmounted when this is dropped.
pub(crate) struct FaultyMount {
    shared: Arc<Shared>,
    point: tempfile::TempDir,
    below: tempfile::TempDir,
    session: Option<BackgroundSession>,
}

impl FaultyMount {
    pub(crate) fn new() -> Self {
        let (point, below) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let shared = Arc::<Shared>::default();
        let directory = below.path().canonicalize().unwrap();
        let system = FaultySystem { directory, paths: Mutex::default(), shared: shared.clone() };
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("faulty".to_owned())];
        let session = fuser::spawn_mount(system, point.path(), &config).unwrap();
        Self { shared, point, below, session: Some(session) }
    }

    pub(crate) fn point(&self) -> PathBuf {
        self.point.path().canonicalize().unwrap()
    }

    /// The directory below, where all data is.
    pub(crate) fn below(&self) -> &Path {
        self.below.path()
    }

    /// Lets `writes` more writes succeed, and later ones fail; `None`: all succeed.
    pub(crate) fn fail_after(&self, failing: Option<(u32, Errno)>) {
        self.shared.plan.lock().unwrap().failing = failing;
    }

    /// Lets writes wait from now on.
    pub(crate) fn hold(&self) {
        self.shared.plan.lock().unwrap().holds = true;
    }

    /// Waits until a write waits, then lets all go on.
    pub(crate) fn release(&self) {
        let plan = self.shared.plan.lock().unwrap();
        let mut plan = self.shared.changed.wait_while(plan, |plan| plan.held == 0).unwrap();
        plan.holds = false;
        self.shared.changed.notify_all();
    }
}

impl Drop for FaultyMount {
    fn drop(&mut self) {
        self.shared.plan.lock().unwrap().holds = false;
        self.shared.changed.notify_all();
        if let Some(session) = self.session.take() {
            let _ = session.umount_and_join();
        }
    }
}

struct FaultySystem {
    directory: PathBuf,
    /// Paths in the directory, by the numbers of their files.
    paths: Mutex<BTreeMap<u64, PathBuf>>,
    shared: Arc<Shared>,
}

impl FaultySystem {
    fn path(&self, inode: INodeNo) -> PathBuf {
        match inode {
            INodeNo::ROOT => self.directory.clone(),
            INodeNo(number) => self.paths.lock().unwrap().get(&number).cloned().unwrap_or_default(),
        }
    }

    fn find(&self, name: &OsStr) -> io::Result<FileAttr> {
        let path = self.directory.join(name);
        let metadata = std::fs::symlink_metadata(&path)?;
        self.paths.lock().unwrap().insert(metadata.ino(), path);
        Ok(attributes(&metadata, metadata.ino()))
    }

    fn look(&self, inode: INodeNo) -> io::Result<FileAttr> {
        Ok(attributes(&std::fs::metadata(self.path(inode))?, inode.0))
    }

    fn file(&self, inode: INodeNo) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(self.path(inode))
    }

    fn write_below(&self, inode: INodeNo, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let mut plan = self.shared.plan.lock().unwrap();
        if plan.holds {
            plan.held += 1;
            self.shared.changed.notify_all();
            plan = self.shared.changed.wait_while(plan, |plan| plan.holds).unwrap();
        }
        match &mut plan.failing {
            Some((0, error)) => return Err(*error),
            Some((left, _)) => *left -= 1,
            None => {}
        }
        drop(plan);
        Ok(self.file(inode)?.write_all_at(data, offset)?)
    }
}

fn attributes(metadata: &Metadata, inode: u64) -> FileAttr {
    let changed = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    FileAttr {
        ino: INodeNo(inode),
        size: metadata.len(),
        blocks: metadata.blocks(),
        atime: changed,
        mtime: changed,
        ctime: changed,
        crtime: changed,
        kind: if metadata.is_dir() { FileType::Directory } else { FileType::RegularFile },
        perm: (metadata.mode() & 0o777) as u16,
        nlink: 1,
        uid: metadata.uid(),
        gid: metadata.gid(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

impl Filesystem for FaultySystem {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.find(name) {
            Ok(found) => reply.entry(&TTL, &found, Generation(0)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.look(inode) {
            Ok(found) => reply.attr(&TTL, &found),
            Err(error) => reply.error(error.into()),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let cut = size.map_or(Ok(()), |size| self.file(inode).and_then(|it| it.set_len(size)));
        match cut.and_then(|()| self.look(inode)) {
            Ok(found) => reply.attr(&TTL, &found),
            Err(error) => reply.error(error.into()),
        }
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        name: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let made = File::create_new(self.directory.join(name));
        match made.and_then(|_| self.find(name)) {
            Ok(found) => {
                reply.created(&TTL, &found, Generation(0), FileHandle(0), FopenFlags::empty());
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match flags.0 & DIRECT {
            0 => reply.opened(FileHandle(0), FopenFlags::empty()),
            _ => reply.error(Errno::EINVAL),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut data = vec![0; size as usize];
        match self.file(inode).and_then(|file| file.read_at(&mut data, offset)) {
            Ok(count) => reply.data(&data[..count]),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.write_below(inode, offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn unlink(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match std::fs::remove_file(self.directory.join(name)) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(Errno::from(error)),
        }
    }
}
