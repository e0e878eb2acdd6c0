//! The files that clients have open at a server.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::FileId;
use wire::{Fault, FileRecord};

/// The files one client has open, in their order. Most have one, and a server has many clients.
#[derive(Default)]
pub(crate) struct OpenFiles(RefCell<Vec<FileId>>);

/// All files open at a server.
#[derive(Default)]
pub(crate) struct Files {
    /// Each open file, with the number of clients that use it.
    open: RefCell<BTreeMap<FileId, (Rc<FileRecord>, u32)>>,
    /// Files whose data was dropped here. Numbers are never given again, so a client that heard of
    /// one before must not bring it back. Eight bytes for each removal since the start.
    dropped: RefCell<BTreeSet<FileId>>,
}

/// The most files one client may have open at a time.
const OPEN_FILES_MAX: usize = 1 << 16;

/// Up to so many open files a client's list is no longer than it need be.
const OPEN_FILES_FEW: usize = 8;

impl Files {
    /// Opens a file for a client; again is no difference. Returns whether the client did not have
    /// it open. Whoever opens it first must not deceive the others about it, so all must know the
    /// same of it.
    pub(crate) fn open(&self, by: &OpenFiles, record: FileRecord) -> Result<bool, Fault> {
        let mut own = by.0.borrow_mut();
        if own.len() >= OPEN_FILES_MAX {
            let cause = format!("a client may have {OPEN_FILES_MAX} files open");
            return Err(Fault::BadRequest { cause });
        }
        let mut files = self.open.borrow_mut();
        let file = record.file;
        if self.dropped.borrow().contains(&file) {
            return Err(Fault::NoSuchFile { name: record.name });
        }
        if files.get(&file).is_some_and(|(known, _)| !known.is_same_file(&record)) {
            let cause = format!("{file} is open with another size or stripe, or on other servers");
            return Err(Fault::BadRequest { cause });
        }
        // Who opens it last says how it is buffered.
        let record = Rc::new(record);
        let known = files.entry(file).or_insert_with(|| (Rc::clone(&record), 0));
        known.0 = record;
        let place = own.binary_search(&file);
        if let Err(place) = place {
            if own.len() < OPEN_FILES_FEW {
                own.reserve_exact(1);
            }
            own.insert(place, file);
            known.1 += 1;
        }
        Ok(place.is_err())
    }

    /// The record of an open file.
    pub(crate) fn get(&self, file: FileId) -> Result<Rc<FileRecord>, Fault> {
        let files = self.open.borrow();
        let record = files.get(&file).map(|(record, _)| Rc::clone(record));
        record.ok_or_else(|| Fault::BadRequest { cause: format!("{file} is not open here") })
    }

    /// Closes a file for all clients; returns what was known of it.
    pub(crate) fn forget(&self, file: FileId) -> Option<Rc<FileRecord>> {
        self.dropped.borrow_mut().insert(file);
        self.open.borrow_mut().remove(&file).map(|(record, _)| record)
    }

    /// Closes a file for a client. Returns whether nobody has it open any more.
    pub(crate) fn close(&self, by: &OpenFiles, file: FileId) -> bool {
        let place = by.0.borrow().binary_search(&file);
        let Ok(place) = place else { return false };
        by.0.borrow_mut().remove(place);
        let mut files = self.open.borrow_mut();
        let Some((_, users)) = files.get_mut(&file) else { return false };
        *users -= 1;
        let unused = *users == 0;
        if unused {
            files.remove(&file);
        }
        unused
    }

    /// Closes all that a client has open. Returns the files that nobody has open any more.
    pub(crate) fn close_all(&self, by: &OpenFiles) -> Vec<FileId> {
        let all = by.0.borrow().clone();
        all.into_iter().filter(|file| self.close(by, *file)).collect()
    }
}
