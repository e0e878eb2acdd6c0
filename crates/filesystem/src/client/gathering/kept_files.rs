//! Files of which a client keeps pages.

use super::store::KeptStore;
use crate::signal::Signal;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{FileId, ServerId};

/// Maximum number of files of which a client keeps pages at a time.
const FILES_MAX: usize = 16;

/// Files of which a client keeps pages.
#[derive(Default)]
pub(in crate::client) struct KeptFiles {
    files: RefCell<BTreeMap<FileId, Rc<KeptFile>>>,
    /// Notified when a server was told that no page is kept.
    pub(super) changed: Signal,
}

/// One file of which a client keeps pages, or may.
pub(super) struct KeptFile {
    pub(super) store: Rc<dyn KeptStore>,
    pub(super) servers: Vec<ServerId>,
    /// Number of servers that are being told that no page is kept. Until they know it, no other
    /// page is asked for.
    pub(super) telling: Cell<u32>,
    /// True if a server let the client keep a page since it was told of none.
    pub(super) has_pages: Cell<bool>,
    /// True once a server of the file has left: no page is kept any more.
    pub(super) has_left: Cell<bool>,
}

impl KeptFiles {
    /// Returns a file, if the client keeps pages of it, or may.
    pub(super) fn of(&self, file: FileId) -> Option<Rc<KeptFile>> {
        self.files.borrow().get(&file).cloned()
    }

    /// Adds a file with these servers, unless there are too many.
    pub(super) fn add(
        &self,
        file: FileId,
        store: Rc<dyn KeptStore>,
        servers: Vec<ServerId>,
    ) -> Option<Rc<KeptFile>> {
        let mut files = self.files.borrow_mut();
        if files.len() >= FILES_MAX {
            return None;
        }
        let (telling, has_pages, has_left) = (Cell::new(0), Cell::default(), Cell::default());
        let kept = Rc::new(KeptFile { store, servers, telling, has_pages, has_left });
        files.insert(file, Rc::clone(&kept));
        Some(kept)
    }

    /// Drops the pages of all files of a server that has left.
    pub(super) fn drop_pages_of(&self, server: ServerId) {
        for kept in self.files.borrow().values().filter(|kept| kept.servers.contains(&server)) {
            kept.store.drop_pages();
            kept.has_left.set(true);
        }
    }

    /// Forgets a file, whichever entry it has.
    pub(super) fn remove(&self, file: FileId) -> Option<Rc<KeptFile>> {
        self.files.borrow_mut().remove(&file)
    }

    /// Tells if this is the entry of a file.
    pub(super) fn is_current(&self, file: FileId, kept: &Rc<KeptFile>) -> bool {
        self.files.borrow().get(&file).is_some_and(|known| Rc::ptr_eq(known, kept))
    }
}
