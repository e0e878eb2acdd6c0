//! Transfers that go on after their wait was interrupted.
//!
//! *Invariant:* a later transfer of the file by this connection begins when they have ended, so
//! that it finds what they have written.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Interval between looks at a transfer that goes on.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits a moment without the interpreter, and looks for signals.
pub(crate) fn pause(py: Python<'_>) -> PyResult<()> {
    py.detach(|| std::thread::sleep(PAUSE));
    py.check_signals()
}

/// Interrupted transfers of a connection, by the names of their files.
#[derive(Default)]
pub(crate) struct Interrupted(Mutex<Vec<(String, Arc<AtomicBool>)>>);

/// Sets its flag when dropped, at the end of a transfer.
pub(crate) struct SetAtEnd(pub(crate) Arc<AtomicBool>);

impl Drop for SetAtEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Interrupted {
    /// Adds a transfer of a file, which has ended when the flag is set.
    pub(crate) fn add(&self, file: &str, has_ended: Arc<AtomicBool>) {
        let mut transfers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        transfers.push((file.to_owned(), has_ended));
    }

    /// Waits for the ends of the interrupted transfers of a file. A signal ends the wait.
    pub(crate) fn settle(&self, py: Python<'_>, file: &str) -> PyResult<()> {
        while self.has(file) {
            pause(py)?;
        }
        Ok(())
    }

    /// True if an interrupted transfer of a file goes on.
    pub(crate) fn has(&self, file: &str) -> bool {
        let mut transfers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        transfers.retain(|(_, has_ended)| !has_ended.load(Ordering::Acquire));
        transfers.iter().any(|(name, _)| name == file)
    }
}
