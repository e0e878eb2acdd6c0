//! Cached record of an open file, shared with the operations on it.

use super::unsynced_writes::UnsyncedWrites;
use filesystem::{Client, Fault};
use policy::Protection;
use std::sync::{Arc, Mutex, PoisonError};
use wire::FileRecord;
use world_real::RealWorld;

/// Maximum number of times that a write is carried out because servers are lost meanwhile.
const WRITES_MAX: u32 = 4;

/// Cached record of an open file. Its size is the last that this library has heard of.
#[derive(Clone)]
pub(super) struct CachedRecord(Arc<State>);

struct State {
    record: Mutex<Arc<FileRecord>>,
    unsynced: UnsyncedWrites,
}

impl CachedRecord {
    pub(super) fn new(record: FileRecord) -> Self {
        let (record, unsynced) = (Mutex::new(Arc::new(record)), UnsyncedWrites::default());
        Self(Arc::new(State { record, unsynced }))
    }

    /// True if what is with the disks outlives the loss of a server.
    pub(super) fn is_protected(&self) -> bool {
        self.get().protection != Protection::None
    }

    /// Writes to the file that no sync has stored.
    pub(super) fn unsynced(&self) -> &UnsyncedWrites {
        &self.0.unsynced
    }

    /// Fails, once, if what was written may be lost.
    pub(super) fn check(&self, client: &Client<RealWorld>) -> Result<(), Fault> {
        self.check_losses(|record| client.losses(record.servers()))
    }

    /// [`CachedRecord::check`] with the number of losses of the servers of the file.
    fn check_losses(&self, losses: impl FnOnce(&FileRecord) -> u64) -> Result<(), Fault> {
        if !self.unsynced().are_some() {
            return Ok(());
        }
        let record = self.get();
        match self.unsynced().take_lost(losses(&record)) {
            true => Err(writes_lost(&record)),
            false => Ok(()),
        }
    }

    /// Waits until all that was written is with the disks and, with `sync`, on stable storage.
    pub(super) async fn flush(&self, client: &Client<RealWorld>, sync: bool) -> Result<(), Fault> {
        self.flush_as(client, sync, sync || self.is_protected()).await
    }

    /// Waits until it is known that no server was lost between the writes of this program and a
    /// sync that another one has made after them. They are stored then.
    pub(super) async fn confirm_sync(&self, client: &Client<RealWorld>) -> Result<(), Fault> {
        match self.unsynced().are_some() {
            // The servers that are lost are known once all have answered.
            true => self.flush_as(client, false, true).await,
            false => Ok(()),
        }
    }

    /// [`CachedRecord::flush`], after which all that was written `is_stored`.
    async fn flush_as(
        &self,
        client: &Client<RealWorld>,
        sync: bool,
        is_stored: bool,
    ) -> Result<(), Fault> {
        let record = self.get();
        let flushing = self.unsynced().begin_flush();
        let flushed = client.flush(&record, sync).await;
        let is_stored = flushed.is_ok() && is_stored;
        flushing.end(is_stored, client.losses(record.servers()));
        let checked = self.check(client);
        flushed.and(checked)
    }

    /// Carries out a write, and once more if a server is lost meanwhile: it may have lost what it
    /// had acknowledged. Notes that it is not stored, unless `is_stored`.
    pub(super) async fn write_until_kept<R>(
        &self,
        client: &Client<RealWorld>,
        is_stored: bool,
        write: impl AsyncFn() -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        for _ in 0..WRITES_MAX {
            let losses = client.losses(self.get().servers());
            let written = write().await;
            if client.losses(self.get().servers()) == losses {
                if !is_stored {
                    self.unsynced().add(|| losses);
                }
                return written;
            }
            written?;
        }
        Err(writes_lost(&self.get()))
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
        self.0.record.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.check(client)?;
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
        self.check(client)?;
        let set = async || self.change(async |record| client.set_size(record, bytes).await).await;
        self.write_until_kept(client, false, set).await.map(|_| ())
    }

    /// Makes the file at least `bytes` bytes long and writes to it; what is written is stored if
    /// `is_stored`. Tries again if another program truncates it in between.
    pub(super) async fn write(
        &self,
        client: &Client<RealWorld>,
        bytes: u64,
        is_stored: bool,
        write: impl AsyncFn(&FileRecord) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.check(client)?;
        let write = async || {
            let record = self.grown(client, bytes).await?;
            match write(&record).await {
                Err(Fault::PastEnd { .. }) => {
                    self.caught_up(client).await?;
                    write(&*self.grown(client, bytes).await?).await
                }
                other => other,
            }
        };
        self.write_until_kept(client, is_stored, write).await
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

fn writes_lost(record: &FileRecord) -> Fault {
    Fault::WritesLost { cause: format!("a server of {:?} was lost", record.name) }
}
