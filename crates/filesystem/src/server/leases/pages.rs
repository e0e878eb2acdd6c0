//! Pages that clients keep, and their recall before a change.

use crate::scale::rare;
use crate::server::Server;
use crate::server::answer::Answer;
use crate::server::files::open_file::OpenFile;
use units::{FileId, PeerId};
use wire::{Fault, Message, Reply};
use world::World;

impl<W: World> Server<W> {
    /// Answers with a page of a file, which the client may keep unless somebody changes the file or
    /// may do so without a message.
    pub(crate) async fn page_to_keep(
        &self,
        from: PeerId,
        file: &OpenFile,
        page: impl Future<Output = Result<Answer<W::Payload>, Fault>>,
    ) -> Result<Answer<W::Payload>, Fault> {
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
        self.readers().until_gone(file, except).await;
        drop(waiting);
    }
}
