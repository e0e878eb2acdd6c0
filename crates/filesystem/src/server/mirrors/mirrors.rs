//! Copies, at other servers, of the parts of mirrored files that this server holds.
//!
//! Invariants:
//! - A sync ends when the copy is stored too, or when two places on stable storage say that the
//!   copy may lack changes: the mark of the file here, and the catalogue. So a copy without bytes
//!   that a sync has acknowledged is never taken for what it is a copy of, even when all that this
//!   server has is lost.
//! - Bytes on the way to copies are bounded.

use super::marks::Marks;
use super::mirrored_file::{Changing, MirroredFile};
use crate::server::catalogue::Catalogue;
use crate::server::files::kept_sizes::KeptSizes;
use crate::server::files::write_failures::WriteFailures;
use crate::server::other_servers::OtherServers;
use crate::server::refill::Lacking;
use crate::signal::Signal;
use futures_util::future::{join, try_join_all};
use futures_util::stream::{self, StreamExt};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use tracing::warn;
use units::{ByteRange, DiskId, FileId, KIB, Run, ServerId};
use wire::{CatalogueRequest, Fault, FileRecord, FileSize, LINE_BYTES_MAX, ObjectRequest, Reply};
use world::{Disk, DiskError, Memory, Payload, Scope, World};

/// Bytes that may be on the way to copies at a time.
const IN_FLIGHT_BYTES_MAX: u64 = 16 * LINE_BYTES_MAX;

/// Number of copies that are stored at the same time.
const SYNCS_AT_ONCE: usize = 64;

/// Unit of damage and of repair: whole pieces, each of which has a checksum on a real disk.
pub(crate) const PIECE_BYTES: u64 = 64 * KIB;

/// Disk whose directory has the records of the server, too.
const FIRST: DiskId = DiskId(0);

/// Server that keeps the catalogue.
pub(crate) const CATALOGUE: ServerId = ServerId(0);

/// Mirrored files with a part at this server.
pub(crate) struct Mirrors<W: World> {
    pub(super) world: W,
    own: ServerId,
    others: Rc<OtherServers<W>>,
    catalogue: Option<Rc<Catalogue<W>>>,
    pub(super) marks: Marks<W>,
    /// What disks lack that took the place of lost ones.
    pub(super) lacking: Rc<Lacking<W>>,
    failures: Rc<WriteFailures>,
    kept_sizes: Rc<KeptSizes<W>>,
    files: RefCell<BTreeMap<FileId, Rc<MirroredFile>>>,
    /// Tells whether the catalogue has recorded that copies may be behind, if that is known.
    is_recorded: Cell<Option<bool>>,
    /// True while the catalogue is being told.
    is_recording: Cell<bool>,
    /// Notified when the catalogue has been told.
    recorded: Signal,
    /// Bytes on the way to copies.
    in_flight_bytes: Cell<u64>,
    /// Notified when bytes have come to a copy.
    arrived: Signal,
    /// Notified when a copy is behind.
    pub(super) fell_behind: Rc<Signal>,
    /// True while the catalogue must be told that no copy is behind, once none is.
    pub(super) must_clear: Cell<bool>,
    /// Work that goes on when its request is given up.
    work: Scope<W, Infallible>,
}

/// Bytes on the way to a copy. Given up when dropped.
struct InFlight<'a>(&'a Cell<u64>, &'a Signal, u64);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.update(|bytes| bytes - self.2);
        self.1.notify();
    }
}

/// Right to tell the catalogue. Released when dropped.
struct Recording<'a>(&'a Cell<bool>, &'a Signal);

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.0.set(false);
        self.1.notify();
    }
}

impl<W: World> Mirrors<W> {
    /// Makes the state of a server that had marked these files when it ended.
    pub(crate) fn new(
        world: W,
        own: ServerId,
        others: Rc<OtherServers<W>>,
        catalogue: Option<Rc<Catalogue<W>>>,
        (marks, marked): (Marks<W>, Vec<FileRecord>),
        (lacking, failures): (Rc<Lacking<W>>, Rc<WriteFailures>),
        kept_sizes: Rc<KeptSizes<W>>,
    ) -> Self {
        let fell_behind = Rc::new(Signal::default());
        let must_clear = Cell::new(!marked.is_empty() || marks.may_be_behind());
        let marked =
            marked.iter().filter_map(|record| MirroredFile::marked(record, own, &fell_behind));
        let marked = marked.inspect(|file| match lacking.to_fill(file.file) {
            none if none.is_empty() => {}
            disks => file.begin_filling(disks, 0),
        });
        let files = marked.map(|file| (file.file, Rc::new(file))).collect();
        Self {
            own,
            others,
            catalogue,
            marks,
            lacking,
            failures,
            kept_sizes,
            files: RefCell::new(files),
            is_recorded: Cell::new(None),
            is_recording: Cell::new(false),
            recorded: Signal::default(),
            in_flight_bytes: Cell::new(0),
            arrived: Signal::default(),
            fell_behind,
            must_clear,
            work: Scope::new(world.clone()),
            world,
        }
    }

    /// Returns the state of a file, if it is mirrored and has a part here. `record` makes its
    /// record.
    pub(crate) fn of(
        &self,
        file: FileId,
        record: impl FnOnce() -> FileRecord,
    ) -> Option<Rc<MirroredFile>> {
        let known = self.files.borrow().get(&file).cloned();
        known.or_else(|| {
            let mirrored = Rc::new(MirroredFile::of(&record(), self.own, &self.fell_behind)?);
            self.begin_filling_of(&mirrored);
            self.files.borrow_mut().insert(file, Rc::clone(&mirrored));
            Some(mirrored)
        })
    }

    /// Notes which disks lack parts of the files that are known, when all that is lacking is known.
    pub(crate) fn begin_filling(&self) {
        for file in self.files.borrow().values() {
            self.begin_filling_of(file);
        }
    }

    fn begin_filling_of(&self, file: &MirroredFile) {
        let disks = self.lacking.to_fill(file.file);
        if !disks.is_empty() {
            file.begin_filling(disks, self.others.ended(file.copy_at));
        }
    }

    /// Number of this server.
    pub(super) fn own(&self) -> ServerId {
        self.own
    }

    /// Number of files whose copies may be behind.
    pub(crate) fn files_behind(&self) -> u64 {
        self.files.borrow().values().filter(|file| file.is_behind()).count() as u64
    }

    /// Returns the files whose copies may be behind.
    pub(super) fn behind(&self) -> Vec<Rc<MirroredFile>> {
        self.files.borrow().values().filter(|file| file.is_behind()).cloned().collect()
    }

    /// Forgets a file whose data is dropped.
    pub(crate) fn forget(&self, file: FileId) {
        self.files.borrow_mut().remove(&file);
        self.marks.unmark(file);
        self.lacking.forget(file);
    }

    /// Forgets a file that is not mirrored any more, after all changes of its copy have ended.
    pub(crate) async fn end(&self, file: FileId) {
        let Some(known) = self.files.borrow().get(&file).cloned() else { return };
        for disk in (0..known.disks).map(DiskId) {
            drop(known.lock(disk, ByteRange::new(0, u64::MAX)).await);
        }
        self.files.borrow_mut().remove(&file);
        self.marks.unmark(file);
    }

    /// Forgets the state of a file that no client has open, if it is as its copy.
    pub(crate) fn release(&self, file: FileId) {
        let mut files = self.files.borrow_mut();
        let is_idle =
            |it: &Rc<MirroredFile>| Rc::strong_count(it) == 1 && !it.is_marked() && !it.is_behind();
        if files.get(&file).is_some_and(is_idle) {
            files.remove(&file);
        }
    }

    /// True while a file is known here.
    pub(super) fn knows(&self, file: &MirroredFile) -> bool {
        self.files.borrow().contains_key(&file.file)
    }

    /// Writes bytes of an object here and to the copy, to the end, also when the caller is given
    /// up. Returns both outcomes.
    ///
    /// # Errors
    /// Fails when the file cannot be marked; then nothing was written.
    pub(crate) async fn write_both(
        self: &Rc<Self>,
        file: &Rc<MirroredFile>,
        number: DiskId,
        (offset, payload): (u64, W::Payload),
    ) -> Result<(Result<(), DiskError>, Result<(), Fault>), Fault> {
        let (mirrors, file) = (Rc::clone(self), Rc::clone(file));
        self.to_its_end(async move {
            let range = ByteRange::new(offset, offset + payload.length());
            let changing = mirrors.begin_change(&file, number, range).await?;
            let disk = &mirrors.world.disks()[number.0 as usize];
            let written = disk.write(file.file, offset, payload.clone());
            let copied = mirrors.write(&file, number, offset, payload);
            let outcomes = join(written, copied).await;
            changing.end();
            Ok(outcomes)
        })
        .await
    }

    /// Frees what is beyond the first `length` bytes of an object, here and at the copy, as
    /// [`write_both`](Self::write_both) writes.
    ///
    /// # Errors
    /// As for `write_both`.
    pub(crate) async fn cut_both(
        self: &Rc<Self>,
        file: &Rc<MirroredFile>,
        number: DiskId,
        length: u64,
    ) -> Result<(Result<(), DiskError>, Result<(), Fault>), Fault> {
        let (mirrors, file) = (Rc::clone(self), Rc::clone(file));
        self.to_its_end(async move {
            let beyond = ByteRange::new(length, u64::MAX);
            let changing = mirrors.begin_change(&file, number, beyond).await?;
            let disk = &mirrors.world.disks()[number.0 as usize];
            let cut = async {
                disk.truncate(file.file, length).await?;
                disk.sync(file.file).await
            };
            let outcomes = join(cut, mirrors.cut(&file, number, length)).await;
            changing.end();
            Ok(outcomes)
        })
        .await
    }

    /// Begins to change a range of an object of a file, which is marked then.
    async fn begin_change<'a>(
        &self,
        file: &'a MirroredFile,
        disk: DiskId,
        range: ByteRange,
    ) -> Result<Changing<'a>, Fault> {
        let changing = file.begin_change(disk, range).await;
        if let Err(fault) = self.mark(file).await {
            // Nothing has changed.
            changing.end();
            return Err(fault);
        }
        Ok(changing)
    }

    /// Marks a file, if it is not marked.
    async fn mark(&self, file: &MirroredFile) -> Result<(), Fault> {
        if let Some(marking) = file.begin_mark().await {
            let ended = self.others.ended(file.copy_at);
            self.marks.mark(&file.record).await?;
            marking.stored(ended);
        }
        Ok(())
    }

    /// Records that the copy of a file was lost, or may differ: it is compared, and written anew
    /// where it does.
    pub(crate) async fn lose_copy(&self, file: &MirroredFile) -> Result<(), Fault> {
        self.mark(file).await?;
        file.miss();
        Ok(())
    }

    /// Writes to the copy of a file what is being written here.
    async fn write(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        offset: u64,
        payload: W::Payload,
    ) -> Result<(), Fault> {
        let is_needed = file.is_filling(disk);
        if !is_needed && file.is_behind() && !self.others.is_connected(file.copy_at) {
            self.note_difference(file, disk);
            return Ok(());
        }
        let pieces = pieces_of(ByteRange::new(offset, offset + payload.length()));
        let writes = pieces.map(async |piece| {
            let bytes = piece.length();
            let _in_flight = self.take_in_flight(bytes).await;
            let body = payload.slice(piece.start - offset, bytes);
            let write = ObjectRequest::Write { file: file.file, disk, offset: piece.start };
            self.call(file, write, Some(body)).await
        });
        let written = try_join_all(writes).await.map(|_| ());
        self.unless_behind((file, disk), written)
    }

    /// Frees, of the copy, what is beyond the first `length` bytes of an object, which is being cut
    /// here.
    async fn cut(&self, file: &MirroredFile, disk: DiskId, length: u64) -> Result<(), Fault> {
        let cut = ObjectRequest::Truncate { file: file.file, disk, length };
        let cut = self.call(file, cut, None).await.map(|_| ());
        self.unless_behind((file, disk), cut)
    }

    /// Waits until the copy of a file is on stable storage, as the file is here. Then the mark goes
    /// if nothing has changed since `changes` changes.
    pub(crate) async fn sync(
        &self,
        file: &MirroredFile,
        changes: Option<u64>,
    ) -> Result<(), Fault> {
        if !file.is_marked() {
            return Ok(());
        }
        if let Some(fault) = self.notice_ended_connection(file) {
            return Err(fault);
        }
        if file.has_filling() {
            if let Err(fault) = self.store_source(file, changes).await {
                // It may have lost changes of any client, and is all that there is.
                self.failures.record(file.file, fault.clone());
                file.fill_anew();
                return Err(fault);
            }
            if let Some(fault) = self.notice_ended_connection(file) {
                return Err(fault);
            }
        }
        loop {
            if file.is_behind() {
                // What is stored here counts as stored, and may not be in the copy.
                self.record(true).await?;
                if file.is_behind() {
                    return Ok(());
                }
                // It was renewed meanwhile.
            }
            let sync = ObjectRequest::Sync { file: file.file, disks: file.disks };
            let synced = self.call(file, sync, None).await.map(|_| ());
            self.unless_behind((file, FIRST), synced)?;
            if !file.is_behind() {
                break;
            }
        }
        if let Some(changes) = changes {
            self.unmark(file, changes);
        }
        Ok(())
    }

    /// Keeps, with the copy of a file, a size that no data shows and that is kept here.
    pub(crate) async fn keep_size(&self, file: &MirroredFile, size: FileSize) -> Result<(), Fault> {
        self.mark(file).await?;
        let kept = self.keep_size_of_copy(file, size).await;
        self.unless_behind((file, FIRST), kept)
    }

    /// Keeps, with the copy of a file that is renewed, the size that is kept here.
    pub(super) async fn renew_size(&self, file: &MirroredFile) -> Result<(), Fault> {
        match self.kept_sizes.of(file.file).await? {
            none if none == FileSize::default() => Ok(()),
            size => self.keep_size_of_copy(file, size).await,
        }
    }

    async fn keep_size_of_copy(&self, file: &MirroredFile, size: FileSize) -> Result<(), Fault> {
        let keep = ObjectRequest::KeepSize { file: file.file, size };
        self.ask(file, keep, None).await.map(|_| ())
    }

    /// Returns the size that is kept with the copy of a file, or the least one.
    pub(crate) async fn size_of_copy(&self, file: &MirroredFile) -> Result<FileSize, Fault> {
        match self.ask(file, ObjectRequest::KeptSize { file: file.file }, None).await? {
            Reply::Size(size) => Ok(size),
            other => Err(unexpected(&other)),
        }
    }

    /// Waits until the copy of a file, which disks here are filled from, is on stable storage with the
    /// first `changes` changes.
    pub(crate) async fn store_source(
        &self,
        file: &MirroredFile,
        changes: Option<u64>,
    ) -> Result<(), Fault> {
        let sync = ObjectRequest::Sync { file: file.file, disks: file.disks };
        self.ask(file, sync, None).await?;
        file.stored_at_copy(changes);
        Ok(())
    }

    /// Takes the mark of a file away if nothing has changed since `changes` changes.
    pub(crate) fn unmark(&self, file: &MirroredFile, changes: u64) {
        if file.take_mark(changes) {
            self.marks.unmark(file.file);
        }
    }

    /// Number of connections to the server with the copy of a file that have ended.
    pub(super) fn ended(&self, file: &MirroredFile) -> u64 {
        self.others.ended(file.copy_at)
    }

    /// Handles the outcome of a change of the copy. A server without room fails the change. Another
    /// one that did not make it leaves the copy behind.
    fn unless_behind(
        &self,
        (file, disk): (&MirroredFile, DiskId),
        outcome: Result<(), Fault>,
    ) -> Result<(), Fault> {
        match outcome {
            Ok(()) => Ok(()),
            // The file is being removed.
            Err(Fault::NoSuchFile { .. }) => Ok(()),
            Err(fault @ (Fault::NoSpace { .. } | Fault::ReadOnly)) => {
                self.note_difference(file, disk);
                Err(fault)
            }
            Err(fault) if file.is_filling(disk) => {
                self.notice_ended_connections();
                self.note_difference(file, disk);
                Err(fault)
            }
            Err(fault) => {
                self.notice_ended_connections();
                if !file.is_behind() {
                    let (server, name) = (file.copy_at.0, file.record.name.as_str());
                    warn!(server, file = name, %fault, "the copy of a mirrored file is behind");
                }
                self.note_difference(file, disk);
                Ok(())
            }
        }
    }

    /// Notes which copies may have lost changes that were not stored there, because a connection to
    /// their server has ended.
    pub(crate) fn notice_ended_connections(&self) {
        let files: Vec<_> = self.files.borrow().values().cloned().collect();
        files.iter().for_each(|file| _ = self.notice_ended_connection(file));
    }

    /// As [`notice_ended_connections`](Self::notice_ended_connections), for one file. Returns the
    /// fault of changes that may be lost, which clients count as written: where this server is
    /// filled from the copy, nobody else has them.
    pub(super) fn notice_ended_connection(&self, file: &MirroredFile) -> Option<Fault> {
        let ended = self.others.ended(file.copy_at);
        let may_lack = file.is_marked() && !file.is_behind() && !file.is_connected_since(ended);
        if may_lack && !file.is_all_filling() {
            file.miss();
        }
        if !file.notice_ended_source(ended) {
            return None;
        }
        let cause = "it may have lost the only copy of what was written".to_owned();
        let fault = Fault::ServerLeft { server: file.copy_at, cause };
        self.failures.record(file.file, fault.clone());
        Some(fault)
    }

    /// Notes that the copy of what a disk has of a file lacks a change, or has one that failed here.
    pub(crate) fn note_difference(&self, file: &MirroredFile, disk: DiskId) {
        file.differ(disk);
    }

    /// Does work to its end, also when whoever waits for it is given up.
    pub(super) async fn to_its_end<R: 'static>(
        &self,
        work: impl Future<Output = R> + 'static,
    ) -> R {
        let done = Rc::new((RefCell::new(None), Signal::default()));
        let told = Rc::clone(&done);
        self.work.spawn(async move {
            let result = work.await;
            *told.0.borrow_mut() = Some(result);
            told.1.notify();
            Ok(())
        });
        done.1.until(|| done.0.borrow_mut().take()).await
    }

    /// Records with the catalogue whether copies may be behind, unless that is not so any more.
    pub(crate) async fn record(&self, is_behind: bool) -> Result<(), Fault> {
        let free = || (!self.is_recording.replace(true)).then_some(());
        self.recorded.until(free).await;
        let _recording = Recording(&self.is_recording, &self.recorded);
        let is_over = is_behind != (self.files_behind() > 0);
        if is_over || self.is_recorded.get() == Some(is_behind) {
            return Ok(());
        }
        if is_behind {
            self.marks.mark_behind().await?;
        }
        self.is_recorded.set(None);
        self.must_clear.set(true);
        match &self.catalogue {
            Some(catalogue) => {
                let (catalogue, own) = (Rc::clone(catalogue), self.own);
                let set = async move { catalogue.set_behind(own, is_behind).await };
                self.to_its_end(set).await?;
            }
            None => {
                let server = self.own;
                let request = CatalogueRequest::SetBehind { server, is_behind };
                self.others.reach_again(CATALOGUE).await?;
                self.others.call(CATALOGUE, request, None).await?;
            }
        }
        self.is_recorded.set(Some(is_behind));
        self.must_clear.set(is_behind);
        if !is_behind {
            self.marks.unmark_behind();
        }
        // It is to be cleared again.
        self.fell_behind.notify();
        Ok(())
    }

    /// Has the catalogue told that no copy is behind, once none is: what copies may lack of lost
    /// disks is known otherwise.
    pub(crate) fn clear_record(&self) {
        self.must_clear.set(true);
        self.fell_behind.notify();
    }

    /// Reads a range of an object from the copy of a file, for this server, which lacks it.
    ///
    /// # Errors
    /// Fails when the copy may lack changes, and when it cannot be read.
    pub(crate) async fn read(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        range: ByteRange,
    ) -> Result<W::Payload, Fault> {
        let is_current = async || match file.is_filling(disk) {
            // For such a disk the copy is the file.
            true => Ok(()),
            false => self.check_current(file).await,
        };
        is_current().await?;
        let pieces = pieces_of(range).map(async |piece| {
            let (offset, length) = (piece.start, piece.length());
            let _in_flight = self.take_in_flight(length).await;
            let read = ObjectRequest::Read { file: file.file, disk, offset, length };
            let (_, body) = self.call(file, read, None).await?;
            let none = || Fault::BadRequest { cause: "a copy was answered without bytes".into() };
            let body = body.filter(|body| body.length() == length).ok_or_else(none)?;
            Ok::<_, Fault>((piece, body))
        });
        let pieces = try_join_all(pieces).await?;
        // While it was read, a connection may have ended, and its server lost what was not stored.
        is_current().await?;
        let memory = self.world.memory(range.length());
        for (piece, body) in pieces {
            memory.scatter(&[Run::contiguous(piece.start - range.start, piece.length())], &body);
        }
        Ok(memory.freeze())
    }

    /// True if a range of the copy of a file is as here, where it is `own`. Damage is a difference.
    pub(crate) async fn is_equal(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        range: ByteRange,
        own: &W::Payload,
    ) -> Result<bool, Fault> {
        let (offset, length) = (range.start, range.length());
        let digest = ObjectRequest::Digest { file: file.file, disk, offset, length };
        match self.ask(file, digest, None).await {
            Ok(Reply::Digests(found)) => Ok(found == [own.digest()]),
            Ok(other) => Err(unexpected(&other)),
            Err(Fault::DiskFailed { .. }) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Writes bytes of the copy of a file again, which do not change meanwhile, from a whole piece
    /// on. If they are the last of the object, a damaged last piece of the copy is freed first.
    pub(crate) async fn write_again(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        (offset, is_last): (u64, bool),
        own: W::Payload,
    ) -> Result<(), Fault> {
        let number = file.file;
        let write = ObjectRequest::Write { file: number, disk, offset };
        match self.ask(file, write.clone(), Some(own.clone())).await {
            Err(Fault::DiskFailed { .. }) if is_last => {
                let cut = ObjectRequest::Truncate { file: number, disk, length: offset };
                self.ask(file, cut, None).await?;
                self.ask(file, write, Some(own)).await.map(|_| ())
            }
            written => written.map(|_| ()),
        }
    }

    /// As [`write_again`](Self::write_again), onto stable storage: after a loss of power, bytes
    /// that are not stored would be accepted as they are.
    pub(crate) async fn write_again_stored(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        place: (u64, bool),
        own: W::Payload,
    ) -> Result<(), Fault> {
        self.write_again(file, disk, place, own).await?;
        let sync = ObjectRequest::Sync { file: file.file, disks: file.disks };
        self.ask(file, sync, None).await.map(|_| ())
    }

    /// Returns the length of an object of the copy of a file, if there is one.
    pub(crate) async fn length(
        &self,
        file: &MirroredFile,
        disk: DiskId,
    ) -> Result<Option<u64>, Fault> {
        let length = ObjectRequest::Length { file: file.file, disk };
        match self.call(file, length, None).await? {
            (Reply::Length { bytes }, _) => Ok(bytes),
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// True if the catalogue has recorded that copies of this server's parts may be behind.
    pub(crate) async fn are_recorded_behind(&self) -> Result<bool, Fault> {
        if let Some(is_recorded) = self.is_recorded.get() {
            return Ok(is_recorded);
        }
        match &self.catalogue {
            Some(catalogue) => Ok(catalogue.behind().contains(&self.own)),
            None => match self.others.call(CATALOGUE, CatalogueRequest::Behind, None).await? {
                (Reply::Servers(servers), _) => Ok(servers.contains(&self.own)),
                (other, _) => Err(unexpected(&other)),
            },
        }
    }

    /// Calls the server with the copy of a file; returns the body of the reply too.
    async fn call(
        &self,
        file: &MirroredFile,
        request: ObjectRequest,
        body: Option<W::Payload>,
    ) -> Result<(Reply, Option<W::Payload>), Fault> {
        if file.has_filling() {
            // The copy is all that there is: its server may be there again.
            self.others.reach_again(file.copy_at).await?;
        }
        self.others.call(file.copy_at, request, body).await
    }

    /// Calls the server with the copy of a file.
    pub(super) async fn ask(
        &self,
        file: &MirroredFile,
        request: ObjectRequest,
        body: Option<W::Payload>,
    ) -> Result<Reply, Fault> {
        let _in_flight = self.take_in_flight(body.as_ref().map_or(0, Payload::length)).await;
        self.call(file, request, body).await.map(|(reply, _)| reply)
    }

    /// Waits until so many bytes may be on the way to copies. One piece always may.
    async fn take_in_flight(&self, bytes: u64) -> InFlight<'_> {
        let has_room = || {
            let before = self.in_flight_bytes.get();
            (before == 0 || before + bytes <= IN_FLIGHT_BYTES_MAX)
                .then(|| self.in_flight_bytes.set(before + bytes))
        };
        self.arrived.until(has_room).await;
        InFlight(&self.in_flight_bytes, &self.arrived, bytes)
    }

    /// Makes copies equal as the server ends, as far as the other servers answer, and takes the
    /// marks away. Everything has been written back.
    ///
    /// # Errors
    /// Fails when a copy is behind and the catalogue cannot be told.
    pub(crate) async fn settle(&self, sync: impl AsyncFn(FileId) -> bool) -> Result<(), Fault> {
        let Ok(()) = self.work.finished().await;
        let marked: Vec<_> = {
            let files = self.files.borrow();
            files.values().filter(|file| file.is_marked() && !file.is_behind()).cloned().collect()
        };
        let settled = stream::iter(marked.iter().map(async |file| {
            let changes = file.ended_changes();
            if sync(file.file).await {
                // A copy that is not on stable storage keeps its mark.
                let _ = self.sync(file, changes).await;
            }
        }));
        settled.buffer_unordered(SYNCS_AT_ONCE).collect::<()>().await;
        // Obsolete marks cost the next start a comparison.
        let _ = self.marks.settle().await;
        if self.files_behind() > 0 { self.record(true).await } else { Ok(()) }
    }
}

/// Cuts a range into pieces that fit a message.
pub(super) fn pieces_of(range: ByteRange) -> impl Iterator<Item = ByteRange> {
    let starts = (range.start..range.end).step_by(LINE_BYTES_MAX as usize);
    starts.map(move |start| ByteRange::new(start, range.end.min(start + LINE_BYTES_MAX)))
}

pub(crate) fn unexpected(reply: &Reply) -> Fault {
    Fault::BadRequest { cause: format!("another server answered {reply:?}") }
}
