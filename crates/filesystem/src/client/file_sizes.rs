//! Files that become longer or shorter (decisions 0024, 0025).
//!
//! Invariants: the catalogue never knows of bytes that a server of the file does not; what it does
//! not know yet of a file that a client has made longer, it hears when that client closes the file;
//! a record of a file learns a size only when all servers of the file know it.

use super::faults::unexpected;
use super::limits::{CATALOGUE, OPENING_MAX};
use super::state::Client;
use futures_util::future::{join_all, try_join_all};
use std::collections::BTreeMap;
use units::{FileId, ServerId};
use wire::{Fault, FileRecord, FileSize, Reply, Request};
use world::World;

/// The most times that a file is cut to make it as short as asked, while others make it longer.
const CUTS_MAX: u32 = 16;

/// The most open files of one server of which the sizes are asked for.
const OPEN_SIZES_MAX: usize = 1 << 20;

impl<W: World> Client<W> {
    /// Learns how long an open file is now; other clients may have changed it.
    pub async fn refresh(&self, file: &mut FileRecord) -> Result<(), Fault> {
        let Some(server) = file.servers().next() else { return Ok(()) };
        let ask = Request::Resize { file: file.file, size: FileSize::default() };
        let known = self.ask_for_size(server, ask).await?;
        if known > file.size() {
            // Whoever says so may not have told all others yet.
            self.send_size_to_servers(file, known).await?;
        }
        Ok(())
    }

    /// The same when a server has said that the file ends before what was asked of it: it may be
    /// the only one that knows.
    pub async fn catch_up(&self, file: &mut FileRecord) -> Result<(), Fault> {
        self.send_size_to_servers(file, FileSize::default()).await
    }

    /// Makes an open file at least `bytes` bytes long, to be written up to there; new bytes are
    /// zero. When this returns, every client that asks a server sees it. The catalogue hears of it
    /// when this client closes the file. Should the client be killed before, the file reaches as
    /// far as what was written to it.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] beyond what a file may have; what servers meet.
    pub async fn grow(&self, file: &mut FileRecord, bytes: u64) -> Result<(), Fault> {
        FileSize { bytes, ..file.size() }.validate()?;
        while file.bytes < bytes {
            let size = FileSize { bytes, ..file.size() };
            self.send_size_to_servers(file, size).await?;
        }
        Ok(())
    }

    /// Makes an open file `bytes` bytes long. What lies beyond is freed; what is new is zero. When
    /// this returns, its servers have its size on stable storage; the catalogue hears of it when
    /// this client closes the file.
    ///
    /// # Errors
    /// As for [`Client::grow`]. A file that was to become shorter may then have zeros where it had
    /// something beyond `bytes`. Collectives on it that are under way fail with
    /// [`Fault::PastEnd`].
    pub async fn set_size(&self, file: &mut FileRecord, bytes: u64) -> Result<(), Fault> {
        self.refresh(file).await?;
        self.0.sizes.set(file.file);
        if bytes >= file.bytes {
            self.grow(file, bytes).await?;
            return self.keep_owed_size(file).await;
        }
        // Another may cut it as often at the same time, to more, or make it longer. Then it is cut
        // once more, as if that had come before; not for ever, while others write.
        for _ in 0..CUTS_MAX {
            if file.bytes <= bytes {
                break;
            }
            let too_often = || Fault::BadRequest { cause: "it was cut too often".to_owned() };
            let cuts = file.cuts.checked_add(1).ok_or_else(too_often)?;
            self.send_size_to_servers(file, FileSize { cuts, bytes }).await?;
        }
        // Others may have cut it as often, to less.
        self.keep_owed_size(file).await
    }

    /// The sizes of files that anyone has open, which the catalogue may not know yet. Servers that
    /// have left are left out.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when a server answers with what cannot be.
    pub async fn open_sizes(&self) -> Result<BTreeMap<FileId, FileSize>, Fault> {
        let mut all: BTreeMap<FileId, FileSize> = BTreeMap::new();
        let asked = (0..self.servers()).map(|server| self.open_sizes_at(ServerId(server)));
        for some in join_all(asked).await {
            match some {
                Ok(some) => some.into_iter().for_each(|(file, size)| {
                    all.entry(file).and_modify(|known| *known = size.max(*known)).or_insert(size);
                }),
                Err(Fault::ServerLeft { .. }) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(all)
    }

    async fn open_sizes_at(&self, server: ServerId) -> Result<Vec<(FileId, FileSize)>, Fault> {
        let mut all: Vec<(FileId, FileSize)> = Vec::new();
        let mut is_more = true;
        while is_more && all.len() < OPEN_SIZES_MAX {
            let after = all.last().map(|(file, _)| *file);
            match self.call(server, Request::OpenSizes { after }).await? {
                Reply::Sizes { sizes, more } => {
                    is_more = more && !sizes.is_empty();
                    for (file, size) in sizes {
                        size.validate()?;
                        if all.last().is_some_and(|(last, _)| file <= *last) {
                            let cause = format!("{server} told sizes out of their order");
                            return Err(Fault::BadRequest { cause });
                        }
                        all.push((file, size));
                    }
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(all)
    }

    /// Tells all servers of a file its size. The record learns what all of them know then.
    async fn send_size_to_servers(
        &self,
        file: &mut FileRecord,
        size: FileSize,
    ) -> Result<(), Fault> {
        let resize = Request::Resize { file: file.file, size };
        file.learn(self.ask_servers_for_size(file, resize).await?);
        Ok(())
    }

    /// Tells the catalogue the sizes of all open files that it may not know: for a client that ends
    /// without closing them. It tells nothing when a server has left, as [`Client::close`].
    pub async fn record_sizes(&self) -> Result<(), Fault> {
        if self.0.calls.first_left().is_some() {
            return Ok(());
        }
        let files = self.0.sizes.all_unrecorded();
        try_join_all(files.into_iter().map(|file| self.record_size(file))).await.map(|_| ())
    }

    /// Has a server of a file keep its size, where nothing says how long it is when all of them
    /// have ended: what was written does, and each of them keeps that it was cut.
    pub(crate) async fn keep_owed_size(&self, file: &FileRecord) -> Result<(), Fault> {
        if let Some(times_set) = self.0.sizes.owed(file.file)
            && let Some(first) = file.servers().next()
        {
            self.ask_for_size(first, Request::KeepSize { file: file.file }).await?;
            self.0.sizes.kept(file.file, times_set);
        }
        Ok(())
    }

    /// Tells the catalogue the size of an open file, if it may not know it. All servers do: none
    /// has bytes beyond it that the catalogue knows nothing of after a cut.
    pub(super) async fn record_size(&self, file: FileId) -> Result<(), Fault> {
        let Some(size) = self.0.sizes.unrecorded(file) else { return Ok(()) };
        match self.ask_for_size(CATALOGUE, Request::RecordSize { file, size }).await {
            Ok(known) => self.0.sizes.recorded(file, known),
            // It was removed, and whoever has it open keeps it.
            Err(Fault::NoSuchFile { .. }) => {}
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Asks all servers of a file something that they answer with its size. Returns the greatest of
    /// what they have answered, when all of them know it: another client may be about to tell them.
    pub(super) async fn ask_servers_for_size(
        &self,
        file: &FileRecord,
        mut request: Request,
    ) -> Result<FileSize, Fault> {
        let mut servers: Vec<ServerId> = file.servers().collect();
        let mut size = FileSize::default();
        while !servers.is_empty() {
            let known = self.ask_for_sizes(servers.iter().copied(), &request).await?;
            size = known.iter().copied().fold(size, FileSize::max);
            let all = servers.into_iter().zip(known);
            servers = all.filter(|(_, known)| *known < size).map(|(server, _)| server).collect();
            request = Request::Resize { file: file.file, size };
        }
        self.0.sizes.learn(file.file, size);
        Ok(size)
    }

    /// Asks servers something that they answer with a size.
    async fn ask_for_sizes(
        &self,
        servers: impl Iterator<Item = ServerId>,
        request: &Request,
    ) -> Result<Vec<FileSize>, Fault> {
        let servers: Vec<ServerId> = servers.collect();
        let mut known = Vec::with_capacity(servers.len());
        for some in servers.chunks(OPENING_MAX) {
            let calls = some.iter().map(|server| self.ask_for_size(*server, request.clone()));
            known.extend(try_join_all(calls).await?);
        }
        Ok(known)
    }

    pub(super) async fn ask_for_size(
        &self,
        server: ServerId,
        request: Request,
    ) -> Result<FileSize, Fault> {
        match self.call(server, request).await? {
            Reply::Size(size) => size.validate().map(|()| size),
            other => Err(unexpected(&other)),
        }
    }
}
