//! Clients that keep pages of a file to read from them, until somebody wants to change it.

use super::super::state::Server;
use crate::scale::rare;
use crate::server::answer::Answer;
use crate::server::files::open_file::OpenFile;
use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::BTreeMap;
use units::{FileId, PeerId};
use wire::{Message, Reply};
use world::World;

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
struct Waiting<'a> {
    readers: &'a Readers,
    file: FileId,
}

impl Readers {
    /// Lets a client keep pages of a file. False when a change waits.
    fn add(&self, file: FileId, client: PeerId) -> bool {
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
    fn has_others(&self, file: FileId, except: Option<PeerId>) -> bool {
        let files = self.files.borrow();
        let of_file = files.get(&file);
        of_file.is_some_and(|readers| readers.told.keys().any(|client| Some(*client) != except))
    }

    /// Begins to wait for the clients that keep pages of a file; returns those to tell.
    fn begin_wait(&self, file: FileId, except: Option<PeerId>) -> (Vec<PeerId>, Waiting<'_>) {
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

impl<W: World> Server<W> {
    /// Answers with a page of a file, which the client may keep unless somebody changes the file or
    /// may do so without a message.
    pub(crate) async fn page_to_keep(
        &self,
        from: PeerId,
        file: &OpenFile,
        page: impl Future<Output = Result<Answer<W::Payload>, wire::Fault>>,
    ) -> Result<Answer<W::Payload>, wire::Fault> {
        let client = self.clients().first_of(from);
        // Before the page is read: a later change waits for the client to drop it.
        let is_granted = !self.config().client_caches
            && file.changes.get() == 0
            && !self.leases().has_others(file.file, client)
            && self.readers().add(file.file, client);
        let page = page.await?;
        Ok(Answer { reply: Reply::Lease { is_granted }, ..page })
    }

    /// Waits until no client but `except` keeps pages of a file. The caller must begin the change
    /// at once.
    pub(crate) async fn exclude_readers(&self, file: FileId, except: Option<PeerId>) {
        if self.readers().has_others(file, except) {
            rare(self.exclude_these(file, except)).await;
        }
    }

    async fn exclude_these(&self, file: FileId, except: Option<PeerId>) {
        let (told, waiting) = self.readers().begin_wait(file, except);
        self.tell(told, Message::RecallPages { file });
        let readers = self.readers();
        let have_gone = || (!readers.has_others(file, except)).then_some(());
        readers.changed.until(have_gone).await;
        drop(waiting);
    }
}
