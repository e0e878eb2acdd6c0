//! Record store: one file of a `redb` database, changed in crash-safe transactions.
//!
//! Invariants:
//!
//! - The file is readable by its owner only.
//! - One thread owns the database and applies changes in the order of their calls. All queued
//!   changes share one transaction (group commit), so a hundred clients wait for one disk write.
//! - After a failure, such as a full disk, the database is opened again, because the library
//!   refuses to continue.
//! - No committed transaction is ever lost, as far as [`CommitCount`] knows.
//! - A failed transaction, which may have been committed nevertheless, is undone before the next.

mod commit_count;
mod failed_transaction;

use crate::config::OpenError;
use crate::worker::{Worker, WorkerFailure, WorkerState};
use commit_count::{CommitCount, LAST_FILE};
use failed_transaction::FailedTransaction;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use world::{RecordChange, RecordsError};

/// Name of the database file in its directory.
pub const RECORDS_FILE: &str = "records.redb";

/// Name of the copy that replaces the database file.
const NEW_FILE: &str = "records.new";

/// Length of the magic number of a database; length of its header; upper bound for the size of a
/// database without records.
const MAGIC_BYTES: usize = 9;
const HEADER_BYTES: usize = 512;
const EMPTY_BYTES_MAX: u64 = 16 << 20;

/// Bytes copied at a time.
const PIECE_BYTES: usize = 1 << 20;

const RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("records");

/// Table with the number of transactions that changed the records, under [`TRANSACTIONS`].
const COUNTS: TableDefinition<'_, &str, u64> = TableDefinition::new("counts");
const TRANSACTIONS: &str = "transactions";

/// Page cache of the library, in bytes. All records are read once, at the start; later only changed
/// pages are needed. (The default is up to a gigabyte.)
const CACHE_BYTES: usize = 16 << 20;

/// Record store of a node.
pub(crate) struct RecordStore {
    worker: Worker<Store>,
    /// Changes that belong to no transaction yet, in the order of their calls.
    waiting: Arc<Mutex<Vec<Waiting>>>,
}

/// Queued change, with the reply channel of its caller.
struct Waiting {
    changes: Vec<RecordChange>,
    reply: oneshot::Sender<Result<(), RecordsError>>,
}

/// Locks a list, which is held for a push or a take; neither panics.
fn lock(waiting: &Mutex<Vec<Waiting>>) -> MutexGuard<'_, Vec<Waiting>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(operation: &str, cause: impl ToString) -> RecordsError {
    RecordsError::Failed { operation: operation.to_owned(), cause: cause.to_string() }
}

impl RecordStore {
    /// Opens or creates the database in `directory`. With a limit for hangs, requests fail when
    /// none has ended for that time.
    pub(crate) fn open(directory: &Path, hang_limit: Option<Duration>) -> Result<Self, OpenError> {
        let failed = |cause: String| OpenError::Directory {
            directory: directory.to_owned(),
            purpose: "records",
            cause,
        };
        let damaged =
            |cause: String| OpenError::DamagedRecords { directory: directory.to_owned(), cause };
        // The library panics on some kinds of damage.
        let checked = catch_unwind(|| open_checked(directory));
        let store = match checked {
            Err(_) => return Err(damaged("the record file cannot be read".to_owned())),
            Ok(Ok(store)) => store,
            Ok(Err(redb::Error::Corrupted(cause))) => return Err(damaged(cause)),
            Ok(Err(error)) if is_damage(&error) => return Err(damaged(error.to_string())),
            Ok(Err(error)) => return Err(failed(error.to_string())),
        };
        let worker = Worker::start("records", store, 0, hang_limit);
        let worker = worker.map_err(|error| failed(error.to_string()))?;
        Ok(Self { worker, waiting: Arc::default() })
    }

    /// Returns every record, in ascending order of key.
    pub(crate) async fn all(&self) -> Result<Vec<(u64, Vec<u8>)>, RecordsError> {
        self.call("read all records".into(), read_all).await
    }

    /// Applies all of `changes`, or none.
    pub(crate) async fn change(&self, changes: Vec<RecordChange>) -> Result<(), RecordsError> {
        let (reply, mut outcome) = oneshot::channel();
        lock(&self.waiting).push(Waiting { changes, reply });
        let waiting = Arc::clone(&self.waiting);
        let committed = self.worker.call(move |store| store.commit_all(&waiting)).await;
        // Committed by the job of this call or by an earlier one. After the failure of the worker,
        // a later reply finds nobody, and the change is undone.
        outcome.close();
        let failure = committed.err().unwrap_or(WorkerFailure::Gone);
        outcome.try_recv().unwrap_or_else(|_| Err(worker_failed("change records", failure)))
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
            Ok(done) => done.map_err(|error| records_error(&operation, &error)),
            Err(failure) => Err(worker_failed(&operation, failure)),
        }
    }
}

fn worker_failed(operation: &str, failure: WorkerFailure) -> RecordsError {
    match failure {
        WorkerFailure::Gone => failed(operation, "the store has stopped"),
        WorkerFailure::Hangs(limit) => {
            let limit = limit.as_secs_f64();
            failed(operation, format!("their disk hangs: no request has ended for {limit} s"))
        }
    }
}

/// Converts an error of the database.
fn records_error(operation: &str, error: &redb::Error) -> RecordsError {
    match is_full(error) {
        true => RecordsError::NoSpace { operation: operation.to_owned() },
        false => failed(operation, error),
    }
}

/// State of the thread of a store.
struct Store {
    directory: PathBuf,
    /// `None` after a failure, until the next use.
    opened: Option<(Database, File)>,
    commit_count: CommitCount,
    /// True after a failed sync: the device may lack what the page cache holds as clean.
    may_have_lost_writes: bool,
    /// Last transaction, if it failed and is not undone.
    failed: Option<FailedTransaction>,
}

impl WorkerState for Store {
    /// Undoes the failed transaction, which must not be found at the next start either.
    fn on_idle(&mut self) -> bool {
        let _ = self.undo();
        false
    }
}

impl Store {
    /// Commits all queued changes in one transaction and replies to their callers. Undoes them if
    /// no caller waits any more.
    fn commit_all(&mut self, waiting: &Mutex<Vec<Waiting>>) {
        let mut batch = std::mem::take(&mut *lock(waiting));
        batch.retain(|one| !one.reply.is_closed());
        if batch.is_empty() {
            return;
        }
        let changes: Vec<&RecordChange> = batch.iter().flat_map(|one| &one.changes).collect();
        let made = self.commit(&changes);
        if made.is_err() {
            // Undo at once: the process may end.
            let _ = self.undo();
        }
        let (undo, reply) = match made {
            Ok(undo) => (undo, Ok(())),
            Err(error) => (None, Err(records_error("change records", &error))),
        };
        let mut told = 0;
        for one in batch {
            told += usize::from(one.reply.send(reply.clone()).is_ok());
        }
        if let Some(undo) = undo.filter(|_| told == 0) {
            // The callers count the changes as failed.
            undo.save(&self.directory);
            self.failed = Some(undo);
            let _ = self.undo();
        }
    }

    /// Commits changes in one transaction, after a failed one is undone. With both in one
    /// transaction, a kill at this point would make the next start undo parts of both. Returns what
    /// undoes it.
    fn commit(
        &mut self,
        changes: &[&RecordChange],
    ) -> Result<Option<FailedTransaction>, redb::Error> {
        self.undo()?;
        let mut own = None;
        match self.transact(changes, &mut own) {
            Ok(()) => Ok(own),
            Err(error) => {
                if let Some(failed) = own {
                    failed.save(&self.directory);
                    self.failed = Some(failed);
                }
                Err(error)
            }
        }
    }

    /// Undoes the failed transaction, if it was committed.
    fn undo(&mut self) -> Result<(), redb::Error> {
        let Some(failed) = self.failed.take() else { return Ok(()) };
        let undone = (|| {
            if failed.count <= self.use_database(transactions)? {
                self.transact(&failed.inverse.iter().collect::<Vec<_>>(), &mut None)?;
            }
            Ok(FailedTransaction::forget(&self.directory)?)
        })();
        if undone.is_err() {
            self.failed = Some(failed);
        }
        undone
    }

    /// Commits changes in one transaction; saves the undo record before the commit can take effect.
    fn transact(
        &mut self,
        changes: &[&RecordChange],
        own: &mut Option<FailedTransaction>,
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
                *own = Some(FailedTransaction { count, inverse });
                count
            };
            transaction.commit()?;
            Ok(count)
        })?;
        self.commit_count.set(count);
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
            used.inspect_err(|error| self.may_have_lost_writes |= !is_full(error))?;
        reserve(&file);
        self.opened = Some((database, file));
        Ok(done)
    }

    fn open_again(&mut self) -> Result<(Database, File), redb::Error> {
        if self.may_have_lost_writes {
            rewrite(&self.directory)?;
        }
        let (database, file) = open_file(&self.directory)?;
        prepare(&self.directory, &database, &file, &self.commit_count)?;
        self.may_have_lost_writes = false;
        Ok((database, file))
    }
}

/// Rewrites the database file. After a failed sync the system holds lost pages as clean, and does
/// not write them again. Writes a copy, or in place when there is no space for a copy.
fn rewrite(directory: &Path) -> std::io::Result<()> {
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
            // The file may not exist.
            let _ = std::fs::remove_file(&new);
            write_over(&path)
        }
        written => written,
    }
}

/// Rewrites the contents of a file in place.
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

/// Allocates all blocks of the database file. Then a removal, which first writes to other pages of
/// the file, succeeds on a full disk.
fn reserve(file: &File) {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    // Some file systems cannot do this; there removals may fail without space.
    let _ = rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, length);
}

/// Opens the store in `directory` and verifies its checksums.
fn open_checked(directory: &Path) -> Result<Store, redb::Error> {
    let commit_count = CommitCount::open(directory)?;
    // An acknowledged transaction has not failed.
    let failed =
        FailedTransaction::load(directory).filter(|failed| failed.count > commit_count.count());
    if failed.is_some() && directory.join(RECORDS_FILE).exists() {
        rewrite(directory)?;
    }
    let (mut database, file) = open_file(directory)?;
    // Verify before the first write, which could compute new checksums.
    if !database.check_integrity()? {
        return Err(redb::Error::Corrupted("the checksums do not match".to_owned()));
    }
    prepare(directory, &database, &file, &commit_count)?;
    let opened = Some((database, file));
    let mut store = Store {
        directory: directory.to_owned(),
        opened,
        commit_count,
        may_have_lost_writes: false,
        failed,
    };
    store.undo()?;
    FailedTransaction::forget(directory)?;
    let made = store.use_database(transactions)?;
    store.commit_count.set(made);
    store.commit_count.sync();
    // Leftover of an interrupted copy.
    let _ = std::fs::remove_file(directory.join(NEW_FILE));
    Ok(store)
}

/// True if the library found data that it had not written.
fn is_damage(error: &redb::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    match error {
        redb::Error::Io(error) => matches!(error.kind(), InvalidData | UnexpectedEof),
        redb::Error::DatabaseAlreadyOpen => false,
        _ => true,
    }
}

/// True if the system had no space for a change.
fn is_full(error: &redb::Error) -> bool {
    matches!(error, redb::Error::Io(error) if is_no_room(error))
}

/// True if the system had no space: on the disk, in a quota, or within the limit of a file's size.
fn is_no_room(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn open_file(directory: &Path) -> Result<(Database, File), redb::Error> {
    let path = directory.join(RECORDS_FILE);
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file?;
    if is_half_created(&file)? {
        file.set_len(0)?;
    }
    let mut builder = redb::Builder::new();
    let database = builder.set_cache_size(CACHE_BYTES).create_file(file.try_clone()?)?;
    Ok((database, file))
}

/// True if the library began to create this file and did nothing else: it writes the magic number
/// last.
fn is_half_created(file: &File) -> std::io::Result<bool> {
    let length = file.metadata()?.len();
    if length == 0 || length > EMPTY_BYTES_MAX {
        return Ok(false);
    }
    let mut bytes = vec![0; length as usize];
    match file.read_exact_at(&mut bytes, 0) {
        // Its last owner is shortening it, as the library does at the end: it was created whole.
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let (magic, behind) = (bytes.len().min(MAGIC_BYTES), bytes.len().min(HEADER_BYTES));
    Ok(is_zero(&bytes[..magic]) && is_zero(&bytes[behind..]))
}

/// Prepares the database for use. Fails when transactions are missing.
fn prepare(
    directory: &Path,
    database: &Database,
    file: &File,
    commit_count: &CommitCount,
) -> Result<(), redb::Error> {
    let (made, counted) = (transactions(database)?, commit_count.count());
    if counted > made {
        // To the library, missing transactions look like one that a crash interrupted.
        let cause =
            format!("the last {} changes counted in {LAST_FILE} are missing", counted - made);
        return Err(redb::Error::Corrupted(cause));
    }
    create_tables(database)?;
    reserve(file);
    // A new file survives a crash only when its directory entry is durable too.
    Ok(File::open(directory)?.sync_all()?)
}

fn create_tables(database: &Database) -> Result<(), redb::Error> {
    let change = database.begin_write()?;
    change.open_table(RECORDS)?;
    change.open_table(COUNTS)?;
    Ok(change.commit()?)
}

/// Returns the number of transactions that changed the records.
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
