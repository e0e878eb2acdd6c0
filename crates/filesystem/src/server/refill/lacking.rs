//! Files of which disks of this server lack what it once had there, because the directory was lost
//! and a new one has taken its place.
//!
//! Invariants:
//! - What a new directory lacks is on stable storage before anything of it is read or written.
//! - A file leaves this list when its part, or copy, is whole and on stable storage.

use crate::server::config::ServerConfig;
use crate::server::faults::records_fault;
use crate::signal::Signal;
use crate::task_lock::TaskLock;
use policy::Protection;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use units::{DiskId, Duration, FileId, Instant, PeerId, ServerId};
use wire::{Fault, FileRecord, RefillStatus};
use world::{RecordChange, RecordTable, World};

/// Key of the numbers of the directories whose files are listed. No file has it.
const LISTED_KEY: u64 = 0;

/// File of which a server lacks something.
// Stored: append only.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct LackingFile {
    /// Record of the file when that was found out.
    pub(crate) record: FileRecord,
    /// Disks that lack this server's part.
    pub(crate) own: Vec<DiskId>,
    /// Disks that lack the copy of another server's part.
    pub(crate) copy: Vec<DiskId>,
    /// True if no copy of this server's part is sure to have all changes.
    pub(crate) is_lost: bool,
    /// True if what other disks have of this server's part is to be compared with its copy, because
    /// the marks of this server were lost.
    pub(crate) is_unmarked: bool,
}

/// A file in the list.
struct Listed {
    file: LackingFile,
    /// Connection of the server that writes the lost copy anew.
    renewed_by: Cell<Option<PeerId>>,
    /// Bytes of it that were filled since the start.
    filled_bytes: Cell<u64>,
}

/// The list of one server.
pub(crate) struct Lacking<W> {
    world: W,
    server: ServerId,
    listed: RefCell<BTreeMap<FileId, Listed>>,
    /// Number of each directory, if it took the place of another one.
    replacements: Vec<u64>,
    /// Disks whose directories took the place of others since the list was made.
    unlisted: RefCell<Vec<DiskId>>,
    /// Files that were removed, and are on the list on stable storage.
    removed: RefCell<BTreeSet<FileId>>,
    /// Held while the list changes.
    change: TaskLock,
    /// Notified when the list has changed.
    changed: Signal,
    /// Notified when files were added to the list.
    grown: Signal,
    filled_bytes: Cell<u64>,
    /// Instant until which the bytes that were filled use up the rate.
    paid_until: Cell<Instant>,
    bytes_per_second: Option<u64>,
    /// True if nothing may be stored.
    read_only: bool,
    began: Instant,
}

impl LackingFile {
    /// Bytes that are lacking, as far as the record knows the size.
    fn bytes(&self, server: ServerId) -> u64 {
        let stripe = &self.record.stripe;
        let Some(place) = self.record.place_of(server) else { return 0 };
        let of = |place, disks: &[DiskId]| -> u64 {
            disks.iter().map(|disk| stripe.object_bytes(place, *disk, self.record.bytes)).sum()
        };
        let own = if self.is_lost { 0 } else { of(place, &self.own) };
        if let Some(rows) = self.record.protection.rows(stripe) {
            let bytes = |disk: &DiskId| rows.parity_bytes(place, *disk, self.record.bytes);
            return own + self.copy.iter().map(bytes).sum::<u64>();
        }
        let copied = self.record.protection.copied_at(place, stripe.servers);
        own + copied.map_or(0, |place| of(place, &self.copy))
    }

    fn lacks_parity(&self) -> bool {
        let record = &self.record;
        !self.copy.is_empty() && record.protection.rows(&record.stripe).is_some()
    }

    fn is_to_fill(&self) -> bool {
        !self.own.is_empty() && !self.is_lost
    }
}

impl<W: World> Lacking<W> {
    /// Loads the list from the records of this node, of which some directories took the place of
    /// others ([`ServerConfig::replacements`]).
    pub(crate) async fn load(
        world: W,
        server: ServerId,
        config: &ServerConfig,
    ) -> Result<Self, Fault> {
        let replacements = config.replacements.clone();
        let records = world.records(RecordTable::Lacking).await;
        let records = records.map_err(|error| records_fault(server, &error))?;
        let damaged = |key: u64, error: &dyn std::fmt::Display| {
            let cause = format!("record {key} of the files to refill is damaged: {error}");
            Fault::DiskFailed { server, cause }
        };
        let (mut listed, mut known) = (BTreeMap::new(), Vec::new());
        for (key, value) in records {
            if key == LISTED_KEY {
                known = wire::decode_record::<Vec<u64>>(&value)
                    .map_err(|error| damaged(key, &error))?;
                continue;
            }
            let file: LackingFile =
                wire::decode_record(&value).map_err(|error| damaged(key, &error))?;
            listed.insert(FileId(key), Listed::new(file));
        }
        let is_unlisted =
            |(disk, number): (usize, &u64)| *number != 0 && known.get(disk) != Some(number);
        let unlisted = replacements.iter().enumerate().filter(|one| is_unlisted(*one));
        let unlisted = unlisted.map(|(disk, _)| DiskId(disk as u32)).collect();
        let began = world.now();
        Ok(Self {
            world,
            server,
            listed: RefCell::new(listed),
            replacements,
            unlisted: RefCell::new(unlisted),
            removed: RefCell::default(),
            change: TaskLock::default(),
            changed: Signal::default(),
            grown: Signal::default(),
            filled_bytes: Cell::new(0),
            paid_until: Cell::new(began),
            bytes_per_second: config.refill_rate,
            read_only: config.read_only,
            began,
        })
    }

    /// Disks of whose new directories it is not known yet what they lack.
    pub(super) fn unlisted(&self) -> Vec<DiskId> {
        self.unlisted.borrow().clone()
    }

    /// Waits until it is known what new directories lack.
    pub(crate) async fn until_listed(&self) {
        let is_listed = || self.unlisted.borrow().is_empty().then_some(());
        if is_listed().is_none() {
            self.changed.until(is_listed).await;
        }
    }

    /// Waits until `find` has a result. Calls it now and after each change of the list.
    pub(super) async fn until<R>(&self, find: impl FnMut() -> Option<R>) -> R {
        self.changed.until(find).await
    }

    /// Waits until `find` has a result. Calls it now and whenever files were added.
    pub(super) async fn until_grown<R>(&self, find: impl FnMut() -> Option<R>) -> R {
        self.grown.until(find).await
    }

    /// True if nothing is lacking.
    pub(crate) fn is_empty(&self) -> bool {
        self.listed.borrow().is_empty()
    }

    /// True if a disk has lost its part of a file, and no copy is sure to have it.
    pub(crate) fn is_lost(&self, file: FileId, disk: DiskId) -> bool {
        let is_lost = |file: &LackingFile| file.is_lost && file.own.contains(&disk);
        self.listed.borrow().get(&file).is_some_and(|listed| is_lost(&listed.file))
    }

    /// True if anything of a file is lacking.
    pub(crate) fn has(&self, file: FileId) -> bool {
        self.listed.borrow().contains_key(&file)
    }

    /// Disks that lack this server's part of a file, which has a copy.
    pub(crate) fn to_fill(&self, file: FileId) -> Vec<DiskId> {
        let listed = self.listed.borrow();
        let known = listed.get(&file).filter(|known| known.file.is_to_fill());
        known.map_or_else(Vec::new, |known| known.file.own.clone())
    }

    /// Record of a file whose part here is to be filled.
    pub(crate) fn record_to_fill(&self, file: FileId) -> Option<FileRecord> {
        let listed = self.listed.borrow();
        let known = listed.get(&file).filter(|known| known.file.is_to_fill());
        known.map(|known| known.file.record.clone())
    }

    /// Record of a file whose parity here is to be made anew.
    pub(crate) fn parity_record(&self, file: FileId) -> Option<FileRecord> {
        let listed = self.listed.borrow();
        let known = listed.get(&file).filter(|known| known.file.lacks_parity());
        known.map(|known| known.file.record.clone())
    }

    /// Disks that lack the parity of a file.
    pub(crate) fn parity_to_make(&self, file: FileId) -> Vec<DiskId> {
        let listed = self.listed.borrow();
        let known = listed.get(&file).filter(|known| known.file.lacks_parity());
        known.map_or_else(Vec::new, |known| known.file.copy.clone())
    }

    /// Returns all files whose parity here is to be made anew.
    pub(super) fn all_parity_to_make(&self) -> Vec<FileRecord> {
        let listed = self.listed.borrow();
        let files = listed.values().filter(|known| known.file.lacks_parity());
        files.map(|known| known.file.record.clone()).collect()
    }

    /// True if this server has lost its part of a mirrored file, of which the copy lacks changes.
    pub(crate) fn has_lost_mirrored(&self) -> bool {
        let listed = self.listed.borrow();
        let is_lost = |file: &LackingFile| {
            file.is_lost && !file.own.is_empty() && file.record.protection != Protection::None
        };
        listed.values().any(|known| is_lost(&known.file))
    }

    /// Returns the records of all files of which something is lacking.
    pub(crate) fn records(&self) -> Vec<FileRecord> {
        self.listed.borrow().values().map(|known| known.file.record.clone()).collect()
    }

    /// True while it is not known what some new directories lack.
    pub(crate) fn is_listing(&self) -> bool {
        !self.unlisted.borrow().is_empty()
    }

    /// Returns what is lacking of a file.
    pub(crate) fn of(&self, file: FileId) -> Option<LackingFile> {
        self.listed.borrow().get(&file).map(|listed| listed.file.clone())
    }

    /// Returns all files whose parts are to be filled.
    pub(super) fn all_to_fill(&self) -> Vec<FileRecord> {
        let listed = self.listed.borrow();
        let files = listed.values().filter(|known| known.file.is_to_fill());
        files.map(|known| known.file.record.clone()).collect()
    }

    /// Returns all files whose copies here are lost, by the servers of the parts.
    pub(super) fn lost_copies(&self) -> BTreeMap<ServerId, Vec<FileId>> {
        let mut lost = BTreeMap::<ServerId, Vec<FileId>>::new();
        for (file, known) in self.listed.borrow().iter() {
            if let Some(owner) = known.file.owner(self.server) {
                lost.entry(owner).or_default().push(*file);
            }
        }
        lost
    }

    /// True if the copy of a file here is lost.
    pub(crate) fn is_copy_lost(&self, file: FileId) -> bool {
        self.listed.borrow().get(&file).is_some_and(|known| !known.file.copy.is_empty())
    }

    /// Notes that the server at `peer` writes the copy of a file anew. Returns false if the copy is
    /// not lost.
    pub(crate) fn renews(&self, file: FileId, peer: PeerId) -> bool {
        let listed = self.listed.borrow();
        let Some(known) = listed.get(&file).filter(|known| !known.file.copy.is_empty()) else {
            return false;
        };
        known.renewed_by.set(Some(peer));
        true
    }

    /// Refuses a request of the server at `peer` for a copy that is lost, unless it writes it anew.
    /// It is never read.
    pub(crate) fn check_copy(
        &self,
        file: FileId,
        peer: PeerId,
        is_read: bool,
    ) -> Result<bool, Fault> {
        let listed = self.listed.borrow();
        let Some(known) = listed.get(&file).filter(|known| !known.file.copy.is_empty()) else {
            return Ok(false);
        };
        if is_read || known.renewed_by.get() != Some(peer) {
            let cause = format!("the copy at {} was lost with its directory", self.server);
            return Err(Fault::BadRequest { cause });
        }
        Ok(true)
    }

    /// Puts files on the list.
    pub(crate) async fn list(&self, files: Vec<LackingFile>) -> Result<(), Fault> {
        let _one_at_a_time = self.change.lock().await;
        let files = files.into_iter().map(|new| {
            // An earlier directory may have been filled in part only.
            let known = self.of(new.record.file);
            known.map_or(new.clone(), |known| known.with(new))
        });
        let files: Vec<LackingFile> = files.collect();
        let put =
            |file: &LackingFile| RecordChange::put(file.record.file.0, wire::encode_record(file));
        self.store(files.iter().map(put).collect()).await?;
        let mut listed = self.listed.borrow_mut();
        listed.extend(files.into_iter().map(|file| (file.record.file, Listed::new(file))));
        drop(listed);
        self.changed.notify();
        self.grown.notify();
        Ok(())
    }

    /// Notes that all that new directories lack is on the list.
    pub(super) async fn all_listed(&self) -> Result<(), Fault> {
        let _one_at_a_time = self.change.lock().await;
        let numbers = wire::encode_record(&self.replacements);
        self.store(vec![RecordChange::put(LISTED_KEY, numbers)]).await?;
        self.unlisted.borrow_mut().clear();
        self.changed.notify();
        Ok(())
    }

    /// Takes what is whole of a file off the list: as `keep` leaves it.
    pub(crate) async fn whole(
        &self,
        file: FileId,
        keep: impl Fn(&mut LackingFile),
    ) -> Result<(), Fault> {
        let _one_at_a_time = self.change.lock().await;
        let Some(mut left) = self.of(file) else { return Ok(()) };
        keep(&mut left);
        let is_whole = left.own.is_empty() && left.copy.is_empty();
        let change = match is_whole {
            true => RecordChange::remove(file.0),
            false => RecordChange::put(file.0, wire::encode_record(&left)),
        };
        self.store(vec![change]).await?;
        let mut listed = self.listed.borrow_mut();
        match listed.get_mut(&file) {
            Some(known) if !is_whole => known.file = left,
            _ => _ = listed.remove(&file),
        }
        drop(listed);
        self.changed.notify();
        Ok(())
    }

    /// Takes a file off the list that is removed.
    pub(crate) fn forget(&self, file: FileId) {
        if self.listed.borrow_mut().remove(&file).is_some() {
            self.removed.borrow_mut().insert(file);
            self.changed.notify();
        }
    }

    /// Takes removed files off the list on stable storage.
    pub(crate) async fn settle(&self) -> Result<(), Fault> {
        if self.removed.borrow().is_empty() {
            return Ok(());
        }
        let _one_at_a_time = self.change.lock().await;
        self.store(Vec::new()).await
    }

    /// Makes changes on stable storage, with those that remove obsolete records.
    async fn store(&self, mut changes: Vec<RecordChange>) -> Result<(), Fault> {
        if self.read_only {
            return Ok(());
        }
        let removed = self.removed.take();
        changes.extend(removed.iter().map(|file| RecordChange::remove(file.0)));
        let changed = self.world.record_change(RecordTable::Lacking, changes).await;
        changed.map_err(|error| {
            self.removed.borrow_mut().extend(removed);
            records_fault(self.server, &error)
        })
    }

    /// Notes that bytes of a file were filled. Waits as long as the rate asks for.
    pub(crate) async fn filled(&self, file: FileId, bytes: u64) {
        self.filled_bytes.update(|filled| filled + bytes);
        if let Some(known) = self.listed.borrow().get(&file) {
            known.filled_bytes.update(|filled| filled + bytes);
        }
        let Some(rate) = self.bytes_per_second else { return };
        let now = self.world.now();
        let cost = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
        let cost = Duration::from_ns(u64::try_from(cost).unwrap_or(u64::MAX));
        let until = self.paid_until.get().max(now) + cost;
        self.paid_until.set(until);
        self.world.sleep(until.since(now)).await;
    }

    /// State of the refill.
    pub(crate) fn status(&self) -> RefillStatus {
        let listed = self.listed.borrow();
        let is_open = |file: &&LackingFile| file.is_to_fill() || !file.copy.is_empty();
        let files = || listed.values().map(|known| &known.file);
        RefillStatus {
            unlisted_disks: self.unlisted.borrow().len() as u32,
            files: files().filter(is_open).count() as u64,
            bytes: listed.values().map(|known| known.bytes_left(self.server)).sum(),
            filled_bytes: self.filled_bytes.get(),
            elapsed_ms: self.world.now().since(self.began).as_ms(),
            lost_files: files().filter(|file| file.is_lost && !file.own.is_empty()).count() as u64,
        }
    }
}

impl Listed {
    fn bytes_left(&self, server: ServerId) -> u64 {
        self.file.bytes(server).saturating_sub(self.filled_bytes.get())
    }

    fn new(file: LackingFile) -> Self {
        Self { file, renewed_by: Cell::new(None), filled_bytes: Cell::new(0) }
    }
}

impl LackingFile {
    /// Server of whose part the copy at `server` is lost.
    fn owner(&self, server: ServerId) -> Option<ServerId> {
        if self.copy.is_empty() {
            return None;
        }
        let place = self.record.place_of(server)?;
        let of = self.record.protection.copied_at(place, self.record.stripe.servers)?;
        Some(self.record.pool.server(of))
    }

    /// Adds what a further directory lacks.
    fn with(self, new: Self) -> Self {
        let both = |known: Vec<DiskId>, new: Vec<DiskId>| -> Vec<DiskId> {
            known.into_iter().chain(new).collect::<BTreeSet<_>>().into_iter().collect()
        };
        Self {
            record: new.record,
            own: both(self.own, new.own),
            copy: both(self.copy, new.copy),
            is_lost: self.is_lost || new.is_lost,
            is_unmarked: self.is_unmarked || new.is_unmarked,
        }
    }
}
