//! Parity of one file that this server had of others, and that disks of it lack: it is made anew,
//! from the beginning of an object to its end.

use std::cell::RefCell;
use std::collections::BTreeMap;
use units::{ByteRange, DiskId};

/// Disks that lack parity of a file.
#[derive(Default)]
pub(crate) struct LostParity(RefCell<BTreeMap<DiskId, ParityProgress>>);

/// Progress of a disk whose parity is made anew.
#[derive(Clone, Copy, Default, Debug)]
struct ParityProgress {
    /// First byte of the object that it lacks.
    to: u64,
    /// End of the changes that it did not take, because they will be in what is made.
    passed_to: u64,
}

impl LostParity {
    /// Notes that disks lack parity that this server had of others.
    pub(super) fn lose(&self, disks: impl IntoIterator<Item = DiskId>) {
        let mut lost = self.0.borrow_mut();
        disks.into_iter().for_each(|disk| _ = lost.insert(disk, ParityProgress::default()));
    }

    /// First byte of an object with parity that a disk lacks; `None` if it lacks nothing.
    pub(crate) fn from(&self, disk: DiskId) -> Option<u64> {
        self.0.borrow().get(&disk).map(|progress| progress.to)
    }

    /// Notes that a range of parity was made that a disk lacked.
    pub(super) fn made(&self, disk: DiskId, range: ByteRange) {
        if let Some(progress) = self.0.borrow_mut().get_mut(&disk)
            && progress.to == range.start
        {
            progress.to = range.end;
        }
    }

    /// Notes that changes of parity up to `end` of an object are not made, because a disk lacks it.
    pub(super) fn pass(&self, disk: DiskId, end: u64) {
        if let Some(progress) = self.0.borrow_mut().get_mut(&disk) {
            progress.passed_to = progress.passed_to.max(end);
        }
    }

    /// Notes that a disk has all the parity of a file, of which the object has `bytes` bytes.
    /// Returns false if it lacks some.
    pub(crate) fn is_whole(&self, disk: DiskId, bytes: u64) -> bool {
        let mut lost = self.0.borrow_mut();
        let is_whole = |progress: &ParityProgress| progress.to >= bytes.max(progress.passed_to);
        let is_whole = lost.get(&disk).is_none_or(is_whole);
        if is_whole {
            lost.remove(&disk);
        }
        is_whole
    }
}
