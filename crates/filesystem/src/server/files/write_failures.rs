//! What went wrong behind the back of whoever wrote: blocks that a disk did not take.
//!
//! Invariant: every client that had the file open then is told once, by its next flush, whoever was
//! told before; if nobody had, the first to flush is told. Whoever asks the server to stop is told
//! what nobody else was, once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use units::{FileId, PeerId};
use wire::Fault;

/// The latest failure of each file, while anyone is left who must be told.
#[derive(Default)]
pub(crate) struct WriteFailures(RefCell<BTreeMap<FileId, Failure>>);

struct Failure {
    fault: Fault,
    /// Those who know. Those who have left are harmless: a number that is used again is entered
    /// again when its client opens the file.
    reported_to: BTreeSet<PeerId>,
    /// Whoever asked the server to stop knows.
    reported_at_stop: bool,
}

impl WriteFailures {
    /// Something of a file is lost.
    pub(crate) fn record(&self, file: FileId, fault: Fault) {
        self.0
            .borrow_mut()
            .insert(file, Failure { fault, reported_to: BTreeSet::new(), reported_at_stop: false });
    }

    /// A client has opened a file. What others were told happened before its time.
    pub(crate) fn opened(&self, file: FileId, by: PeerId) {
        if let Some(failure) = self.0.borrow_mut().get_mut(&file)
            && !failure.reported_to.is_empty()
        {
            failure.reported_to.insert(by);
        }
    }

    /// Fails with what a client has not been told.
    pub(crate) fn report_to(&self, file: FileId, to: PeerId) -> Result<(), Fault> {
        let mut failures = self.0.borrow_mut();
        let failure = failures.get_mut(&file).filter(|failure| !failure.reported_to.contains(&to));
        let Some(failure) = failure else { return Ok(()) };
        failure.reported_to.insert(to);
        Err(failure.fault.clone())
    }

    /// Fails, once, with what nobody has been told: a server that is asked to stop again stops.
    pub(crate) fn unreported(&self) -> Result<(), Fault> {
        let mut outcome = Ok(());
        for failure in self.0.borrow_mut().values_mut() {
            if failure.reported_to.is_empty()
                && !std::mem::replace(&mut failure.reported_at_stop, true)
            {
                outcome = outcome.and(Err(failure.fault.clone()));
            }
        }
        outcome
    }

    /// Nobody has a file open any more.
    pub(crate) fn closed(&self, file: FileId) {
        let mut failures = self.0.borrow_mut();
        if failures.get(&file).is_some_and(|failure| !failure.reported_to.is_empty()) {
            failures.remove(&file);
        }
    }

    /// A file is gone.
    pub(crate) fn forget(&self, file: FileId) {
        self.0.borrow_mut().remove(&file);
    }
}
