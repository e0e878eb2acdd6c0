//! State of the catalogue in memory and in records.
//!
//! Invariants:
//! - A name stands for at most one file or directory.
//! - A number is never given twice, not even after a removal or a restart.
//! - A change is on stable storage before its answer.
//! - Memory and records agree, except for nameless files whose records are obsolete.
//! - A file without a name has a record until its data is gone, and no lookup finds it.

use super::claims::{Claim, Claims};
use super::copies::{Copies, POSITION_KEY};
use super::node::{Node, NodeKind, StoredDefaults};
use super::tree::{Root, Tree};
use policy::{Pool, Protection};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::{FileId, ServerId, Timestamp};
use wire::{Attributes, Fault, ROOT};
use world::{RecordChange, RecordTable, RecordsError, World};

/// File information server: names, sizes and places of all files.
pub(crate) struct Catalogue<W> {
    pub(super) world: W,
    pub(super) tree: RefCell<Tree>,
    /// Files without a name that may have data.
    pub(super) nameless: RefCell<BTreeMap<FileId, Node>>,
    /// Nameless files without data. The next change removes their records.
    forgotten: RefCell<Vec<FileId>>,
    pub(super) claims: Claims,
    /// Files and directories whose records have an older time than the tree. They are stored as the
    /// server ends.
    pub(super) unstored_times: RefCell<BTreeSet<FileId>>,
    /// Copies at other servers.
    pub(super) copies: Rc<Copies<W>>,
    /// Servers of whose parts of mirrored files copies may be behind.
    behind: RefCell<BTreeSet<ServerId>>,
    next: Cell<u64>,
    /// First number that is not reserved in memory.
    pub(super) reserved: Cell<u64>,
    /// First number that is not reserved on stable storage.
    stored_reserved: Cell<u64>,
}

/// Keys from here on are records of servers of whose parts of mirrored files copies may be behind:
/// this key and the number of the server. No entry has such a number.
const BEHIND_KEY: u64 = 1 << 63;

/// Directory number of nameless files.
const NOWHERE: FileId = FileId(u64::MAX);

/// Key of the root's record. Other records are [`Node`]s under their numbers.
const ROOT_KEY: u64 = ROOT.0;

/// Version of the record format while no mount has set attributes of the root.
const FORMAT: u16 = 2;

/// Version of the record format with time and attributes of the root, which a mount has set.
const FORMAT_WITH_ATTRIBUTES: u16 = 3;

/// Version of the record format with a protection of files in the root.
const FORMAT_WITH_PROTECTION: u16 = 4;

/// Record of the root in [`FORMAT`]: format, first number that is not reserved, and defaults of
/// files in it.
type PlainRoot = (u16, u64, StoredDefaults);

/// Record of the root in [`FORMAT_WITH_ATTRIBUTES`]: as before, time of the last change, and
/// attributes.
type FullRoot = (u16, u64, StoredDefaults, Timestamp, Attributes);

/// Record of the root in [`FORMAT_WITH_PROTECTION`]: as before, and protection of files in it.
type ProtectingRoot = (u16, u64, StoredDefaults, Timestamp, Option<Attributes>, Protection);

/// Number of numbers that are reserved at a time. A restart skips at most as many.
const RESERVED_AT_ONCE: u64 = 1024;

impl<W: World> Catalogue<W> {
    /// Loads the catalogue from the records of this node.
    pub(crate) async fn load(world: W) -> Result<Self, Fault> {
        let damaged =
            |cause: &str| Fault::CatalogueFailed { cause: format!("it is damaged: {cause}") };
        let records =
            world.records(RecordTable::Catalogue).await.map_err(|error| failed(&error))?;
        let (mut reserved, mut root) = (ROOT_KEY + 1, Root::default());
        let mut nodes = Vec::with_capacity(records.len());
        let mut nameless = BTreeMap::new();
        let (mut position, mut behind) = (0, BTreeSet::new());
        for (key, value) in records {
            if key == POSITION_KEY {
                position = decode::<u64>(key, &value)?;
            } else if key >= BEHIND_KEY {
                let server = u32::try_from(key - BEHIND_KEY);
                let server =
                    server.map_err(|_| damaged(&format!("record {key} is of no server")))?;
                behind.insert(ServerId(server));
            } else if key == ROOT_KEY {
                let (number, stored) = decode_root(&value)?;
                (reserved, root) = (reserved.max(number), stored);
            } else {
                let node = decode::<Node>(key, &value)?;
                if let NodeKind::File { stripe, pool, .. } = &node.kind {
                    let instance = match pool {
                        Pool::Consecutive { of, .. } => *of,
                        Pool::Named(_) => u32::MAX,
                    };
                    let checked = pool.validate(stripe.servers, instance);
                    checked.map_err(|error| damaged(&format!("record {key}: {error}")))?;
                }
                match node.parent {
                    NOWHERE => _ = nameless.insert(FileId(key), node),
                    _ => nodes.push((FileId(key), node)),
                }
                // A number in use is taken, whatever the root's record says.
                reserved = reserved.max(key.saturating_add(1));
            }
        }
        let tree = Tree::new(root, nodes).map_err(|cause| damaged(&cause))?;
        let copies = Rc::new(Copies::new(world.clone(), position));
        Ok(Self {
            copies,
            world,
            tree: RefCell::new(tree),
            nameless: RefCell::new(nameless),
            forgotten: RefCell::default(),
            claims: Claims::default(),
            unstored_times: RefCell::default(),
            behind: RefCell::new(behind),
            next: Cell::new(reserved),
            reserved: Cell::new(reserved),
            stored_reserved: Cell::new(reserved),
        })
    }

    /// Returns the servers that have files, with the number of files of each.
    pub(crate) fn files(&self) -> Vec<(ServerId, u64)> {
        self.tree.borrow().files()
    }

    /// Returns the number of bytes of protected files on each server that has some.
    pub(crate) fn protected_parts(&self) -> Vec<(ServerId, u64)> {
        self.tree.borrow().protected_parts()
    }

    /// Returns the servers of whose parts of mirrored files copies may be behind.
    pub(crate) fn behind(&self) -> Vec<ServerId> {
        self.behind.borrow().iter().copied().collect()
    }

    /// Records whether copies of the parts of a server may be behind.
    pub(crate) async fn set_behind(&self, server: ServerId, is_behind: bool) -> Result<(), Fault> {
        // One at a time.
        let ((), _claimed) = self.claims.claim(|| Ok(((), Claim::Everything))).await?;
        if self.behind.borrow().contains(&server) == is_behind {
            return Ok(());
        }
        let key = BEHIND_KEY + u64::from(server.0);
        let change = match is_behind {
            true => RecordChange::put(key, Vec::new()),
            false => RecordChange::remove(key),
        };
        self.change(vec![change]).await?;
        match is_behind {
            true => self.behind.borrow_mut().insert(server),
            false => self.behind.borrow_mut().remove(&server),
        };
        Ok(())
    }

    /// The copies at other servers.
    pub(crate) fn copies(&self) -> &Rc<Copies<W>> {
        &self.copies
    }

    /// Returns a new number and, if numbers must be reserved, the change that does so.
    pub(super) fn number(&self) -> (FileId, Option<RecordChange>) {
        let number = self.next.get();
        self.next.set(number + 1);
        if number < self.stored_reserved.get() {
            return (FileId(number), None);
        }
        // Another change may be about to reserve them, or may have failed to.
        if number >= self.reserved.get() {
            self.reserved.set(number + RESERVED_AT_ONCE);
        }
        let root = self.tree.borrow().root().clone();
        (FileId(number), Some(self.root_record(root)))
    }

    /// Gives a number to a file that is not in the catalogue.
    pub(crate) async fn give_number(&self) -> Result<FileId, Fault> {
        let (number, reservation) = self.number();
        let reserved = self.reserved.get();
        if let Some(reservation) = reservation {
            self.change(vec![reservation]).await?;
            self.stored_reservation(number, reserved);
        }
        Ok(number)
    }

    /// Notes that numbers up to `reserved` are reserved on stable storage, if `number` was not.
    pub(super) fn stored_reservation(&self, number: FileId, reserved: u64) {
        if number.0 >= self.stored_reserved.get() {
            self.stored_reserved.set(reserved);
        }
    }

    pub(super) fn root_record(&self, root: Root) -> RecordChange {
        let (reserved, Root { defaults, modified, attributes }) = (self.reserved.get(), root);
        let (defaults, protection) = StoredDefaults::of(defaults);
        let value = match (protection, attributes) {
            (None, None) => wire::encode_record::<PlainRoot>(&(FORMAT, reserved, defaults)),
            (None, Some(attributes)) => {
                let format = FORMAT_WITH_ATTRIBUTES;
                let full: FullRoot = (format, reserved, defaults, modified, attributes);
                wire::encode_record(&full)
            }
            (Some(protection), attributes) => {
                let format = FORMAT_WITH_PROTECTION;
                let root: ProtectingRoot =
                    (format, reserved, defaults, modified, attributes, protection);
                wire::encode_record(&root)
            }
        };
        RecordChange::put(ROOT_KEY, value)
    }

    /// Notes that the entries of a directory have changed, if a mount has set attributes of it. The
    /// time is stored later.
    pub(super) fn touch(&self, directory: FileId) {
        let mut tree = self.tree.borrow_mut();
        if tree.has_attributes(directory) && tree.learn_modified(directory, self.world.timestamp())
        {
            self.unstored_times.borrow_mut().insert(directory);
        }
    }

    pub(super) fn lose_name(&self, id: FileId, file: &Node) {
        self.tree.borrow_mut().remove(id);
        self.unstored_times.borrow_mut().remove(&id);
        self.nameless.borrow_mut().insert(id, file.clone());
    }

    /// Notes that the data of a nameless file is gone.
    pub(super) fn forget(&self, file: FileId) {
        if self.nameless.borrow_mut().remove(&file).is_some() {
            self.forgotten.borrow_mut().push(file);
        }
    }

    /// Notes that a record is obsolete.
    pub(super) fn forget_record(&self, id: FileId) {
        self.forgotten.borrow_mut().push(id);
    }

    /// Stores what can be stored late, when no change is active: times, and the removal of obsolete
    /// records. If that fails, the next start finds older times and the obsolete records.
    pub(crate) async fn settle(&self) -> Result<(), Fault> {
        let times = self.unstored_times.take();
        let changes: Vec<RecordChange> = {
            let tree = self.tree.borrow();
            let record = |id: &FileId| match *id {
                ROOT => Some(self.root_record(tree.root().clone())),
                id => Some(RecordChange::put(id.0, wire::encode_record(tree.node(id)?))),
            };
            times.iter().filter_map(record).collect()
        };
        let is_settled = changes.is_empty() && self.forgotten.borrow().is_empty();
        if is_settled { Ok(()) } else { self.change(changes).await }
    }

    pub(super) async fn change(&self, mut changes: Vec<RecordChange>) -> Result<(), Fault> {
        let forgotten = self.forgotten.take();
        changes.extend(forgotten.iter().map(|file| RecordChange::remove(file.0)));
        let begun = self.copies.begin(&changes).map(|(begun, position)| {
            changes.push(position);
            begun
        });
        let changed = self.world.record_change(RecordTable::Catalogue, changes).await;
        match (begun, &changed) {
            (Some(begun), Ok(())) => begun.made().await,
            (Some(begun), Err(_)) => begun.failed(),
            (None, _) => {}
        }
        changed.map_err(|error| {
            self.forgotten.borrow_mut().extend(forgotten);
            failed(&error)
        })
    }
}

/// Returns the record of a file that loses its name.
pub(super) fn nameless_record(id: FileId, file: &Node) -> RecordChange {
    let nameless = Node { parent: NOWHERE, part: String::new(), ..file.clone() };
    RecordChange::put(id.0, wire::encode_record(&nameless))
}

/// Returns the first number that is not reserved, and the root.
fn decode_root(value: &[u8]) -> Result<(u64, Root), Fault> {
    // The format is in front in all versions.
    let format = value.first().copied().map_or(0, u16::from);
    match format {
        FORMAT => {
            let (_, reserved, defaults) = decode::<PlainRoot>(ROOT_KEY, value)?;
            Ok((reserved, Root { defaults: defaults.with(None), ..Root::default() }))
        }
        FORMAT_WITH_ATTRIBUTES => {
            let (_, reserved, defaults, modified, attributes) =
                decode::<FullRoot>(ROOT_KEY, value)?;
            let defaults = defaults.with(None);
            Ok((reserved, Root { defaults, modified, attributes: Some(attributes) }))
        }
        FORMAT_WITH_PROTECTION => {
            let (_, reserved, defaults, modified, attributes, protection) =
                decode::<ProtectingRoot>(ROOT_KEY, value)?;
            let defaults = defaults.with(Some(protection));
            Ok((reserved, Root { defaults, modified, attributes }))
        }
        other => {
            let cause = format!(
                "its records have format {other}, and this build uses formats {FORMAT} to \
                 {FORMAT_WITH_PROTECTION}"
            );
            Err(Fault::CatalogueFailed { cause })
        }
    }
}

fn decode<T: serde::de::DeserializeOwned>(key: u64, value: &[u8]) -> Result<T, Fault> {
    wire::decode_record(value).map_err(|error| Fault::CatalogueFailed {
        cause: format!("record {key} is damaged: {error}"),
    })
}

fn failed(error: &RecordsError) -> Fault {
    let cause = error.to_string();
    match error {
        RecordsError::NoSpace { .. } => Fault::NoSpace { server: ServerId(0), cause },
        RecordsError::Failed { .. } => Fault::CatalogueFailed { cause },
    }
}
