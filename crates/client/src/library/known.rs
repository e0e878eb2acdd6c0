//! What a library knows of a file that it has open, shared with what was begun on it.

use filesystem::{Client, Fault};
use std::sync::{Arc, Mutex, PoisonError};
use wire::FileRecord;
use world_real::RealWorld;

/// The record of an open file. Its size is what this library has last heard of it.
#[derive(Clone)]
pub(super) struct Known(Arc<Mutex<Arc<FileRecord>>>);

impl Known {
    pub(super) fn new(record: FileRecord) -> Self {
        Self(Arc::new(Mutex::new(Arc::new(record))))
    }

    /// The record as it is known now.
    pub(super) fn get(&self) -> Arc<FileRecord> {
        Arc::clone(&self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<FileRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record, with the size that the servers know now.
    pub(super) async fn refreshed(
        &self,
        client: &Client<RealWorld>,
    ) -> Result<Arc<FileRecord>, Fault> {
        self.change(async |record| client.refresh(record).await).await
    }

    /// The same when a server has said that the file ends before what was asked of it.
    pub(super) async fn caught_up(
        &self,
        client: &Client<RealWorld>,
    ) -> Result<Arc<FileRecord>, Fault> {
        self.change(async |record| client.catch_up(record).await).await
    }

    /// The record, with the size that the servers know now if the one that is known is less than
    /// `bytes`.
    pub(super) async fn reaching(
        &self,
        client: &Client<RealWorld>,
        bytes: u64,
    ) -> Result<Arc<FileRecord>, Fault> {
        match self.get() {
            known if known.bytes >= bytes => Ok(known),
            _ => self.refreshed(client).await,
        }
    }

    /// The record of a file that has at least `bytes` bytes.
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
        match self.get() {
            known if known.bytes >= bytes => Ok(known),
            _ => self.change(async |record| client.grow(record, bytes).await).await,
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

    /// Makes the file at least `bytes` bytes long and writes to it; again if another program makes
    /// it shorter in between.
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
