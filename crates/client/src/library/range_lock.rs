//! Locks of byte ranges that members of a group hold.

use super::connection::Connection;
use super::on_thread::OnThread;
use interface::UserError;
use std::cell::RefCell;
use std::sync::Arc;
use units::ByteRange;
use world_real::RealWorld;

/// Lock as it lives on the I/O thread, until it is released.
pub(super) type OnIoThread = Arc<OnThread<RefCell<Option<filesystem::RangeLock<RealWorld>>>>>;

/// Lock of a byte range that this process holds as a member of a group. Dropping it releases it,
/// without waiting. It goes, too, when the process leaves the group or ends.
#[must_use = "a lock that is dropped is released"]
pub struct RangeLock {
    // Dropped before the connection, so that the server learns it.
    lock: OnIoThread,
    connection: Connection,
    range: ByteRange,
}

impl RangeLock {
    pub(super) fn new(connection: Connection, lock: OnIoThread, range: ByteRange) -> Self {
        Self { lock, connection, range }
    }

    /// Locked bytes.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.range.start..self.range.end
    }

    /// Releases the lock, and waits until the server has done so.
    ///
    /// # Errors
    /// [`ErrorKind::ServerLeft`](interface::ErrorKind::ServerLeft) when the server has gone; the
    /// lock went with it.
    pub fn unlock(self) -> Result<(), UserError> {
        let ByteRange { start, end } = self.range;
        let what = move || format!("cannot unlock bytes {start} to {end}");
        let lock = Arc::clone(&self.lock);
        self.connection.run(what, move |_| {
            let held = lock.get().borrow_mut().take();
            async move {
                match held {
                    Some(held) => held.unlock().await,
                    None => Ok(()),
                }
            }
        })
    }
}
