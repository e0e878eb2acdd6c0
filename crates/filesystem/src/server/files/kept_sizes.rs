//! Sizes of files that no data shows: of files that were cut, and of files that were made longer
//! with nothing written there. They are on stable storage here until the catalogue has heard of
//! them (decision 0025).
//!
//! Invariants: what is told of a size is on stable storage; a change that was given up may have
//! been made, and nobody hears of the file before that is certain; a record that is of no use any
//! more goes with the next change.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use units::{FileId, ServerId};
use wire::{Fault, FileSize};
use world::{RecordChange, RecordsError, Shelf, World};

/// The sizes that one server keeps.
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
    /// Whether it is known to be on stable storage.
    is_stored: bool,
}

impl<W: World> KeptSizes<W> {
    /// The sizes as the records of this node have them.
    pub(crate) async fn load(world: W, server: ServerId) -> Result<Self, Fault> {
        let records = world.records(Shelf::Sizes).await.map_err(|error| fault(server, &error))?;
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

    /// The size of a file, if one is kept; else the least one.
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
        let changed = self.world.record_change(Shelf::Sizes, changes).await;
        if changed.is_err() {
            self.forgotten.borrow_mut().extend(removed);
        }
        let mut kept = self.kept.borrow_mut();
        // Another may have kept a later size meanwhile, or the file may be gone.
        let is_own = |kept: &&mut Kept| !kept.is_stored && kept.size == size;
        if let Some(own) = kept.get_mut(&file).filter(is_own) {
            match (&changed, before) {
                (Ok(()), _) => own.is_stored = true,
                (Err(RecordsError::NoSpace { .. }), Some(before)) => *own = before,
                (Err(RecordsError::NoSpace { .. }), None) => _ = kept.remove(&file),
                // It may have been made.
                (Err(RecordsError::Failed { .. }), _) => {}
            }
        }
        changed.map_err(|error| fault(self.server, &error))
    }

    /// Takes what removes the records of no use. If it is not done, the next start finds them.
    fn removals(&self) -> Vec<RecordChange> {
        let (forgotten, kept) = (self.forgotten.take(), self.kept.borrow());
        let removed = forgotten.into_iter().filter(|file| !kept.contains_key(file));
        removed.map(|file| RecordChange::remove(file.0)).collect()
    }

    /// The catalogue knows of this size of a file.
    pub(crate) fn recorded(&self, file: FileId, size: FileSize) {
        if self.known(file).is_some_and(|kept| kept.size <= size) {
            self.forget(file);
        }
    }

    /// A file is gone.
    pub(crate) fn forget(&self, file: FileId) {
        if self.kept.borrow_mut().remove(&file).is_some() {
            self.forgotten.borrow_mut().insert(file);
        }
    }

    /// Removes the records that are of no use any more.
    pub(crate) async fn settle(&self) -> Result<(), Fault> {
        let removals = self.removals();
        if removals.is_empty() {
            return Ok(());
        }
        let files: Vec<FileId> = removals.iter().map(|removal| FileId(removal.key)).collect();
        let changed = self.world.record_change(Shelf::Sizes, removals).await;
        changed.map_err(|error| {
            self.forgotten.borrow_mut().extend(files);
            fault(self.server, &error)
        })
    }
}

fn fault(server: ServerId, error: &RecordsError) -> Fault {
    let cause = error.to_string();
    match error {
        RecordsError::NoSpace { .. } => Fault::NoSpace { server, cause },
        RecordsError::Failed { .. } => Fault::DiskFailed { server, cause },
    }
}
