//! Ordinary files of users that a server works on.

use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::BTreeMap;
use units::FileId;
use wire::FileRecord;
use world::OrdinaryFile;

/// Ordinary files that a server works on.
#[derive(Default)]
pub(crate) struct InPlaceFiles {
    /// Those that this server works on, with their numbers in their file systems.
    adopted: RefCell<BTreeMap<FileId, u64>>,
    /// Those that have a number, as server 0 knows them.
    numbered: RefCell<BTreeMap<OrdinaryFile, FileRecord>>,
    /// Notified when one is forgotten.
    forgotten: Signal,
}

impl InPlaceFiles {
    /// True if this server works on an ordinary file of that number.
    pub(crate) fn has(&self, file: FileId) -> bool {
        self.adopted.borrow().contains_key(&file)
    }

    /// Notes that this server works on an ordinary file.
    pub(super) fn adopt(&self, file: FileId, inode: u64) {
        self.adopted.borrow_mut().insert(file, inode);
    }

    /// Waits while an ordinary file of this inode is written back for the last time, as `is_ending`
    /// says of a file.
    pub(super) async fn until_written_back(&self, inode: u64, is_ending: impl Fn(FileId) -> bool) {
        let is_over = || {
            let adopted = self.adopted.borrow();
            let mut alike = adopted.iter().filter(|(_, other)| **other == inode);
            (!alike.any(|(file, _)| is_ending(*file))).then_some(())
        };
        self.forgotten.until(is_over).await;
    }

    /// Forgets a file that no client has open.
    pub(super) fn forget(&self, file: FileId) {
        self.adopted.borrow_mut().remove(&file);
        self.numbered.borrow_mut().retain(|_, record| record.file != file);
        self.forgotten.notify();
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
