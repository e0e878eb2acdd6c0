//! Entries by number, as a mount uses them: requests of a client to the catalogue.

use super::limits::CATALOGUE;
use crate::client::faults::unexpected;
use crate::client::state::Client;
use units::{FileId, Timestamp};
use wire::{
    AttributeChanges, Entry, EntryKind, Fault, FileRecord, FileRequest, NewNode, NodeEntry,
    NodeRequest, Place, RenameManner, Reply,
};
use world::World;

impl<W: World> Client<W> {
    /// Returns the entry of a name; of a file with its current size and time. With `guess`, a
    /// record of the file that probably has the name, all servers are asked at the same time.
    ///
    /// # Errors
    /// [`Fault::NoSuchFile`]; [`Fault::NoSuchDirectory`] or [`Fault::NotADirectory`] for the number
    /// of the directory.
    pub async fn find_node(
        &self,
        place: Place,
        guess: Option<FileRecord>,
    ) -> Result<NodeEntry, Fault> {
        self.ask_with_guess(NodeRequest::Find(place), guess).await
    }

    /// Returns the entry of a number; of a file with its current size and time. A file without a
    /// name has an entry until its data is gone. With `guess`, its record, all servers are asked at
    /// the same time.
    ///
    /// # Errors
    /// [`Fault::NoSuchFile`].
    pub async fn look_at_node(
        &self,
        node: FileId,
        guess: Option<FileRecord>,
    ) -> Result<NodeEntry, Fault> {
        self.ask_with_guess(NodeRequest::Look { node }, guess).await
    }

    /// Makes an entry. A file is not open then.
    ///
    /// # Errors
    /// [`Fault::FileExists`], [`Fault::BadName`], and as for [`Client::find_node`].
    pub async fn make_node(&self, new: NewNode) -> Result<NodeEntry, Fault> {
        self.ask_for_node(NodeRequest::Make(Box::new(new))).await
    }

    /// Opens a file at its servers, of which the catalogue has sent the record.
    pub async fn open_node(&self, record: FileRecord) -> Result<FileRecord, Fault> {
        let recorded = record.size();
        self.open_known(record, recorded).await
    }

    /// Changes attributes of an entry. The time of a file's data is also set at its servers.
    ///
    /// # Errors
    /// [`Fault::NoSuchFile`]; faults of servers.
    pub async fn change_node(
        &self,
        node: FileId,
        changes: AttributeChanges,
    ) -> Result<NodeEntry, Fault> {
        let changed = self.ask_for_node(NodeRequest::Change { node, changes }).await?;
        // After the catalogue, which takes a time that it hears of later for that of a change.
        if let (Some(modified), Some(record)) = (changes.modified, changed.entry.file()) {
            self.set_modified_at_servers(record.clone(), modified).await?;
        }
        self.with_current_size(changed).await
    }

    /// Removes a name: that of an empty directory, or of anything else. The data of a file goes
    /// when no client has it open any more.
    ///
    /// # Errors
    /// [`Fault::NotADirectory`], [`Fault::IsADirectory`], [`Fault::DirectoryNotEmpty`], and as for
    /// [`Client::find_node`].
    pub async fn remove_node(&self, place: Place, is_directory: bool) -> Result<(), Fault> {
        let remove = NodeRequest::Remove { place, is_directory };
        self.ask_and_drop(remove).await
    }

    /// Gives an entry another name, as `rename` does.
    ///
    /// # Errors
    /// Those of [`Client::remove_node`] for an entry that has the new name;
    /// [`Fault::FileExists`] when it is to be kept; [`Fault::BadName`] for a name within itself.
    pub async fn rename_node(
        &self,
        from: Place,
        to: Place,
        manner: RenameManner,
    ) -> Result<(), Fault> {
        self.ask_and_drop(NodeRequest::Rename { from, to, manner }).await
    }

    /// Returns some entries of a directory behind `after`, and tells if there are more. Sizes and
    /// times of files that a client has open may be old.
    ///
    /// # Errors
    /// As for [`Client::find_node`].
    pub async fn list_nodes(
        &self,
        directory: FileId,
        after: Option<String>,
    ) -> Result<(Vec<NodeEntry>, bool), Fault> {
        match self.call(CATALOGUE, NodeRequest::List { directory, after }).await? {
            Reply::Nodes { entries, more } => Ok((entries, more)),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns the entry of a number under its whole name.
    ///
    /// # Errors
    /// [`Fault::NoSuchFile`], also for a file without a name.
    pub async fn node_path(&self, node: FileId) -> Result<Entry, Fault> {
        match self.call(CATALOGUE, NodeRequest::Path { node }).await? {
            Reply::Entry(entry) => Ok(entry),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes a change that may take the name of a file, whose data then goes.
    async fn ask_and_drop(&self, change: NodeRequest) -> Result<(), Fault> {
        match self.call(CATALOGUE, change).await? {
            Reply::Done => Ok(()),
            Reply::Node(lost) => match lost.entry.kind {
                EntryKind::File(file) => self.drop_data(&file).await,
                EntryKind::Directory(_) | EntryKind::Special(_) => Ok(()),
            },
            other => Err(unexpected(&other)),
        }
    }

    /// Sets the time of a file's data at its servers, which know it only while it is open.
    async fn set_modified_at_servers(
        &self,
        record: FileRecord,
        modified: Timestamp,
    ) -> Result<(), Fault> {
        let record = self.open_node(record).await?;
        let set = FileRequest::SetModified { file: record.file, modified };
        let done = self.call_servers(record.servers(), set).await;
        let closed = self.close(&record).await;
        done.and(closed)
    }

    /// Asks the catalogue for an entry, and the servers of `guess` for its size meanwhile. The
    /// order of their answers does not matter: servers remember a size that the catalogue has got
    /// lately.
    async fn ask_with_guess(
        &self,
        request: NodeRequest,
        guess: Option<FileRecord>,
    ) -> Result<NodeEntry, Fault> {
        let Some(mut guess) = guess else {
            let found = self.ask_for_node(request).await?;
            return self.with_current_size(found).await;
        };
        let (found, measured) =
            futures_util::future::join(self.ask_for_node(request), self.measure(&mut guess)).await;
        let mut found = found?;
        let is_right = found.entry.file().is_some_and(|record| record.file == guess.file);
        let Some(measured) = measured.ok().filter(|_| is_right) else {
            return self.with_current_size(found).await;
        };
        if let EntryKind::File(record) = &mut found.entry.kind {
            record.learn(guess.size());
        }
        Ok(changed_at(found, measured))
    }

    /// Asks the servers of a file for its size and time.
    async fn with_current_size(&self, mut found: NodeEntry) -> Result<NodeEntry, Fault> {
        let measured = match &mut found.entry.kind {
            EntryKind::File(record) => self.measure(record).await?,
            EntryKind::Directory(_) | EntryKind::Special(_) => return Ok(found),
        };
        Ok(changed_at(found, measured))
    }

    async fn ask_for_node(&self, request: NodeRequest) -> Result<NodeEntry, Fault> {
        match self.call(CATALOGUE, request).await? {
            Reply::Node(entry) => Ok(*entry),
            other => Err(unexpected(&other)),
        }
    }
}

/// Returns an entry with the time of a later change that its servers know.
fn changed_at(mut found: NodeEntry, measured: Timestamp) -> NodeEntry {
    let NodeEntry { entry, attributes, .. } = &mut found;
    if measured > entry.modified {
        entry.modified = measured;
        attributes.changed = attributes.changed.max(measured);
    }
    found
}
