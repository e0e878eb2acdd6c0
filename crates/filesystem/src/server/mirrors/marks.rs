//! Marks of files that may differ from their copies, on stable storage: each names the range of
//! this server's objects outside of which they do not.
//!
//! Invariant: outside its mark, or without one, a file equals its copy, once the writes that have
//! ended are stored. (Elsewhere such a mark is called a write-intent record.)

use super::spans::WHOLE;
use crate::server::faults::records_fault;
use std::cell::RefCell;
use std::collections::BTreeSet;
use units::{ByteRange, FileId, ServerId};
use wire::{Fault, FileRecord};
use world::{RecordChange, RecordTable, World};

/// In place of a file: the catalogue may have recorded that copies are behind. No file has this
/// number.
const BEHIND: FileId = FileId(0);

/// Record of a file, and range of its objects that is marked.
pub(crate) type Marked = (FileRecord, ByteRange);

/// Marks of one server.
pub(crate) struct Marks<W> {
    world: W,
    server: ServerId,
    /// Files with a mark.
    marked: RefCell<BTreeSet<FileId>>,
    /// Files whose marks are to be removed.
    obsolete: RefCell<BTreeSet<FileId>>,
}

impl<W: World> Marks<W> {
    /// Loads the marks of this node. Returns the records of the files and the ranges, too.
    pub(crate) async fn load(world: W, server: ServerId) -> Result<(Self, Vec<Marked>), Fault> {
        let records = world.records(RecordTable::Mirrors).await;
        let records = records.map_err(|error| records_fault(server, &error))?;
        let (behind, records): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|(key, _)| *key == BEHIND.0);
        let mark = |(key, value): (u64, Vec<u8>)| {
            decode(&value).map_err(|error| {
                let cause = format!("the mark of file {key} is damaged: {error}");
                Fault::DiskFailed { server, cause }
            })
        };
        let records: Vec<Marked> = records.into_iter().map(mark).collect::<Result<_, _>>()?;
        let marked = records.iter().map(|(record, _)| record.file);
        let marked = marked.chain(behind.first().map(|_| BEHIND)).collect();
        let marks =
            Self { world, server, marked: RefCell::new(marked), obsolete: RefCell::default() };
        Ok((marks, records))
    }

    /// True if no file has a mark.
    pub(super) fn are_none(&self) -> bool {
        self.marked.borrow().is_empty()
    }

    /// True if the catalogue may have recorded that copies are behind.
    pub(super) fn may_be_behind(&self) -> bool {
        self.marked.borrow().contains(&BEHIND)
    }

    /// Marks that the catalogue is about to record that copies are behind: also when no file is
    /// marked any more, it must be told that none is.
    pub(super) async fn mark_behind(&self) -> Result<(), Fault> {
        self.put(BEHIND, Vec::new()).await
    }

    /// Takes that mark away, soon.
    pub(super) fn unmark_behind(&self) {
        self.unmark(BEHIND);
    }

    /// Marks a range of a file, in place of the one before. The mark is on stable storage when this
    /// returns.
    pub(super) async fn mark(&self, record: &FileRecord, range: ByteRange) -> Result<(), Fault> {
        self.put(record.file, wire::encode_record(&(record, range.start, range.end))).await
    }

    async fn put(&self, file: FileId, value: Vec<u8>) -> Result<(), Fault> {
        let (mut changes, removed) = self.removals(Some(file));
        changes.push(RecordChange::put(file.0, value));
        self.marked.borrow_mut().insert(file);
        self.change(changes, removed).await
    }

    /// Takes the mark of a file away, soon.
    pub(super) fn unmark(&self, file: FileId) {
        if self.marked.borrow_mut().remove(&file) {
            self.obsolete.borrow_mut().insert(file);
        }
    }

    /// Removes obsolete marks.
    pub(super) async fn settle(&self) -> Result<(), Fault> {
        let (changes, removed) = self.removals(None);
        if changes.is_empty() { Ok(()) } else { self.change(changes, removed).await }
    }

    /// Takes the changes that remove obsolete marks, but for that of `kept`.
    fn removals(&self, kept: Option<FileId>) -> (Vec<RecordChange>, Vec<FileId>) {
        let mut removed = self.obsolete.take();
        kept.map(|file| removed.remove(&file));
        let removals = removed.iter().map(|file| RecordChange::remove(file.0)).collect();
        (removals, removed.into_iter().collect())
    }

    /// Makes changes. If they fail, the marks stay for another time.
    async fn change(&self, changes: Vec<RecordChange>, removed: Vec<FileId>) -> Result<(), Fault> {
        let changed = self.world.record_change(RecordTable::Mirrors, changes).await;
        changed.map_err(|error| {
            let marked = self.marked.borrow();
            let still = removed.into_iter().filter(|file| !marked.contains(file));
            self.obsolete.borrow_mut().extend(still);
            records_fault(self.server, &error)
        })
    }
}

fn decode(value: &[u8]) -> Result<Marked, wire::DecodeError> {
    match wire::decode_record::<(FileRecord, u64, u64)>(value) {
        Ok((record, start, end)) if start <= end => Ok((record, ByteRange::new(start, end))),
        // A mark of older servers has no range.
        _ => wire::decode_record(value).map(|record| (record, WHOLE)),
    }
}
