//! Records in a `redb` database: one file, changed in transactions that survive a crash.
//!
//! Invariants: the file is readable by its owner only; changes are made in the order of their
//! calls, by one thread that owns the database, all that wait in one transaction, so that a hundred
//! clients wait for one write to the disk and not for a hundred; after a failure, such as a full
//! disk, the database is opened again, because the library refuses to go on with one that met one;
//! no transaction is ever taken back, as far as [`Last`] knows; one that failed, though it may have
//! been made, is undone before the next.

mod failed;
mod last;

use crate::config::OpenError;
use crate::worker::{Gone, Owned, Worker};
use failed::Failed;
use last::{LAST_FILE, Last};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use world::{RecordChange, RecordsError};

/// The file of the records in their directory.
pub const RECORDS_FILE: &str = "records.redb";

/// A copy of it that is being written.
const NEW_FILE: &str = "records.new";

/// The first bytes of a database, which say that it is one; its header; and more than one without
/// records has.
const MAGIC_BYTES: usize = 9;
const HEADER_BYTES: usize = 512;
const UNBORN_BYTES_MAX: u64 = 16 << 20;

/// What is moved of it at a time, in bytes.
const PIECE_BYTES: usize = 1 << 20;

const RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("records");

/// How many transactions have changed the records, under [`TRANSACTIONS`].
const COUNTS: TableDefinition<'_, &str, u64> = TableDefinition::new("counts");
const TRANSACTIONS: &str = "transactions";

/// What the library may hold of the file, in bytes. All records are read once, at the beginning;
/// after that only the pages that change are wanted. (It would take up to a gigabyte.)
const CACHE_BYTES: usize = 16 << 20;

/// The records of a node that keeps some.
pub(crate) struct RecordStore {
    worker: Worker<Store>,
    /// Changes that no transaction has taken up yet, in the order of their calls.
    waiting: Arc<Mutex<Vec<Waiting>>>,
}

/// A change that waits for its transaction, and who waits for it.
struct Waiting {
    changes: Vec<RecordChange>,
    reply: oneshot::Sender<Result<(), RecordsError>>,
}

/// The lock of a list is held for a push or a take; neither panics.
fn lock(waiting: &Mutex<Vec<Waiting>>) -> MutexGuard<'_, Vec<Waiting>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(operation: &str, cause: impl ToString) -> RecordsError {
    RecordsError::Failed { operation: operation.to_owned(), cause: cause.to_string() }
}

impl RecordStore {
    /// Opens or creates the database in `directory`.
    pub(crate) fn open(directory: &Path) -> Result<Self, OpenError> {
        let failed = |cause: String| OpenError::Directory {
            directory: directory.to_owned(),
            purpose: "records",
            cause,
        };
        let damaged =
            |cause: String| OpenError::DamagedRecords { directory: directory.to_owned(), cause };
        // The library panics at some damage.
        let checked = catch_unwind(|| open_checked(directory));
        let store = match checked {
            Err(_) => return Err(damaged("they cannot be read".to_owned())),
            Ok(Ok(store)) => store,
            Ok(Err(redb::Error::Corrupted(cause))) => return Err(damaged(cause)),
            Ok(Err(error)) if is_damage(&error) => return Err(damaged(error.to_string())),
            Ok(Err(error)) => return Err(failed(error.to_string())),
        };
        let worker = Worker::start("records", store, 0);
        let worker = worker.map_err(|error| failed(error.to_string()))?;
        Ok(Self { worker, waiting: Arc::default() })
    }

    /// Every record, in ascending order of key.
    pub(crate) async fn all(&self) -> Result<Vec<(u64, Vec<u8>)>, RecordsError> {
        self.call("read all records".into(), read_all).await
    }

    /// Makes all of `changes`, or none.
    pub(crate) async fn change(&self, changes: Vec<RecordChange>) -> Result<(), RecordsError> {
        let (reply, outcome) = oneshot::channel();
        lock(&self.waiting).push(Waiting { changes, reply });
        let waiting = Arc::clone(&self.waiting);
        let committed = self.worker.call(move |store| store.commit_all(&waiting)).await;
        let gone = |_| failed("change records", "the store has stopped");
        committed.map_err(|Gone| gone(()))?;
        // Made by this call's job or by an earlier one.
        outcome.await.map_err(|_| gone(()))?
    }

    async fn call<R: Send + 'static>(
        &self,
        operation: String,
        work: impl FnOnce(&Database) -> Result<R, redb::Error> + Send + 'static,
    ) -> Result<R, RecordsError> {
        let work = |store: &mut Store| {
            store.undo()?;
            store.use_database(work)
        };
        match self.worker.call(work).await {
            Ok(done) => done.map_err(|error| told(&operation, &error)),
            Err(Gone) => Err(failed(&operation, "the store has stopped")),
        }
    }
}

/// A failure of the database as the trait has it.
fn told(operation: &str, error: &redb::Error) -> RecordsError {
    match is_full(error) {
        true => RecordsError::NoSpace { operation: operation.to_owned() },
        false => failed(operation, error),
    }
}

/// What the thread of a store owns.
struct Store {
    directory: PathBuf,
    /// `None` after a failure, until the next use.
    opened: Option<(Database, File)>,
    last: Last,
    /// Whether the device may not have what the system takes for stored, after a failure of it.
    is_doubtful: bool,
    /// The last transaction, if it failed and is not undone.
    failed: Option<Failed>,
}

impl Owned for Store {
    /// What failed is not to be there at the next start either.
    fn tidy_up(&mut self) -> bool {
        let _ = self.undo();
        false
    }
}

impl Store {
    /// Makes all changes that wait in one transaction and tells whoever waits for them.
    fn commit_all(&mut self, waiting: &Mutex<Vec<Waiting>>) {
        let batch = std::mem::take(&mut *lock(waiting));
        if batch.is_empty() {
            return;
        }
        let changes: Vec<&RecordChange> = batch.iter().flat_map(|one| &one.changes).collect();
        let made = self.commit(&changes);
        if made.is_err() {
            // The sooner the better: the process may end.
            let _ = self.undo();
        }
        let made = made.map_err(|error| told("change records", &error));
        for one in batch {
            // Whoever asked may have stopped waiting.
            let _ = one.reply.send(made.clone());
        }
    }

    /// Makes changes in one transaction, after the one that failed before is undone: were they made
    /// together, and the process killed just then, some of both would be undone at the next start.
    fn commit(&mut self, changes: &[&RecordChange]) -> Result<(), redb::Error> {
        self.undo()?;
        let mut own = None;
        let made = self.transact(changes, &mut own);
        if let Some(failed) = own.filter(|_| made.is_err()) {
            failed.save(&self.directory);
            self.failed = Some(failed);
        }
        made
    }

    /// Undoes the transaction that failed, if it was made.
    fn undo(&mut self) -> Result<(), redb::Error> {
        let Some(failed) = self.failed.take() else { return Ok(()) };
        let undone = (|| {
            if failed.count <= self.use_database(transactions)? {
                self.transact(&failed.inverse.iter().collect::<Vec<_>>(), &mut None)?;
            }
            Ok(Failed::forget(&self.directory)?)
        })();
        if undone.is_err() {
            self.failed = Some(failed);
        }
        undone
    }

    /// Makes changes in one transaction; tells what undoes it before it may have been made.
    fn transact(
        &mut self,
        changes: &[&RecordChange],
        own: &mut Option<Failed>,
    ) -> Result<(), redb::Error> {
        let count = self.use_database(|database| {
            let transaction = database.begin_write()?;
            let count = {
                let mut records = transaction.open_table(RECORDS)?;
                let mut inverse = Vec::new();
                for RecordChange { key, value } in changes {
                    let before = match value {
                        Some(value) => records.insert(key, value.as_slice())?,
                        None => records.remove(key)?,
                    };
                    let value = before.map(|before| before.value().to_vec());
                    inverse.push(RecordChange { key: *key, value });
                }
                inverse.reverse();
                let mut counts = transaction.open_table(COUNTS)?;
                let count = counts.get(TRANSACTIONS)?.map_or(0, |count| count.value());
                let count = count.saturating_add(1);
                counts.insert(TRANSACTIONS, count)?;
                *own = Some(Failed { count, inverse });
                count
            };
            transaction.commit()?;
            Ok(count)
        })?;
        self.last.tell(count);
        Ok(())
    }

    fn use_database<R>(
        &mut self,
        work: impl FnOnce(&Database) -> Result<R, redb::Error>,
    ) -> Result<R, redb::Error> {
        let used = match self.opened.take() {
            Some((database, file)) => work(&database).map(|done| (done, database, file)),
            None => self
                .open_again()
                .and_then(|(database, file)| work(&database).map(|done| (done, database, file))),
        };
        let (done, database, file) =
            used.inspect_err(|error| self.is_doubtful |= !is_full(error))?;
        reserve(&file);
        self.opened = Some((database, file));
        Ok(done)
    }

    fn open_again(&mut self) -> Result<(Database, File), redb::Error> {
        if self.is_doubtful {
            write_anew(&self.directory)?;
        }
        let (database, file) = open_file(&self.directory)?;
        prepare(&self.directory, &database, &file, &self.last)?;
        self.is_doubtful = false;
        Ok((database, file))
    }
}

/// Writes the database's file once more: after a sync that failed the system takes what it could
/// not store for stored, and does not try again. To another place, or where it is when there is no
/// room.
fn write_anew(directory: &Path) -> std::io::Result<()> {
    let (path, new) = (directory.join(RECORDS_FILE), directory.join(NEW_FILE));
    let written = (|| {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut copy = options.open(&new)?;
        std::io::copy(&mut File::open(&path)?, &mut copy)?;
        copy.sync_all()?;
        std::fs::rename(&new, &path)?;
        File::open(directory)?.sync_all()
    })();
    match written {
        Err(error) if is_no_room(&error) => {
            // It may not be there.
            let _ = std::fs::remove_file(&new);
            write_over(&path)
        }
        written => written,
    }
}

/// Writes what a file holds over itself.
fn write_over(path: &Path) -> std::io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let (mut piece, mut offset) = (vec![0; PIECE_BYTES], 0);
    loop {
        match file.read_at(&mut piece, offset)? {
            0 => return file.sync_all(),
            count => {
                file.write_all_at(&piece[..count], offset)?;
                offset += count as u64;
            }
        }
    }
}

/// Has the system keep room for all of the database's file. So a removal, which first writes
/// elsewhere in the file, succeeds on a disk that is full.
fn reserve(file: &File) {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    // Not every file system can; then removals may fail where there is no space.
    let _ = rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, length);
}

/// The store in `directory`, compared with its checksums.
fn open_checked(directory: &Path) -> Result<Store, redb::Error> {
    let last = Last::open(directory)?;
    // One that was acknowledged has not failed.
    let failed = Failed::load(directory).filter(|failed| failed.count > last.told());
    if failed.is_some() && directory.join(RECORDS_FILE).exists() {
        write_anew(directory)?;
    }
    let (mut database, file) = open_file(directory)?;
    // Before anything is written, which could make new checksums.
    if !database.check_integrity()? {
        return Err(redb::Error::Corrupted("their checksums do not match".to_owned()));
    }
    prepare(directory, &database, &file, &last)?;
    let opened = Some((database, file));
    let mut store =
        Store { directory: directory.to_owned(), opened, last, is_doubtful: false, failed };
    store.undo()?;
    Failed::forget(directory)?;
    let made = store.use_database(transactions)?;
    store.last.tell(made);
    store.last.sync();
    // What a copy that was cut short has left.
    let _ = std::fs::remove_file(directory.join(NEW_FILE));
    Ok(store)
}

/// Whether the library found something that it had not written.
fn is_damage(error: &redb::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    match error {
        redb::Error::Io(error) => matches!(error.kind(), InvalidData | UnexpectedEof),
        redb::Error::DatabaseAlreadyOpen => false,
        _ => true,
    }
}

/// Whether the system had no room for a change.
fn is_full(error: &redb::Error) -> bool {
    matches!(error, redb::Error::Io(error) if is_no_room(error))
}

fn is_no_room(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn open_file(directory: &Path) -> Result<(Database, File), redb::Error> {
    let path = directory.join(RECORDS_FILE);
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file?;
    if is_unborn(&file)? {
        file.set_len(0)?;
    }
    let mut builder = redb::Builder::new();
    let database = builder.set_cache_size(CACHE_BYTES).create_file(file.try_clone()?)?;
    Ok((database, file))
}

/// Whether a file is one that the library had begun to make, and nothing else: it writes the first
/// bytes last.
fn is_unborn(file: &File) -> std::io::Result<bool> {
    let length = file.metadata()?.len();
    if length == 0 || length > UNBORN_BYTES_MAX {
        return Ok(false);
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0)?;
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let (magic, behind) = (bytes.len().min(MAGIC_BYTES), bytes.len().min(HEADER_BYTES));
    Ok(is_zero(&bytes[..magic]) && is_zero(&bytes[behind..]))
}

/// Has everything in its place. Fails when transactions are missing.
fn prepare(
    directory: &Path,
    database: &Database,
    file: &File,
    last: &Last,
) -> Result<(), redb::Error> {
    let (made, told) = (transactions(database)?, last.told());
    if told > made {
        // To the library they look like a transaction that a crash has cut short.
        let cause =
            format!("the last {} changes that {LAST_FILE} counts are not there", told - made);
        return Err(redb::Error::Corrupted(cause));
    }
    create_tables(database)?;
    reserve(file);
    // A new file is found again after a crash only when its directory is on stable storage too.
    Ok(File::open(directory)?.sync_all()?)
}

fn create_tables(database: &Database) -> Result<(), redb::Error> {
    let change = database.begin_write()?;
    change.open_table(RECORDS)?;
    change.open_table(COUNTS)?;
    Ok(change.commit()?)
}

/// How many transactions have changed the records.
fn transactions(database: &Database) -> Result<u64, redb::Error> {
    let counts = match database.begin_read()?.open_table(COUNTS) {
        // New, or of an earlier version.
        Err(TableError::TableDoesNotExist(_)) => return Ok(0),
        counts => counts?,
    };
    Ok(counts.get(TRANSACTIONS)?.map_or(0, |count| count.value()))
}

fn read_all(database: &Database) -> Result<Vec<(u64, Vec<u8>)>, redb::Error> {
    let table = database.begin_read()?.open_table(RECORDS)?;
    let mut all = Vec::new();
    for record in table.iter()? {
        let (key, value) = record?;
        all.push((key.value(), value.value().to_vec()));
    }
    Ok(all)
}
