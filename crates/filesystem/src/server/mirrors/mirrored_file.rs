//! A mirrored file, or one with parity, as the server of one of its parts sees it.
//!
//! Invariants:
//! - A range is not compared, repaired or combined with others while it changes, and the reverse.
//! - A range of a file is marked on stable storage before any byte of it changes.

use super::lost_parity::LostParity;
use super::marks::Marked;
use super::partner::Partner;
use super::spans::{WHOLE, overlap, widened};
use crate::signal::Signal;
use policy::Rows;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{ByteRange, DiskId, FileId, ServerId};
use wire::{FileRecord, FileSize};

/// Number of blocks by which the range of a mark grows at least.
const MARKED_BLOCKS: u64 = 4;

/// Protected file with a part at this server.
pub(crate) struct MirroredFile {
    pub(crate) file: FileId,
    /// Number of disks of each server that it uses.
    pub(super) disks: u32,
    /// Place of this server among those of the file.
    pub(super) place: ServerId,
    /// Servers with the copy of the part of this one, or with parity of it.
    pub(super) partners: Vec<Partner>,
    /// Rows, if the file has parity.
    pub(super) rows: Option<Rows>,
    /// Record with which it is marked.
    pub(crate) record: FileRecord,
    /// Range of its objects that is marked on stable storage.
    mark: Cell<Option<ByteRange>>,
    /// True while a mark is being made, or made longer.
    is_marking: Cell<bool>,
    /// Number of changes that have begun.
    changes: Cell<u64>,
    /// Ranges of objects that change.
    changing: RefCell<Vec<(u64, DiskId, ByteRange)>>,
    /// Range that is compared or repaired.
    locked: Cell<Option<(DiskId, ByteRange)>>,
    /// Ranges that are combined with pieces of other servers.
    held: RefCell<Vec<(u64, DiskId, ByteRange)>>,
    next: Cell<u64>,
    changed: Signal,
    /// Disks that lack the part of this server, with the first byte of the object that they lack.
    /// For them the copy is the file.
    filling: RefCell<BTreeMap<DiskId, Progress>>,
    /// Parity that this server had of others, and that disks lack.
    pub(crate) lost_parity: LostParity,
    /// Size after the last cut that this server has made of its part, or is about to.
    cut_to: Cell<FileSize>,
    /// Size after the last cut that this server has made of all of its part.
    has_cut_to: Cell<FileSize>,
    /// Number of the last cut of which the servers with parity were told.
    told_cuts: Cell<u64>,
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

/// Change of a range. If it is dropped before its [end](Changing::end), the copy may differ.
pub(crate) struct Changing<'a> {
    file: &'a MirroredFile,
    number: u64,
    place: (DiskId, ByteRange),
    is_ended: bool,
}

/// Range that does not change. Released when dropped.
pub(crate) struct Locked<'a>(&'a MirroredFile);

/// Range that does not change while other servers combine theirs. Released when dropped.
pub(super) struct Held<'a>(&'a MirroredFile, u64);

/// Right to mark a range of a file. If it is dropped before the mark is stored, nothing is marked.
pub(super) struct Marking<'a> {
    file: &'a MirroredFile,
    /// Range that is to be marked, with what is marked already.
    pub(super) range: ByteRange,
}

impl Changing<'_> {
    /// Ends the change, of which the outcome is known here and at the copy.
    pub(crate) fn end(mut self) {
        self.is_ended = true;
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            self.file.differ(self.place.0, self.place.1);
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

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.borrow_mut().retain(|(number, ..)| *number != self.1);
        self.0.changed.notify();
    }
}

impl Drop for Marking<'_> {
    fn drop(&mut self) {
        self.file.is_marking.set(false);
        self.file.changed.notify();
    }
}

impl Marking<'_> {
    /// Notes that the mark is on stable storage, after `ended` connections to each server with a
    /// copy had ended.
    pub(super) fn stored(self, ended: &[u64]) {
        // Until it was marked, it was equal.
        if self.file.mark.replace(Some(self.range)).is_none() {
            let partners = self.file.partners.iter().zip(ended);
            partners.for_each(|(partner, ended)| partner.stored(*ended));
        }
    }
}

fn overlaps((disk, range): (DiskId, ByteRange), (other, others): (DiskId, ByteRange)) -> bool {
    disk == other && overlap(range, others)
}

impl MirroredFile {
    /// State of the part of server `own` of a file, if the file is protected and has one.
    pub(super) fn of(record: &FileRecord, own: ServerId, fell_behind: &Rc<Signal>) -> Option<Self> {
        let place = record.place_of(own)?;
        let (protection, servers) = (record.protection, record.stripe.servers);
        let rows = protection.rows(&record.stripe);
        let partners: Vec<ServerId> = match &rows {
            Some(_) => (0..servers).map(ServerId).filter(|other| *other != place).collect(),
            None => protection.copy_of(place, servers).into_iter().collect(),
        };
        if partners.is_empty() {
            return None;
        }
        let partners = partners.into_iter().map(|at| Partner::new(record.pool.server(at)));
        Some(Self {
            file: record.file,
            disks: record.stripe.disks_per_server,
            place,
            partners: partners.collect(),
            rows,
            record: record.clone(),
            mark: Cell::new(None),
            is_marking: Cell::new(false),
            changes: Cell::new(0),
            changing: RefCell::default(),
            locked: Cell::new(None),
            held: RefCell::default(),
            next: Cell::new(0),
            changed: Signal::default(),
            filling: RefCell::default(),
            lost_parity: LostParity::default(),
            cut_to: Cell::default(),
            has_cut_to: Cell::default(),
            told_cuts: Cell::new(0),
            stored_changes: Cell::new(0),
            fell_behind: Rc::clone(fell_behind),
        })
    }

    /// State of a file of which a range was marked when the server began: its copy may be behind.
    pub(super) fn marked(
        (record, range): &Marked,
        own: ServerId,
        fell_behind: &Rc<Signal>,
    ) -> Option<Self> {
        let file = Self::of(record, own, fell_behind)?;
        file.mark.set(Some(*range));
        file.partners.iter().for_each(|partner| partner.may_be_behind(*range));
        Some(file)
    }

    /// Server with the copy of a mirrored file.
    pub(super) fn copy_at(&self) -> ServerId {
        self.partners[0].server
    }

    /// Server with parity, of those of the file.
    pub(super) fn partner_at(&self, place: ServerId) -> Option<&Partner> {
        let server = self.record.pool.server(place);
        self.partners.iter().find(|partner| partner.server == server)
    }

    /// True while a copy, or parity, may lack changes.
    pub(crate) fn is_behind(&self) -> bool {
        self.partners.iter().any(Partner::is_behind)
    }

    /// Places, among the servers of the file, whose copy or parity may lack changes.
    pub(crate) fn places_behind(&self) -> Vec<ServerId> {
        let behind = self.partners.iter().filter(|partner| partner.is_behind());
        behind.filter_map(|partner| self.record.place_of(partner.server)).collect()
    }

    /// True while a mark is on stable storage.
    pub(super) fn is_marked(&self) -> bool {
        self.mark.get().is_some()
    }

    /// Range outside of which nothing has changed since the last mark was taken away.
    pub(super) fn marked_range(&self) -> ByteRange {
        self.mark.get().unwrap_or(ByteRange::new(0, 0))
    }

    /// Returns the right to mark a range of the file, or `None` once it is marked.
    pub(super) async fn begin_mark(&self, range: ByteRange) -> Option<Marking<'_>> {
        let next = || {
            let known = self.mark.get();
            if known.is_some_and(|known| range.is_empty() || known.contains(range)) {
                return Some(None);
            }
            if self.is_marking.replace(true) {
                return None;
            }
            let least = MARKED_BLOCKS.saturating_mul(self.record.stripe.block_bytes);
            Some(Some(Marking { file: self, range: widened(known, range, least) }))
        };
        self.changed.until(next).await
    }

    /// Takes the mark away if the file is as its copy: nothing has changed since there were
    /// `changes` changes. Returns false if it stays.
    pub(super) fn take_mark(&self, changes: u64) -> bool {
        let is_equal = !self.is_behind()
            && self.changes.get() == changes
            && self.changing.borrow().is_empty()
            && !self.is_marking.get()
            && self.is_marked();
        if is_equal {
            self.mark.set(None);
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
            let held = self.held.borrow();
            let mut held = held.iter().map(|(_, on, one)| (*on, *one));
            let is_held = held.any(|it| overlaps(it, (disk, range)));
            (!is_locked && !is_changing && !is_held).then_some(())
        };
        self.changed.until(is_free).await;
        let number = self.next.replace(self.next.get() + 1);
        self.changes.update(|changes| changes + 1);
        self.changing.borrow_mut().push((number, disk, range));
        Changing { file: self, number, place: (disk, range), is_ended: false }
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

    /// Waits until a range of an object does not change, and keeps it so while other servers
    /// combine theirs.
    pub(super) async fn hold(&self, disk: DiskId, range: ByteRange) -> Held<'_> {
        let number = self.next.replace(self.next.get() + 1);
        let is_free = || {
            let changing = self.changing.borrow();
            let mut changing = changing.iter().map(|(_, on, one)| (*on, *one));
            if changing.any(|it| overlaps(it, (disk, range))) {
                return None;
            }
            self.held.borrow_mut().push((number, disk, range));
            Some(Held(self, number))
        };
        self.changed.until(is_free).await
    }

    /// Notes that what a disk has of a range may differ from all copies, or parity. They lack a
    /// change then, or have one that failed here; where the disk is being filled, it is filled
    /// anew.
    pub(super) fn differ(&self, disk: DiskId, range: ByteRange) {
        match self.filling.borrow_mut().get_mut(&disk) {
            Some(progress) => progress.begin_anew(),
            None => self.partners.iter().for_each(|partner| self.miss(partner, range)),
        }
    }

    /// As [`differ`](Self::differ), for what one server has.
    pub(super) fn differ_from(&self, (disk, range): (DiskId, ByteRange), partner: &Partner) {
        match self.filling.borrow_mut().get_mut(&disk) {
            Some(progress) => progress.begin_anew(),
            None => self.miss(partner, range),
        }
    }

    /// Notes that disks lack the part of this server. `ended` gives the number of connections to a
    /// server that have ended.
    pub(super) fn begin_filling(
        &self,
        disks: impl IntoIterator<Item = DiskId>,
        ended: impl Fn(ServerId) -> u64,
    ) {
        let mut filling = self.filling.borrow_mut();
        disks.into_iter().for_each(|disk| _ = filling.entry(disk).or_default());
        for partner in &self.partners {
            partner.begin_filling(ended(partner.server));
        }
        drop(filling);
        if self.is_all_filling() {
            // There is nothing that a copy could be behind of.
            self.partners.iter().for_each(|partner| partner.expect_nothing());
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
    pub(super) fn notice_ended_source(&self, partner: &Partner, ended: u64) -> bool {
        if !self.has_filling() || !partner.has_ended_again(ended) {
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
        for partner in &self.partners {
            partner.end_filling();
            if !is_filled {
                self.miss(partner, WHOLE);
            }
        }
    }

    /// Notes that a server lacks a change of a range, or has one that failed here.
    pub(super) fn miss(&self, partner: &Partner, range: ByteRange) {
        partner.miss(range);
        self.fell_behind.notify();
    }

    /// Notes that all servers may lack anything.
    pub(super) fn miss_all(&self) {
        self.partners.iter().for_each(|partner| self.miss(partner, WHOLE));
    }

    /// True if all copies are behind, and are compared as ones that lack anything.
    pub(super) fn is_renewed_whole(&self) -> bool {
        self.partners.iter().all(Partner::has_missed_all)
    }

    /// True if a copy has missed a change.
    pub(super) fn has_missed(&self) -> bool {
        self.partners.iter().any(|partner| partner.missed() > 0)
    }

    /// Notes that this server is about to cut its part.
    pub(super) fn begin_cut(&self, size: FileSize) {
        self.cut_to.update(|known| known.max(size));
    }

    /// Notes that it has cut all of its part.
    pub(crate) fn end_cut(&self, size: FileSize) {
        self.has_cut_to.update(|known| known.max(size));
    }

    /// Size after the last cut that it has made, or the least one.
    pub(super) fn has_cut_to(&self) -> FileSize {
        self.has_cut_to.get()
    }

    /// Size after the last cut that it has made or is about to, or the least one.
    pub(super) fn cut_to(&self) -> FileSize {
        self.cut_to.get()
    }

    /// True if the servers with parity were not told of a cut yet.
    pub(super) fn is_cut_news(&self, size: FileSize) -> bool {
        size.cuts > self.told_cuts.get()
    }

    /// Notes that they were told of a cut, or are behind.
    pub(super) fn told_of_cut(&self, size: FileSize) {
        self.told_cuts.update(|told| told.max(size.cuts));
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a range is locked only while it does not change, one mark is made at a time, and it
    //! goes only when nothing has changed since.
    use super::*;
    use futures_util::FutureExt;
    use policy::{Buffering, Pool, Protection, Stripe};

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
        assert_eq!(last.copy_at(), ServerId(0));
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
        let mark = |start, end| file.begin_mark(ByteRange::new(start, end)).now_or_never();
        let marking = mark(0, 1).flatten().expect("it is not marked");
        assert!(mark(0, 1).is_none(), "it is being marked");
        drop(marking);
        mark(0, 1).flatten().expect("the mark failed").stored(&[0]);
        assert!(mark(0, 1).is_some_and(|marking| marking.is_none()));
        assert!(mark(3, 30).is_some_and(|marking| marking.is_none()), "it has some more");
        let longer = mark(300, 301).flatten().expect("that is not marked");
        assert!(mark(0, 9).is_some_and(|marking| marking.is_none()), "that is");
        assert!(!file.take_mark(0), "it is being marked");
        longer.stored(&[7]);
        assert!(file.marked_range().contains(ByteRange::new(0, 301)));
        assert!(file.partners[0].is_connected_since(0), "it was equal before the first mark");
        let begin = || file.begin_change(DiskId(0), ByteRange::new(0, 1)).now_or_never().unwrap();
        let change = begin();
        assert_eq!(file.ended_changes(), None);
        change.end();
        let changes = file.ended_changes().expect("it has ended");
        let again = begin();
        assert!(!file.take_mark(changes));
        again.end();
        assert!(!file.take_mark(changes), "it has changed since");
        file.miss_all();
        let changes = file.ended_changes().expect("it has ended");
        assert!(!file.take_mark(changes), "its copy is behind");
        assert!(!file.partners[0].caught_up(0, 0) && file.partners[0].caught_up(1, 0));
        assert!(file.take_mark(changes) && !file.is_marked());
    }
}
