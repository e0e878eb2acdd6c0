//! Files by name: what a client asks of the catalogue.

use crate::client::{Client, unexpected};
use policy::Stripe;
use units::{FileId, ServerId};
use wire::{Fault, FileRecord, Reply, Request};
use world::World;

/// The server that keeps the catalogue.
const CATALOGUE: ServerId = ServerId(0);

/// The most servers at which one client opens a file at the same time. Many clients open a file
/// together, and what waits in all of them and at all servers is held at once.
const OPENING_MAX: usize = 16;

impl<W: World> Client<W> {
    /// Makes a file of `bytes` bytes, all zero, and opens it.
    pub async fn create(
        &self,
        name: &str,
        bytes: u64,
        stripe: Stripe,
    ) -> Result<FileRecord, Fault> {
        let record = FileRecord { file: FileId(0), name: name.to_owned(), bytes, stripe };
        let record = self.ask_for_file(Request::Create(record)).await?;
        self.open_record(&record).await?;
        Ok(record)
    }

    /// Opens a file at every server.
    pub async fn open(&self, name: &str) -> Result<FileRecord, Fault> {
        let record = self.stat(name).await?;
        self.open_record(&record).await?;
        Ok(record)
    }

    /// What the catalogue knows of a file.
    pub async fn stat(&self, name: &str) -> Result<FileRecord, Fault> {
        self.ask_for_file(Request::Stat { name: name.to_owned() }).await
    }

    /// Every file, by name.
    pub async fn list(&self) -> Result<Vec<FileRecord>, Fault> {
        match self.call(CATALOGUE, Request::List).await? {
            Reply::Files(files) => Ok(files),
            other => Err(unexpected(&other)),
        }
    }

    /// Removes a file: its data first, then its name, so that a removal cut short can be repeated.
    pub async fn remove(&self, name: &str) -> Result<(), Fault> {
        let record = self.stat(name).await?;
        self.call_all(&Request::Drop { file: record.file }).await?;
        self.call(CATALOGUE, Request::Remove { name: name.to_owned() }).await?;
        Ok(())
    }

    async fn open_record(&self, record: &FileRecord) -> Result<(), Fault> {
        let servers: Vec<ServerId> = (0..self.servers()).map(ServerId).collect();
        for some in servers.chunks(OPENING_MAX) {
            let open = |server: &ServerId| self.call(*server, Request::Open(record.clone()));
            futures_util::future::try_join_all(some.iter().map(open)).await?;
        }
        Ok(())
    }

    async fn ask_for_file(&self, request: Request) -> Result<FileRecord, Fault> {
        match self.call(CATALOGUE, request).await? {
            Reply::File(record) => Ok(record),
            other => Err(unexpected(&other)),
        }
    }
}
