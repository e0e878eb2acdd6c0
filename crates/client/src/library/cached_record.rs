//! Cached record of an open file, shared with the operations on it.

use filesystem::{Client, Fault};
use std::sync::{Arc, Mutex, PoisonError};
use wire::FileRecord;
use world_real::RealWorld;

/// Cached record of an open file. Its size is the last that this library has heard of.
#[derive(Clone)]
pub(super) struct CachedRecord(Arc<Mutex<Arc<FileRecord>>>);

impl CachedRecord {
    pub(super) fn new(record: FileRecord) -> Self {
        Self(Arc::new(Mutex::new(Arc::new(record))))
    }

    /// Returns the cached record.
    pub(super) fn get(&self) -> Arc<FileRecord> {
        Arc::clone(&self.lock())
    }

    /// Returns the cached record if it has at least `bytes` bytes.
    fn at_least(&self, bytes: u64) -> Option<Arc<FileRecord>> {
        Some(self.get()).filter(|record| record.bytes >= bytes)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<FileRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the record with its current size, asked from the servers.
    pub(super) async fn refreshed(
        &self,
        client: &Client<RealWorld>,
    ) -> Result<Arc<FileRecord>, Fault> {
        self.change(async |record| client.refresh(record).await).await
    }

    /// Updates the size after a server reported that the file ends before the requested range. That
    /// server may be the only one that knows.
    pub(super) async fn caught_up(
        &self,
        client: &Client<RealWorld>,
    ) -> Result<Arc<FileRecord>, Fault> {
        self.change(async |record| client.catch_up(record).await).await
    }

    /// Returns the record. Asks the servers for the current size if the cached one is less than
    /// `bytes`.
    pub(super) async fn reaching(
        &self,
        client: &Client<RealWorld>,
        bytes: u64,
    ) -> Result<Arc<FileRecord>, Fault> {
        match self.at_least(bytes) {
            Some(record) => Ok(record),
            None => self.refreshed(client).await,
        }
    }

    /// Returns the record of a file that has at least `bytes` bytes.
    pub(super) async fn holding(
        &self,
        client: &Client<RealWorld>,
        bytes: u64,
    ) -> Result<Arc<FileRecord>, Fault> {
        match self.reaching(client, bytes).await? {
            known if known.bytes >= bytes => Ok(known),
            known => Err(Fault::PastEnd { file: known.name.clone(), bytes: known.bytes }),
        }
    }

    /// Makes the file at least `bytes` bytes long.
    pub(super) async fn grown(
        &self,
        client: &Client<RealWorld>,
        bytes: u64,
    ) -> Result<Arc<FileRecord>, Fault> {
        match self.at_least(bytes) {
            Some(record) => Ok(record),
            None => self.change(async |record| client.grow(record, bytes).await).await,
        }
    }

    /// Makes the file `bytes` bytes long.
    pub(super) async fn set_size(
        &self,
        client: &Client<RealWorld>,
        bytes: u64,
    ) -> Result<(), Fault> {
        self.change(async |record| client.set_size(record, bytes).await).await.map(|_| ())
    }

    /// Makes the file at least `bytes` bytes long and writes to it. Tries again if another program
    /// truncates it in between.
    pub(super) async fn write(
        &self,
        client: &Client<RealWorld>,
        bytes: u64,
        write: impl AsyncFn(&FileRecord) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let record = self.grown(client, bytes).await?;
        match write(&record).await {
            Err(Fault::PastEnd { .. }) => {
                self.caught_up(client).await?;
                write(&*self.grown(client, bytes).await?).await
            }
            other => other,
        }
    }

    /// Learns the size of the file from a record.
    pub(super) fn learn(&self, record: &FileRecord) {
        let mut known = self.lock();
        if known.size() < record.size() {
            *known = Arc::new(record.clone());
        }
    }

    async fn change(
        &self,
        change: impl AsyncFnOnce(&mut FileRecord) -> Result<(), Fault>,
    ) -> Result<Arc<FileRecord>, Fault> {
        let mut record = FileRecord::clone(&self.get());
        change(&mut record).await?;
        let mut known = self.lock();
        if known.size() < record.size() {
            *known = Arc::new(record);
        }
        Ok(Arc::clone(&known))
    }
}
