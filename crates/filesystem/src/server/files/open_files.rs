//! Open files of a server.

use crate::scale::SmallVec;
use crate::server::files::open_file::OpenFile;
use crate::server::files::protections::Protections;
use crate::server::files::removed_files::RemovedFiles;
use policy::Protection;
use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::rc::Rc;
use units::{FileId, Timestamp};
use wire::{Fault, FileRecord, FileSize};
use world::World;

/// Files that one client has open, ascending.
#[derive(Default)]
pub(crate) struct ClientFiles(RefCell<SmallVec<[FileId; 2]>>);

impl ClientFiles {
    /// True if the client has a file open.
    pub(crate) fn has(&self, file: FileId) -> bool {
        self.0.borrow().binary_search(&file).is_ok()
    }
}

/// All files open at a server.
pub(crate) struct OpenFiles<W> {
    open: RefCell<BTreeMap<FileId, Rc<OpenFile>>>,
    /// Files whose data was dropped here. Numbers are never given again, so a client that knew one
    /// before must not bring it back.
    dropped: RefCell<RemovedFiles>,
    /// Sizes at the last close of files that were cut since the start. A client that opens such a
    /// file with an older record must not bring back what was cut off.
    cut: RefCell<BTreeMap<FileId, FileSize>>,
    /// Protection of files that was changed. The record of a client may be older.
    protections: Rc<Protections<W>>,
    /// Sizes and times of the files that were closed last, which the catalogue has or is about to
    /// get. The record of a client may be older: it may have asked the catalogue before.
    closed: RefCell<ClosedFiles>,
}

/// Files that were closed lately.
#[derive(Default)]
struct ClosedFiles {
    files: BTreeMap<FileId, ClosedFile>,
    /// Each close, the oldest first.
    order: VecDeque<(FileId, u64)>,
    closes: u64,
}

/// A file that was closed lately.
#[derive(Clone, Copy, Default)]
struct ClosedFile {
    /// Number of its last close.
    close: u64,
    /// Size that the catalogue has.
    size: FileSize,
    /// Time of the last change, if it was changed while it was open.
    modified: Timestamp,
}

/// Number of closes that are remembered.
const CLOSED_KEPT: usize = 1 << 12;

/// Maximum number of files that one client may have open.
const OPEN_FILES_MAX: usize = 1 << 16;

impl<W: World> OpenFiles<W> {
    pub(crate) fn new(protections: Rc<Protections<W>>) -> Self {
        let (open, dropped, cut, closed) = Default::default();
        Self { open, dropped, cut, protections, closed }
    }

    /// Opens a file for a client; opening it again changes nothing. Returns true when the client
    /// did not have it open. All clients must know the same stripe and servers, so that the first
    /// to open it cannot deceive the others.
    pub(crate) fn open(&self, by: &ClientFiles, record: FileRecord) -> Result<bool, Fault> {
        let record = self.as_protected(record);
        let mut own = by.0.borrow_mut();
        if own.len() >= OPEN_FILES_MAX {
            let cause = format!("a client may have {OPEN_FILES_MAX} files open");
            return Err(Fault::BadRequest { cause });
        }
        let mut files = self.open.borrow_mut();
        let file = record.file;
        if self.dropped.borrow().contains(file) {
            return Err(Fault::NoSuchFile { name: record.name });
        }
        let known = match files.entry(file) {
            Entry::Occupied(known) if !known.get().is_same_file(&record) => {
                let cause = format!("{file} is open with another stripe, or on other servers");
                return Err(Fault::BadRequest { cause });
            }
            Entry::Occupied(known) => {
                known.get().opened_as(&record);
                known.into_mut()
            }
            Entry::Vacant(new) => {
                let mut record = record;
                let (size, modified) = self.last_known(file);
                record.learn(size);
                let opened = OpenFile::new(record);
                opened.learn_modified(modified);
                new.insert(Rc::new(opened))
            }
        };
        let place = own.binary_search(&file);
        if let Err(place) = place {
            own.insert(place, file);
            known.users.update(|users| users + 1);
        }
        Ok(place.is_err())
    }

    /// Notes that files have these protections now. They are on stable storage when this returns.
    pub(crate) async fn protect(&self, changed: &[(FileId, Protection)]) -> Result<(), Fault> {
        self.protections.keep(changed).await?;
        for (file, protection) in changed {
            if let Some(open) = self.open.borrow().get(file) {
                open.protect(*protection);
            }
        }
        Ok(())
    }

    /// Protections that were changed.
    pub(crate) fn protections(&self) -> &Protections<W> {
        &self.protections
    }

    /// Returns a record with the protection that its file has now.
    pub(crate) fn as_protected(&self, record: FileRecord) -> FileRecord {
        let changed = self.protections.of(record.file);
        FileRecord { protection: changed.unwrap_or(record.protection), ..record }
    }

    /// Notes that a client closes a file, of which the catalogue has a size. A size beyond that of
    /// the file is none.
    pub(crate) fn closing(&self, file: &OpenFile, recorded: FileSize) {
        let closed = &mut *self.closed.borrow_mut();
        let before = closed.files.get(&file.file).copied().unwrap_or_default();
        let is_valid = recorded <= file.size();
        let size = if is_valid { recorded.max(before.size) } else { before.size };
        // A time that a user has set may be older than the one before.
        let modified = file.modified_since_open().unwrap_or(before.modified);
        closed.closes += 1;
        let close = closed.closes;
        closed.files.insert(file.file, ClosedFile { close, size, modified });
        closed.order.push_back((file.file, close));
        if closed.order.len() > CLOSED_KEPT
            && let Some((oldest, close)) = closed.order.pop_front()
            && closed.files.get(&oldest).is_some_and(|one| one.close == close)
        {
            closed.files.remove(&oldest);
        }
    }

    /// Returns a size that a closed file had, and the time of its last change, as far as they are
    /// known.
    pub(crate) fn last_known(&self, file: FileId) -> (FileSize, Timestamp) {
        let cut = self.cut.borrow().get(&file).copied().unwrap_or_default();
        let closed = self.closed.borrow();
        match closed.files.get(&file) {
            Some(one) => (one.size.max(cut), one.modified),
            None => (cut, Timestamp::default()),
        }
    }

    /// Returns an open file.
    pub(crate) fn get(&self, file: FileId) -> Result<Rc<OpenFile>, Fault> {
        let closed = || Fault::BadRequest { cause: format!("{file} is not open on this server") };
        self.find(file)?.ok_or_else(closed)
    }

    /// Returns a file, if it is open. Fails when it was removed.
    pub(crate) fn find(&self, file: FileId) -> Result<Option<Rc<OpenFile>>, Fault> {
        let known = self.open.borrow().get(&file).map(Rc::clone);
        if known.is_none() && self.dropped.borrow().contains(file) {
            return Err(Fault::NoSuchFile { name: format!("{file}, which was removed") });
        }
        Ok(known)
    }

    /// Returns sizes and times of at most `count` open files behind `after`, and true when there
    /// are more.
    pub(crate) fn sizes(
        &self,
        after: Option<FileId>,
        count: usize,
    ) -> (Vec<(FileId, FileSize, Timestamp)>, bool) {
        let files = self.open.borrow();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut open = files.range((from, Bound::Unbounded));
        let some = open.by_ref().take(count);
        let sizes = some.map(|(file, known)| (*file, known.settled_size(), known.modified()));
        (sizes.collect(), open.next().is_some())
    }

    /// Marks a file that was removed or replaced. Returns true when a client has it open.
    pub(crate) fn lost_name(&self, file: FileId) -> bool {
        match self.open.borrow().get(&file) {
            Some(known) if known.users.get() > 0 => {
                known.is_nameless.set(true);
                true
            }
            _ => false,
        }
    }

    /// Tells if a file has no name and no client that has it open, so that its data must go.
    pub(crate) fn must_go(&self, file: FileId) -> bool {
        let files = self.open.borrow();
        files.get(&file).is_some_and(|known| known.is_nameless.get() && known.users.get() == 0)
    }

    /// Returns all open files.
    pub(crate) fn all(&self) -> Vec<Rc<OpenFile>> {
        self.open.borrow().values().map(Rc::clone).collect()
    }

    /// Returns all open files without a name, with their protection.
    pub(crate) fn all_nameless(&self) -> Vec<(FileId, Protection)> {
        let files = self.open.borrow();
        let nameless = files.values().filter(|known| known.is_nameless.get());
        nameless.map(|known| (known.file, known.protection())).collect()
    }

    /// Tells if the data of a file was dropped here.
    pub(crate) fn is_dropped(&self, file: FileId) -> bool {
        self.dropped.borrow().contains(file)
    }

    /// Closes a file for all clients. Returns its state.
    pub(crate) fn forget(&self, file: FileId) -> Option<Rc<OpenFile>> {
        self.dropped.borrow_mut().insert(file);
        self.cut.borrow_mut().remove(&file);
        self.protections.forget(file);
        self.closed.borrow_mut().files.remove(&file);
        self.open.borrow_mut().remove(&file)
    }

    /// Closes a file for a client. Returns true when no client has it open any more.
    pub(crate) fn close(&self, by: &ClientFiles, file: FileId) -> bool {
        let place = by.0.borrow().binary_search(&file);
        let Ok(place) = place else { return false };
        by.0.borrow_mut().remove(place);
        let files = self.open.borrow();
        let Some(known) = files.get(&file) else { return false };
        known.users.update(|users| users - 1);
        known.users.get() == 0
    }

    /// Forgets the state of a file that no client has open, unless its size is being changed: a
    /// client that opens it meanwhile must wait for that. Returns the state.
    pub(crate) fn forget_unused(&self, file: FileId) -> Option<Rc<OpenFile>> {
        let mut files = self.open.borrow_mut();
        let known = files.get(&file)?;
        if known.users.get() > 0 || known.is_changing() {
            return None;
        }
        // A cut that failed does not count.
        if known.size().cuts > 0 && known.tail_is_clean.get() {
            self.cut.borrow_mut().insert(file, known.size());
        }
        files.remove(&file)
    }

    /// Closes all files of a client. Returns those that no client has open any more.
    pub(crate) fn close_all(&self, by: &ClientFiles) -> Vec<FileId> {
        let all = by.0.borrow().clone();
        all.into_iter().filter(|file| self.close(by, *file)).collect()
    }
}
