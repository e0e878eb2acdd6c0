//! Files that stay open while anything uses them.

use client::UserError;
use std::ops::Deref;

/// A file that is closed at the latest when nothing uses it any more.
pub(crate) struct OpenFile(Option<client::File>);

impl Deref for OpenFile {
    type Target = client::File;

    fn deref(&self) -> &client::File {
        self.0.as_ref().expect("a file is closed by its last user")
    }
}

impl OpenFile {
    pub(crate) fn new(file: client::File) -> Self {
        Self(Some(file))
    }

    /// Closes it.
    ///
    /// # Errors
    /// Faults of the servers.
    pub(crate) fn close(mut self) -> Result<(), UserError> {
        self.0.take().map_or(Ok(()), client::File::close)
    }
}

impl Drop for OpenFile {
    /// Closes a file that was in use when it should have been closed. Nobody is there to be told.
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            // Without a thread it is closed with its connection.
            let closing = std::thread::Builder::new().name("unisono-close".to_owned());
            let _ = closing.spawn(move || drop(file.close()));
        }
    }
}
