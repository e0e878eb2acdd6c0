//! Sizes of files that no data shows: of files that were cut, and of files that were grown without
//! a write. They are on stable storage here until the catalogue has recorded them (decision 0051).
//!
//! Invariants:
//! - Every size in an answer is on stable storage.
//! - A change that was given up may have been made. No answer about the file goes out before that
//!   is certain.
//! - The next change removes obsolete records.

use crate::server::faults::records_fault;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use units::{FileId, ServerId};
use wire::{Fault, FileSize};
use world::{RecordChange, RecordTable, RecordsError, World};

/// Sizes that one server keeps.
pub(crate) struct KeptSizes<W> {
    world: W,
    server: ServerId,
    kept: RefCell<BTreeMap<FileId, Kept>>,
    /// Files whose records are to be removed.
    forgotten: RefCell<BTreeSet<FileId>>,
}

#[derive(Clone, Copy)]
struct Kept {
    size: FileSize,
    /// True when it is known to be on stable storage.
    is_stored: bool,
}

impl<W: World> KeptSizes<W> {
    /// Loads the sizes from the records of this node.
    pub(crate) async fn load(world: W, server: ServerId) -> Result<Self, Fault> {
        let records = world
            .records(RecordTable::Sizes)
            .await
            .map_err(|error| records_fault(server, &error))?;
        let mut kept = BTreeMap::new();
        for (key, value) in records {
            let file = FileId(key);
            let size: FileSize = wire::decode_record(&value).map_err(|error| {
                let cause = format!("the record of the size of {file} is damaged: {error}");
                Fault::DiskFailed { server, cause }
            })?;
            kept.insert(file, Kept { size, is_stored: true });
        }
        Ok(Self { world, server, kept: RefCell::new(kept), forgotten: RefCell::default() })
    }

    /// Returns the kept size of a file, or the least size.
    pub(crate) async fn of(&self, file: FileId) -> Result<FileSize, Fault> {
        match self.known(file) {
            None => Ok(FileSize::default()),
            Some(Kept { size, is_stored: true }) => Ok(size),
            Some(Kept { size, is_stored: false }) => self.keep(file, size).await.map(|()| size),
        }
    }

    fn known(&self, file: FileId) -> Option<Kept> {
        self.kept.borrow().get(&file).copied()
    }

    /// Keeps the size of a file. It is on stable storage when this returns.
    pub(crate) async fn keep(&self, file: FileId, size: FileSize) -> Result<(), Fault> {
        let before = self.known(file);
        if before.is_some_and(|known| known.is_stored && size <= known.size) {
            return Ok(());
        }
        self.kept.borrow_mut().insert(file, Kept { size, is_stored: false });
        let mut changes = self.removals();
        let removed: Vec<FileId> = changes.iter().map(|removal| FileId(removal.key)).collect();
        changes.push(RecordChange::put(file.0, wire::encode_record(&size)));
        let changed = self.world.record_change(RecordTable::Sizes, changes).await;
        if changed.is_err() {
            self.forgotten.borrow_mut().extend(removed);
        }
        let mut kept = self.kept.borrow_mut();
        // Another task may have kept a later size meanwhile, or the file may be gone.
        let is_own = |kept: &&mut Kept| !kept.is_stored && kept.size == size;
        if let Some(own) = kept.get_mut(&file).filter(is_own) {
            match (&changed, before) {
                (Ok(()), _) => own.is_stored = true,
                (Err(RecordsError::NoSpace { .. }), Some(before)) => *own = before,
                (Err(RecordsError::NoSpace { .. }), None) => _ = kept.remove(&file),
                // The change may have been made.
                (Err(RecordsError::Failed { .. }), _) => {}
            }
        }
        changed.map_err(|error| records_fault(self.server, &error))
    }

    /// Takes the changes that remove obsolete records. If they are not made, the next start finds
    /// the records.
    fn removals(&self) -> Vec<RecordChange> {
        let (forgotten, kept) = (self.forgotten.take(), self.kept.borrow());
        let removed = forgotten.into_iter().filter(|file| !kept.contains_key(file));
        removed.map(|file| RecordChange::remove(file.0)).collect()
    }

    /// Notes that the catalogue has recorded this size of a file.
    pub(crate) fn recorded(&self, file: FileId, size: FileSize) {
        if self.known(file).is_some_and(|kept| kept.size <= size) {
            self.forget(file);
        }
    }

    /// Forgets a removed file.
    pub(crate) fn forget(&self, file: FileId) {
        if self.kept.borrow_mut().remove(&file).is_some() {
            self.forgotten.borrow_mut().insert(file);
        }
    }

    /// Removes obsolete records.
    pub(crate) async fn settle(&self) -> Result<(), Fault> {
        let removals = self.removals();
        if removals.is_empty() {
            return Ok(());
        }
        let files: Vec<FileId> = removals.iter().map(|removal| FileId(removal.key)).collect();
        let changed = self.world.record_change(RecordTable::Sizes, removals).await;
        changed.map_err(|error| {
            self.forgotten.borrow_mut().extend(files);
            records_fault(self.server, &error)
        })
    }
}
