//! Which ordinary files of users a server works on.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use units::FileId;
use wire::FileRecord;
use world::OrdinaryFile;

/// Ordinary files that a server works on.
#[derive(Default)]
pub(crate) struct InPlaceFiles {
    /// Those that this server works on.
    adopted: RefCell<BTreeSet<FileId>>,
    /// Those that have a number, as server 0 knows them.
    numbered: RefCell<BTreeMap<OrdinaryFile, FileRecord>>,
}

impl InPlaceFiles {
    /// True if this server works on an ordinary file of that number.
    pub(crate) fn has(&self, file: FileId) -> bool {
        self.adopted.borrow().contains(&file)
    }

    /// Notes that this server works on an ordinary file.
    pub(super) fn adopt(&self, file: FileId) {
        self.adopted.borrow_mut().insert(file);
    }

    /// Forgets a file that no client has open.
    pub(super) fn forget(&self, file: FileId) {
        self.adopted.borrow_mut().remove(&file);
        self.numbered.borrow_mut().retain(|_, record| record.file != file);
    }

    /// Record of an ordinary file, if it has a number.
    pub(super) fn numbered(&self, file: OrdinaryFile) -> Option<FileRecord> {
        self.numbered.borrow().get(&file).cloned()
    }

    /// Gives an ordinary file its record, unless it has got one meanwhile. Returns that which it
    /// has.
    pub(super) fn number(&self, file: OrdinaryFile, record: FileRecord) -> FileRecord {
        self.numbered.borrow_mut().entry(file).or_insert(record).clone()
    }
}
