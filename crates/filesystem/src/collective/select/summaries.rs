//! Summaries of files: bounds of some fields for each block of this server.
//!
//! Invariants:
//! - A summary counts only while the file is as it was when its records were looked at: no two
//!   changes of a file have the same time.
//! - Summaries are in memory only, and end with the server.

use super::active::ActiveSelection;
use crate::server::files::open_file::OpenFile;
use policy::{Bounds, FieldAt, RecordGrid};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{FileId, Timestamp};
use wire::Fault;
use world::Payload;

/// Maximum number of bounds of all files. The files with the lowest numbers go first.
const BOUNDS_MAX: usize = 1 << 22;

/// Summaries of files, by their numbers.
pub(crate) struct Summaries<P>(RefCell<BTreeMap<FileId, Rc<Summary<P>>>>);

/// Summary of the part of a file at this server.
pub(super) struct Summary<P> {
    /// Time of the last change of the file when its records were looked at.
    modified: Timestamp,
    records: RecordGrid,
    fields: Vec<FieldAt>,
    blocks: BTreeMap<u64, SummarisedBlock<P>>,
}

/// Bounds of the records that begin in a block.
struct SummarisedBlock<P> {
    bounds: Vec<Bounds>,
    /// Start of the block that belongs to a record of the block before.
    head: Option<P>,
}

/// A block in which no record matches.
pub(super) struct SkippedBlock<P> {
    /// Start of the block that belongs to a record of the block before.
    pub(super) head: Option<P>,
}

impl<P> Default for Summaries<P> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<P: Payload> Summaries<P> {
    /// Returns the summary of these records of a file, if they are as they were.
    pub(super) fn of(&self, file: &OpenFile, records: &RecordGrid) -> Option<Rc<Summary<P>>> {
        let known = self.0.borrow().get(&file.file).cloned()?;
        let is_current = file.is_measured.get()
            && known.modified == file.modified()
            && known.records == *records;
        is_current.then_some(known)
    }

    /// Keeps the summary that a selection has computed, if the file has not changed since.
    pub(super) fn keep(&self, selection: &ActiveSelection<P>) -> Result<(), Fault> {
        let (file, selector) = (&selection.file, selection.selector.borrow());
        let Some(fields) = selector.summarised() else {
            let cause = "the selection is no summary".to_owned();
            return Err(Fault::BadRequest { cause });
        };
        if file.modified() != selection.modified || file.changes.get() > 0 {
            let cause = format!("{:?} was changed while it was summarised", *file.name());
            return Err(Fault::TransferFailed { cause });
        }
        let heads = selection.heads.borrow();
        let mut blocks: BTreeMap<u64, SummarisedBlock<P>> = BTreeMap::new();
        for (block, found) in selection.blocks.borrow().iter() {
            let (bounds, head) = (found.bounds.clone(), heads.get(block).cloned());
            blocks.insert(*block, SummarisedBlock { bounds, head });
        }
        let (modified, records) = (selection.modified, *selector.records());
        let summary = Summary { modified, records, fields: fields.to_vec(), blocks };
        let mut all = self.0.borrow_mut();
        all.insert(file.file, Rc::new(summary));
        let bounds = |all: &BTreeMap<FileId, Rc<Summary<P>>>| -> usize {
            all.values().map(|one| one.blocks.len() * one.fields.len()).sum()
        };
        while bounds(&all) > BOUNDS_MAX && all.len() > 1 {
            let other = all.keys().find(|other| **other != file.file).copied();
            other.and_then(|other| all.remove(&other));
        }
        if bounds(&all) > BOUNDS_MAX {
            all.clear();
            let cause = format!("a summary has at most {BOUNDS_MAX} bounds at a server");
            return Err(Fault::BadSelection { cause });
        }
        Ok(())
    }

    /// Forgets the summary of a file whose bytes may have become older ones.
    pub(crate) fn forget(&self, file: FileId) {
        self.0.borrow_mut().remove(&file);
    }
}

impl<P: Payload> Summary<P> {
    /// Returns a block if no record of it matches.
    pub(super) fn skipped(
        &self,
        selection: &ActiveSelection<P>,
        block: u64,
    ) -> Option<SkippedBlock<P>> {
        let known = self.blocks.get(&block)?;
        let may_match = selection.selector.borrow().may_match(&self.fields, &known.bounds);
        (!may_match).then(|| SkippedBlock { head: known.head.clone() })
    }
}
