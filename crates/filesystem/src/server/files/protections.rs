//! Protection of files by their numbers, and changes that are not made at copies.
//!
//! Invariant: whoever knows an older protection of a file, such as a block in the cache, changes
//! the file as its latest protection says.

use crate::signal::Signal;
use policy::Protection;
use std::cell::RefCell;
use std::collections::BTreeMap;
use units::FileId;

/// Protections of files that were changed since the start.
#[derive(Default)]
pub(crate) struct Protections {
    changed: RefCell<BTreeMap<FileId, Protection>>,
    /// Number of changes on their way to disks that are not made at a copy.
    bare: RefCell<BTreeMap<FileId, u32>>,
    /// Notified when such a change has ended.
    ended: Signal,
}

/// Change that is not made at a copy. Ends when dropped.
pub(crate) struct BareChange<'a>(&'a Protections, FileId);

impl Protections {
    /// Notes that the protection of a file is changed.
    pub(super) fn change(&self, file: FileId, protection: Protection) {
        self.changed.borrow_mut().insert(file, protection);
    }

    /// Protection of a file, if it was changed since the start.
    pub(crate) fn of(&self, file: FileId) -> Option<Protection> {
        self.changed.borrow().get(&file).copied()
    }

    /// Forgets a file whose data is dropped.
    pub(super) fn forget(&self, file: FileId) {
        self.changed.borrow_mut().remove(&file);
    }

    /// Begins a change that is not made at a copy.
    pub(super) fn begin_bare_change(&self, file: FileId) -> BareChange<'_> {
        *self.bare.borrow_mut().entry(file).or_default() += 1;
        BareChange(self, file)
    }

    /// Waits until no change of a file is on its way that is not made at a copy.
    pub(super) async fn until_no_bare_change(&self, file: FileId) {
        self.ended.until(|| (!self.bare.borrow().contains_key(&file)).then_some(())).await;
    }
}

impl Drop for BareChange<'_> {
    fn drop(&mut self) {
        let mut bare = self.0.bare.borrow_mut();
        if let Some(changes) = bare.get_mut(&self.1) {
            *changes -= 1;
            if *changes == 0 {
                bare.remove(&self.1);
            }
        }
        drop(bare);
        self.0.ended.notify();
    }
}
