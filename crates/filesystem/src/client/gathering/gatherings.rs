//! Files of which a client gathers writes.

use super::store::GatheredStore;
use crate::signal::Signal;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use units::FileId;

/// Maximum number of files of which a client gathers writes at a time.
const FILES_MAX: usize = 64;

/// Files of which a client gathers writes.
pub(in crate::client) struct Gatherings<P> {
    files: RefCell<BTreeMap<FileId, Rc<Gathering<P>>>>,
    /// Files of which writes are lost, which no call has told yet.
    failed: RefCell<BTreeMap<FileId, Rc<dyn GatheredStore<P>>>>,
    /// Notified when a flush has ended.
    pub(super) changed: Signal,
}

/// One file of which a client gathers writes.
pub(super) struct Gathering<P> {
    pub(super) store: Rc<dyn GatheredStore<P>>,
    /// True once all servers have given a lease.
    pub(super) is_leased: Cell<bool>,
    /// True when a server wanted its lease back before all had given theirs.
    pub(super) is_recalled: Cell<bool>,
    /// True while a flush is under way.
    pub(super) is_flushing: Cell<bool>,
    /// Number of times that servers of the file had been lost when it began.
    pub(super) losses: u64,
}

impl<P> Gathering<P> {
    pub(super) fn new(store: Rc<dyn GatheredStore<P>>, losses: u64) -> Rc<Self> {
        let (is_leased, is_recalled) = (Cell::new(false), Cell::new(false));
        Rc::new(Self { store, is_leased, is_recalled, is_flushing: Cell::new(false), losses })
    }
}

impl<P> Default for Gatherings<P> {
    fn default() -> Self {
        let (files, failed) = (RefCell::default(), RefCell::default());
        Self { files, failed, changed: Signal::default() }
    }
}

impl<P> Gatherings<P> {
    pub(super) fn of(&self, file: FileId) -> Option<Rc<Gathering<P>>> {
        self.files.borrow().get(&file).cloned()
    }

    /// Adds a file, unless there are too many, it is there, or it has lost writes.
    pub(super) fn add(&self, file: FileId, gathering: &Rc<Gathering<P>>) -> bool {
        let mut files = self.files.borrow_mut();
        let has_failed = self.failed.borrow().contains_key(&file);
        if has_failed || files.len() >= FILES_MAX || files.contains_key(&file) {
            return false;
        }
        files.insert(file, Rc::clone(gathering));
        true
    }

    /// Tells if this is the entry of a file.
    pub(super) fn is_current(&self, file: FileId, gathering: &Rc<Gathering<P>>) -> bool {
        self.files.borrow().get(&file).is_some_and(|known| Rc::ptr_eq(known, gathering))
    }

    /// Returns, once, where writes of a file were lost.
    pub(super) fn take_failed(&self, file: FileId) -> Option<Rc<dyn GatheredStore<P>>> {
        self.failed.borrow_mut().remove(&file)
    }

    /// Notes that writes of a file are lost.
    pub(super) fn failed(&self, file: FileId, store: &Rc<dyn GatheredStore<P>>) {
        self.failed.borrow_mut().insert(file, Rc::clone(store));
    }

    pub(super) fn all(&self) -> Vec<FileId> {
        self.files.borrow().keys().copied().collect()
    }

    pub(super) fn end(&self, file: FileId, gathering: &Rc<Gathering<P>>) {
        let mut files = self.files.borrow_mut();
        if files.get(&file).is_some_and(|known| Rc::ptr_eq(known, gathering)) {
            files.remove(&file);
        }
    }
}
