//! Records in a `redb` database: one file, changed in transactions that survive a crash.
//!
//! Invariants: the file is readable by its owner only; changes are made in the order of their
//! calls, by one thread that owns the database; after a failure, such as a full disk, the database
//! is opened again, because the library refuses to go on with one that met a failure.

use crate::config::OpenError;
use crate::worker::Worker;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use world::RecordsError;

const RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("records");

/// The records of a node that keeps some.
pub(crate) struct RecordStore {
    worker: Worker<Store>,
}

impl RecordStore {
    /// Opens or creates the database in `directory`.
    pub(crate) fn open(directory: &Path) -> Result<Self, OpenError> {
        let failed = |cause: String| OpenError::Directory {
            directory: directory.to_owned(),
            purpose: "records",
            cause,
        };
        let opened = open_database(directory).map_err(|error| failed(error.to_string()))?;
        let store = Store { directory: directory.to_owned(), opened: Some(opened) };
        let worker = Worker::start("records".into(), store);
        Ok(Self { worker: worker.map_err(|error| failed(error.to_string()))? })
    }

    /// Every record, in ascending order of key.
    pub(crate) async fn all(&self) -> Result<Vec<(u64, Vec<u8>)>, RecordsError> {
        self.call("read all records".into(), read_all).await
    }

    /// Stores `value` under `key`.
    pub(crate) async fn put(&self, key: u64, value: Vec<u8>) -> Result<(), RecordsError> {
        let operation = format!("store {} bytes under {key}", value.len());
        self.call(operation, move |database| {
            let change = database.begin_write()?;
            change.open_table(RECORDS)?.insert(key, value.as_slice())?;
            Ok(change.commit()?)
        })
        .await
    }

    /// Removes `key`.
    pub(crate) async fn delete(&self, key: u64) -> Result<(), RecordsError> {
        self.call(format!("remove {key}"), move |database| {
            let change = database.begin_write()?;
            change.open_table(RECORDS)?.remove(key)?;
            Ok(change.commit()?)
        })
        .await
    }

    async fn call<R: Send + 'static>(
        &self,
        operation: String,
        work: impl FnOnce(&Database) -> Result<R, redb::Error> + Send + 'static,
    ) -> Result<R, RecordsError> {
        match self.worker.call(|store| store.use_database(work)).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) if is_full(&error) => Err(RecordsError::NoSpace { operation }),
            Ok(Err(error)) => Err(RecordsError::Failed { operation, cause: error.to_string() }),
            Err(_) => {
                Err(RecordsError::Failed { operation, cause: "the store has stopped".into() })
            }
        }
    }
}

/// What the thread of a store owns.
struct Store {
    directory: PathBuf,
    /// `None` after a failure, until the next use.
    opened: Option<(Database, File)>,
}

impl Store {
    fn use_database<R>(
        &mut self,
        work: impl FnOnce(&Database) -> Result<R, redb::Error>,
    ) -> Result<R, redb::Error> {
        let (database, file) = match self.opened.take() {
            Some(opened) => opened,
            None => open_database(&self.directory)?,
        };
        let done = work(&database)?;
        reserve(&file);
        self.opened = Some((database, file));
        Ok(done)
    }
}

/// Has the system keep room for all of the database's file. So a removal, which first writes
/// elsewhere in the file, succeeds on a disk that is full.
fn reserve(file: &File) {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    // Not every file system can; then removals may fail where there is no space.
    let _ = rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, length);
}

/// Whether the system had no room for a change.
fn is_full(error: &redb::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error {
        redb::Error::Io(error) => {
            matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
        }
        _ => false,
    }
}

/// The database in `directory`, and its file.
fn open_database(directory: &Path) -> Result<(Database, File), redb::Error> {
    let path = directory.join("records.redb");
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file?;
    let database = redb::Builder::new().create_file(file.try_clone()?)?;
    create_table(&database)?;
    reserve(&file);
    // A new file is found again after a crash only when its directory is on stable storage too.
    File::open(directory)?.sync_all()?;
    Ok((database, file))
}

fn create_table(database: &Database) -> Result<(), redb::Error> {
    let change = database.begin_write()?;
    change.open_table(RECORDS)?;
    Ok(change.commit()?)
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
