//! Summaries of files: bounds of some fields for each block of this server.
//!
//! Invariants:
//! - A summary counts only while the file is as it was when its records were looked at: no two
//!   changes of a file have the same time, and whoever sets a time ends it.
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

/// Maximum number of bytes of the summaries of all files. Those of the files with the lowest
/// numbers go first.
const SUMMARY_BYTES_MAX: u64 = 1 << 26;

/// Summaries of files, by their numbers.
pub(crate) struct Summaries<P>(RefCell<BTreeMap<FileId, Rc<Summary<P>>>>);

/// Summary of the part of a file at this server.
pub(super) struct Summary<P> {
    /// Time of the last change of the file when its records were looked at.
    modified: Timestamp,
    records: RecordGrid,
    fields: Vec<FieldAt>,
    blocks: BTreeMap<u64, SummarisedBlock<P>>,
    bytes: u64,
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
        if selection.blocks.borrow().values().any(|found| found.start.is_some()) {
            let cause = "a summary lacks records that cross the ends of blocks".to_owned();
            return Err(Fault::BadRequest { cause });
        }
        if !selection.is_unchanged() {
            let cause = format!("{:?} was changed while it was summarised", *file.name());
            return Err(Fault::TransferFailed { cause });
        }
        let heads = selection.heads.borrow();
        let mut blocks: BTreeMap<u64, SummarisedBlock<P>> = BTreeMap::new();
        for (block, found) in selection.blocks.borrow().iter() {
            let (bounds, head) = (found.bounds.clone(), heads.get(block).cloned());
            blocks.insert(*block, SummarisedBlock { bounds, head });
        }
        let of_block = |block: &SummarisedBlock<P>| {
            let bounds = block.bounds.len() * size_of::<Bounds>();
            bounds as u64 + block.head.as_ref().map_or(0, Payload::length)
        };
        let bytes = blocks.values().map(of_block).sum();
        if bytes > SUMMARY_BYTES_MAX {
            let cause =
                format!("a summary would have {bytes} bytes at a server, which is too much");
            return Err(Fault::BadSelection { cause });
        }
        let (modified, records, fields) =
            (selection.modified, *selector.records(), fields.to_vec());
        let summary = Summary { modified, records, fields, blocks, bytes };
        let mut all = self.0.borrow_mut();
        all.remove(&file.file);
        while all.values().map(|one| one.bytes).sum::<u64>() + bytes > SUMMARY_BYTES_MAX {
            all.pop_first();
        }
        all.insert(file.file, Rc::new(summary));
        Ok(())
    }

    /// Forgets the summary of a file that is gone, whose time is set, or whose bytes may have
    /// become older ones.
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
