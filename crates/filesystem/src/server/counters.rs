//! Counters of a server, for its status.

use std::cell::Cell;

/// Numbers since the start of a server.
#[derive(Default)]
pub(crate) struct Counters {
    requests: Cell<u64>,
    bytes_moved: Cell<u64>,
}

impl Counters {
    /// Counts a request.
    pub(crate) fn count_request(&self) {
        self.requests.set(self.requests.get() + 1);
    }

    /// Counts bytes that have moved between a client and this server.
    pub(crate) fn count_moved(&self, bytes: u64) {
        self.bytes_moved.set(self.bytes_moved.get() + bytes);
    }

    /// Number of requests.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// Number of bytes that have moved.
    pub(crate) fn bytes_moved(&self) -> u64 {
        self.bytes_moved.get()
    }
}
