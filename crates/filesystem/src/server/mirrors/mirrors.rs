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
use crate::server::other_servers::OtherServers;
use crate::signal::Signal;
use futures_util::future::{join_all, try_join_all};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use tracing::warn;
use units::{ByteRange, DiskId, FileId, Run, ServerId};
use wire::{CatalogueRequest, Fault, FileRecord, LINE_BYTES_MAX, ObjectRequest, Reply};
use world::{Memory, Payload, World};

/// Bytes that may be on the way to copies at a time.
const WAY_BYTES_MAX: u64 = 16 * LINE_BYTES_MAX;

/// Server that keeps the catalogue.
const CATALOGUE: ServerId = ServerId(0);

/// Mirrored files with a part at this server.
pub(crate) struct Mirrors<W: World> {
    pub(super) world: W,
    own: ServerId,
    others: Rc<OtherServers<W>>,
    catalogue: Option<Rc<Catalogue<W>>>,
    marks: Marks<W>,
    files: RefCell<BTreeMap<FileId, Rc<MirroredFile>>>,
    /// Tells whether the catalogue has recorded that copies may be behind, if that is known.
    is_recorded: Cell<Option<bool>>,
    /// True while it is told.
    is_recording: Cell<bool>,
    /// Notified when it has been told.
    recorded: Signal,
    /// Bytes on the way to copies.
    way_bytes: Cell<u64>,
    /// Notified when bytes have come to a copy.
    arrived: Signal,
    /// Notified when a copy is behind.
    pub(super) fell_behind: Signal,
}

/// Bytes on the way to a copy. Given up when dropped.
struct OnTheWay<'a>(&'a Cell<u64>, &'a Signal, u64);

impl Drop for OnTheWay<'_> {
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
    ) -> Self {
        let marked = marked.iter().filter_map(|record| MirroredFile::marked(record, own));
        let files = marked.map(|file| (file.file, Rc::new(file))).collect();
        Self {
            world,
            own,
            others,
            catalogue,
            marks,
            files: RefCell::new(files),
            is_recorded: Cell::new(None),
            is_recording: Cell::new(false),
            recorded: Signal::default(),
            way_bytes: Cell::new(0),
            arrived: Signal::default(),
            fell_behind: Signal::default(),
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
            let mirrored = Rc::new(MirroredFile::of(&record(), self.own)?);
            self.files.borrow_mut().insert(file, Rc::clone(&mirrored));
            Some(mirrored)
        })
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

    /// Begins to change a range of an object of a file, which is marked then.
    pub(crate) async fn begin_change<'a>(
        &self,
        file: &'a MirroredFile,
        disk: DiskId,
        range: ByteRange,
    ) -> Result<Changing<'a>, Fault> {
        let changing = file.begin_change(disk, range).await;
        if let Some(marking) = file.begin_mark().await {
            let ended = self.others.ended(file.copy_at);
            self.marks.mark(&file.record).await?;
            marking.stored(ended);
        }
        Ok(changing)
    }

    /// Writes to the copy of a file what is being written here.
    pub(crate) async fn write(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        offset: u64,
        payload: W::Payload,
    ) -> Result<(), Fault> {
        if file.is_behind() && !self.others.is_connected(file.copy_at) {
            self.note_difference(file);
            return Ok(());
        }
        let pieces = pieces_of(ByteRange::new(offset, offset + payload.length()));
        let writes = pieces.map(async |piece| {
            let bytes = piece.length();
            let _on_the_way = self.send_bytes(bytes).await;
            let body = payload.slice(piece.start - offset, bytes);
            let write = ObjectRequest::Write { file: file.file, disk, offset: piece.start };
            self.others.call(file.copy_at, write, Some(body)).await
        });
        let written = try_join_all(writes).await.map(|_| ());
        self.unless_behind(file, written)
    }

    /// Frees, of the copy, what is beyond the first `length` bytes of an object, which is being cut
    /// here.
    pub(crate) async fn cut(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        length: u64,
    ) -> Result<(), Fault> {
        let cut = ObjectRequest::Truncate { file: file.file, disk, length };
        let cut = self.others.call(file.copy_at, cut, None).await.map(|_| ());
        self.unless_behind(file, cut)
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
        self.notice_ended_connection(file);
        if file.is_behind() {
            // What is stored here counts as stored, and may not be in the copy.
            return self.record(true).await;
        }
        let sync = ObjectRequest::Sync { file: file.file, disks: file.disks };
        let synced = self.others.call(file.copy_at, sync, None).await.map(|_| ());
        self.unless_behind(file, synced)?;
        if file.is_behind() {
            return self.record(true).await;
        }
        if let Some(changes) = changes {
            self.unmark(file, changes);
        }
        Ok(())
    }

    /// Takes the mark of a file away if nothing has changed since `changes` changes.
    pub(super) fn unmark(&self, file: &MirroredFile, changes: u64) {
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
    fn unless_behind(&self, file: &MirroredFile, outcome: Result<(), Fault>) -> Result<(), Fault> {
        match outcome {
            Ok(()) => Ok(()),
            // The file is being removed.
            Err(Fault::NoSuchFile { .. }) => Ok(()),
            Err(fault @ (Fault::NoSpace { .. } | Fault::ReadOnly)) => {
                self.note_difference(file);
                Err(fault)
            }
            Err(fault) => {
                self.notice_ended_connections();
                if !file.is_behind() {
                    let (server, name) = (file.copy_at.0, file.record.name.as_str());
                    warn!(server, file = name, %fault, "the copy of a mirrored file is behind");
                }
                self.note_difference(file);
                Ok(())
            }
        }
    }

    /// Notes which copies may have lost changes that were not stored there, because a connection to
    /// their server has ended.
    pub(crate) fn notice_ended_connections(&self) {
        let files: Vec<_> = self.files.borrow().values().cloned().collect();
        files.iter().for_each(|file| self.notice_ended_connection(file));
    }

    fn notice_ended_connection(&self, file: &MirroredFile) {
        let is_connected = file.is_connected_since(self.others.ended(file.copy_at));
        if file.is_marked() && !file.is_behind() && !is_connected {
            self.note_difference(file);
        }
    }

    /// Notes that the copy of a file lacks a change, or has one that failed here.
    pub(crate) fn note_difference(&self, file: &MirroredFile) {
        file.miss();
        self.fell_behind.notify();
    }

    /// Records with the catalogue whether copies may be behind. That none is counts only if it is
    /// so when the record is made.
    pub(super) async fn record(&self, is_behind: bool) -> Result<(), Fault> {
        let free = || (!self.is_recording.replace(true)).then_some(());
        self.recorded.until(free).await;
        let _recording = Recording(&self.is_recording, &self.recorded);
        let is_over = !is_behind && self.files_behind() > 0;
        if is_over || self.is_recorded.get() == Some(is_behind) {
            return Ok(());
        }
        self.is_recorded.set(None);
        match &self.catalogue {
            Some(catalogue) => catalogue.set_behind(self.own, is_behind).await?,
            None => {
                let server = self.own;
                let request = CatalogueRequest::SetBehind { server, is_behind };
                self.others.reach_again(CATALOGUE).await?;
                self.others.call(CATALOGUE, request, None).await?;
            }
        }
        self.is_recorded.set(Some(is_behind));
        Ok(())
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
        let lacks_changes = file.is_behind() && file.missed() > 0;
        // Where all marks are lost too, it is not known which copies are behind.
        let may_be_recorded = file.is_behind() || self.marks.are_none();
        if lacks_changes || may_be_recorded && self.are_recorded_behind().await? {
            let cause = format!("the copy at {} may lack changes", file.copy_at);
            return Err(Fault::BadRequest { cause });
        }
        let pieces = pieces_of(range).map(async |piece| {
            let (offset, length) = (piece.start, piece.length());
            let _on_the_way = self.send_bytes(length).await;
            let read = ObjectRequest::Read { file: file.file, disk, offset, length };
            let (_, body) = self.others.call(file.copy_at, read, None).await?;
            let none = || Fault::BadRequest { cause: "a copy was answered without bytes".into() };
            let body = body.filter(|body| body.length() == length).ok_or_else(none)?;
            Ok::<_, Fault>((piece, body))
        });
        let pieces = try_join_all(pieces).await?;
        let memory = self.world.memory(range.length());
        for (piece, body) in pieces {
            memory.scatter(&[Run::contiguous(piece.start - range.start, piece.length())], &body);
        }
        Ok(memory.freeze())
    }

    /// Returns the length of an object of the copy of a file, if there is one.
    pub(crate) async fn length(
        &self,
        file: &MirroredFile,
        disk: DiskId,
    ) -> Result<Option<u64>, Fault> {
        let length = ObjectRequest::Length { file: file.file, disk };
        match self.others.call(file.copy_at, length, None).await? {
            (Reply::Length { bytes }, _) => Ok(bytes),
            (other, _) => Err(strange(&other)),
        }
    }

    async fn are_recorded_behind(&self) -> Result<bool, Fault> {
        if let Some(is_recorded) = self.is_recorded.get() {
            return Ok(is_recorded);
        }
        match &self.catalogue {
            Some(catalogue) => Ok(catalogue.behind().contains(&self.own)),
            None => match self.others.call(CATALOGUE, CatalogueRequest::Behind, None).await? {
                (Reply::Servers(servers), _) => Ok(servers.contains(&self.own)),
                (other, _) => Err(strange(&other)),
            },
        }
    }

    /// Connects to the server with the copy of a file.
    pub(super) async fn reach(&self, file: &MirroredFile) -> Result<(), Fault> {
        self.others.reach(file.copy_at).await
    }

    /// Calls the server with the copy of a file.
    pub(super) async fn ask(
        &self,
        file: &MirroredFile,
        request: ObjectRequest,
        body: Option<W::Payload>,
    ) -> Result<Reply, Fault> {
        let _on_the_way = self.send_bytes(body.as_ref().map_or(0, Payload::length)).await;
        self.others.call(file.copy_at, request, body).await.map(|(reply, _)| reply)
    }

    /// Waits until so many bytes may be on the way to copies. One piece always may.
    async fn send_bytes(&self, bytes: u64) -> OnTheWay<'_> {
        let has_room = || {
            let before = self.way_bytes.get();
            (before == 0 || before + bytes <= WAY_BYTES_MAX)
                .then(|| self.way_bytes.set(before + bytes))
        };
        self.arrived.until(has_room).await;
        OnTheWay(&self.way_bytes, &self.arrived, bytes)
    }

    /// Makes copies equal as the server ends, as far as the other servers answer, and takes the
    /// marks away. Everything has been written back.
    pub(crate) async fn settle(&self, sync: impl AsyncFn(FileId) -> bool) {
        let marked: Vec<_> = {
            let files = self.files.borrow();
            files.values().filter(|file| file.is_marked() && !file.is_behind()).cloned().collect()
        };
        join_all(marked.iter().map(async |file| {
            let changes = file.ended_changes();
            if sync(file.file).await {
                // A copy that is not on stable storage keeps its mark.
                let _ = self.sync(file, changes).await;
            }
        }))
        .await;
        // Obsolete marks cost the next start a comparison.
        let _ = self.marks.settle().await;
    }
}

/// Cuts a range into pieces that fit a message.
pub(super) fn pieces_of(range: ByteRange) -> impl Iterator<Item = ByteRange> {
    let starts = (range.start..range.end).step_by(LINE_BYTES_MAX as usize);
    starts.map(move |start| ByteRange::new(start, range.end.min(start + LINE_BYTES_MAX)))
}

pub(super) fn strange(reply: &Reply) -> Fault {
    Fault::BadRequest { cause: format!("another server answered {reply:?}") }
}
