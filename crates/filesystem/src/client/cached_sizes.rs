//! Cached records of the sizes of files that a client has open.

use std::cell::RefCell;
use std::collections::BTreeMap;
use units::FileId;
use wire::FileSize;

/// The sizes of the files that a client has open.
#[derive(Default)]
pub(super) struct Sizes(RefCell<BTreeMap<FileId, CachedRecord>>);

struct CachedRecord {
    /// How often it was opened and not closed.
    opened: u32,
    /// Whether its servers know that this client has it open.
    is_at_servers: bool,
    /// As the client last heard it.
    size: FileSize,
    /// What the catalogue knows at least.
    recorded: FileSize,
    /// How often this client has set its size, which no data may show …
    times_set: u64,
    /// … and how often it had when that was last kept.
    times_kept: u64,
}

impl Sizes {
    /// A file is opened, of which the catalogue knows this size at least.
    fn opened(&self, file: FileId, recorded: FileSize, at_servers: bool) {
        let mut all = self.0.borrow_mut();
        let known = all.entry(file).or_insert_with(|| CachedRecord {
            opened: 0,
            is_at_servers: false,
            size: recorded,
            recorded,
            times_set: 0,
            times_kept: 0,
        });
        known.opened += 1;
        known.is_at_servers |= at_servers;
        known.size = known.size.max(recorded);
        known.recorded = known.recorded.max(recorded);
    }

    /// A file is opened that another client has open, and no server knows of it.
    pub(super) fn opened_beside(&self, file: FileId, recorded: FileSize) {
        self.opened(file, recorded, false);
    }

    /// A file is closed. When it was as often as it was opened, and its servers know of that,
    /// returns what the catalogue knows of its size at least.
    pub(super) fn closed(&self, file: FileId) -> Option<FileSize> {
        let mut all = self.0.borrow_mut();
        let Some(known) = all.get_mut(&file) else { return Some(FileSize::default()) };
        known.opened -= 1;
        if known.opened > 0 {
            return None;
        }
        let known = all.remove(&file)?;
        known.is_at_servers.then_some(known.recorded)
    }

    /// The files of which the catalogue may not know the size.
    pub(super) fn all_unrecorded(&self) -> Vec<FileId> {
        let all = self.0.borrow();
        all.iter().filter(|(_, known)| !known.is_recorded()).map(|(file, _)| *file).collect()
    }

    pub(super) fn learn(&self, file: FileId, size: FileSize) {
        if let Some(known) = self.0.borrow_mut().get_mut(&file) {
            known.size = known.size.max(size);
        }
    }

    pub(super) fn recorded(&self, file: FileId, size: FileSize) {
        if let Some(known) = self.0.borrow_mut().get_mut(&file) {
            known.recorded = known.recorded.max(size);
        }
    }

    /// This client sets the size of a file.
    pub(super) fn set(&self, file: FileId) {
        if let Some(known) = self.0.borrow_mut().get_mut(&file) {
            known.times_set += 1;
        }
    }

    /// How often this client has set the size of a file, where what is on stable storage may not
    /// say how long it is.
    pub(super) fn owed(&self, file: FileId) -> Option<u64> {
        let all = self.0.borrow();
        all.get(&file)
            .filter(|known| known.times_set > known.times_kept)
            .map(|known| known.times_set)
    }

    /// The size that a file had when this client had set it so often is kept.
    pub(super) fn kept(&self, file: FileId, times_set: u64) {
        if let Some(known) = self.0.borrow_mut().get_mut(&file) {
            known.times_kept = known.times_kept.max(times_set);
        }
    }

    /// The size of a file, where the catalogue may not know it.
    pub(super) fn unrecorded(&self, file: FileId) -> Option<FileSize> {
        let all = self.0.borrow();
        all.get(&file).filter(|known| !known.is_recorded()).map(|known| known.size)
    }
}

impl CachedRecord {
    fn is_recorded(&self) -> bool {
        self.size <= self.recorded
    }
}

/// A file that is being opened; closed again when dropped.
pub(super) struct Opening<'a> {
    sizes: &'a Sizes,
    file: FileId,
}

impl<'a> Opening<'a> {
    pub(super) fn begin(sizes: &'a Sizes, file: FileId, recorded: FileSize) -> Self {
        sizes.opened(file, recorded, true);
        Self { sizes, file }
    }

    /// It is open.
    pub(super) fn succeeded(self) {
        std::mem::forget(self);
    }

    /// It is not. Returns whether the client does not have it open otherwise.
    pub(super) fn failed(self) -> bool {
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
