//! Ordinary files of users, which servers work on together, each at its own path.
//!
//! Such a file has a number while clients have it open, and no entry in the catalogue. Server 0
//! gives the number. After the last close each server writes back what it has of the file, and
//! forgets it.
//!
//! Invariants:
//! - An ordinary file has one number at a time, whatever its path.
//! - Nothing that a client has written is dropped: the file has it when it is closed.

use super::open_file::OpenFile;
use crate::server::answer::Answer;
use crate::server::faults::disk_fault;
use crate::server::state::Server;
use policy::{Buffering, Pool, Protection, Stripe};
use std::rc::Rc;
use units::{DiskId, FileId};
use wire::{Entry, EntryKind, Fault, FileRecord, Made, Reply};
use world::{Disk, DiskError, OrdinaryFile, World};

/// Disk that carries out the requests for ordinary files.
const DISK: DiskId = DiskId(0);

/// Returns the path of an ordinary file, of which the name is the path without its first slash.
fn path_of(record: &FileRecord) -> String {
    format!("/{}", record.name)
}

impl<W: World> Server<W> {
    /// Answers with the record of an ordinary file.
    pub(super) async fn number_in_place(
        &self,
        path: &str,
        inode: u64,
        block_bytes: u64,
    ) -> Result<Answer<W::Payload>, Fault> {
        self.check_not_read_only()?;
        let none = || Fault::BadRequest { cause: "server 0 numbers files in place".to_owned() };
        let catalogue = self.catalogue().ok_or_else(none)?;
        let servers = self.config().servers;
        let record = FileRecord {
            file: catalogue.give_number().await?,
            name: path.trim_start_matches('/').to_owned(),
            bytes: 0,
            cuts: 0,
            stripe: Stripe::in_place(block_bytes, servers, inode),
            pool: Pool::all(servers),
            buffering: Buffering::default(),
            protection: Protection::None,
        };
        self.check_record(&record)?;
        let ordinary = self.adopt_as(&record, false).await?;
        let known = self.in_place().numbered(ordinary);
        if let Some(known) = known {
            self.release_in_place(record.file).await;
            return Ok(answer(known));
        }
        if let Err(fault) = self.adopt_as(&record, true).await {
            self.release_in_place(record.file).await;
            return Err(fault);
        }
        Ok(answer(self.in_place().number(ordinary, record)))
    }

    /// Makes an ordinary file an object of this server, if the record is of one.
    pub(super) async fn adopt(&self, record: &FileRecord) -> Result<(), Fault> {
        if record.stripe.inode().is_none() || self.in_place().has(record.file) {
            return Ok(());
        }
        if self.files().is_dropped(record.file) {
            return Err(Fault::NoSuchFile { name: record.name.clone() });
        }
        self.check_not_read_only()?;
        self.adopt_as(record, false).await.map(|_| ())
    }

    async fn adopt_as(&self, record: &FileRecord, lock: bool) -> Result<OrdinaryFile, Fault> {
        let (path, inode) = (path_of(record), record.stripe.inode().unwrap_or_default());
        // It may hold what clients wrote that were killed.
        self.in_place().until_written_back(inode, |file| self.files().is_dropped(file)).await;
        let failed = |error: DiskError| match disk_fault(self.config().id, &error) {
            // The file was there when it was numbered, unlocked.
            Fault::DiskFailed { server, .. } if lock => {
                let cause = format!("another instance works on it in place: {path}");
                Fault::DiskFailed { server, cause }
            }
            fault => fault,
        };
        let disk = self.disks().disk(DISK)?;
        let found = disk.adopt(record.file, &path, lock).await.map_err(failed)?;
        self.in_place().adopt(record.file, inode);
        if found.inode == inode {
            return Ok(found);
        }
        self.release_in_place(record.file).await;
        let (server, cause) = (
            self.config().id,
            format!("at {path} it finds another file than the client, or on another file system"),
        );
        Err(Fault::DiskFailed { server, cause })
    }

    /// Ends the work on an ordinary file.
    async fn release_in_place(&self, file: FileId) {
        self.in_place().forget(file);
        if let Ok(disk) = self.disks().disk(DISK) {
            // It only closes the file.
            let _ = disk.remove(file).await;
        }
    }

    /// Writes back what this server has of an ordinary file before it is forgotten.
    pub(crate) async fn settle_in_place(&self, file: FileId, known: Option<&Rc<OpenFile>>) {
        if !self.in_place().has(file) {
            return;
        }
        self.cache().flush(file).await;
        if let Some(known) = known {
            // The client has got its faults at its own flush.
            let _ = self.extend_in_place(known).await;
        }
        self.in_place().forget(file);
    }

    /// Makes an ordinary file as long as clients know it.
    pub(super) async fn extend_in_place(&self, file: &OpenFile) -> Result<(), Fault> {
        let disk = self.disks().disk(DISK)?;
        let extended = disk.extend(file.file, file.bytes()).await;
        extended.map_err(|error| self.disks().fault(file, DISK, &error))
    }
}

fn answer<P>(record: FileRecord) -> Answer<P> {
    let (name, made) = (record.name.clone(), Made::default());
    let kind = EntryKind::File(record);
    Reply::Entry(Entry { name, made, modified: Default::default(), kind }).into()
}
