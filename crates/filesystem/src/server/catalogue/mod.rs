//! The catalogue: which directories and files there are.
//!
//! Invariants: a name stands for at most one of them; a number is never given twice, not even after
//! a removal or a restart; a change is on stable storage before it is answered; what is in memory
//! is what the records say, but for files without a name whose records are of no use any more; a
//! file that has lost its name has a record until its data is gone, and nobody finds it.

mod claims;
mod name;
mod tree;

use claims::{Claim, Claims};
use policy::{PAGE_MAP_MAX, Pool, Stripe};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use tree::{Node, NodeKind, ROOT, Tree, entry};
use units::{FileId, ServerId};
use wire::{Entry, EntryKind, Fault, FileDefaults, FileRecord, FileSize, Made, Reply, Request};
use world::{RecordChange, RecordsError, Shelf, World};

/// The file information server: the names, sizes and places of all files.
pub(crate) struct Catalogue<W> {
    world: W,
    tree: RefCell<Tree>,
    /// Files that have lost their names, and may have data.
    nameless: RefCell<BTreeMap<FileId, Node>>,
    /// Such files that have none any more. Their records go with the next change.
    forgotten: RefCell<Vec<FileId>>,
    claims: Claims,
    next: Cell<u64>,
    /// Numbers from here on are not reserved yet …
    reserved: Cell<u64>,
    /// … nor are those from here on, as far as the records are on stable storage.
    stored_reserved: Cell<u64>,
}

/// The directory of what has no name.
const NOWHERE: FileId = FileId(u64::MAX);

/// The record of the root: a [`Root`]. Others are a [`Node`] each, under its number.
const ROOT_KEY: u64 = ROOT.0;

/// How records are written; another number is another format.
const FORMAT: u16 = 2;

/// The format of the records, the first number that is not reserved, and how files in the root are
/// made.
type Root = (u16, u64, FileDefaults);

/// Numbers that are reserved at a time: a restart skips as many at most.
const RESERVED_AT_ONCE: u64 = 1024;

/// Entries in one answer to a list: with the longest names, less than a header holds.
const ENTRIES_PER_ANSWER_MAX: usize = 1024;

impl<W: World> Catalogue<W> {
    /// The catalogue as the records of this node have it.
    pub(crate) async fn load(world: W) -> Result<Self, Fault> {
        let damaged =
            |cause: &str| Fault::CatalogueFailed { cause: format!("it is damaged: {cause}") };
        let records = world.records(Shelf::Catalogue).await.map_err(|error| failed(&error))?;
        let (mut reserved, mut root) = (ROOT_KEY + 1, FileDefaults::default());
        let mut nodes = Vec::with_capacity(records.len());
        let mut nameless = BTreeMap::new();
        for (key, value) in records {
            if key == ROOT_KEY {
                let (format, number, defaults): Root = decode(key, &value)?;
                if format != FORMAT {
                    let cause = format!("its records have format {format}, this build {FORMAT}");
                    return Err(Fault::CatalogueFailed { cause });
                }
                (reserved, root) = (reserved.max(number), defaults);
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
                // A number that is in use is taken, whatever the root says.
                reserved = reserved.max(key.saturating_add(1));
            }
        }
        let tree = Tree::new(root, nodes).map_err(|cause| damaged(&cause))?;
        Ok(Self {
            world,
            tree: RefCell::new(tree),
            nameless: RefCell::new(nameless),
            forgotten: RefCell::default(),
            claims: Claims::default(),
            next: Cell::new(reserved),
            reserved: Cell::new(reserved),
            stored_reserved: Cell::new(reserved),
        })
    }

    /// Answers a request of the catalogue; any other is refused.
    pub(crate) async fn serve(&self, request: Request) -> Result<Reply, Fault> {
        match request {
            Request::Create { record, made } => self.create(record, made).await.map(Reply::Entry),
            Request::MakeDirectory { name, made } => {
                self.make(&name, made, None).await.map(Reply::Entry)
            }
            Request::SetDefaults { directory, defaults } => {
                self.set_defaults(&directory, defaults).await.map(|()| Reply::Done)
            }
            Request::Stat { name } => self.stat(name).map(Reply::Entry),
            Request::List { directory, after } => {
                let tree = self.tree.borrow();
                let after = after.as_deref();
                let (entries, more) = tree.list(&directory, after, ENTRIES_PER_ANSWER_MAX)?;
                Ok(Reply::Entries { entries, more })
            }
            Request::Rename { from, to, replace } => self.rename(&from, &to, replace).await,
            Request::RecordSize { file, size } => {
                self.record_size(file, size).await.map(Reply::Size)
            }
            Request::Remove { name } => self.remove(&name).await,
            Request::Nameless { after } => Ok(self.nameless(after)),
            Request::Forget { file } => {
                self.forget(file);
                Ok(Reply::Done)
            }
            other => Err(Fault::BadRequest { cause: format!("not for the catalogue: {other:?}") }),
        }
    }

    /// The servers that files lie on, with the number of files of each.
    pub(crate) fn files(&self) -> Vec<(ServerId, u64)> {
        self.tree.borrow().files()
    }

    fn stat(&self, name: String) -> Result<Entry, Fault> {
        let tree = self.tree.borrow();
        match tree.find(&name)? {
            (id, Some(node)) => Ok(entry(name, id, node)),
            (id, None) => {
                let kind = EntryKind::Directory(tree.defaults(id).clone());
                Ok(Entry { name, made: Made::default(), kind })
            }
        }
    }

    async fn create(&self, record: FileRecord, made: Made) -> Result<Entry, Fault> {
        let size = record.size();
        let FileRecord { name, stripe, pool, buffering, .. } = record;
        self.make(&name, made, Some(NodeKind::File { size, stripe, pool, buffering })).await
    }

    /// Makes a file or, without one, a directory, in which files are made as in the one it is in.
    async fn make(&self, name: &str, made: Made, file: Option<NodeKind>) -> Result<Entry, Fault> {
        let free = || {
            let place = self.tree.borrow().free_place(name)?;
            Ok((place.clone(), Claim::Names(vec![place])))
        };
        let ((parent, part), _claimed) = self.claims.claim(free).await?;
        let inherited =
            || NodeKind::Directory { defaults: self.tree.borrow().defaults(parent).clone() };
        let node = Node { parent, part, made, kind: file.unwrap_or_else(inherited) };
        let (id, reservation) = self.number();
        let reserved = self.reserved.get();
        let put = RecordChange::put(id.0, wire::encode_record(&node));
        self.change(reservation.into_iter().chain([put]).collect()).await?;
        if id.0 >= self.stored_reserved.get() {
            // It went with a reservation.
            self.stored_reserved.set(reserved);
        }
        let made = entry(name.to_owned(), id, &node);
        self.tree.borrow_mut().insert(id, node);
        Ok(made)
    }

    /// A new number and, if it takes new ones to be reserved, the change that does so.
    fn number(&self) -> (FileId, Option<RecordChange>) {
        let number = self.next.get();
        self.next.set(number + 1);
        if number < self.stored_reserved.get() {
            return (FileId(number), None);
        }
        // Others may be about to, or have failed to.
        if number >= self.reserved.get() {
            self.reserved.set(number + RESERVED_AT_ONCE);
        }
        let root = self.tree.borrow().defaults(ROOT).clone();
        (FileId(number), Some(self.root_record(root)))
    }

    fn root_record(&self, defaults: FileDefaults) -> RecordChange {
        let value: Root = (FORMAT, self.reserved.get(), defaults);
        RecordChange::put(ROOT_KEY, wire::encode_record(&value))
    }

    async fn set_defaults(&self, directory: &str, defaults: FileDefaults) -> Result<(), Fault> {
        check_defaults(&defaults)?;
        // Everything is claimed, so that nothing reserves numbers with the old record of the root.
        let wanted = || Ok((self.tree.borrow().directory(directory)?, Claim::Everything));
        let (id, _claimed) = self.claims.claim(wanted).await?;
        let node = self.tree.borrow().find(directory)?.1.cloned();
        let change = match node {
            None => self.root_record(defaults.clone()),
            Some(node) => {
                let kind = NodeKind::Directory { defaults: defaults.clone() };
                RecordChange::put(id.0, wire::encode_record(&Node { kind, ..node }))
            }
        };
        self.change(vec![change]).await?;
        self.tree.borrow_mut().set_defaults(id, defaults);
        Ok(())
    }

    /// Keeps the size of a file, if it is news. Returns what is known now.
    async fn record_size(&self, file: FileId, size: FileSize) -> Result<FileSize, Fault> {
        size.validate()?;
        let wanted = || {
            let tree = self.tree.borrow();
            let node = tree.node(file).cloned();
            let gone = || Fault::NoSuchFile { name: file.to_string() };
            let node = node.ok_or_else(gone)?;
            let claim = Claim::Names(vec![(node.parent, node.part.clone())]);
            Ok((node, claim))
        };
        let (mut node, _claimed) = self.claims.claim(wanted).await?;
        let NodeKind::File { size: known, .. } = &mut node.kind else {
            return Err(Fault::IsADirectory { name: node.part });
        };
        if size <= *known {
            return Ok(*known);
        }
        *known = size;
        self.change(vec![RecordChange::put(file.0, wire::encode_record(&node))]).await?;
        self.tree.borrow_mut().insert(file, node);
        Ok(size)
    }

    /// Gives a node another name. A file that had it is no longer in the catalogue when this
    /// returns its record.
    async fn rename(&self, from: &str, to: &str, replace: bool) -> Result<Reply, Fault> {
        let wanted = || {
            let tree = self.tree.borrow();
            let (id, node) = tree.find(from)?;
            let Some(node) = node else { return Err(root(from)) };
            let (parent, part, there) = tree.place(to)?;
            let replaced = match there.and_then(|there| Some((there, tree.node(there)?))) {
                // It has that name already.
                Some((there, _)) if replace && there == id => None,
                Some((there, old)) if replace && old.is_file() && node.is_file() => {
                    Some((there, old.clone()))
                }
                Some((_, old)) if replace && !old.is_file() => {
                    return Err(Fault::IsADirectory { name: to.to_owned() });
                }
                Some(_) => return Err(Fault::FileExists { name: to.to_owned() }),
                None => None,
            };
            if tree.is_within(parent, id) {
                let cause = "it would lie within itself".to_owned();
                return Err(Fault::BadName { name: to.to_owned(), cause });
            }
            let is_longer = to.len() > from.len();
            if is_longer && to.len() + tree.longest_within(id) > wire::NAME_BYTES_MAX {
                let cause = "a name in it would have more than 1024 bytes".to_owned();
                return Err(Fault::BadName { name: to.to_owned(), cause });
            }
            let claim = match node.kind {
                NodeKind::Directory { .. } => Claim::Everything,
                NodeKind::File { .. } => {
                    Claim::Names(vec![(node.parent, node.part.clone()), (parent, part.clone())])
                }
            };
            Ok(((id, Node { parent, part, ..node.clone() }, replaced), claim))
        };
        let ((id, node, replaced), _claimed) = self.claims.claim(wanted).await?;
        let mut changes = vec![RecordChange::put(id.0, wire::encode_record(&node))];
        changes.extend(replaced.iter().map(|(old, record)| nameless_record(*old, record)));
        self.change(changes).await?;
        let replaced = replaced.map(|(old, record)| {
            self.lose_name(old, &record);
            Reply::Entry(entry(to.to_owned(), old, &record))
        });
        let mut tree = self.tree.borrow_mut();
        tree.take(id);
        tree.insert(id, node);
        Ok(replaced.unwrap_or(Reply::Done))
    }

    /// Takes the name of a file, which is told, or removes an empty directory.
    async fn remove(&self, name: &str) -> Result<Reply, Fault> {
        let wanted = || {
            let tree = self.tree.borrow();
            let (id, node) = tree.find(name)?;
            let Some(node) = node else { return Err(root(name)) };
            let claim = match node.kind {
                NodeKind::Directory { .. } if !tree.is_empty(id) => {
                    return Err(Fault::DirectoryNotEmpty { name: name.to_owned() });
                }
                NodeKind::Directory { .. } => Claim::Everything,
                NodeKind::File { .. } => Claim::Names(vec![(node.parent, node.part.clone())]),
            };
            Ok(((id, node.is_file().then(|| node.clone())), claim))
        };
        let ((id, file), _claimed) = self.claims.claim(wanted).await?;
        let Some(file) = file else {
            self.change(vec![RecordChange::remove(id.0)]).await?;
            self.tree.borrow_mut().remove(id);
            return Ok(Reply::Done);
        };
        self.change(vec![nameless_record(id, &file)]).await?;
        self.lose_name(id, &file);
        Ok(Reply::Entry(entry(name.to_owned(), id, &file)))
    }

    fn lose_name(&self, id: FileId, file: &Node) {
        self.tree.borrow_mut().remove(id);
        self.nameless.borrow_mut().insert(id, file.clone());
    }

    /// Some of the files that have lost their names, by number.
    fn nameless(&self, after: Option<FileId>) -> Reply {
        let all = self.nameless.borrow();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = all.range((from, Bound::Unbounded));
        let some = rest.by_ref().take(ENTRIES_PER_ANSWER_MAX);
        let entries = some.map(|(id, node)| entry(String::new(), *id, node)).collect();
        Reply::Entries { entries, more: rest.next().is_some() }
    }

    /// The data of a file that has lost its name is gone.
    fn forget(&self, file: FileId) {
        if self.nameless.borrow_mut().remove(&file).is_some() {
            self.forgotten.borrow_mut().push(file);
        }
    }

    /// Removes the records that are of no use any more. If that fails, the next start finds them.
    pub(crate) async fn settle(&self) -> Result<(), Fault> {
        let is_settled = self.forgotten.borrow().is_empty();
        if is_settled { Ok(()) } else { self.change(Vec::new()).await }
    }

    async fn change(&self, mut changes: Vec<RecordChange>) -> Result<(), Fault> {
        let forgotten = self.forgotten.take();
        changes.extend(forgotten.iter().map(|file| RecordChange::remove(file.0)));
        let changed = self.world.record_change(Shelf::Catalogue, changes).await;
        changed.map_err(|error| {
            self.forgotten.borrow_mut().extend(forgotten);
            failed(&error)
        })
    }
}

/// The record of a file that loses its name.
fn nameless_record(id: FileId, file: &Node) -> RecordChange {
    let nameless = Node { parent: NOWHERE, part: String::new(), ..file.clone() };
    RecordChange::put(id.0, wire::encode_record(&nameless))
}

/// The fault of a change that the root cannot have.
fn root(name: &str) -> Fault {
    Fault::BadName { name: name.to_owned(), cause: "it is the root".to_owned() }
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

/// Whether there can be files like that. Which servers there are is checked when one is made.
fn check_defaults(defaults: &FileDefaults) -> Result<(), Fault> {
    let bad = |cause: String| Fault::BadRequest { cause };
    let FileDefaults { block_bytes, servers, pool, map, buffering } = defaults;
    let (block_bytes, servers) = (block_bytes.unwrap_or(1), servers.unwrap_or(1));
    let stripe = Stripe::round_robin(block_bytes, servers, 1);
    stripe.validate().map_err(|error| bad(error.to_string()))?;
    buffering.validate().map_err(|error| bad(error.to_string()))?;
    if map.len() > PAGE_MAP_MAX || !(map.is_empty() || pool.is_empty()) {
        return Err(bad(format!("a map has at most {PAGE_MAP_MAX} turns, and no pool beside it")));
    }
    let named = u32::try_from(pool.len()).unwrap_or(u32::MAX);
    let pool = Pool::Named(pool.clone()).validate(named, u32::MAX);
    pool.map_err(|error| bad(error.to_string()))
}

/// Whether there can be a file as a client, which may be anyone, describes it, on `servers`
/// servers.
pub(crate) fn check_record(record: &FileRecord, servers: u32) -> Result<(), Fault> {
    let bad = |cause: String| Fault::BadRequest { cause };
    let _ = name::parts(&record.name)?;
    record.size().validate()?;
    record.stripe.validate().map_err(|error| bad(error.to_string()))?;
    record.buffering.validate().map_err(|error| bad(error.to_string()))?;
    let pool = record.pool.validate(record.stripe.servers, servers);
    pool.map_err(|error| bad(error.to_string()))
}
