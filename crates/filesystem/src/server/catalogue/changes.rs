//! Requests of the catalogue: lookups and changes of names.

use super::checks::check_defaults;
use super::claims::{Claim, Claimed};
use super::node::{Node, NodeKind};
use super::store::{Catalogue, nameless_record};
use super::tree::{Root, entry};
use policy::Protection;
use std::ops::Bound;
use units::{FileId, Timestamp};
use wire::{
    CatalogueRequest, Entry, EntryKind, Fault, FileDefaults, FileRecord, FileSize, Made, Reply,
};
use world::{RecordChange, World};

/// Maximum number of entries in one answer to a list. With the longest names they fit a header.
const ENTRIES_PER_ANSWER_MAX: usize = 1024;

impl<W: World> Catalogue<W> {
    /// Answers a request.
    pub(crate) async fn serve(&self, request: CatalogueRequest) -> Result<Reply, Fault> {
        match request {
            CatalogueRequest::Create { record, made } => {
                self.create(record, made).await.map(Reply::Entry)
            }
            CatalogueRequest::MakeDirectory { name, made } => {
                self.make(&name, made, None).await.map(Reply::Entry)
            }
            CatalogueRequest::SetDefaults { directory, defaults } => {
                self.set_defaults(&directory, defaults).await.map(|()| Reply::Done)
            }
            CatalogueRequest::Stat { name } => self.stat(name).map(Reply::Entry),
            CatalogueRequest::List { directory, after } => {
                let tree = self.tree.borrow();
                let after = after.as_deref();
                let (entries, more) = tree.list(&directory, after, ENTRIES_PER_ANSWER_MAX)?;
                Ok(Reply::Entries { entries, more })
            }
            CatalogueRequest::Rename { from, to, replace } => {
                self.rename(&from, &to, replace).await
            }
            CatalogueRequest::RecordSize { file, size } => {
                self.record_size(file, size).await.map(Reply::Size)
            }
            CatalogueRequest::RecordModified { file, modified, is_set } => {
                self.record_modified(file, modified, is_set).await.map(|()| Reply::Done)
            }
            CatalogueRequest::Protect { file, protection } => {
                self.protect(file, protection).await.map(|()| Reply::Done)
            }
            CatalogueRequest::Remove { name } => self.remove(&name).await,
            CatalogueRequest::Nameless { after } => Ok(self.nameless(after)),
            CatalogueRequest::Forget { file } => {
                self.forget(file);
                Ok(Reply::Done)
            }
            CatalogueRequest::SetBehind { server, is_behind } => {
                self.set_behind(server, is_behind).await.map(|()| Reply::Done)
            }
            CatalogueRequest::Behind => Ok(Reply::Servers(self.behind())),
            CatalogueRequest::Files { after } => Ok(self.all_files(after)),
            CatalogueRequest::Copy(_) => {
                let cause = "a change of a copy came on the way of changes of names".to_owned();
                Err(Fault::BadRequest { cause })
            }
        }
    }

    fn stat(&self, name: String) -> Result<Entry, Fault> {
        let tree = self.tree.borrow();
        match tree.find(&name)? {
            (id, Some(node)) => Ok(entry(name, id, node)),
            (id, None) => {
                let kind = EntryKind::Directory(tree.defaults(id).clone());
                Ok(Entry { name, made: Made::default(), modified: tree.root().modified, kind })
            }
        }
    }

    async fn create(&self, record: FileRecord, made: Made) -> Result<Entry, Fault> {
        let size = record.size();
        let FileRecord { name, stripe, pool, buffering, protection, .. } = record;
        let file = NodeKind::File { size, stripe, pool, buffering, protection };
        self.make(&name, made, Some(file)).await
    }

    /// Creates a file or, if `file` is `None`, a directory, which inherits the defaults of its
    /// parent.
    async fn make(&self, name: &str, made: Made, file: Option<NodeKind>) -> Result<Entry, Fault> {
        let free = || {
            let place = self.tree.borrow().free_place(name)?;
            Ok((place.clone(), Claim::Names(vec![place])))
        };
        let ((parent, part), _claimed) = self.claims.claim(free).await?;
        let modified = if file.is_some() { self.world.timestamp() } else { made.at() };
        let inherited =
            || NodeKind::Directory { defaults: self.tree.borrow().defaults(parent).clone() };
        let kind = file.unwrap_or_else(inherited);
        let node = Node { parent, part, made, modified, attributes: None, kind };
        let id = self.store_new(&node).await?;
        let made = entry(name.to_owned(), id, &node);
        self.keep_new(id, node);
        Ok(made)
    }

    /// Stores a new node, whose name is claimed. Returns its number.
    pub(super) async fn store_new(&self, node: &Node) -> Result<FileId, Fault> {
        let (id, reservation) = self.number();
        let reserved = self.reserved.get();
        let put = RecordChange::put(id.0, wire::encode_record(node));
        self.change(reservation.into_iter().chain([put]).collect()).await?;
        // The record went with a reservation, if one was needed.
        self.stored_reservation(id, reserved);
        Ok(id)
    }

    /// Takes a stored new node into the tree.
    pub(super) fn keep_new(&self, id: FileId, node: Node) {
        let parent = node.parent;
        self.tree.borrow_mut().insert(id, node);
        self.touch(parent);
    }

    async fn set_defaults(&self, directory: &str, defaults: FileDefaults) -> Result<(), Fault> {
        check_defaults(&defaults)?;
        // Claims everything, so that no change reserves numbers with the old record of the root.
        let wanted = || Ok((self.tree.borrow().directory(directory)?, Claim::Everything));
        let (id, _claimed) = self.claims.claim(wanted).await?;
        let node = self.tree.borrow().find(directory)?.1.cloned();
        let change = match node {
            None => {
                let root = self.tree.borrow().root().clone();
                self.root_record(Root { defaults: defaults.clone(), ..root })
            }
            Some(node) => {
                let kind = NodeKind::Directory { defaults: defaults.clone() };
                RecordChange::put(id.0, wire::encode_record(&Node { kind, ..node }))
            }
        };
        self.change(vec![change]).await?;
        self.tree.borrow_mut().set_defaults(id, defaults);
        Ok(())
    }

    /// Records the size of a file, if it is newer. Returns the recorded size.
    async fn record_size(&self, file: FileId, size: FileSize) -> Result<FileSize, Fault> {
        size.validate()?;
        let (mut node, _claimed) = self.claim_file(file).await?;
        let NodeKind::File { size: known, .. } = &mut node.kind else {
            return Err(not_a_file(node));
        };
        if size <= *known {
            return Ok(*known);
        }
        *known = size;
        self.change(vec![RecordChange::put(file.0, wire::encode_record(&node))]).await?;
        self.tree.borrow_mut().insert(file, node);
        Ok(size)
    }

    /// Records the time of the last change of a file. A time that no user has set is stored later.
    async fn record_modified(
        &self,
        file: FileId,
        at: Timestamp,
        is_set: bool,
    ) -> Result<(), Fault> {
        let (mut node, _claimed) = self.claim_file(file).await?;
        if !node.is_file() {
            return Err(not_a_file(node));
        }
        if !is_set {
            if self.tree.borrow_mut().learn_modified(file, at) {
                self.unstored_times.borrow_mut().insert(file);
            }
            return Ok(());
        }
        node.modified = at;
        self.change(vec![RecordChange::put(file.0, wire::encode_record(&node))]).await?;
        self.unstored_times.borrow_mut().remove(&file);
        self.tree.borrow_mut().insert(file, node);
        Ok(())
    }

    async fn protect(&self, file: FileId, wanted: Protection) -> Result<(), Fault> {
        let (mut node, _claimed) = self.claim_file(file).await?;
        let NodeKind::File { stripe, protection, .. } = &mut node.kind else {
            return Err(not_a_file(node));
        };
        let checked = wanted.validate(stripe);
        checked.map_err(|error| Fault::BadRequest { cause: error.to_string() })?;
        if std::mem::replace(protection, wanted) == wanted {
            return Ok(());
        }
        self.change(vec![RecordChange::put(file.0, wire::encode_record(&node))]).await?;
        self.tree.borrow_mut().insert(file, node);
        Ok(())
    }

    /// Waits until no other change of a file or other entry is active. Returns its node.
    pub(super) async fn claim_file(&self, file: FileId) -> Result<(Node, Claimed<'_>), Fault> {
        let wanted = || {
            let node = self.tree.borrow().node(file).cloned();
            let gone = || Fault::NoSuchFile { name: file.to_string() };
            let node = node.ok_or_else(gone)?;
            let claim = Claim::Names(vec![(node.parent, node.part.clone())]);
            Ok((node, claim))
        };
        self.claims.claim(wanted).await
    }

    /// Renames a node. A file that had the new name is no longer in the catalogue when this returns
    /// its record.
    async fn rename(&self, from: &str, to: &str, replace: bool) -> Result<Reply, Fault> {
        let wanted = || {
            let tree = self.tree.borrow();
            let (id, node) = tree.find(from)?;
            let Some(node) = node else { return Err(root(from)) };
            let (parent, part, there) = tree.place(to)?;
            let replaced = match there.and_then(|there| Some((there, tree.node(there)?))) {
                // The node has that name already.
                Some((there, _)) if replace && there == id => None,
                Some((there, old)) if replace && !old.is_directory() && !node.is_directory() => {
                    Some((there, old.clone()))
                }
                Some((_, old)) if replace && old.is_directory() => {
                    return Err(Fault::IsADirectory { name: to.to_owned() });
                }
                Some(_) => return Err(Fault::FileExists { name: to.to_owned() }),
                None => None,
            };
            if tree.is_within(parent, id) {
                let cause = "the new name is inside the directory itself".to_owned();
                return Err(Fault::BadName { name: to.to_owned(), cause });
            }
            tree.check_length(parent, &part, Some(id))?;
            let claim = match node.is_directory() {
                true => Claim::Everything,
                false => {
                    Claim::Names(vec![(node.parent, node.part.clone()), (parent, part.clone())])
                }
            };
            Ok(((id, Node { parent, part, ..node.clone() }, replaced), claim))
        };
        let ((id, node, replaced), _claimed) = self.claims.claim(wanted).await?;
        let lost = replaced.as_ref().map(|(old, record)| entry(to.to_owned(), *old, record));
        self.store_moved(vec![(id, node)], replaced).await?;
        Ok(lost.filter(|lost| lost.file().is_some()).map_or(Reply::Done, Reply::Entry))
    }

    /// Stores nodes with new names, and takes the name of the node away that had one of these.
    pub(super) async fn store_moved(
        &self,
        moved: Vec<(FileId, Node)>,
        replaced: Option<(FileId, Node)>,
    ) -> Result<(), Fault> {
        let put = |(id, node): &(FileId, Node)| RecordChange::put(id.0, wire::encode_record(node));
        let mut changes: Vec<RecordChange> = moved.iter().map(put).collect();
        changes.extend(replaced.iter().map(|(old, record)| lost_record(*old, record)));
        self.change(changes).await?;
        if let Some((old, record)) = replaced {
            self.lose(old, &record);
        }
        let mut parents: Vec<FileId> = moved.iter().map(|(_, node)| node.parent).collect();
        {
            let mut tree = self.tree.borrow_mut();
            let before: Vec<_> = moved.iter().filter_map(|(id, _)| tree.take(*id)).collect();
            parents.extend(before.iter().map(|node| node.parent));
            moved.into_iter().for_each(|(id, node)| tree.insert(id, node));
        }
        parents.into_iter().for_each(|parent| self.touch(parent));
        Ok(())
    }

    /// Takes a node without its stored name out of the tree. A file stays until its data is gone.
    fn lose(&self, id: FileId, node: &Node) {
        self.unstored_times.borrow_mut().remove(&id);
        match node.is_file() {
            true => self.lose_name(id, node),
            false => self.tree.borrow_mut().remove(id),
        }
    }

    /// Stores that a node has no name any more, which is claimed.
    pub(super) async fn store_lost(&self, id: FileId, node: &Node) -> Result<(), Fault> {
        self.change(vec![lost_record(id, node)]).await?;
        self.lose(id, node);
        self.touch(node.parent);
        Ok(())
    }

    /// Takes the name of a file away and returns its entry, or removes an empty directory.
    async fn remove(&self, name: &str) -> Result<Reply, Fault> {
        let wanted = || {
            let tree = self.tree.borrow();
            let (id, node) = tree.find(name)?;
            let Some(node) = node else { return Err(root(name)) };
            let claim = match node.is_directory() {
                true if !tree.is_empty(id) => {
                    return Err(Fault::DirectoryNotEmpty { name: name.to_owned() });
                }
                true => Claim::Everything,
                false => Claim::Names(vec![(node.parent, node.part.clone())]),
            };
            Ok(((id, node.clone()), claim))
        };
        let ((id, node), _claimed) = self.claims.claim(wanted).await?;
        self.store_lost(id, &node).await?;
        Ok(match node.is_file() {
            true => Reply::Entry(entry(name.to_owned(), id, &node)),
            false => Reply::Done,
        })
    }

    /// Returns some of all files, by number.
    pub(crate) fn all_files(&self, after: Option<FileId>) -> Reply {
        let (entries, more) = self.tree.borrow().files_by_number(after, ENTRIES_PER_ANSWER_MAX);
        Reply::Entries { entries, more }
    }

    /// Returns some of the files without a name, by number.
    fn nameless(&self, after: Option<FileId>) -> Reply {
        let all = self.nameless.borrow();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = all.range((from, Bound::Unbounded));
        let some = rest.by_ref().take(ENTRIES_PER_ANSWER_MAX);
        let entries = some.map(|(id, node)| entry(String::new(), *id, node)).collect();
        Reply::Entries { entries, more: rest.next().is_some() }
    }
}

/// Returns the change of the record of a node that loses its name: a file has one until its data is
/// gone.
fn lost_record(id: FileId, node: &Node) -> RecordChange {
    match node.is_file() {
        true => nameless_record(id, node),
        false => RecordChange::remove(id.0),
    }
}

/// Returns the fault of a change that is possible for files only.
fn not_a_file(node: Node) -> Fault {
    let entry = entry(node.part.clone(), FileId(0), &node);
    entry.into_file().err().unwrap_or(Fault::NoSuchFile { name: node.part })
}

/// Returns the fault of a change that is not possible for the root.
pub(super) fn root(name: &str) -> Fault {
    Fault::BadName { name: name.to_owned(), cause: "it is the root directory".to_owned() }
}
