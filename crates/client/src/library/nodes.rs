//! Entries by number, as a mount uses them.

use super::cached_record::CachedRecord;
use super::connection::Connection;
use super::file::File;
use crate::files::{Placement, Usual, made_now, placement};
use interface::UserError;
use policy::Protection;
use units::FileId;
use wire::{
    AttributeChanges, FileDefaults, FileRecord, Made, NewKind, NewNode, NodeEntry, Place,
    RenameManner, Special,
};

/// Description of a new entry.
#[derive(Clone, Debug)]
pub struct NewFileNode {
    /// Name.
    pub place: Place,
    /// User id of the owner.
    pub owner: u32,
    /// Group id.
    pub group: u32,
    /// Bits of its mode.
    pub mode: u16,
}

impl NewFileNode {
    fn of_kind(self, kind: NewKind) -> NewNode {
        let Self { place, owner, group, mode } = self;
        let made = Made { owner, ..made_now() };
        NewNode { place, made, group, mode, kind }
    }
}

impl Connection {
    /// Entry of a name; of a file its size and time now. It takes half as long with `guess`, a
    /// record, however old, of the file that probably has the name.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](interface::ErrorKind::NotFound) when there is none.
    pub fn find_node(
        &self,
        place: Place,
        guess: Option<FileRecord>,
    ) -> Result<NodeEntry, UserError> {
        let what = format!("cannot read the metadata of {:?}", place.part);
        self.run(|| what, async move |shared| shared.client.find_node(place, guess).await)
    }

    /// Entry of a number; of a file its size and time now. It takes half as long with `guess`, a
    /// record of it.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](interface::ErrorKind::NotFound) when there is none.
    pub fn look_at_node(
        &self,
        node: FileId,
        guess: Option<FileRecord>,
    ) -> Result<NodeEntry, UserError> {
        let what = move || format!("cannot read the metadata of {node}");
        self.run(what, async move |shared| shared.client.look_at_node(node, guess).await)
    }

    /// Whole name of an entry.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](interface::ErrorKind::NotFound) when it has none.
    pub fn node_path(&self, node: FileId) -> Result<String, UserError> {
        let what = move || format!("cannot find the name of {node}");
        let entry = self.run(what, async move |shared| shared.client.node_path(node).await)?;
        Ok(entry.name)
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`](interface::ErrorKind::AlreadyExists) when the name is taken.
    pub fn make_directory_node(&self, new: NewFileNode) -> Result<NodeEntry, UserError> {
        self.make_node(new.of_kind(NewKind::Directory))
    }

    /// Makes a symbolic link, a named pipe or a socket.
    ///
    /// # Errors
    /// As for [`Connection::make_directory_node`].
    pub fn make_special_node(
        &self,
        new: NewFileNode,
        special: Special,
    ) -> Result<NodeEntry, UserError> {
        self.make_node(new.of_kind(NewKind::Special(special)))
    }

    /// Makes an empty file as `defaults` say, over all servers that they permit. It is not open
    /// then.
    ///
    /// # Errors
    /// As for [`Connection::make_directory_node`].
    pub fn make_file_node(
        &self,
        new: NewFileNode,
        defaults: &FileDefaults,
        disks_per_server: u32,
    ) -> Result<NodeEntry, UserError> {
        let usual = Usual { block_bytes: None, disks_per_server };
        // A file that is to grow deserves all servers.
        let placed = placement(self, usual, defaults, u64::MAX);
        let Placement { stripe, pool, buffering, protection } = placed;
        let (file, name, bytes, cuts) = (FileId(0), new.place.part.clone(), 0, 0);
        let record = FileRecord { file, name, bytes, cuts, stripe, pool, buffering, protection };
        self.make_node(new.of_kind(NewKind::File(record)))
    }

    fn make_node(&self, new: NewNode) -> Result<NodeEntry, UserError> {
        let what = format!("cannot create {:?}", new.place.part);
        self.run(|| what, async move |shared| shared.client.make_node(new).await)
    }

    /// Opens a file of which the catalogue has sent the record, however old.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](interface::ErrorKind::NotFound) when its data is gone.
    pub fn open_node(&self, record: FileRecord) -> Result<File, UserError> {
        let what = format!("cannot open {:?}", record.name);
        let opened = self.run(|| what, async move |shared| shared.client.open_node(record).await);
        // A mount: the kernel gathers what programs write.
        Ok(File::without_small_calls(self.clone(), CachedRecord::new(opened?)))
    }

    /// Changes attributes of an entry.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](interface::ErrorKind::NotFound) when there is none; faults of
    /// servers.
    pub fn change_node(
        &self,
        node: FileId,
        changes: AttributeChanges,
    ) -> Result<NodeEntry, UserError> {
        let what = move || format!("cannot change the attributes of {node}");
        self.run(what, async move |shared| shared.client.change_node(node, changes).await)
    }

    /// Removes a name: with `is_directory` that of an empty directory, else that of anything else.
    ///
    /// # Errors
    /// Kinds of errors as their names say, for another kind of entry.
    pub fn remove_node(&self, place: Place, is_directory: bool) -> Result<(), UserError> {
        let what = format!("cannot remove {:?}", place.part);
        let remove = async move |shared: std::rc::Rc<super::connection::Shared>| {
            shared.client.remove_node(place, is_directory).await
        };
        self.run(|| what, remove)
    }

    /// Gives an entry another name.
    ///
    /// # Errors
    /// As for [`Connection::remove_node`].
    pub fn rename_node(
        &self,
        from: Place,
        to: Place,
        manner: RenameManner,
    ) -> Result<(), UserError> {
        let what = format!("cannot rename {:?} to {:?}", from.part, to.part);
        self.run(|| what, async move |shared| shared.client.rename_node(from, to, manner).await)
    }

    /// Some entries of a directory behind `after`, in the order of their names, and whether there
    /// are more.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](interface::ErrorKind::NotFound) when there is no such directory.
    pub fn list_nodes(
        &self,
        directory: FileId,
        after: Option<String>,
    ) -> Result<(Vec<NodeEntry>, bool), UserError> {
        let what = move || format!("cannot list {directory}");
        self.run(what, async move |shared| shared.client.list_nodes(directory, after).await)
    }

    /// Sets the defaults of new files in a directory of this name.
    ///
    /// # Errors
    /// Values that servers refuse.
    pub fn set_defaults(&self, directory: &str, defaults: FileDefaults) -> Result<(), UserError> {
        let what = format!("cannot set the layout of {directory:?}");
        let directory = directory.to_owned();
        self.run(
            || what,
            async move |shared| shared.client.set_defaults(&directory, defaults).await,
        )
    }

    /// Protects a file, or ceases to. Its copies are written then, or removed. `file` is its record
    /// as the catalogue has it now.
    ///
    /// # Errors
    /// Fails when the file is on too few servers, or one of them does not answer.
    pub fn protect_file(&self, file: FileRecord, protection: Protection) -> Result<(), UserError> {
        let what = format!("cannot change the protection of {:?}", file.name);
        self.run(|| what, async move |shared| shared.client.protect(&file, protection).await)
    }

    /// Bytes in total, and bytes free, on all disks of the servers that answer.
    ///
    /// # Errors
    /// Fails when the connection has ended.
    pub fn space(&self) -> Result<(u64, u64), UserError> {
        let what = || "cannot ask the servers for their space".to_owned();
        let all = self.run(what, async move |shared| Ok(shared.client.status().await))?;
        let disks = all.into_iter().flatten().flat_map(|status| status.disks);
        Ok(disks.fold((0, 0), |sum: (u64, u64), (total, free)| {
            (sum.0.saturating_add(total), sum.1.saturating_add(free))
        }))
    }
}
