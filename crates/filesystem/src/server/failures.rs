//! What went wrong behind the back of whoever wrote: blocks that a disk did not take.
//!
//! Invariant: every client that had the file open then is told once, by its next flush, whoever was
//! told before; if nobody had, the first to flush is told.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use units::{FileId, PeerId};
use wire::Fault;

/// The latest failure of each file, while anyone is left who must be told.
#[derive(Default)]
pub(crate) struct Failures(RefCell<BTreeMap<FileId, Failure>>);

struct Failure {
    fault: Fault,
    /// Those who know. Those who have left are harmless: a number that is used again is entered
    /// again when its client opens the file.
    told: BTreeSet<PeerId>,
}

impl Failures {
    /// Something of a file is lost.
    pub(crate) fn record(&self, file: FileId, fault: Fault) {
        self.0.borrow_mut().insert(file, Failure { fault, told: BTreeSet::new() });
    }

    /// A client has opened a file. What others were told happened before its time.
    pub(crate) fn opened(&self, file: FileId, by: PeerId) {
        if let Some(failure) = self.0.borrow_mut().get_mut(&file)
            && !failure.told.is_empty()
        {
            failure.told.insert(by);
        }
    }

    /// Fails with what a client has not been told.
    pub(crate) fn tell(&self, file: FileId, to: PeerId) -> Result<(), Fault> {
        let mut failures = self.0.borrow_mut();
        let failure = failures.get_mut(&file).filter(|failure| !failure.told.contains(&to));
        let Some(failure) = failure else { return Ok(()) };
        failure.told.insert(to);
        Err(failure.fault.clone())
    }

    /// Fails with what nobody has been told.
    pub(crate) fn untold(&self) -> Result<(), Fault> {
        let failures = self.0.borrow();
        match failures.values().find(|failure| failure.told.is_empty()) {
            Some(failure) => Err(failure.fault.clone()),
            None => Ok(()),
        }
    }

    /// Nobody has a file open any more.
    pub(crate) fn closed(&self, file: FileId) {
        let mut failures = self.0.borrow_mut();
        if failures.get(&file).is_some_and(|failure| !failure.told.is_empty()) {
            failures.remove(&file);
        }
    }

    /// A file is gone.
    pub(crate) fn forget(&self, file: FileId) {
        self.0.borrow_mut().remove(&file);
    }
}
