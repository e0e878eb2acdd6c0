//! A client's request that the server ends.

use crate::signal::Signal;
use std::cell::Cell;

/// Request to stop, which may come at any time.
#[derive(Default)]
pub(crate) struct Stop {
    is_requested: Cell<bool>,
    is_ending: Cell<bool>,
    requested: Signal,
}

impl Stop {
    /// Has the server end.
    pub(crate) fn request(&self) {
        self.is_requested.set(true);
        self.requested.notify();
    }

    /// Notes that the server ends: from now on it answers other servers only.
    pub(crate) fn begin_end(&self) {
        self.is_ending.set(true);
    }

    /// True once the server answers other servers only.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.get()
    }

    /// Waits until a client has asked the server to end.
    pub(crate) async fn until_requested(&self) {
        self.requested.until(|| self.is_requested.get().then_some(())).await;
    }
}
