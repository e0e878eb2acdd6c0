//! Cached records of the sizes of files that a client has open.

use std::cell::RefCell;
use std::collections::BTreeMap;
use units::{FileId, ServerId};
use wire::{FileRecord, FileSize};

/// Cached sizes of the open files of one client.
#[derive(Default)]
pub(crate) struct Sizes(RefCell<BTreeMap<FileId, CachedRecord>>);

struct CachedRecord {
    /// Number of opens without a close.
    opened: u32,
    /// Record with which the servers of the file were asked to list this client among those that
    /// have it open.
    at_servers: Option<Box<FileRecord>>,
    /// Size in the latest answer that this client got.
    size: FileSize,
    /// Lower bound of the size that the catalogue has recorded.
    recorded: FileSize,
    /// Number of times that this client has set the size. Data on the disks need not show such a
    /// size.
    times_set: u64,
    /// Value of `times_set` when a server last kept the size on stable storage.
    times_kept: u64,
}

impl Sizes {
    /// Counts an open of a file of which the catalogue has recorded at least this size.
    fn opened(&self, file: FileId, recorded: FileSize, at_servers: Option<&FileRecord>) {
        let mut all = self.0.borrow_mut();
        let known = all.entry(file).or_insert_with(|| CachedRecord {
            opened: 0,
            at_servers: None,
            size: recorded,
            recorded,
            times_set: 0,
            times_kept: 0,
        });
        known.opened += 1;
        if known.at_servers.is_none() {
            known.at_servers = at_servers.map(|record| Box::new(record.clone()));
        }
        known.size = known.size.max(recorded);
        known.recorded = known.recorded.max(recorded);
    }

    /// Counts an open of a file that another client has open, without any server listing this
    /// client.
    pub(crate) fn opened_beside(&self, file: FileId, recorded: FileSize) {
        self.opened(file, recorded, None);
    }

    /// Returns records of the files that a server lists as open by this client, with the sizes that
    /// are known.
    pub(crate) fn open_at(&self, server: ServerId) -> Vec<FileRecord> {
        let all = self.0.borrow();
        let at_servers = all.values().filter_map(|known| {
            let record = known.at_servers.as_deref()?;
            record.servers().any(|one| one == server).then(|| {
                let mut record = record.clone();
                record.learn(known.size);
                record
            })
        });
        at_servers.collect()
    }

    /// Counts a close. On the last close, if servers list this client, returns the lower bound of
    /// the size that the catalogue has recorded.
    pub(crate) fn closed(&self, file: FileId) -> Option<FileSize> {
        let mut all = self.0.borrow_mut();
        let Some(known) = all.get_mut(&file) else { return Some(FileSize::default()) };
        known.opened -= 1;
        if known.opened > 0 {
            return None;
        }
        let known = all.remove(&file)?;
        known.at_servers.map(|_| known.recorded)
    }

    /// Returns the files whose size the catalogue may not have recorded.
    pub(crate) fn all_unrecorded(&self) -> Vec<FileId> {
        let all = self.0.borrow();
        all.iter().filter(|(_, known)| !known.is_recorded()).map(|(file, _)| *file).collect()
    }

    pub(crate) fn learn(&self, file: FileId, size: FileSize) {
        if let Some(known) = self.0.borrow_mut().get_mut(&file) {
            known.size = known.size.max(size);
        }
    }

    pub(crate) fn recorded(&self, file: FileId, size: FileSize) {
        if let Some(known) = self.0.borrow_mut().get_mut(&file) {
            known.recorded = known.recorded.max(size);
        }
    }

    /// Counts that this client sets the size of a file.
    pub(crate) fn set(&self, file: FileId) {
        if let Some(known) = self.0.borrow_mut().get_mut(&file) {
            known.times_set += 1;
        }
    }

    /// Returns `times_set` when no record on stable storage need show the size that was set last.
    pub(crate) fn owed(&self, file: FileId) -> Option<u64> {
        let all = self.0.borrow();
        all.get(&file)
            .filter(|known| known.times_set > known.times_kept)
            .map(|known| known.times_set)
    }

    /// Notes that a server has kept the size that the file had at this value of `times_set`.
    pub(crate) fn kept(&self, file: FileId, times_set: u64) {
        if let Some(known) = self.0.borrow_mut().get_mut(&file) {
            known.times_kept = known.times_kept.max(times_set);
        }
    }

    /// Returns the size of a file if the catalogue may not have recorded it.
    pub(crate) fn unrecorded(&self, file: FileId) -> Option<FileSize> {
        let all = self.0.borrow();
        all.get(&file).filter(|known| !known.is_recorded()).map(|known| known.size)
    }
}

impl CachedRecord {
    fn is_recorded(&self) -> bool {
        self.size <= self.recorded
    }
}

/// Guard of a file that is being opened. Dropping it closes the file again.
pub(crate) struct Opening<'a> {
    sizes: &'a Sizes,
    file: FileId,
}

impl<'a> Opening<'a> {
    pub(crate) fn begin(sizes: &'a Sizes, record: &FileRecord, recorded: FileSize) -> Self {
        sizes.opened(record.file, recorded, Some(record));
        Self { sizes, file: record.file }
    }

    /// Keeps the file open.
    pub(crate) fn succeeded(self) {
        std::mem::forget(self);
    }

    /// Closes the file. Returns true when the client has not opened it otherwise.
    pub(crate) fn failed(self) -> bool {
        let file = self.file;
        let sizes = self.sizes;
        std::mem::forget(self);
        sizes.closed(file).is_some()
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.sizes.closed(self.file);
    }
}
