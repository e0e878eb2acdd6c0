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
use units::{DiskId, FileId, PeerId};
use wire::{Entry, EntryKind, Fault, FileRecord, Made, Reply};
use world::{Disk, OrdinaryFile, World};

/// Disk that carries out the requests for ordinary files.
const DISK: DiskId = DiskId(0);

/// Returns the path of an ordinary file, of which the name is the path without its first slash.
fn path_of(record: &FileRecord) -> String {
    format!("/{}", record.name)
}

impl<W: World> Server<W> {
    /// Answers with the record of an ordinary file.
    pub(super) async fn number_in_place(
        self: &Rc<Self>,
        from: PeerId,
        path: &str,
        inode: u64,
        block_bytes: u64,
    ) -> Result<Answer<W::Payload>, Fault> {
        self.check_not_read_only()?;
        let none = || Fault::BadRequest { cause: "server 0 numbers files in place".to_owned() };
        let servers = self.config().servers;
        let name = path.trim_start_matches('/');
        if let Some(known) = self.known_in_place(name, inode) {
            self.in_place().asked(known.file, from);
            return Ok(answer(known));
        }
        let record = FileRecord {
            file: self.catalogue().ok_or_else(none)?.give_number().await?,
            name: name.to_owned(),
            bytes: 0,
            cuts: 0,
            stripe: Stripe::in_place(block_bytes, servers, inode),
            pool: Pool::all(servers),
            buffering: Buffering::default(),
            protection: Protection::None,
        };
        self.check_record(&record)?;
        let server = Rc::clone(self);
        let known = self.to_its_end(async move { server.adopt_first(record, from).await }).await?;
        Ok(answer(known))
    }

    /// Record of an ordinary file that clients have open by this path. While it is open here, no
    /// other file of its file system gets its inode.
    fn known_in_place(&self, name: &str, inode: u64) -> Option<FileRecord> {
        let alike = self.in_place().with_inode(inode).into_iter();
        alike.filter(|it| it.name == name).find(|it| !self.files().is_dropped(it.file))
    }

    /// Makes an ordinary file an object of this server, if the record is of one.
    pub(super) async fn adopt(
        self: &Rc<Self>,
        record: &FileRecord,
        from: PeerId,
    ) -> Result<(), Fault> {
        if record.stripe.inode().is_none() || self.in_place().has(record.file) {
            return Ok(());
        }
        if self.files().is_dropped(record.file) {
            return Err(Fault::NoSuchFile { name: record.name.clone() });
        }
        self.check_not_read_only()?;
        let (server, record) = (Rc::clone(self), record.clone());
        let adopted = async move {
            if server.catalogue().is_none() {
                server.adopt_as(&record, false).await?;
                server.in_place().asked(record.file, from);
                server.forget_unopened(from);
                return Ok(());
            }
            // This server was started again, and the client has the number from before.
            let (file, name) = (record.file, record.name.clone());
            let known = server.adopt_first(record, from).await?;
            if known.file == file {
                return Ok(());
            }
            let (server, cause) = (
                server.config().id,
                format!("since the server was started again, /{name} was opened anew"),
            );
            Err(Fault::DiskFailed { server, cause })
        };
        self.to_its_end(adopted).await
    }

    /// Makes an ordinary file an object of server 0, which locks it, for a client that opens it
    /// next. Returns the record that the file has: another one if clients know it already.
    async fn adopt_first(
        self: &Rc<Self>,
        record: FileRecord,
        from: PeerId,
    ) -> Result<FileRecord, Fault> {
        let _numbering = self.in_place().begin_numbering().await;
        let inode = record.stripe.inode().unwrap_or_default();
        let mut known = self.known_in_place(&record.name, inode);
        if known.is_none() && !self.in_place().with_inode(inode).is_empty() {
            // It may be known by another path. A lock would fail then.
            let ordinary = self.adopt_as(&record, false).await?;
            known = self.in_place().numbered(ordinary);
            self.release_in_place(record.file).await;
        }
        if known.is_none() {
            let ordinary = self.adopt_as(&record, true).await?;
            self.in_place().number(ordinary, record.clone());
        }
        let known = known.unwrap_or(record);
        self.in_place().asked(known.file, from);
        self.forget_unopened(from);
        Ok(known)
    }

    /// Forgets the ordinary files that a client was about to open, if it has left.
    pub(crate) fn forget_unopened(self: &Rc<Self>, client: PeerId) {
        if self.clients().session(client).is_some() {
            return;
        }
        for file in self.in_place().left(client) {
            if self.files().find(file).is_ok_and(|known| known.is_none()) {
                self.files().forget(file);
                let server = Rc::clone(self);
                self.changes().spawn(async move {
                    server.release_in_place(file).await;
                    Ok(())
                });
            }
        }
    }

    async fn adopt_as(&self, record: &FileRecord, lock: bool) -> Result<OrdinaryFile, Fault> {
        let (path, inode) = (path_of(record), record.stripe.inode().unwrap_or_default());
        // It may hold what clients wrote that were killed.
        self.in_place().until_written_back(inode, |file| self.files().is_dropped(file)).await;
        let failed = |error| disk_fault(self.config().id, &error);
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

    /// Ends the work on an ordinary file of which this server has nothing.
    async fn release_in_place(&self, file: FileId) {
        if let Ok(disk) = self.disks().disk(DISK) {
            // It only closes the file.
            let _ = disk.release(file, 0).await;
        }
        self.in_place().forget(file);
    }

    /// Ends the work of a client on an ordinary file: the file has what was written when this
    /// returns. `is_last`: no other client has it open here.
    pub(super) async fn close_in_place(
        self: &Rc<Self>,
        from: PeerId,
        known: Rc<OpenFile>,
        is_last: bool,
    ) -> Result<(), Fault> {
        let file = known.file;
        if !is_last {
            self.cache().flush(file).await;
            return self.write_failures().report_to(file, from);
        }
        // At once, so that no client opens it again.
        self.files().forget(file);
        let server = Rc::clone(self);
        let ended = self.to_its_end(async move {
            let settled = server.settle_in_place(&known).await;
            let settled = settled.and(server.write_failures().report_to(file, from));
            // It only forgets the file.
            let _ = server.drop_file(file, Protection::None).await;
            settled
        });
        ended.await
    }

    /// Writes back what this server has of an ordinary file before it is forgotten, and makes it as
    /// long as clients know it.
    pub(crate) async fn settle_in_place(&self, known: &OpenFile) -> Result<(), Fault> {
        if !self.in_place().has(known.file) {
            return Ok(());
        }
        self.cache().flush(known.file).await;
        let disk = self.disks().disk(DISK)?;
        let released = disk.release(known.file, known.bytes()).await;
        released.map_err(|error| self.disks().fault(known, DISK, &error))
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
