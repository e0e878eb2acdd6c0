//! Wakes of the loop in which a rank waits.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

/// Wakes the rank's loop, from any thread.
pub(super) struct Bell {
    pub(super) event: OwnedFd,
    pub(super) has_rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.has_rung.swap(true, Ordering::AcqRel) {
            // Only a full counter refuses, and then the loop is awake.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }
}
