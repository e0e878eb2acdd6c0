//! A mirrored file, as the server of one of its parts sees it.
//!
//! Invariants:
//! - A range is not compared or repaired while it changes, and the reverse.
//! - A file is marked on stable storage before any byte of it changes.

use crate::signal::Signal;
use policy::Protection;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{ByteRange, DiskId, FileId, ServerId};
use wire::FileRecord;

/// Mirrored file with a part at this server.
pub(crate) struct MirroredFile {
    pub(crate) file: FileId,
    /// Number of disks of each server that it uses.
    pub(super) disks: u32,
    /// Server with the copy of the part of this one.
    pub(super) copy_at: ServerId,
    /// Record with which it is marked.
    pub(super) record: FileRecord,
    mark: Cell<Mark>,
    /// True while the copy may lack changes.
    is_behind: Cell<bool>,
    /// Number of changes that have begun.
    changes: Cell<u64>,
    /// Number of changes that the copy does not have.
    missed: Cell<u64>,
    /// Number of connections to the server with the copy that had ended when the copy was equal and
    /// stored. When another one ends, the copy may lose what has changed since.
    ended: Cell<u64>,
    /// Ranges of objects that change.
    changing: RefCell<Vec<(u64, DiskId, ByteRange)>>,
    /// Range that is compared or repaired.
    locked: Cell<Option<(DiskId, ByteRange)>>,
    next: Cell<u64>,
    /// True after the copy could not be stored: what it has then need not be what it returns.
    is_unstored: Cell<bool>,
    changed: Signal,
    /// Disks that lack the part of this server, with the first byte of the object that they lack.
    /// For them the copy is the file.
    filling: RefCell<BTreeMap<DiskId, Progress>>,
    /// Number of connections to the server with the copy that had ended when filling began, or
    /// began anew.
    filling_since: Cell<u64>,
    /// Number of changes that were stored at the copy, as far as that matters while disks are
    /// filled.
    stored_changes: Cell<u64>,
    /// Notified when a copy of any file is behind.
    fell_behind: Rc<Signal>,
}

/// Progress of a disk that is filled.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Progress {
    /// First byte of the object that the disk lacks; `u64::MAX` if it lacks nothing.
    pub(crate) to: u64,
    /// Number of times that it was to be filled anew.
    anew: u64,
}

impl Progress {
    fn begin_anew(&mut self) {
        *self = Self { to: 0, anew: self.anew + 1 };
    }
}

/// State of the mark of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Absent,
    Coming,
    There,
}

/// Change of a range. If it is dropped before its [end](Changing::end), the copy may differ.
pub(crate) struct Changing<'a> {
    file: &'a MirroredFile,
    number: u64,
    disk: DiskId,
    is_ended: bool,
}

/// Range that does not change. Released when dropped.
pub(crate) struct Locked<'a>(&'a MirroredFile);

/// Right to mark a file. If it is dropped without a mark, the file is not marked.
pub(super) struct Marking<'a>(&'a MirroredFile);

impl Changing<'_> {
    /// Ends the change, of which the outcome is known here and at the copy.
    pub(crate) fn end(mut self) {
        self.is_ended = true;
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            self.file.differ(self.disk);
        }
        self.file.changing.borrow_mut().retain(|(number, ..)| *number != self.number);
        self.file.changed.notify();
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.locked.set(None);
        self.0.changed.notify();
    }
}

impl Drop for Marking<'_> {
    fn drop(&mut self) {
        if self.0.mark.get() == Mark::Coming {
            self.0.mark.set(Mark::Absent);
        }
        self.0.changed.notify();
    }
}

impl Marking<'_> {
    /// Notes that the mark is on stable storage, after `ended` connections to the server with the
    /// copy have ended.
    pub(super) fn stored(self, ended: u64) {
        self.0.mark.set(Mark::There);
        self.0.ended.set(ended);
    }
}

fn overlaps((disk, range): (DiskId, ByteRange), (other, others): (DiskId, ByteRange)) -> bool {
    disk == other && range.start < others.end && others.start < range.end
}

impl MirroredFile {
    /// State of the part of server `own` of a file, if the file is mirrored and has one.
    pub(super) fn of(record: &FileRecord, own: ServerId, fell_behind: &Rc<Signal>) -> Option<Self> {
        let place = record.place_of(own)?;
        let copy = match record.protection {
            Protection::None => return None,
            mirror @ Protection::Mirror => mirror.copy_of(place, record.stripe.servers)?,
        };
        Some(Self {
            file: record.file,
            disks: record.stripe.disks_per_server,
            copy_at: record.pool.server(copy),
            record: record.clone(),
            mark: Cell::new(Mark::Absent),
            is_behind: Cell::new(false),
            changes: Cell::new(0),
            missed: Cell::new(0),
            ended: Cell::new(0),
            changing: RefCell::default(),
            locked: Cell::new(None),
            next: Cell::new(0),
            is_unstored: Cell::new(false),
            changed: Signal::default(),
            filling: RefCell::default(),
            filling_since: Cell::new(0),
            stored_changes: Cell::new(0),
            fell_behind: Rc::clone(fell_behind),
        })
    }

    /// State of a file that was marked when the server began: its copy may be behind.
    pub(super) fn marked(
        record: &FileRecord,
        own: ServerId,
        fell_behind: &Rc<Signal>,
    ) -> Option<Self> {
        let file = Self::of(record, own, fell_behind)?;
        file.mark.set(Mark::There);
        file.is_behind.set(true);
        Some(file)
    }

    /// True while the copy may lack changes.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.get()
    }

    /// True while a mark is on stable storage.
    pub(super) fn is_marked(&self) -> bool {
        self.mark.get() == Mark::There
    }

    /// Returns the right to mark the file, or `None` once it is marked.
    pub(super) async fn begin_mark(&self) -> Option<Marking<'_>> {
        let next = || match self.mark.get() {
            Mark::There => Some(None),
            Mark::Coming => None,
            Mark::Absent => {
                self.mark.set(Mark::Coming);
                Some(Some(Marking(self)))
            }
        };
        self.changed.until(next).await
    }

    /// Takes the mark away if the file is as its copy: nothing has changed since there were
    /// `changes` changes. Returns false if it stays.
    pub(super) fn take_mark(&self, changes: u64) -> bool {
        let is_equal = !self.is_behind.get()
            && self.changes.get() == changes
            && self.changing.borrow().is_empty()
            && self.is_marked();
        if is_equal {
            self.mark.set(Mark::Absent);
        }
        is_equal
    }

    /// Number of changes that have ended, if none is active.
    pub(crate) fn ended_changes(&self) -> Option<u64> {
        self.changing.borrow().is_empty().then(|| self.changes.get())
    }

    /// Waits until a range of an object can change.
    pub(super) async fn begin_change(&self, disk: DiskId, range: ByteRange) -> Changing<'_> {
        let is_free = || {
            let is_locked = self.locked.get().is_some_and(|it| overlaps(it, (disk, range)));
            // A change whose request was given up goes on, and comes before later ones.
            let changing = self.changing.borrow();
            let mut others = changing.iter().map(|(_, on, one)| (*on, *one));
            let is_changing = others.any(|it| overlaps(it, (disk, range)));
            (!is_locked && !is_changing).then_some(())
        };
        self.changed.until(is_free).await;
        let number = self.next.replace(self.next.get() + 1);
        self.changes.update(|changes| changes + 1);
        self.changing.borrow_mut().push((number, disk, range));
        Changing { file: self, number, disk, is_ended: false }
    }

    /// Waits until a range of an object does not change, and keeps it so.
    pub(crate) async fn lock(&self, disk: DiskId, range: ByteRange) -> Locked<'_> {
        let free = || (self.locked.get().is_none()).then(|| self.locked.set(Some((disk, range))));
        self.changed.until(free).await;
        let locked = Locked(self);
        let unchanging = || {
            let changing = self.changing.borrow();
            let mut overlapping =
                changing.iter().filter(|(_, on, one)| overlaps((*on, *one), (disk, range)));
            overlapping.next().is_none().then_some(())
        };
        self.changed.until(unchanging).await;
        locked
    }

    /// Notes that what a disk has may differ from the copy. The copy lacks a change then, or has
    /// one that failed here; where the disk is being filled, it is filled anew.
    pub(super) fn differ(&self, disk: DiskId) {
        match self.filling.borrow_mut().get_mut(&disk) {
            Some(progress) => progress.begin_anew(),
            None => self.miss(),
        }
    }

    /// Notes that disks lack the part of this server. `ended` connections to the server with the
    /// copy have ended.
    pub(super) fn begin_filling(&self, disks: impl IntoIterator<Item = DiskId>, ended: u64) {
        let mut filling = self.filling.borrow_mut();
        disks.into_iter().for_each(|disk| _ = filling.entry(disk).or_default());
        self.filling_since.set(ended);
        drop(filling);
        if self.is_all_filling() {
            // There is nothing that the copy could be behind of.
            self.is_behind.set(false);
        }
    }

    /// Disks that are being filled.
    pub(crate) fn filling(&self) -> Vec<DiskId> {
        self.filling.borrow().keys().copied().collect()
    }

    /// True if any disk is being filled.
    pub(super) fn has_filling(&self) -> bool {
        !self.filling.borrow().is_empty()
    }

    /// True if all disks are being filled: nothing here counts.
    pub(super) fn is_all_filling(&self) -> bool {
        self.filling.borrow().len() == self.disks as usize
    }

    /// True if a disk is being filled.
    pub(crate) fn is_filling(&self, disk: DiskId) -> bool {
        self.filling.borrow().contains_key(&disk)
    }

    /// Progress of a disk that is filled, or `None` if it lacks nothing.
    pub(crate) fn filled_to(&self, disk: DiskId) -> Option<Progress> {
        self.filling.borrow().get(&disk).copied().filter(|progress| progress.to < u64::MAX)
    }

    /// True if a disk lacks bytes before `end` of an object.
    pub(crate) fn lacks(&self, disk: DiskId, end: u64) -> bool {
        self.filled_to(disk).is_some_and(|progress| progress.to < end)
    }

    /// Notes that a disk has what it lacked after this progress, up to `to`; `u64::MAX` if it lacks
    /// nothing. If it is to be filled anew since, nothing counts.
    pub(crate) fn filled(&self, disk: DiskId, before: Progress, to: u64) {
        if let Some(progress) = self.filling.borrow_mut().get_mut(&disk)
            && *progress == before
        {
            progress.to = to;
        }
    }

    /// Notes that disks cannot be filled: what they lack is lost.
    pub(crate) fn give_up_filling(&self) {
        self.filling.borrow_mut().clear();
    }

    /// Fills all anew: the copy may have lost changes.
    pub(super) fn fill_anew(&self) {
        self.filling.borrow_mut().values_mut().for_each(Progress::begin_anew);
    }

    /// Fills all anew if a further connection to the server with the copy has ended, of which
    /// `ended` have. Returns true if changes may be lost there that clients count as written.
    pub(super) fn notice_ended_source(&self, ended: u64) -> bool {
        if !self.has_filling() || self.filling_since.replace(ended) == ended {
            return false;
        }
        self.fill_anew();
        self.stored_changes.replace(self.changes.get()) != self.changes.get()
    }

    /// Notes that the first `changes` changes are stored at the copy.
    pub(super) fn stored_at_copy(&self, changes: Option<u64>) {
        if let Some(changes) = changes {
            self.stored_changes.update(|stored| stored.max(changes));
        }
    }

    /// True if all disks that were to be filled have everything.
    pub(crate) fn is_filled(&self) -> bool {
        self.filling.borrow().values().all(|progress| progress.to == u64::MAX)
    }

    /// Notes that a file is filled, which is on stable storage. From now on the part counts, and
    /// not the copy.
    pub(crate) fn end_filling(&self) {
        let is_filled = self.is_filled();
        self.filling.borrow_mut().clear();
        self.ended.set(self.filling_since.get());
        if !is_filled {
            self.miss();
        }
    }

    /// Notes that the copy lacks a change, or has one that failed here.
    pub(super) fn miss(&self) {
        self.missed.update(|missed| missed + 1);
        self.is_behind.set(true);
        self.fell_behind.notify();
    }

    /// True if the copy must be written without a comparison, since it could not be stored.
    pub(super) fn is_unstored(&self) -> bool {
        self.is_unstored.get()
    }

    /// Notes whether the copy could be stored.
    pub(super) fn set_unstored(&self, is_unstored: bool) {
        self.is_unstored.set(is_unstored);
    }

    /// True if the copy is behind, and is compared as one that lacks anything.
    pub(super) fn is_renewed_whole(&self) -> bool {
        self.is_behind.get() && self.missed.get() > 0
    }

    /// Number of changes that the copy has missed.
    pub(super) fn missed(&self) -> u64 {
        self.missed.get()
    }

    /// True if no connection to the server with the copy has ended since the file was marked or
    /// renewed.
    pub(super) fn is_connected_since(&self, ended: u64) -> bool {
        self.ended.get() == ended
    }

    /// Notes that the copy has everything, unless it has missed more than `missed` changes. `ended`
    /// connections to its server had ended before, and none since.
    pub(super) fn caught_up(&self, missed: u64, ended: u64) -> bool {
        let is_equal = self.missed.get() == missed;
        if is_equal {
            self.is_behind.set(false);
            self.ended.set(ended);
        }
        is_equal
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a range is locked only while it does not change, one mark is made at a time, and it
    //! goes only when nothing has changed since.
    use super::*;
    use futures_util::FutureExt;
    use policy::{Buffering, Pool, Stripe};

    fn mirrored() -> MirroredFile {
        let record = FileRecord {
            file: FileId(3),
            name: "f".to_owned(),
            bytes: 0,
            cuts: 0,
            stripe: Stripe::round_robin(10, 2, 2),
            pool: Pool::all(3),
            buffering: Buffering::default(),
            protection: Protection::Mirror,
        };
        let of = |server| MirroredFile::of(&record, ServerId(server), &Rc::default());
        assert!(of(2).is_none(), "it has no part there");
        let last = of(1).expect("it has a part there");
        assert_eq!(last.copy_at, ServerId(0));
        of(0).expect("it has a part there")
    }

    #[test]
    fn a_range_is_locked_while_it_does_not_change() {
        let (file, disk) = (mirrored(), DiskId(0));
        let range = ByteRange::new;
        let change = file.begin_change(disk, range(0, 10)).now_or_never().expect("it is free");
        assert!(file.lock(disk, range(9, 20)).now_or_never().is_none(), "it changes");
        let other = file.lock(disk, range(10, 20)).now_or_never().expect("it does not change");
        assert!(file.begin_change(disk, range(15, 16)).now_or_never().is_none(), "it is locked");
        file.begin_change(DiskId(1), range(15, 16)).now_or_never().expect("it is free").end();
        drop(other);
        change.end();
        assert!(!file.is_behind());
        assert!(file.lock(disk, range(0, 20)).now_or_never().is_some());
        assert!(file.begin_change(disk, range(15, 16)).now_or_never().is_some());
        assert!(file.is_behind(), "that change was given up");
    }

    #[test]
    fn a_mark_goes_only_when_nothing_has_changed_since() {
        let file = mirrored();
        let marking = file.begin_mark().now_or_never().flatten().expect("it is not marked");
        assert!(file.begin_mark().now_or_never().is_none(), "it is being marked");
        drop(marking);
        file.begin_mark().now_or_never().flatten().expect("the mark failed").stored(0);
        assert!(file.begin_mark().now_or_never().is_some_and(|marking| marking.is_none()));
        let begin = || file.begin_change(DiskId(0), ByteRange::new(0, 1)).now_or_never().unwrap();
        let change = begin();
        assert_eq!(file.ended_changes(), None);
        change.end();
        let changes = file.ended_changes().expect("it has ended");
        let again = begin();
        assert!(!file.take_mark(changes));
        again.end();
        assert!(!file.take_mark(changes), "it has changed since");
        file.miss();
        let changes = file.ended_changes().expect("it has ended");
        assert!(!file.take_mark(changes), "its copy is behind");
        assert!(!file.caught_up(0, 0) && file.caught_up(1, 0));
        assert!(file.take_mark(changes) && !file.is_marked());
    }
}
