//! Clients that keep pages of a file to read from them, until somebody wants to change it.

use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::BTreeMap;
use units::{FileId, PeerId};

/// Clients that keep pages, of all files at one server.
#[derive(Default)]
pub(crate) struct Readers {
    files: RefCell<BTreeMap<FileId, FileReaders>>,
    /// Notified when a client keeps no page of a file any more.
    changed: Signal,
}

/// Clients that keep pages of one file.
#[derive(Default)]
struct FileReaders {
    /// Each client, and true once it was told to drop its pages.
    told: BTreeMap<PeerId, bool>,
    /// Number of changes that wait for them. No other client may keep a page meanwhile.
    waiting: u32,
}

/// Change that waits for readers. Over when dropped.
pub(super) struct Waiting<'a> {
    readers: &'a Readers,
    file: FileId,
}

impl Readers {
    /// True when no client keeps pages of any file.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.borrow().is_empty()
    }

    /// Lets a client keep pages of a file. False when a change waits.
    pub(super) fn add(&self, file: FileId, client: PeerId) -> bool {
        let mut files = self.files.borrow_mut();
        let readers = files.entry(file).or_default();
        if readers.waiting > 0 {
            return false;
        }
        readers.told.entry(client).or_insert(false);
        true
    }

    /// Notes that a client keeps no pages of a file.
    pub(crate) fn end(&self, file: FileId, client: PeerId) {
        let mut files = self.files.borrow_mut();
        let Some(readers) = files.get_mut(&file) else { return };
        readers.told.remove(&client);
        if readers.is_unused() {
            files.remove(&file);
        }
        drop(files);
        self.changed.notify();
    }

    /// Forgets a file whose data goes.
    pub(crate) fn forget(&self, file: FileId) {
        let mut files = self.files.borrow_mut();
        if let Some(readers) = files.get_mut(&file) {
            readers.told.clear();
            if readers.is_unused() {
                files.remove(&file);
            }
        }
        drop(files);
        self.changed.notify();
    }

    /// Notes that a client has left.
    pub(crate) fn leave(&self, client: PeerId) {
        let files: Vec<FileId> = self.files.borrow().keys().copied().collect();
        files.into_iter().for_each(|file| self.end(file, client));
    }

    /// Clients that were told to drop their pages and have not done it.
    pub(crate) fn recalled_clients(&self) -> Vec<PeerId> {
        let files = self.files.borrow();
        let all = files.values().flat_map(|readers| &readers.told);
        all.filter(|(_, told)| **told).map(|(client, _)| *client).collect()
    }

    /// True if a client other than `except` keeps pages of a file.
    pub(super) fn has_others(&self, file: FileId, except: Option<PeerId>) -> bool {
        let files = self.files.borrow();
        let of_file = files.get(&file);
        of_file.is_some_and(|readers| readers.told.keys().any(|client| Some(*client) != except))
    }

    /// Waits until no client but `except` keeps pages of a file.
    pub(super) async fn until_gone(&self, file: FileId, except: Option<PeerId>) {
        let have_gone = || (!self.has_others(file, except)).then_some(());
        self.changed.until(have_gone).await;
    }

    /// Begins to wait for the clients that keep pages of a file; returns those to tell.
    pub(super) fn begin_wait(
        &self,
        file: FileId,
        except: Option<PeerId>,
    ) -> (Vec<PeerId>, Waiting<'_>) {
        let mut files = self.files.borrow_mut();
        let readers = files.entry(file).or_default();
        readers.waiting += 1;
        let new =
            readers.told.iter_mut().filter(|(client, told)| Some(**client) != except && !**told);
        let tell = |(client, told): (&PeerId, &mut bool)| {
            *told = true;
            *client
        };
        (new.map(tell).collect(), Waiting { readers: self, file })
    }
}

impl FileReaders {
    fn is_unused(&self) -> bool {
        self.told.is_empty() && self.waiting == 0
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut files = self.readers.files.borrow_mut();
        if let Some(readers) = files.get_mut(&self.file) {
            readers.waiting -= 1;
            if readers.is_unused() {
                files.remove(&self.file);
            }
        }
    }
}
