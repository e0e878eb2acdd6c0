//! Failures of write-behind: blocks that a disk did not accept.
//!
//! Invariants:
//! - Every client that had the file open then gets the fault once, by its next write or
//!   flush, whether others got it or not.
//! - If no client had the file open, the first that writes or flushes gets it.
//! - A request to stop the server gets, once, a fault that no client has got.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use units::{FileId, PeerId};
use wire::Fault;

/// Latest failure of each file, until it is reported.
#[derive(Default)]
pub(crate) struct WriteFailures {
    of_files: RefCell<BTreeMap<FileId, Failure>>,
    /// Number of failures so far.
    recorded: Cell<u64>,
}

struct Failure {
    fault: Fault,
    /// Clients that have got the fault. Departed ones are harmless: a connection number that is
    /// used again is entered again when its client opens the file.
    reported_to: BTreeSet<PeerId>,
    /// True when a request to stop has got the fault.
    reported_at_stop: bool,
}

impl WriteFailures {
    /// Records a failure of a file. That of another server means that what clients have written is
    /// lost; they must not take it for one of their own requests.
    pub(crate) fn record(&self, file: FileId, fault: Fault) {
        let fault = match fault {
            Fault::ServerLeft { .. } | Fault::ServerStalled { .. } => {
                Fault::WritesLost { cause: fault.to_string() }
            }
            other => other,
        };
        self.recorded.update(|count| count + 1);
        self.of_files
            .borrow_mut()
            .insert(file, Failure { fault, reported_to: BTreeSet::new(), reported_at_stop: false });
    }

    /// Notes that a client has opened a file. A failure that was reported to others happened
    /// before.
    pub(crate) fn opened(&self, file: FileId, by: PeerId) {
        if let Some(failure) = self.of_files.borrow_mut().get_mut(&file)
            && !failure.reported_to.is_empty()
        {
            failure.reported_to.insert(by);
        }
    }

    /// Returns the fault that a client has not got yet.
    pub(crate) fn report_to(&self, file: FileId, to: PeerId) -> Result<(), Fault> {
        let mut failures = self.of_files.borrow_mut();
        let failure = failures.get_mut(&file).filter(|failure| !failure.reported_to.contains(&to));
        let Some(failure) = failure else { return Ok(()) };
        failure.reported_to.insert(to);
        Err(failure.fault.clone())
    }

    /// Returns the fault that a client has not got yet, and does not count it as reported.
    pub(crate) fn unreported_to(&self, file: FileId, to: PeerId) -> Option<Fault> {
        let failures = self.of_files.borrow();
        let failure = failures.get(&file).filter(|failure| !failure.reported_to.contains(&to));
        failure.map(|failure| failure.fault.clone())
    }

    /// Fails with the latest failure of a file, if there is one, and does not count it as reported.
    pub(crate) fn latest(&self, file: FileId) -> Result<(), Fault> {
        let failures = self.of_files.borrow();
        failures.get(&file).map_or(Ok(()), |failure| Err(failure.fault.clone()))
    }

    /// Number of failures of all files so far.
    pub(crate) fn count(&self) -> u64 {
        self.recorded.get()
    }

    /// Returns, once, a fault that no client has got: a second request to stop succeeds.
    pub(crate) fn unreported(&self) -> Result<(), Fault> {
        let mut outcome = Ok(());
        for failure in self.of_files.borrow_mut().values_mut() {
            if failure.reported_to.is_empty()
                && !std::mem::replace(&mut failure.reported_at_stop, true)
            {
                outcome = outcome.and(Err(failure.fault.clone()));
            }
        }
        outcome
    }

    /// Forgets a reported failure of a file that no client has open any more.
    pub(crate) fn closed(&self, file: FileId) {
        let mut failures = self.of_files.borrow_mut();
        if failures.get(&file).is_some_and(|failure| !failure.reported_to.is_empty()) {
            failures.remove(&file);
        }
    }

    /// Forgets a removed file.
    pub(crate) fn forget(&self, file: FileId) {
        self.of_files.borrow_mut().remove(&file);
    }
}
