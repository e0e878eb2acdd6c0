//! Values that live on the I/O thread, and may be held and dropped anywhere.

use super::io_thread::IoThread;
use send_wrapper::SendWrapper;
use std::sync::Arc;

/// A value of the I/O thread. Dropped on that thread, whoever drops the handle.
pub(super) struct OnThread<T: 'static> {
    thread: Arc<IoThread>,
    value: Option<SendWrapper<T>>,
}

impl<T> OnThread<T> {
    /// Wraps a value that was made on the I/O thread, by the I/O thread.
    pub(super) fn new(thread: &Arc<IoThread>, value: T) -> Self {
        assert!(thread.is_here(), "a value of the I/O thread is made there");
        Self { thread: Arc::clone(thread), value: Some(SendWrapper::new(value)) }
    }

    /// The value. Panics anywhere but on the I/O thread.
    pub(super) fn get(&self) -> &T {
        self.value.as_ref().expect("a value is there until it is dropped")
    }
}

impl<T> Drop for OnThread<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else { return };
        if self.thread.is_here() {
            return drop(value);
        }
        if let Err((job, _)) = self.thread.post(Box::new(move || drop(value))) {
            // The thread and all that lived on it are gone, or belong to the parent process.
            std::mem::forget(job);
        }
    }
}
