//! Directories and files by name: what a client asks of the catalogue.

use super::cached_sizes::Opening;
use super::faults::unexpected;
use super::limits::{CATALOGUE, OPENING_MAX};
use super::state::Client;
use policy::{Buffering, Pool, Stripe};
use units::FileId;
use wire::{
    BufferStatistics, DigestsRequest, Entry, EntryKind, Fault, FileDefaults, FileRecord, FileSize,
    FlushRequest, Made, Reply, Request,
};
use world::World;

/// How often a file is looked for again when another has taken its place, or it is being removed.
const REPLACED_MAX: u32 = 16;

/// A file to make.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// Its name: a path from the root, in a directory that is there.
    pub name: String,
    /// Its size in bytes; all are zero at first.
    pub bytes: u64,
    /// How its blocks are dealt to its servers and their disks.
    pub stripe: Stripe,
    /// Which servers these are.
    pub pool: Pool,
    /// How they buffer it.
    pub buffering: Buffering,
    /// Who makes it and when.
    pub made: Made,
}

impl<W: World> Client<W> {
    /// Makes a file of `bytes` bytes, all zero, on the first servers of the instance, and opens it.
    pub async fn create(
        &self,
        name: &str,
        bytes: u64,
        stripe: Stripe,
    ) -> Result<FileRecord, Fault> {
        let (name, pool) = (name.to_owned(), Pool::all(self.servers()));
        let (made, buffering) = (Made::default(), Buffering::default());
        self.create_as(NewFile { name, bytes, stripe, pool, buffering, made }).await
    }

    /// Makes a file, and opens it.
    ///
    /// # Errors
    /// [`Fault::FileExists`], [`Fault::NoSuchDirectory`], [`Fault::NotADirectory`],
    /// [`Fault::BadName`]; [`Fault::BadRequest`] for a stripe or pool that cannot be. Then there is
    /// no file, unless it was made and a server has left before it was open.
    pub async fn create_as(&self, new: NewFile) -> Result<FileRecord, Fault> {
        let NewFile { name, bytes, stripe, pool, buffering, made } = new;
        let record = FileRecord { file: FileId(0), name, bytes, cuts: 0, stripe, pool, buffering };
        let record = self.ask_for_file(Request::Create { record, made }).await?;
        let recorded = record.size();
        self.open_known(record, recorded).await
    }

    /// Makes a directory, in one that is there.
    pub async fn make_directory(&self, name: &str, made: Made) -> Result<(), Fault> {
        let request = Request::MakeDirectory { name: name.to_owned(), made };
        self.ask_for_entry(request).await.map(|_| ())
    }

    /// Opens a file at its servers, to be buffered as it was made.
    pub async fn open(&self, name: &str) -> Result<FileRecord, Fault> {
        self.open_named(name, None).await
    }

    /// Opens a file at its servers, to be buffered as said, for whoever has it open.
    pub async fn open_as(&self, name: &str, buffering: Buffering) -> Result<FileRecord, Fault> {
        self.open_named(name, Some(buffering)).await
    }

    async fn open_named(
        &self,
        name: &str,
        buffering: Option<Buffering>,
    ) -> Result<FileRecord, Fault> {
        self.unless_replaced(name, async |entry| {
            let mut record = file_of(entry)?;
            record.buffering = buffering.unwrap_or(record.buffering);
            let recorded = record.size();
            self.open_known(record, recorded).await
        })
        .await
    }

    /// Does something with what has a name; again with another, when the servers do not have the
    /// file any more because that has taken its place meanwhile.
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

    /// Closes a file, at its servers when it was opened no more often; the catalogue hears if it
    /// was made longer. What was written to it stays, as with the others who have it open;
    /// [`Client::flush`] says when it is with the disks.
    pub async fn close(&self, file: &FileRecord) -> Result<(), Fault> {
        // A server that has ended since may have come back, and others made something of the file
        // that this client has not heard of: then its data says how long it is.
        let recorded = match file.servers().any(|server| self.0.calls.has_left(server)) {
            true => Ok(()),
            false => self.record_size(file.file).await,
        };
        let Some(known) = self.0.sizes.closed(file.file) else { return recorded };
        let close = Request::Close { file: file.file, recorded: known };
        self.call_each_server(file.servers(), &close).await.and(recorded)
    }

    /// How each server of an open file has buffered it since it was opened, in the order of its
    /// stripe.
    pub async fn buffers(&self, file: &FileRecord) -> Result<Vec<BufferStatistics>, Fault> {
        let calls = file.servers().map(async |server| {
            match self.call(server, Request::Buffers { file: file.file }).await? {
                Reply::Buffers(statistics) => Ok(statistics),
                other => Err(unexpected(&other)),
            }
        });
        futures_util::future::try_join_all(calls).await
    }

    /// What is known of a name; of a file its size now. (The catalogue, which [`Client::stat`]
    /// asks, knows less while somebody makes it longer. Where a server cannot say, it is what the
    /// catalogue knows.)
    pub async fn look_at(&self, name: &str) -> Result<Entry, Fault> {
        self.unless_replaced(name, async |mut entry| {
            if let EntryKind::File(record) = &mut entry.kind {
                self.measure(record).await?;
            }
            Ok(entry)
        })
        .await
    }

    /// Finds out how long a file is now.
    async fn measure(&self, record: &mut FileRecord) -> Result<(), Fault> {
        let measure = Request::Measure(record.clone());
        let asked = record.servers().map(|server| self.ask_for_size(server, measure.clone()));
        for size in futures_util::future::join_all(asked).await {
            match size {
                Ok(size) => _ = record.learn(size),
                // Better what the others know, and the catalogue, than nothing.
                Err(Fault::ServerLeft { .. } | Fault::DiskFailed { .. }) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    /// What the catalogue knows of a name.
    pub async fn stat(&self, name: &str) -> Result<Entry, Fault> {
        self.ask_for_entry(Request::Stat { name: name.to_owned() }).await
    }

    /// What the catalogue knows of a file.
    pub async fn stat_file(&self, name: &str) -> Result<FileRecord, Fault> {
        self.ask_for_file(Request::Stat { name: name.to_owned() }).await
    }

    /// Everything in a directory, by name. Names that come or go meanwhile may be missed.
    pub async fn list(&self, directory: &str) -> Result<Vec<Entry>, Fault> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let directory = directory.to_owned();
            match self.call(CATALOGUE, Request::List { directory, after }).await? {
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

    /// Says how new files in a directory are made, and in directories that are made in it.
    pub async fn set_defaults(&self, directory: &str, defaults: FileDefaults) -> Result<(), Fault> {
        let request = Request::SetDefaults { directory: directory.to_owned(), defaults };
        self.call(CATALOGUE, request).await.map(|_| ())
    }

    /// Gives a file or a directory another name, which must be free. Clients that have the file
    /// open keep it.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        self.ask_to_rename(from, to, false).await.map(|_| ())
    }

    /// Gives a file another name, or a directory one that is free. A file that had the name loses
    /// it in the same instant; there is always one of the two. Its data goes when nobody has it
    /// open any more.
    ///
    /// # Errors
    /// [`Fault::IsADirectory`] when a directory has the name, [`Fault::FileExists`] when a file has
    /// it and the other is a directory; what servers meet while they drop the data, after the name
    /// has changed.
    pub async fn replace(&self, from: &str, to: &str) -> Result<(), Fault> {
        match self.ask_to_rename(from, to, true).await? {
            Reply::Entry(Entry { kind: EntryKind::File(old), .. }) => {
                self.drop_data(&old, Request::DropUnused { file: old.file }).await
            }
            _ => Ok(()),
        }
    }

    /// Has the servers of a file that has lost its name drop its data. Those that have left are
    /// asked again by whoever calls [`Client::drop_nameless`] later.
    async fn drop_data(&self, file: &FileRecord, drop: Request) -> Result<(), Fault> {
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
            self.call(CATALOGUE, Request::Forget { file: file.file }).await?;
        }
        Ok(())
    }

    /// Has servers drop the data of files that have lost their names, where somebody who had begun
    /// with that has ended, or a server that was asked. Files that somebody has open keep it.
    ///
    /// # Errors
    /// The first that servers meet, after all have been tried.
    pub async fn drop_nameless(&self) -> Result<(), Fault> {
        let (mut after, mut outcome) = (None, Ok(()));
        loop {
            let (entries, more) = match self.call(CATALOGUE, Request::Nameless { after }).await? {
                Reply::Entries { entries, more } => (entries, more),
                other => return Err(unexpected(&other)),
            };
            let files = entries.into_iter().map(file_of).collect::<Result<Vec<_>, Fault>>()?;
            after = files.last().map(|file| file.file).or(after);
            for some in files.chunks(OPENING_MAX) {
                let drop = |file: &FileRecord| Request::DropUnused { file: file.file };
                let dropped = some.iter().map(|file| self.drop_data(file, drop(file)));
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
        self.call(CATALOGUE, Request::Rename { from, to, replace }).await
    }

    /// Removes a file or an empty directory. Of a file the name goes first, for good, then the
    /// data, also from those who have it open; where a server has left, when it is back
    /// ([`Client::drop_nameless`]).
    pub async fn remove(&self, name: &str) -> Result<(), Fault> {
        match self.call(CATALOGUE, Request::Remove { name: name.to_owned() }).await? {
            Reply::Entry(Entry { kind: EntryKind::File(old), .. }) => {
                self.drop_data(&old, Request::Drop { file: old.file }).await
            }
            _ => Ok(()),
        }
    }

    /// Waits until nothing is under way for an open file and, with `sync`, until all that was
    /// written to it is on stable storage. Reports what went wrong behind the writers' backs since
    /// this client's last flush, or since it opened the file, whoever else was told of it.
    pub async fn flush(&self, file: &FileRecord, sync: bool) -> Result<(), Fault> {
        let flush = Request::Flush(FlushRequest { file: file.file, sync });
        self.call_servers(file.servers(), &flush).await?;
        if sync { self.keep_owed_size(file).await } else { Ok(()) }
    }

    /// The digests of what a server holds of a block of an open file, in pieces of `piece_bytes`
    /// bytes ([`world::Payload::digest`]).
    pub async fn digests(
        &self,
        file: &FileRecord,
        block: u64,
        piece_bytes: u64,
    ) -> Result<Vec<u32>, Fault> {
        let request = DigestsRequest { file: file.file, block, piece_bytes };
        match self.call(file.server_of(block), Request::Digests(request)).await? {
            Reply::Digests(digests) => Ok(digests),
            other => Err(unexpected(&other)),
        }
    }

    /// Opens a file by the record of a client that has it open or has asked the catalogue: of many
    /// that open a file together, one needs to ask.
    pub async fn open_record(&self, record: FileRecord) -> Result<FileRecord, Fault> {
        self.open_known(record, FileSize::default()).await
    }

    /// Opens a file beside a client that has it open at all of its servers, and closes it after
    /// this one: member 0 of a group, of which this is another. No server is asked; those that this
    /// client has to do with serve it for the other's sake. What went wrong with the file before
    /// may be told to it once more.
    pub fn open_beside(&self, record: FileRecord) -> FileRecord {
        self.0.sizes.opened_beside(record.file, record.size());
        record
    }

    /// Opens a file of which the catalogue knows the size `recorded` at least.
    async fn open_known(
        &self,
        mut record: FileRecord,
        recorded: FileSize,
    ) -> Result<FileRecord, Fault> {
        let open = Request::Open(record.clone());
        let opening = Opening::begin(&self.0.sizes, record.file, recorded);
        let opened = self.ask_servers_for_size(&record, open).await;
        if opened.is_ok() {
            opening.succeeded();
        } else if opening.failed() {
            // Some of them may have it open. The first fault is the one to tell.
            let recorded = FileSize::default();
            let close = Request::Close { file: record.file, recorded };
            let closing = record.servers().map(|server| self.call(server, close.clone()));
            futures_util::future::join_all(closing).await;
        }
        record.learn(opened?);
        Ok(record)
    }

    async fn ask_for_file(&self, request: Request) -> Result<FileRecord, Fault> {
        file_of(self.ask_for_entry(request).await?)
    }

    async fn ask_for_entry(&self, request: Request) -> Result<Entry, Fault> {
        match self.call(CATALOGUE, request).await? {
            Reply::Entry(entry) => Ok(entry),
            other => Err(unexpected(&other)),
        }
    }
}

fn file_of(entry: Entry) -> Result<FileRecord, Fault> {
    match entry.kind {
        EntryKind::File(record) => Ok(record),
        EntryKind::Directory(_) => Err(Fault::IsADirectory { name: entry.name }),
    }
}

/// The last part of a name.
fn last_part(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}
