//! Copies, at other servers, of the parts of mirrored files that this server holds.
//!
//! Invariants:
//! - A sync ends when the copy is stored too, or when two places on stable storage say that the
//!   copy may lack changes: the mark of the file here, and the catalogue. So a copy without bytes
//!   that a sync has acknowledged is never taken for what it is a copy of, even when all that this
//!   server has is lost.
//! - Bytes on the way to copies are bounded.

use super::marks::{Marked, Marks};
use super::mirrored_file::{Changing, MirroredFile};
use super::parity_state::ParityObjects;
use super::partner::Partner;
use super::spans::WHOLE;
use crate::server::catalogue::Catalogue;
use crate::server::files::kept_sizes::KeptSizes;
use crate::server::files::write_failures::WriteFailures;
use crate::server::other_servers::OtherServers;
use crate::server::refill::Lacking;
use crate::signal::Signal;
use crate::task_lock::TaskLock;
use crate::to_its_end::to_its_end;
use futures_util::future::{join, try_join_all};
use futures_util::stream::{self, StreamExt};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use tracing::warn;
use units::{ByteRange, DiskId, FileId, KIB, ServerId};
use wire::{Fault, FileRecord, FileSize, ObjectRequest};
use world::{Disk, DiskError, Payload, Scope, World};

/// Number of copies that are stored at the same time.
const SYNCS_AT_ONCE: usize = 64;

/// Unit of damage and of repair: whole pieces, each of which has a checksum on a real disk.
pub(crate) const PIECE_BYTES: u64 = 64 * KIB;

/// Disk whose directory has the records of the server, too.
pub(crate) const FIRST: DiskId = DiskId(0);

/// Range of a change of what has no bytes in an object.
const NONE: ByteRange = ByteRange { start: 0, end: 0 };

/// Ratio of the size of the cache to the bytes of changes of parity that are held besides.
const PENDING_PER_CACHE: u64 = 2;

/// Server that keeps the catalogue.
pub(crate) const CATALOGUE: ServerId = ServerId(0);

/// Hears of files that were rolled back.
type ToldRolledBack = Box<dyn Fn(FileId)>;

/// Mirrored files with a part at this server.
pub(crate) struct Mirrors<W: World> {
    pub(super) world: W,
    pub(super) own: ServerId,
    pub(super) others: Rc<OtherServers<W>>,
    pub(super) catalogue: Option<Rc<Catalogue<W>>>,
    pub(super) marks: Marks<W>,
    /// List of files that new disks lack.
    pub(super) lacking: Rc<Lacking<W>>,
    pub(super) failures: Rc<WriteFailures>,
    pub(super) kept_sizes: Rc<KeptSizes<W>>,
    files: RefCell<BTreeMap<FileId, Rc<MirroredFile>>>,
    /// Tells whether the catalogue has recorded that copies may be behind, if that is known.
    pub(super) is_recorded: Cell<Option<bool>>,
    /// Held while the catalogue is being told.
    pub(super) recording: TaskLock,
    /// Bytes on the way to copies.
    pub(super) in_flight_bytes: Cell<u64>,
    /// Notified when bytes have come to a copy.
    pub(super) arrived: Signal,
    /// Notified when a copy is behind.
    pub(super) fell_behind: Rc<Signal>,
    /// True while the catalogue must be told that no copy is behind, once none is.
    pub(super) must_clear: Cell<bool>,
    /// Told of files that were rolled back: their bytes may be older than those that were read.
    when_rolled_back: RefCell<Option<ToldRolledBack>>,
    /// Parity that this server has of others.
    pub(super) parity: ParityObjects<W::Payload>,
    /// Work that goes on when its request is given up.
    work: Scope<W, Infallible>,
}

impl<W: World> Mirrors<W> {
    /// Makes the state of a server, with a cache of so many bytes, that had marked these files when
    /// it ended.
    pub(crate) fn new(
        world: W,
        (own, cache_bytes): (ServerId, u64),
        others: Rc<OtherServers<W>>,
        catalogue: Option<Rc<Catalogue<W>>>,
        (marks, marked): (Marks<W>, Vec<Marked>),
        (lacking, failures): (Rc<Lacking<W>>, Rc<WriteFailures>),
        kept_sizes: Rc<KeptSizes<W>>,
    ) -> Self {
        let fell_behind = Rc::new(Signal::default());
        let must_clear = Cell::new(!marked.is_empty() || marks.may_be_behind());
        let marked =
            marked.iter().filter_map(|marked| MirroredFile::marked(marked, own, &fell_behind));
        let marked = marked.inspect(|file| {
            file.lost_parity.lose(lacking.parity_to_make(file.file));
            match lacking.to_fill(file.file) {
                none if none.is_empty() => {}
                disks => file.begin_filling(disks, |_| 0),
            }
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
            recording: TaskLock::default(),
            in_flight_bytes: Cell::new(0),
            arrived: Signal::default(),
            fell_behind,
            must_clear,
            when_rolled_back: RefCell::default(),
            parity: ParityObjects::new(cache_bytes / PENDING_PER_CACHE),
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
            mirrored.lost_parity.lose(self.lacking.parity_to_make(file));
            self.files.borrow_mut().insert(file, Rc::clone(&mirrored));
            Some(mirrored)
        })
    }

    /// State of a file, if it is known here.
    pub(super) fn known(&self, file: FileId) -> Option<Rc<MirroredFile>> {
        self.files.borrow().get(&file).cloned()
    }

    /// Notes which disks lack parts of the files that are known, or parity, when all that is
    /// lacking is known.
    pub(crate) fn begin_filling(&self) {
        for file in self.files.borrow().values() {
            self.begin_filling_of(file);
            file.lost_parity.lose(self.lacking.parity_to_make(file.file));
        }
    }

    fn begin_filling_of(&self, file: &MirroredFile) {
        let disks = self.lacking.to_fill(file.file);
        if !disks.is_empty() {
            file.begin_filling(disks, |server| self.others.ended(server));
        }
    }

    /// True if a file is marked: its copy may lack changes.
    pub(crate) fn is_marked(&self, record: &FileRecord) -> bool {
        self.files.borrow().get(&record.file).is_some_and(|file| file.is_marked())
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
    pub(crate) fn behind(&self) -> Vec<Rc<MirroredFile>> {
        self.files.borrow().values().filter(|file| file.is_behind()).cloned().collect()
    }

    /// Forgets a file whose data is dropped.
    pub(crate) fn forget(&self, file: FileId) {
        self.files.borrow_mut().remove(&file);
        self.parity.forget(file);
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
        self.parity.forget(file);
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

    /// Writes bytes of an object here and to the copy, or parity, to the end, also when the caller
    /// is given up. Returns both outcomes. `size` is that of the file, as far as these bytes show
    /// it.
    ///
    /// # Errors
    /// Fails when the file cannot be marked, and when bytes that this server lacks cannot be known;
    /// then nothing was written.
    pub(crate) async fn write_both(
        self: &Rc<Self>,
        file: &Rc<MirroredFile>,
        number: DiskId,
        (offset, payload): (u64, W::Payload),
        size: FileSize,
    ) -> Result<(Result<(), DiskError>, Result<(), Fault>), Fault> {
        let (mirrors, file) = (Rc::clone(self), Rc::clone(file));
        self.to_its_end(async move {
            let range = ByteRange::new(offset, offset + payload.length());
            let changing = mirrors.begin_change(&file, number, range).await?;
            let disk = &mirrors.world.disks()[number.0 as usize];
            let outcomes = match &file.rows {
                None => {
                    let written = disk.write(file.file, offset, payload.clone());
                    join(written, mirrors.write(&file, number, offset, payload)).await
                }
                Some(_) => {
                    let change = mirrors.change_of(&file, number, (offset, &payload));
                    let change = match change.await {
                        Ok(change) => change,
                        Err(fault) => {
                            // Nothing has changed.
                            changing.end();
                            return Err(fault);
                        }
                    };
                    let written = disk.write(file.file, offset, payload);
                    let place = (number, range, size);
                    join(written, mirrors.change_parity(&file, place, change)).await
                }
            };
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
        size: FileSize,
    ) -> Result<(Result<(), DiskError>, Result<(), Fault>), Fault> {
        let (mirrors, file) = (Rc::clone(self), Rc::clone(file));
        file.begin_cut(size);
        self.to_its_end(async move {
            let beyond = ByteRange::new(length, u64::MAX);
            let changing = mirrors.begin_change(&file, number, beyond).await?;
            let disk = &mirrors.world.disks()[number.0 as usize];
            let cut = async {
                disk.truncate(file.file, length).await?;
                disk.sync(file.file).await
            };
            let outcomes = match &file.rows {
                None => join(cut, mirrors.cut(&file, number, length)).await,
                // What is cut must be known.
                Some(_) => {
                    let changed = mirrors.cut_from_parity(&file, number, (length, size)).await;
                    (cut.await, changed)
                }
            };
            changing.end();
            Ok(outcomes)
        })
        .await
    }

    /// Begins to change a range of an object of a file. It is marked then.
    async fn begin_change<'a>(
        &self,
        file: &'a MirroredFile,
        disk: DiskId,
        range: ByteRange,
    ) -> Result<Changing<'a>, Fault> {
        let changing = file.begin_change(disk, range).await;
        if let Err(fault) = self.mark(file, range).await {
            // Nothing has changed.
            changing.end();
            return Err(fault);
        }
        Ok(changing)
    }

    /// Marks a range of a file, if it is not marked.
    async fn mark(&self, file: &MirroredFile, range: ByteRange) -> Result<(), Fault> {
        if let Some(marking) = file.begin_mark(range).await {
            let ended = file.partners.iter().map(|partner| self.others.ended(partner.server));
            let ended: Vec<u64> = ended.collect();
            self.marks.mark(&file.record, marking.range).await?;
            marking.stored(&ended);
        }
        Ok(())
    }

    /// Records that the copy of a file was lost, or may differ: it is compared, and written anew
    /// where it does.
    pub(crate) async fn lose_copy(&self, file: &MirroredFile) -> Result<(), Fault> {
        self.mark(file, WHOLE).await?;
        file.miss_all();
        Ok(())
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
                self.tell_rolled_back(file);
                return Err(fault);
            }
            if let Some(fault) = self.notice_ended_connection(file) {
                return Err(fault);
            }
        }
        loop {
            let is_behind: Vec<bool> = file.partners.iter().map(Partner::is_behind).collect();
            if file.is_behind() {
                // What is stored here counts as stored, and may not be in the copy.
                self.record(true).await?;
            }
            let current = file.partners.iter().filter(|partner| !partner.is_behind());
            let synced = current.map(async |partner| {
                let sync = ObjectRequest::Sync { file: file.file, disks: file.disks };
                let synced = self.call(file, partner.server, sync, None).await.map(|_| ());
                self.unless_behind((file, FIRST, file.marked_range()), partner, synced)
            });
            try_join_all(synced).await?;
            // Those that were renewed meanwhile are to be stored, and of those that could not be,
            // the catalogue is told.
            if file.partners.iter().map(Partner::is_behind).eq(is_behind) {
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
        self.mark(file, NONE).await?;
        let kept = file.partners.iter().map(async |partner| {
            let kept = self.keep_size_of_copy(file, partner, size).await;
            self.unless_behind((file, FIRST, NONE), partner, kept)
        });
        try_join_all(kept).await.map(|_| ())
    }

    /// Keeps, with the copy of a file that is renewed, the size that is kept here.
    pub(super) async fn renew_size(
        &self,
        file: &MirroredFile,
        partner: &Partner,
    ) -> Result<(), Fault> {
        match self.kept_sizes.of(file.file).await? {
            none if none == FileSize::default() => Ok(()),
            size => self.keep_size_of_copy(file, partner, size).await,
        }
    }

    /// Takes the mark of a file away if nothing has changed since `changes` changes.
    pub(crate) fn unmark(&self, file: &MirroredFile, changes: u64) {
        if file.take_mark(changes) {
            self.marks.unmark(file.file);
        }
    }

    /// Number of connections to a server with a copy that have ended.
    pub(super) fn ended(&self, partner: &Partner) -> u64 {
        self.others.ended(partner.server)
    }

    /// Handles the outcome of a change of a range of the copy. A server without room fails the
    /// change. Another one that did not make it leaves the copy behind.
    pub(super) fn unless_behind(
        &self,
        (file, disk, range): (&MirroredFile, DiskId, ByteRange),
        partner: &Partner,
        outcome: Result<(), Fault>,
    ) -> Result<(), Fault> {
        match outcome {
            Ok(()) => Ok(()),
            // The file is being removed.
            Err(Fault::NoSuchFile { .. }) => Ok(()),
            Err(fault @ (Fault::NoSpace { .. } | Fault::ReadOnly)) => {
                file.differ_from((disk, range), partner);
                Err(fault)
            }
            Err(fault) if file.is_filling(disk) => {
                self.notice_ended_connections();
                file.differ_from((disk, range), partner);
                Err(fault)
            }
            Err(fault) => {
                self.notice_ended_connections();
                if !partner.is_behind() {
                    let (server, name) = (partner.server.0, file.record.name.as_str());
                    warn!(server, file = name, %fault, "the protection of a file is behind");
                }
                file.differ_from((disk, range), partner);
                Ok(())
            }
        }
    }

    /// Has `tell` told of each file that is rolled back: its bytes may be older than those that
    /// were read, because its copy was all that there was, and may have lost changes.
    pub(crate) fn when_rolled_back(&self, tell: impl Fn(FileId) + 'static) {
        *self.when_rolled_back.borrow_mut() = Some(Box::new(tell));
    }

    fn tell_rolled_back(&self, file: &MirroredFile) {
        if let Some(tell) = &*self.when_rolled_back.borrow() {
            tell(file.file);
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
    pub(crate) fn notice_ended_connection(&self, file: &MirroredFile) -> Option<Fault> {
        let faults = file.partners.iter().filter_map(|one| self.notice_ended(file, one));
        faults.fold(None, |first, fault| first.or(Some(fault)))
    }

    fn notice_ended(&self, file: &MirroredFile, partner: &Partner) -> Option<Fault> {
        let ended = self.others.ended(partner.server);
        let is_connected = partner.is_connected_since(ended);
        let changed = file.marked_range();
        let may_lack = file.is_marked() && !partner.may_lack_all_of(changed) && !is_connected;
        if may_lack && !file.is_all_filling() {
            file.miss(partner, changed);
        }
        if !file.notice_ended_source(partner, ended) {
            return None;
        }
        self.tell_rolled_back(file);
        let cause = format!("{} was lost, with the only copy", partner.server);
        let fault = Fault::WritesLost { cause };
        self.failures.record(file.file, fault.clone());
        Some(fault)
    }

    /// Notes that the copy of a range that a disk has of a file lacks a change, or has one that
    /// failed here.
    pub(crate) fn note_difference(&self, file: &MirroredFile, disk: DiskId, range: ByteRange) {
        file.differ(disk, range);
    }

    /// Does work to its end, also when whoever waits for it is given up.
    pub(super) async fn to_its_end<R: 'static>(
        &self,
        work: impl Future<Output = R> + 'static,
    ) -> R {
        to_its_end(&self.work, work).await
    }

    /// Makes copies equal as the server ends, as far as the other servers answer, and takes the
    /// marks away. Everything has been written back.
    ///
    /// # Errors
    /// Fails when a copy is behind and the catalogue cannot be told.
    pub(crate) async fn settle(&self, sync: impl AsyncFn(FileId) -> bool) -> Result<(), Fault> {
        let Ok(()) = self.work.finished().await;
        self.write_all_pending().await;
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
