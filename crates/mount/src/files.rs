//! Open files: one of the library for each that any program has open here.

use client::{Connection, File, FileId, FileRecord};
use interface::UserError;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All open files.
#[derive(Default)]
pub(crate) struct OpenFiles(Mutex<HashMap<FileId, OpenFile>>);

struct OpenFile {
    file: File,
    /// Opens that were not closed.
    users: u64,
}

impl OpenFiles {
    /// Opens a file once more.
    pub(crate) fn open(
        &self,
        connection: &Connection,
        record: FileRecord,
    ) -> Result<File, UserError> {
        let id = record.file;
        let opened = connection.open_node(record)?;
        match self.lock().entry(id) {
            Entry::Vacant(free) => {
                free.insert(OpenFile { file: opened.clone(), users: 1 });
            }
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.users += 1;
                // The connection counts its opens, and each open has asked for the size.
                known.file = opened.clone();
            }
        }
        Ok(opened)
    }

    /// A file that is open.
    pub(crate) fn get(&self, id: FileId) -> Option<File> {
        self.lock().get(&id).map(|open| open.file.clone())
    }

    /// Closes a file once.
    pub(crate) fn close(&self, id: FileId) -> Result<(), UserError> {
        let file = {
            let mut all = self.lock();
            let Entry::Occupied(mut open) = all.entry(id) else { return Ok(()) };
            open.get_mut().users -= 1;
            match open.get().users {
                0 => open.remove().file,
                _ => open.get().file.clone(),
            }
        };
        file.close()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<FileId, OpenFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
