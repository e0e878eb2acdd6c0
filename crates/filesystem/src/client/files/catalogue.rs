//! Directories and files by name: requests of a client to the catalogue.

use super::cached_sizes::Opening;
use super::limits::{CATALOGUE, OPENING_MAX};
use crate::client::faults::unexpected;
use crate::client::state::Client;
use policy::{Buffering, Pool, Protection, Stripe};
use units::{FileId, Timestamp};
use wire::{
    BlockRequest, BufferStatistics, CatalogueRequest, DigestsRequest, Entry, EntryKind, Fault,
    FileDefaults, FileRecord, FileRequest, FileSize, FlushRequest, Made, Reply,
};
use world::World;

/// Maximum number of times that a file is looked up again because another file has replaced it.
const REPLACED_MAX: u32 = 16;

/// Description of a new file.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// Path from the root, in an existing directory.
    pub name: String,
    /// Size in bytes. All bytes are zero at first.
    pub bytes: u64,
    /// Map of its blocks to servers and disks.
    pub stripe: Stripe,
    /// Servers that hold it.
    pub pool: Pool,
    /// Caching policy of its blocks.
    pub buffering: Buffering,
    /// Protection against the loss of a server.
    pub protection: Protection,
    /// Owner and time of creation.
    pub made: Made,
}

impl<W: World> Client<W> {
    /// Creates a file of `bytes` zero bytes on the first servers of the instance, and opens it.
    pub async fn create(
        &self,
        name: &str,
        bytes: u64,
        stripe: Stripe,
    ) -> Result<FileRecord, Fault> {
        let (name, pool) = (name.to_owned(), Pool::all(self.servers()));
        let (made, buffering) = (Made::default(), Buffering::default());
        let protection = Protection::None;
        self.create_as(NewFile { name, bytes, stripe, pool, buffering, protection, made }).await
    }

    /// Creates a file and opens it.
    ///
    /// # Errors
    /// [`Fault::FileExists`], [`Fault::NoSuchDirectory`], [`Fault::NotADirectory`],
    /// [`Fault::BadName`]; [`Fault::BadRequest`] for an invalid stripe or pool. No file exists
    /// then, unless a server left after the file was created and before it was open.
    pub async fn create_as(&self, new: NewFile) -> Result<FileRecord, Fault> {
        let NewFile { name, bytes, stripe, pool, buffering, protection, made } = new;
        let (file, cuts) = (FileId(0), 0);
        let record = FileRecord { file, name, bytes, cuts, stripe, pool, buffering, protection };
        let record = self.ask_for_file(CatalogueRequest::Create { record, made }).await?;
        let recorded = record.size();
        self.open_known(record, recorded).await
    }

    /// Creates a directory in an existing one.
    pub async fn make_directory(&self, name: &str, made: Made) -> Result<(), Fault> {
        let request = CatalogueRequest::MakeDirectory { name: name.to_owned(), made };
        self.ask_for_entry(request).await.map(|_| ())
    }

    /// Opens a file at its servers, with the caching policy that it was created with.
    pub async fn open(&self, name: &str) -> Result<FileRecord, Fault> {
        self.open_named(name, None).await
    }

    /// Opens a file at its servers, and sets its caching policy for all clients that have it open.
    pub async fn open_as(&self, name: &str, buffering: Buffering) -> Result<FileRecord, Fault> {
        self.open_named(name, Some(buffering)).await
    }

    /// Opens an ordinary file, which the servers find at the absolute path `path`, too, and work on
    /// there. `inode` is its number in its file system. Blocks have `block_bytes` bytes, unless a
    /// client has it open already.
    ///
    /// # Errors
    /// [`Fault::DiskFailed`] when a server does not find the file, or another instance works on it.
    pub async fn open_in_place(
        &self,
        path: &str,
        inode: u64,
        block_bytes: u64,
    ) -> Result<FileRecord, Fault> {
        let mut replaced = 0;
        loop {
            let path = path.to_owned();
            let number = FileRequest::NumberInPlace { path, inode, block_bytes };
            let record = match self.call(CATALOGUE, number).await? {
                Reply::Entry(entry) => entry.into_file()?,
                other => return Err(unexpected(&other)),
            };
            match self.open_known(record, FileSize::default()).await {
                // The last client that had it open has closed it meanwhile.
                Err(Fault::NoSuchFile { .. }) if replaced < REPLACED_MAX => replaced += 1,
                opened => return opened,
            }
        }
    }

    async fn open_named(
        &self,
        name: &str,
        buffering: Option<Buffering>,
    ) -> Result<FileRecord, Fault> {
        self.unless_replaced(name, async |entry| {
            let mut record = entry.into_file()?;
            record.buffering = buffering.unwrap_or(record.buffering);
            let recorded = record.size();
            self.open_known(record, recorded).await
        })
        .await
    }

    /// Acts on the entry of a name. Tries again with the new entry when the servers no longer have
    /// the file because another one has replaced it.
    async fn unless_replaced<R>(
        &self,
        name: &str,
        act: impl AsyncFn(Entry) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let mut replaced = 0;
        loop {
            match act(self.stat(name).await?).await {
                Err(Fault::NoSuchFile { .. }) if replaced < REPLACED_MAX => replaced += 1,
                outcome => return outcome,
            }
        }
    }

    /// Closes a file. The last close of this client also closes it at the servers, and reports its
    /// size to the catalogue if it has grown. Written data stays where it is; [`Client::flush`]
    /// waits until it is on the disks.
    pub async fn close(&self, file: &FileRecord) -> Result<(), Fault> {
        let settled = self.settle_writes(file.file, true).await;
        self.forget_kept(file.file);
        let is_in_place = file.stripe.inode().is_some();
        // A server that has ended may have restarted, and other clients may have changed the file
        // without the knowledge of this client. Then the data shows the size of the file.
        let is_recorded =
            is_in_place || file.servers().any(|server| self.0.servers().has_left(server));
        let recorded = if is_recorded { Ok(()) } else { self.record_size(file.file).await };
        let recorded = settled.and(recorded);
        let Some(known) = self.0.sizes().closed(file.file) else {
            // Other programs find it at its path.
            return if is_in_place {
                recorded.and(self.flush(file, false).await)
            } else {
                recorded
            };
        };
        // A lease that another thread has asked for meanwhile ends before the servers forget it.
        self.settle(file.file, true).await;
        let close = FileRequest::Close { file: file.file, recorded: known };
        let closed = self.call_each_server(file.servers(), close).await?;
        let modified = closed.iter().filter_map(|reply| match reply {
            Reply::Modified { at } => Some(*at),
            _ => None,
        });
        if let Some(modified) = modified.max() {
            self.record_modified(file.file, modified, false).await?;
        }
        if closed.contains(&Reply::Nameless) {
            // Other clients may have it open at other servers. The last client that closes it finds
            // all data gone, and the catalogue forgets the file.
            self.drop_data(file).await?;
        }
        recorded
    }

    /// Sets the time of the last change of an open file. Later changes set it again.
    pub async fn set_modified(&self, file: &FileRecord, modified: Timestamp) -> Result<(), Fault> {
        self.settle(file.file, false).await;
        let set = FileRequest::SetModified { file: file.file, modified };
        self.call_servers(file.servers(), set).await?;
        self.record_modified(file.file, modified, true).await
    }

    /// Reports the time of the last change of a file to the catalogue.
    async fn record_modified(
        &self,
        file: FileId,
        modified: Timestamp,
        is_set: bool,
    ) -> Result<(), Fault> {
        match self
            .call(CATALOGUE, CatalogueRequest::RecordModified { file, modified, is_set })
            .await
        {
            // The file was removed, and clients that have it open keep it.
            Ok(Reply::Done) | Err(Fault::NoSuchFile { .. }) => Ok(()),
            Ok(other) => Err(unexpected(&other)),
            Err(fault) => Err(fault),
        }
    }

    /// Returns the buffer statistics of each server of an open file since the open, in the order of
    /// its stripe.
    pub async fn buffers(&self, file: &FileRecord) -> Result<Vec<BufferStatistics>, Fault> {
        let calls = file.servers().map(async |server| {
            match self.call(server, FileRequest::Buffers { file: file.file }).await? {
                Reply::Buffers(statistics) => Ok(statistics),
                other => Err(unexpected(&other)),
            }
        });
        futures_util::future::try_join_all(calls).await
    }

    /// Returns the entry of a name; for a file with its current size and time. (The catalogue,
    /// which [`Client::stat`] asks, has older ones while a client changes the file. For a server
    /// that cannot answer, those in the catalogue count.)
    pub async fn look_at(&self, name: &str) -> Result<Entry, Fault> {
        self.unless_replaced(name, async |mut entry| {
            if let EntryKind::File(record) = &mut entry.kind {
                entry.modified = entry.modified.max(self.measure(record).await?);
            }
            Ok(entry)
        })
        .await
    }

    /// Asks the servers for the current size of a file. Returns the time of its last change.
    pub(super) async fn measure(&self, record: &mut FileRecord) -> Result<Timestamp, Fault> {
        let measure = FileRequest::Measure(record.clone());
        let asked = record.servers().map(|server| self.call(server, measure.clone()));
        let mut latest = Timestamp::default();
        for measured in futures_util::future::join_all(asked).await {
            match measured {
                Ok(Reply::Measured { size, modified }) => {
                    size.validate()?;
                    record.learn(size);
                    latest = latest.max(modified);
                }
                Ok(other) => return Err(unexpected(&other)),
                // What the other servers and the catalogue know is better than a fault.
                Err(Fault::ServerLeft { .. } | Fault::DiskFailed { .. }) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(latest)
    }

    /// Returns the catalogue's entry of a name.
    pub async fn stat(&self, name: &str) -> Result<Entry, Fault> {
        self.ask_for_entry(CatalogueRequest::Stat { name: name.to_owned() }).await
    }

    /// Returns the catalogue's record of a file.
    pub async fn stat_file(&self, name: &str) -> Result<FileRecord, Fault> {
        self.ask_for_file(CatalogueRequest::Stat { name: name.to_owned() }).await
    }

    /// Lists a directory, by name. Names that come or go during the call may be missed.
    pub async fn list(&self, directory: &str) -> Result<Vec<Entry>, Fault> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let directory = directory.to_owned();
            match self.call(CATALOGUE, CatalogueRequest::List { directory, after }).await? {
                Reply::Entries { mut entries, more } => {
                    all.append(&mut entries);
                    let last = all.last().map(|entry: &Entry| last_part(&entry.name).to_owned());
                    if !more || last.is_none() {
                        return Ok(all);
                    }
                    after = last;
                }
                other => return Err(unexpected(&other)),
            }
        }
    }

    /// Sets the defaults of new files in a directory, and of directories that are created in it.
    pub async fn set_defaults(&self, directory: &str, defaults: FileDefaults) -> Result<(), Fault> {
        let request = CatalogueRequest::SetDefaults { directory: directory.to_owned(), defaults };
        self.call(CATALOGUE, request).await.map(|_| ())
    }

    /// Renames a file or a directory. The new name must be free. Clients that have the file open
    /// keep it.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        self.ask_to_rename(from, to, false).await.map(|_| ())
    }

    /// Renames a file, or a directory to a name that is free. A file that had the new name loses it
    /// in the same instant, so the name always exists. The data of the replaced file goes when no
    /// client has it open any more.
    ///
    /// # Errors
    /// [`Fault::IsADirectory`] when a directory has the name; [`Fault::FileExists`] when a file has
    /// it and the other is a directory; faults of servers that drop the data, after the name has
    /// changed.
    pub async fn replace(&self, from: &str, to: &str) -> Result<(), Fault> {
        match self.ask_to_rename(from, to, true).await? {
            Reply::Entry(Entry { kind: EntryKind::File(old), .. }) => self.drop_data(&old).await,
            _ => Ok(()),
        }
    }

    /// Makes the servers of a file without a name drop its data, at once or when the last client
    /// has closed it. A later [`Client::drop_nameless`] asks the servers again that have left.
    pub(super) async fn drop_data(&self, file: &FileRecord) -> Result<(), Fault> {
        let drop = FileRequest::Drop { file: file.file, protection: file.protection };
        let dropped = file.servers().map(|server| self.call(server, drop.clone()));
        let mut is_gone = true;
        for dropped in futures_util::future::join_all(dropped).await {
            match dropped {
                Ok(Reply::Done) => {}
                Ok(Reply::InUse) | Err(Fault::ServerLeft { .. }) => is_gone = false,
                Ok(other) => return Err(unexpected(&other)),
                Err(fault) => return Err(fault),
            }
        }
        if is_gone {
            self.call(CATALOGUE, CatalogueRequest::Forget { file: file.file }).await?;
        }
        Ok(())
    }

    /// Makes servers drop the data of all files without a name. Such files remain when a client
    /// ended while it removed a file, or when a server was down. Files that a client has open keep
    /// their data.
    ///
    /// # Errors
    /// The first fault, after all files have been tried.
    pub async fn drop_nameless(&self) -> Result<(), Fault> {
        let (mut after, mut outcome) = (None, Ok(()));
        loop {
            let (entries, more) =
                match self.call(CATALOGUE, CatalogueRequest::Nameless { after }).await? {
                    Reply::Entries { entries, more } => (entries, more),
                    other => return Err(unexpected(&other)),
                };
            let files =
                entries.into_iter().map(Entry::into_file).collect::<Result<Vec<_>, Fault>>()?;
            after = files.last().map(|file| file.file).or(after);
            for some in files.chunks(OPENING_MAX) {
                let dropped = some.iter().map(|file| self.drop_data(file));
                for dropped in futures_util::future::join_all(dropped).await {
                    outcome = outcome.and(dropped);
                }
            }
            if !more || files.is_empty() {
                return outcome;
            }
        }
    }

    async fn ask_to_rename(&self, from: &str, to: &str, replace: bool) -> Result<Reply, Fault> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.call(CATALOGUE, CatalogueRequest::Rename { from, to, replace }).await
    }

    /// Removes a file or an empty directory. The name of a file goes first, durably. Its data goes
    /// when no client has the file open any more, as after `unlink`; clients that have it open read
    /// and write it until then. A server that has left drops the data later
    /// ([`Client::drop_nameless`]).
    pub async fn remove(&self, name: &str) -> Result<(), Fault> {
        match self.call(CATALOGUE, CatalogueRequest::Remove { name: name.to_owned() }).await? {
            Reply::Entry(Entry { kind: EntryKind::File(old), .. }) => self.drop_data(&old).await,
            _ => Ok(()),
        }
    }

    /// Waits until no transfer of an open file is active and, with `sync`, until all written data
    /// is on stable storage. Reports failures of write-behind since this client's last flush, or
    /// since it opened the file, even if other clients have got the same report.
    pub async fn flush(&self, file: &FileRecord, sync: bool) -> Result<(), Fault> {
        let settled = self.settle_writes(file.file, false).await;
        let flush = BlockRequest::Flush(FlushRequest { file: file.file, sync });
        self.call_servers(file.servers(), flush).await?;
        settled?;
        if sync { self.keep_owed_size(file).await } else { Ok(()) }
    }

    /// Returns the digests of the content of a block that one server has, in pieces of
    /// `piece_bytes` bytes ([`world::Payload::digest`]).
    pub async fn digests(
        &self,
        file: &FileRecord,
        block: u64,
        piece_bytes: u64,
    ) -> Result<Vec<u32>, Fault> {
        self.settle(file.file, false).await;
        let request = DigestsRequest { file: file.file, block, piece_bytes };
        match self.call(file.server_of(block), BlockRequest::Digests(request)).await? {
            Reply::Digests(digests) => Ok(digests),
            other => Err(unexpected(&other)),
        }
    }

    /// Opens a file by a record from another client. Of many clients that open a file together,
    /// only one needs to ask the catalogue.
    pub async fn open_record(&self, record: FileRecord) -> Result<FileRecord, Fault> {
        self.open_known(record, FileSize::default()).await
    }

    /// Opens a file beside member 0 of the group, which must have it open at all of its servers and
    /// must close it after this client. No server is asked. Servers that this client uses serve it
    /// because member 0 has the file open. The client may get a report of an older failure once
    /// more.
    pub fn open_beside(&self, record: FileRecord) -> FileRecord {
        self.0.sizes().opened_beside(record.file, record.size());
        record
    }

    /// Opens a file of which the catalogue has recorded at least the size `recorded`.
    pub(super) async fn open_known(
        &self,
        mut record: FileRecord,
        recorded: FileSize,
    ) -> Result<FileRecord, Fault> {
        let open = FileRequest::Open(record.clone());
        let opening = Opening::begin(self.0.sizes(), &record, recorded);
        let opened = self.ask_servers_for_size(&record, open).await;
        if opened.is_ok() {
            opening.succeeded();
        } else if opening.failed() {
            // Some servers may have opened it. The first fault is the one to report.
            let recorded = FileSize::default();
            let close = FileRequest::Close { file: record.file, recorded };
            let closing = record.servers().map(|server| self.call(server, close.clone()));
            futures_util::future::join_all(closing).await;
        }
        record.learn(opened?);
        Ok(record)
    }

    async fn ask_for_file(&self, request: CatalogueRequest) -> Result<FileRecord, Fault> {
        self.ask_for_entry(request).await?.into_file()
    }

    async fn ask_for_entry(&self, request: CatalogueRequest) -> Result<Entry, Fault> {
        match self.call(CATALOGUE, request).await? {
            Reply::Entry(entry) => Ok(entry),
            other => Err(unexpected(&other)),
        }
    }
}

/// Returns the last part of a name.
fn last_part(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}
