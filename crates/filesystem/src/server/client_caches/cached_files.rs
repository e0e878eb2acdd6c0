//! Files that clients use through caches, and changes of files by other ways.
//!
//! Invariant: while a file is in caches, nothing else changes it. A cache gets the first line of a
//! file when all other changes of it have ended, and from then on no other begins.

use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::BTreeMap;
use units::FileId;

/// Files that are in caches of clients, or that other requests change.
#[derive(Default)]
pub(crate) struct CachedFiles {
    uses: RefCell<BTreeMap<FileId, FileUse>>,
    ended: Signal,
}

/// Use of one file.
#[derive(Clone, Copy, Default)]
struct FileUse {
    /// True when a client wants lines of it: no other change begins.
    is_wanted: bool,
    /// True when clients have got lines of it.
    is_cached: bool,
    /// Number of active changes by other ways.
    changes: u32,
}

/// Use of a file that changes it by another way than through caches. Ends when dropped.
pub(crate) struct UncachedUse<'a> {
    files: &'a CachedFiles,
    file: FileId,
}

impl CachedFiles {
    /// Begins a change of a file by another way. Returns `None` if clients use it through caches.
    pub(crate) fn begin_change(&self, file: FileId) -> Option<UncachedUse<'_>> {
        let mut uses = self.uses.borrow_mut();
        let of_file = uses.entry(file).or_default();
        if of_file.is_wanted {
            return None;
        }
        of_file.changes += 1;
        Some(UncachedUse { files: self, file })
    }

    /// Refuses changes of a file by other ways from now on, and waits until none is active.
    /// Returns true if no client had lines of the file before.
    pub(super) async fn begin_use(&self, file: FileId) -> bool {
        self.uses.borrow_mut().entry(file).or_default().is_wanted = true;
        let begin = || {
            let mut uses = self.uses.borrow_mut();
            // The last client with a cache may have left meanwhile.
            let Some(of_file) = uses.get_mut(&file).filter(|it| it.is_wanted) else {
                return Some(false);
            };
            (of_file.changes == 0).then(|| !std::mem::replace(&mut of_file.is_cached, true))
        };
        self.ended.until(begin).await
    }

    /// Tells if clients want lines of a file, or have got some.
    pub(crate) fn is_wanted(&self, file: FileId) -> bool {
        self.uses.borrow().get(&file).is_some_and(|it| it.is_wanted)
    }

    /// Tells if clients have got lines of a file.
    pub(super) fn is_cached(&self, file: FileId) -> bool {
        self.uses.borrow().get(&file).is_some_and(|it| it.is_cached)
    }

    /// Notes that no client has a cache any more.
    pub(super) fn end_all(&self) {
        for of_file in self.uses.borrow_mut().values_mut() {
            *of_file = FileUse { changes: of_file.changes, ..FileUse::default() };
        }
        self.uses.borrow_mut().retain(|_, it| it.changes > 0);
        self.ended.notify();
    }

    /// Forgets a removed file.
    pub(crate) fn forget(&self, file: FileId) {
        self.uses.borrow_mut().retain(|other, it| *other != file || it.changes > 0);
    }
}

impl Drop for UncachedUse<'_> {
    fn drop(&mut self) {
        let mut uses = self.files.uses.borrow_mut();
        if let Some(of_file) = uses.get_mut(&self.file) {
            of_file.changes -= 1;
            if of_file.changes == 0 && !of_file.is_wanted {
                uses.remove(&self.file);
            }
        }
        drop(uses);
        self.files.ended.notify();
    }
}
