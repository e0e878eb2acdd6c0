//! Files that become longer or shorter (decision 0024).

use crate::client::catalogue::{CATALOGUE, OPENING_MAX};
use crate::client::{Client, unexpected};
use futures_util::future::try_join_all;
use units::ServerId;
use wire::{Fault, FileRecord, FileSize, Reply, Request};
use world::World;

impl<W: World> Client<W> {
    /// Learns how long an open file is now; other clients may have changed it.
    pub async fn refresh(&self, file: &mut FileRecord) -> Result<(), Fault> {
        let Some(server) = file.servers().next() else { return Ok(()) };
        let number = file.file;
        let ask = Request::Resize { file: number, size: FileSize::default() };
        if !file.learn(self.ask_for_size(server, ask).await?) {
            return Ok(());
        }
        // Whoever says so may not have told all others yet.
        let tell = Request::Resize { file: number, size: file.size() };
        self.ask_servers_for_size(file, tell).await
    }

    /// Makes an open file at least `bytes` bytes long; new bytes are zero. When this returns, the
    /// catalogue has its size on stable storage, and every client that asks a server sees it.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] beyond what a file may have; what servers meet.
    pub async fn grow(&self, file: &mut FileRecord, bytes: u64) -> Result<(), Fault> {
        FileSize { bytes, ..file.size() }.validate()?;
        while file.bytes < bytes {
            let size = FileSize { bytes, ..file.size() };
            self.tell_size(file, size).await?;
        }
        Ok(())
    }

    /// Makes an open file `bytes` bytes long. What lies beyond is freed; what is new is zero.
    ///
    /// # Errors
    /// As for [`Client::grow`]. A file that was to become shorter may then have zeros where it had
    /// something beyond `bytes`. Collectives on it that are under way fail with
    /// [`Fault::PastEnd`].
    pub async fn set_size(&self, file: &mut FileRecord, bytes: u64) -> Result<(), Fault> {
        self.refresh(file).await?;
        if bytes >= file.bytes {
            return self.grow(file, bytes).await;
        }
        let too_often = || Fault::BadRequest { cause: "it was cut too often".to_owned() };
        let cuts = file.cuts.checked_add(1).ok_or_else(too_often)?;
        self.tell_size(file, FileSize { cuts, bytes }).await
    }

    /// Tells the servers of a file its size, then the catalogue: so none has bytes beyond it that
    /// the catalogue knows nothing of. The record learns what they knew.
    async fn tell_size(&self, file: &mut FileRecord, size: FileSize) -> Result<(), Fault> {
        let number = file.file;
        self.ask_servers_for_size(file, Request::Resize { file: number, size }).await?;
        let record = Request::RecordSize { file: number, size };
        file.learn(self.ask_for_size(CATALOGUE, record).await?);
        Ok(())
    }

    /// Asks all servers of a file something that they answer with its size, and learns it. Then
    /// all of them know the greatest of what they have answered: another client may be about to
    /// tell them.
    pub(super) async fn ask_servers_for_size(
        &self,
        file: &mut FileRecord,
        mut request: Request,
    ) -> Result<(), Fault> {
        let mut servers: Vec<ServerId> = file.servers().collect();
        while !servers.is_empty() {
            let mut known = Vec::with_capacity(servers.len());
            for some in servers.chunks(OPENING_MAX) {
                let calls = some.iter().map(|server| self.ask_for_size(*server, request.clone()));
                known.extend(try_join_all(calls).await?);
            }
            for size in &known {
                file.learn(*size);
            }
            let size = file.size();
            let all = servers.into_iter().zip(known);
            servers = all.filter(|(_, known)| *known < size).map(|(server, _)| server).collect();
            request = Request::Resize { file: file.file, size };
        }
        Ok(())
    }

    async fn ask_for_size(&self, server: ServerId, request: Request) -> Result<FileSize, Fault> {
        match self.call(server, request).await? {
            Reply::Size(size) => Ok(size),
            other => Err(unexpected(&other)),
        }
    }
}
