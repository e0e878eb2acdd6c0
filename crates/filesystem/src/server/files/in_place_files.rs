//! Ordinary files of users that a server works on.

use crate::signal::Signal;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use units::{FileId, PeerId};
use wire::FileRecord;
use world::OrdinaryFile;

/// Ordinary files that a server works on.
#[derive(Default)]
pub(crate) struct InPlaceFiles {
    /// Those that this server works on, with their numbers in their file systems.
    adopted: RefCell<BTreeMap<FileId, u64>>,
    /// Those that have a number, as server 0 knows them.
    numbered: RefCell<BTreeMap<OrdinaryFile, FileRecord>>,
    /// Clients that have asked for a number and not opened the file yet.
    asked: RefCell<BTreeSet<(FileId, PeerId)>>,
    /// True while one gets its number.
    is_numbering: Cell<bool>,
    /// Notified when one is forgotten, or has got its number.
    changed: Signal,
}

/// Right to give an ordinary file a number. Released when dropped.
pub(super) struct Numbering<'a>(&'a InPlaceFiles);

impl Drop for Numbering<'_> {
    fn drop(&mut self) {
        self.0.is_numbering.set(false);
        self.0.changed.notify();
    }
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
        self.changed.until(is_over).await;
    }

    /// Waits until no other file is given a number: a lock of a file must not fail because of an
    /// attempt that is in progress here.
    pub(super) async fn begin_numbering(&self) -> Numbering<'_> {
        self.changed.until(|| (!self.is_numbering.replace(true)).then_some(())).await;
        Numbering(self)
    }

    /// Notes that a client has asked for the number of a file.
    pub(super) fn asked(&self, file: FileId, by: PeerId) {
        self.asked.borrow_mut().insert((file, by));
    }

    /// Notes that a client has opened a file.
    pub(super) fn opened(&self, file: FileId, by: PeerId) {
        self.asked.borrow_mut().remove(&(file, by));
    }

    /// Notes that a client has left. Returns the files whose numbers it has asked for, and no other
    /// client that has not opened them.
    pub(super) fn left(&self, client: PeerId) -> Vec<FileId> {
        let mut asked = self.asked.borrow_mut();
        let of_client: Vec<FileId> =
            asked.extract_if(.., |(_, by)| *by == client).map(|(file, _)| file).collect();
        let is_wanted = |file: FileId| asked.iter().any(|(other, _)| *other == file);
        of_client.into_iter().filter(|file| !is_wanted(*file)).collect()
    }

    /// Forgets a file that no client has open.
    pub(super) fn forget(&self, file: FileId) {
        self.adopted.borrow_mut().remove(&file);
        self.asked.borrow_mut().retain(|(other, _)| *other != file);
        self.numbered.borrow_mut().retain(|_, record| record.file != file);
        self.changed.notify();
    }

    /// Record of an ordinary file, if it has a number.
    pub(super) fn numbered(&self, file: OrdinaryFile) -> Option<FileRecord> {
        self.numbered.borrow().get(&file).cloned()
    }

    /// Records of the ordinary files with this number in their file systems: two, if these differ.
    pub(super) fn with_inode(&self, inode: u64) -> Vec<FileRecord> {
        let numbered = self.numbered.borrow();
        let alike = numbered.iter().filter(|(file, _)| file.inode == inode);
        alike.map(|(_, record)| record.clone()).collect()
    }

    /// Gives an ordinary file its record.
    pub(super) fn number(&self, file: OrdinaryFile, record: FileRecord) {
        self.numbered.borrow_mut().insert(file, record);
    }
}
