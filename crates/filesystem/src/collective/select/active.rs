//! Selections that clients have at a server.
//!
//! Invariants:
//! - A selection ends with the connection of the client that began it.
//! - Bytes of records that are kept are counted, and bounded for all selections together.

use crate::server::files::open_file::OpenFile;
use policy::{Bounds, Selector};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::{PeerId, Timestamp};
use wire::Fault;
use world::Payload;

/// Maximum number of selections of all clients.
const SELECTIONS_MAX: usize = 1_024;

/// Maximum number of modules of all selections, each of which may have a memory of 16 MiB.
const MODULES_MAX: usize = 32;

/// Maximum number of bytes that all selections hold beside the records that they keep: parts of
/// records that cross the ends of blocks, and lists of destinations.
pub(super) const HELD_BYTES_MAX: u64 = 1 << 27;

/// Selections of all clients, by their names.
pub(crate) struct Selections<P> {
    active: RefCell<BTreeMap<u64, Rc<ActiveSelection<P>>>>,
    /// Selections that wait until leases have ended.
    beginning: RefCell<BTreeSet<(PeerId, u64)>>,
    kept_bytes: Rc<Cell<u64>>,
    held_bytes: Rc<Cell<u64>>,
    kept_bytes_max: u64,
    modules: Rc<Cell<usize>>,
}

/// Room for the module of a selection.
pub(super) struct ModulePermit(Rc<Cell<usize>>);

impl Drop for ModulePermit {
    fn drop(&mut self) {
        self.0.update(|modules| modules - 1);
    }
}

/// Selection of a client.
pub(crate) struct ActiveSelection<P> {
    owner: PeerId,
    pub(super) file: Rc<OpenFile>,
    pub(super) selector: RefCell<Selector>,
    /// Time of the last change of the file when it began, and number of its changes.
    pub(super) modified: Timestamp,
    pub(super) version: u64,
    /// Blocks in which no record matches, which were not read.
    pub(super) skipped: RefCell<BTreeSet<u64>>,
    /// Blocks with records of it.
    pub(super) blocks: RefCell<BTreeMap<u64, FoundBlock<P>>>,
    /// Starts of blocks that belong to records which begin in the block before.
    pub(super) heads: RefCell<BTreeMap<u64, P>>,
    head_bytes: Cell<u64>,
    /// Bytes of records that are kept for it.
    own_bytes: Cell<u64>,
    kept_bytes: Rc<Cell<u64>>,
    kept_bytes_max: u64,
    /// Bytes that it holds beside them.
    own_held_bytes: Cell<u64>,
    held_bytes: Rc<Cell<u64>>,
    _module: Option<ModulePermit>,
}

/// Records of a block.
pub(super) struct FoundBlock<P> {
    /// Each destination with the number of its records, ascending, without the `last` one.
    pub(super) destinations: Vec<(u32, u32)>,
    /// These records, packed; `None` if there was no room for them.
    pub(super) records: Option<P>,
    /// Start of a record that goes on in the next block, with its number.
    pub(super) start: Option<(u64, P)>,
    /// Bounds of the fields of a summary.
    pub(super) bounds: Vec<Bounds>,
    /// That record when it is whole, with its destination, if it matches.
    pub(super) last: Option<(u32, P)>,
}

impl<P: Payload> Selections<P> {
    /// Makes room for records of `kept_bytes_max` bytes.
    pub(crate) fn new(kept_bytes_max: u64) -> Self {
        Self {
            active: RefCell::default(),
            beginning: RefCell::default(),
            kept_bytes: Rc::default(),
            held_bytes: Rc::default(),
            kept_bytes_max,
            modules: Rc::default(),
        }
    }

    /// Notes a selection that will begin, unless it is ended before.
    pub(super) fn announce(&self, owner: PeerId, number: u64) {
        self.beginning.borrow_mut().insert((owner, number));
    }

    /// Takes room for a module.
    pub(super) fn admit_module(&self) -> Result<ModulePermit, Fault> {
        if self.modules.get() >= MODULES_MAX {
            let cause = format!(
                "{MODULES_MAX} modules look at records of a server, which is the limit; repeat the \
                 call later"
            );
            return Err(Fault::BadSelection { cause });
        }
        self.modules.update(|modules| modules + 1);
        Ok(ModulePermit(Rc::clone(&self.modules)))
    }

    /// Begins a selection.
    pub(super) fn begin(
        &self,
        (owner, number): (PeerId, u64),
        file: Rc<OpenFile>,
        (selector, module): (Selector, Option<ModulePermit>),
    ) -> Result<Rc<ActiveSelection<P>>, Fault> {
        if !self.beginning.borrow_mut().remove(&(owner, number)) {
            return Err(Fault::Cancelled);
        }
        let mut active = self.active.borrow_mut();
        let bad = |cause: String| Err(Fault::BadRequest { cause });
        if active.contains_key(&number) {
            return bad(format!("there is a selection {number} already"));
        }
        if active.len() >= SELECTIONS_MAX {
            return bad(format!("clients have {SELECTIONS_MAX} selections, which is the limit"));
        }
        let selection = Rc::new(ActiveSelection {
            owner,
            modified: file.modified(),
            version: file.version(),
            skipped: RefCell::default(),
            file,
            selector: RefCell::new(selector),
            blocks: RefCell::default(),
            heads: RefCell::default(),
            head_bytes: Cell::new(0),
            own_bytes: Cell::new(0),
            kept_bytes: Rc::clone(&self.kept_bytes),
            kept_bytes_max: self.kept_bytes_max,
            own_held_bytes: Cell::new(0),
            held_bytes: Rc::clone(&self.held_bytes),
            _module: module,
        });
        active.insert(number, Rc::clone(&selection));
        Ok(selection)
    }

    /// Returns a selection.
    pub(super) fn get(&self, number: u64) -> Result<Rc<ActiveSelection<P>>, Fault> {
        let found = self.active.borrow().get(&number).cloned();
        found.ok_or_else(|| Fault::TransferFailed {
            cause: "the selection has ended, since the client that began it has left".to_owned(),
        })
    }

    /// Ends a selection of a client. Ending it twice is the same as once.
    pub(super) fn end(&self, owner: PeerId, number: u64) {
        self.beginning.borrow_mut().remove(&(owner, number));
        let mut active = self.active.borrow_mut();
        if active.get(&number).is_some_and(|selection| selection.owner == owner) {
            active.remove(&number);
        }
    }

    /// Ends the selections of a client that has left.
    pub(crate) fn leave(&self, owner: PeerId) {
        self.beginning.borrow_mut().retain(|(other, _)| *other != owner);
        self.active.borrow_mut().retain(|_, selection| selection.owner != owner);
    }
}

impl<P: Payload> ActiveSelection<P> {
    /// Bytes of the starts of blocks.
    pub(super) fn head_bytes(&self) -> u64 {
        self.head_bytes.get()
    }

    /// Keeps the start of a block.
    pub(super) fn keep_head(&self, block: u64, head: P) -> Result<(), Fault> {
        self.hold(head.length())?;
        self.head_bytes.update(|all| all + head.length());
        self.heads.borrow_mut().insert(block, head);
        Ok(())
    }

    /// Counts bytes that it holds beside the records that it keeps.
    pub(super) fn hold(&self, bytes: u64) -> Result<(), Fault> {
        let held = self.held_bytes.get().saturating_add(bytes);
        if held > HELD_BYTES_MAX {
            let cause = format!(
                "parts of records that cross the ends of blocks, and lists of destinations, have \
                 more than {HELD_BYTES_MAX} bytes at a server; use blocks that hold a whole number \
                 of records, fewer destinations, or a part of the file"
            );
            return Err(Fault::BadSelection { cause });
        }
        self.held_bytes.set(held);
        self.own_held_bytes.update(|own| own + bytes);
        Ok(())
    }

    /// True if the file has not changed since it began.
    pub(super) fn is_unchanged(&self) -> bool {
        self.file.version() == self.version && self.file.changes.get() == 0
    }

    /// Takes room for bytes of records, if there is some.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        let kept = self.kept_bytes.get().saturating_add(bytes);
        if kept > self.kept_bytes_max {
            return false;
        }
        self.kept_bytes.set(kept);
        self.own_bytes.update(|own| own + bytes);
        true
    }
}

impl<P> Drop for ActiveSelection<P> {
    fn drop(&mut self) {
        self.kept_bytes.update(|kept| kept - self.own_bytes.get());
        self.held_bytes.update(|held| held - self.own_held_bytes.get());
    }
}

impl<P: Payload> FoundBlock<P> {
    /// Number of records of a destination.
    pub(super) fn count_of(&self, destination: u32) -> u32 {
        let (_, count) = self.packed_of(destination);
        count + u32::from(self.last_of(destination).is_some())
    }

    /// Number of records that are packed before those of a destination, and of these.
    pub(super) fn packed_of(&self, destination: u32) -> (u32, u32) {
        let mut before = 0;
        for (other, count) in &self.destinations {
            if *other == destination {
                return (before, *count);
            }
            before += count;
        }
        (before, 0)
    }

    /// The record that goes on in the next block, if it has that destination.
    pub(super) fn last_of(&self, destination: u32) -> Option<&P> {
        self.last.as_ref().filter(|(other, _)| *other == destination).map(|(_, record)| record)
    }
}
