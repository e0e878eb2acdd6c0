//! Open directories: entries that were fetched from the catalogue and that the kernel still reads.

use crate::attributes::{file_type, inode};
use client::{Connection, FileId};
use fuser::{FileHandle, FileType, INodeNo, ReplyDirectory};
use interface::UserError;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// All open directories.
#[derive(Default)]
pub(crate) struct Listings {
    open: Mutex<HashMap<u64, Arc<Mutex<Listing>>>>,
    next: AtomicU64,
}

/// A directory that a program reads.
pub(crate) struct Listing {
    directory: FileId,
    entries: Vec<(INodeNo, FileType, String)>,
    is_complete: bool,
}

impl Listings {
    /// Opens a directory.
    pub(crate) fn open(&self, directory: FileId) -> FileHandle {
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        let listing = Listing { directory, entries: Vec::new(), is_complete: false };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(handle, Arc::new(Mutex::new(listing)));
        FileHandle(handle)
    }

    /// An open directory.
    pub(crate) fn get(&self, handle: FileHandle) -> Option<Arc<Mutex<Listing>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).get(&handle.0).map(Arc::clone)
    }

    /// Closes a directory.
    pub(crate) fn close(&self, handle: FileHandle) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle.0);
    }
}

impl Listing {
    /// Adds the entries from number `offset` on to an answer, as many as it takes. A read from the
    /// start asks the catalogue again.
    pub(crate) fn fill(
        &mut self,
        connection: &Connection,
        offset: u64,
        reply: &mut ReplyDirectory,
    ) -> Result<(), UserError> {
        if offset == 0 {
            self.entries.clear();
            for dots in [".", ".."] {
                let own = (inode(self.directory), FileType::Directory, dots.to_owned());
                self.entries.push(own);
            }
            self.is_complete = false;
        }
        let mut at = offset as usize;
        loop {
            while let Some((inode, kind, name)) = self.entries.get(at) {
                at += 1;
                if reply.add(*inode, at as u64, *kind, name) {
                    return Ok(());
                }
            }
            if self.is_complete {
                return Ok(());
            }
            self.fetch(connection)?;
        }
    }

    fn fetch(&mut self, connection: &Connection) -> Result<(), UserError> {
        let last = self.entries.last().map(|(_, _, name)| name.clone());
        let after = last.filter(|_| self.entries.len() > 2);
        let (entries, more) = connection.list_nodes(self.directory, after)?;
        self.is_complete = !more || entries.is_empty();
        self.entries.extend(
            entries
                .into_iter()
                .map(|found| (inode(found.node), file_type(&found.entry.kind), found.entry.name)),
        );
        Ok(())
    }
}
