//! Growing and truncating files (decisions 0024, 0025).
//!
//! Invariants:
//! - The catalogue never records bytes that a server of the file does not know of.
//! - A client that has grown a file reports the size to the catalogue when it closes the file.
//! - A file record learns a size only when all servers of the file know it.

use super::limits::{CATALOGUE, OPENING_MAX};
use crate::client::faults::unexpected;
use crate::client::state::Client;
use futures_util::future::{join_all, try_join_all};
use std::collections::BTreeMap;
use units::{FileId, ServerId, Timestamp};
use wire::{CatalogueRequest, Fault, FileRecord, FileRequest, FileSize, Reply, Request};
use world::World;

/// Maximum number of cuts to reach a requested size while other clients grow the file.
const CUTS_MAX: u32 = 16;

/// Maximum number of open files of one server whose sizes are asked for.
const OPEN_SIZES_MAX: usize = 1 << 20;

impl<W: World> Client<W> {
    /// Updates the size of an open file, which other clients may have changed.
    pub async fn refresh(&self, file: &mut FileRecord) -> Result<(), Fault> {
        let Some(server) = file.servers().next() else { return Ok(()) };
        let ask = FileRequest::Resize { file: file.file, size: FileSize::default() };
        let known = self.ask_for_size(server, ask).await?;
        if known > file.size() {
            // The client that changed the size may not have reached all servers yet.
            self.send_size_to_servers(file, known).await?;
        }
        Ok(())
    }

    /// Updates the size after a server has reported that the file ends earlier. That server may be
    /// the only one that knows.
    pub async fn catch_up(&self, file: &mut FileRecord) -> Result<(), Fault> {
        self.send_size_to_servers(file, FileSize::default()).await
    }

    /// Grows an open file to at least `bytes` bytes; new bytes are zero. When this returns, every
    /// client that asks a server sees the size. The catalogue gets it when this client closes the
    /// file. If the client is killed before, the file ends at the last written byte.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] beyond the maximum size of a file; faults of servers.
    pub async fn grow(&self, file: &mut FileRecord, bytes: u64) -> Result<(), Fault> {
        FileSize { bytes, ..file.size() }.validate()?;
        while file.bytes < bytes {
            let size = FileSize { bytes, ..file.size() };
            self.send_size_to_servers(file, size).await?;
        }
        Ok(())
    }

    /// Sets the size of an open file to `bytes` bytes. Bytes beyond are freed; new bytes are zero.
    /// When this returns, its servers have the size on stable storage; the catalogue gets it when
    /// this client closes the file.
    ///
    /// # Errors
    /// As for [`Client::grow`]. After a failed cut the file may have zeros beyond `bytes` where it
    /// had data. Active collectives on the file fail with [`Fault::PastEnd`].
    pub async fn set_size(&self, file: &mut FileRecord, bytes: u64) -> Result<(), Fault> {
        self.refresh(file).await?;
        self.0.sizes().set(file.file);
        if bytes >= file.bytes {
            self.grow(file, bytes).await?;
            return self.keep_owed_size(file).await;
        }
        // Another client may make the same number of cuts at the same time, to a larger size, or
        // grow the file. Then this client cuts once more, as if the other change had come first,
        // but not for ever.
        for _ in 0..CUTS_MAX {
            if file.bytes <= bytes {
                break;
            }
            let too_often = || Fault::BadRequest {
                cause: "it was truncated too often by other \
                                                           clients"
                    .to_owned(),
            };
            let cuts = file.cuts.checked_add(1).ok_or_else(too_often)?;
            self.send_size_to_servers(file, FileSize { cuts, bytes }).await?;
        }
        // Another client may have made the same number of cuts, to a smaller size.
        self.keep_owed_size(file).await
    }

    /// Returns sizes and times of all open files, which the catalogue may not have recorded. Skips
    /// servers that have left.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when a server answers with an invalid size or order.
    pub async fn open_sizes(&self) -> Result<BTreeMap<FileId, (FileSize, Timestamp)>, Fault> {
        let mut all: BTreeMap<FileId, (FileSize, Timestamp)> = BTreeMap::new();
        let asked = (0..self.servers()).map(|server| self.open_sizes_at(ServerId(server)));
        for some in join_all(asked).await {
            match some {
                Ok(some) => some.into_iter().for_each(|(file, size, modified)| {
                    let known = all.entry(file).or_default();
                    *known = (size.max(known.0), modified.max(known.1));
                }),
                Err(Fault::ServerLeft { .. }) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(all)
    }

    async fn open_sizes_at(
        &self,
        server: ServerId,
    ) -> Result<Vec<(FileId, FileSize, Timestamp)>, Fault> {
        let mut all: Vec<(FileId, FileSize, Timestamp)> = Vec::new();
        let mut is_more = true;
        while is_more && all.len() < OPEN_SIZES_MAX {
            let after = all.last().map(|(file, ..)| *file);
            match self.call(server, FileRequest::OpenSizes { after }).await? {
                Reply::Sizes { sizes, more } => {
                    is_more = more && !sizes.is_empty();
                    for (file, size, modified) in sizes {
                        size.validate()?;
                        if all.last().is_some_and(|(last, ..)| file <= *last) {
                            let cause = format!("{server} reported file sizes out of order");
                            return Err(Fault::BadRequest { cause });
                        }
                        all.push((file, size, modified));
                    }
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(all)
    }

    /// Sends a size to all servers of a file. The record learns the size that all of them know
    /// then.
    async fn send_size_to_servers(
        &self,
        file: &mut FileRecord,
        size: FileSize,
    ) -> Result<(), Fault> {
        let resize = FileRequest::Resize { file: file.file, size };
        file.learn(self.ask_servers_for_size(file, resize).await?);
        Ok(())
    }

    /// Reports the sizes of all open files to the catalogue, where it may not have them: for a
    /// client that ends without closing its files. Reports nothing when a server has left, as
    /// [`Client::close`].
    pub async fn record_sizes(&self) -> Result<(), Fault> {
        if self.0.servers().first_left().is_some() {
            return Ok(());
        }
        let files = self.0.sizes().all_unrecorded();
        try_join_all(files.into_iter().map(|file| self.record_size(file))).await.map(|_| ())
    }

    /// Makes one server keep the size of a file on stable storage if this client has set it. Data
    /// on the disks shows how far writes have come, and every server keeps cuts itself.
    pub(crate) async fn keep_owed_size(&self, file: &FileRecord) -> Result<(), Fault> {
        if let Some(times_set) = self.0.sizes().owed(file.file)
            && let Some(first) = file.servers().next()
        {
            self.ask_for_size(first, FileRequest::KeepSize { file: file.file }).await?;
            self.0.sizes().kept(file.file, times_set);
        }
        Ok(())
    }

    /// Reports the size of an open file to the catalogue, if it may not have it. All servers know
    /// the size: after a cut none has bytes beyond it that the catalogue does not know of.
    pub(crate) async fn record_size(&self, file: FileId) -> Result<(), Fault> {
        let Some(size) = self.0.sizes().unrecorded(file) else { return Ok(()) };
        match self.ask_for_size(CATALOGUE, CatalogueRequest::RecordSize { file, size }).await {
            Ok(known) => self.0.sizes().recorded(file, known),
            // The file was removed, and clients that have it open keep it.
            Err(Fault::NoSuchFile { .. }) => {}
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Makes a file that ends before `bytes` so long at each of its servers, whatever cut of it
    /// each knows. No server is told of a cut, nor asked for the size: that would wait for leases,
    /// and flushes of gathered writes must not.
    pub(crate) async fn reach_everywhere(
        &self,
        file: &mut FileRecord,
        bytes: u64,
    ) -> Result<(), Fault> {
        FileSize { bytes, ..file.size() }.validate()?;
        let known = file.size();
        let number = file.file;
        let reach = |server| async move {
            let mut size = known;
            for _ in 0..CUTS_MAX {
                let wanted = FileSize { bytes: bytes.max(size.bytes), ..size };
                let resize = FileRequest::Resize { file: number, size: wanted };
                size = self.ask_for_size(server, resize).await?;
                if size.bytes >= bytes {
                    break;
                }
            }
            Ok::<FileSize, Fault>(size)
        };
        let sizes = try_join_all(file.servers().map(reach)).await?;
        // What all servers know, or more.
        let least = sizes.into_iter().min().unwrap_or(known);
        self.0.sizes().learn(number, least);
        file.learn(least);
        Ok(())
    }

    /// Sends all servers of a file a request that they answer with its size. Repeats it until all
    /// of them know the greatest answer: another client may be in the middle of a change, or a
    /// server was lost that had learnt it.
    pub(crate) async fn ask_servers_for_size(
        &self,
        file: &FileRecord,
        mut request: FileRequest,
    ) -> Result<FileSize, Fault> {
        let mut servers: Vec<ServerId> = file.servers().collect();
        let mut size = FileSize::default();
        let mut losses = self.losses(file.servers());
        while !servers.is_empty() {
            let known = self.ask_for_sizes(servers.iter().copied(), &request).await?;
            size = known.iter().copied().fold(size, FileSize::max);
            let all = servers.into_iter().zip(known);
            servers = all.filter(|(_, known)| *known < size).map(|(server, _)| server).collect();
            request = FileRequest::Resize { file: file.file, size };
            // From now on a server that is lost learns it when it is there again.
            self.0.sizes().learn(file.file, size);
            let now = self.losses(file.servers());
            if std::mem::replace(&mut losses, now) != now {
                servers = file.servers().collect();
            }
        }
        Ok(size)
    }

    /// Sends servers a request that they answer with a size.
    async fn ask_for_sizes(
        &self,
        servers: impl Iterator<Item = ServerId>,
        request: &FileRequest,
    ) -> Result<Vec<FileSize>, Fault> {
        let servers: Vec<ServerId> = servers.collect();
        let mut known = Vec::with_capacity(servers.len());
        for some in servers.chunks(OPENING_MAX) {
            let calls = some.iter().map(|server| self.ask_for_size(*server, request.clone()));
            known.extend(try_join_all(calls).await?);
        }
        Ok(known)
    }

    pub(crate) async fn ask_for_size(
        &self,
        server: ServerId,
        request: impl Into<Request>,
    ) -> Result<FileSize, Fault> {
        match self.call(server, request).await? {
            Reply::Size(size) => size.validate().map(|()| size),
            other => Err(unexpected(&other)),
        }
    }
}
