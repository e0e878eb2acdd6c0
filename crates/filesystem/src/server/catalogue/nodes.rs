//! Requests of a mount: entries by number.
//!
//! They change the same tree as requests by path, with the same claims.

use super::changes::root;
use super::claims::{Claim, NamePlace};
use super::node::{Node, NodeKind};
use super::store::{Catalogue, nameless_record};
use super::tree::{Root, Tree, node_entry, usual_attributes};
use units::{FileId, Timestamp};
use wire::{
    AttributeChanges, Attributes, Entry, Fault, FileRecord, LINK_BYTES_MAX, MODE_BITS, NewKind,
    NewNode, NodeEntry, NodeRequest, Place, ROOT, RenameManner, Reply, Special, part_flaw,
};
use world::{RecordChange, World};

/// Bit of a mode: set-group-id.
const SET_GROUP_ID: u16 = 0o2000;

/// Maximum number of entries in one answer to a list.
const ENTRIES_PER_ANSWER_MAX: usize = 1024;

impl<W: World> Catalogue<W> {
    /// Answers a request of a mount.
    pub(crate) async fn serve_node(&self, request: NodeRequest) -> Result<Reply, Fault> {
        match request {
            NodeRequest::Find(Place { directory, part }) => {
                let tree = self.tree.borrow();
                let found = tree.inside(directory, &part)?.and_then(|id| tree.node_entry(id));
                found.map(node_reply).ok_or(Fault::NoSuchFile { name: part })
            }
            NodeRequest::Look { node } => self.look(node).map(node_reply),
            NodeRequest::Make(new) => self.make_node(*new).await.map(node_reply),
            NodeRequest::Change { node, changes } => {
                self.change_attributes(node, changes).await.map(node_reply)
            }
            NodeRequest::Remove { place, is_directory } => {
                self.remove_place(place, is_directory).await
            }
            NodeRequest::Rename { from, to, manner } => self.rename_place(from, to, manner).await,
            NodeRequest::List { directory, after } => {
                let tree = self.tree.borrow();
                let after = after.as_deref();
                let (entries, more) = tree.list_nodes(directory, after, ENTRIES_PER_ANSWER_MAX)?;
                Ok(Reply::Nodes { entries, more })
            }
            NodeRequest::Path { node } => {
                let found = self.look(node)?;
                let named = self.tree.borrow().path(node);
                let missing = || Fault::NoSuchFile { name: node.to_string() };
                Ok(Reply::Entry(Entry { name: named.ok_or_else(missing)?, ..found.entry }))
            }
        }
    }

    fn look(&self, id: FileId) -> Result<NodeEntry, Fault> {
        let named = self.tree.borrow().node_entry(id);
        let nameless = || self.nameless.borrow().get(&id).map(|node| node_entry(id, node, false));
        named.or_else(nameless).ok_or_else(|| Fault::NoSuchFile { name: id.to_string() })
    }

    async fn make_node(&self, new: NewNode) -> Result<NodeEntry, Fault> {
        let NewNode { place: Place { directory, part }, made, group, mode, kind } = new;
        check_part(&part)?;
        if let NewKind::Special(Special::Link { target }) = &kind
            && (target.is_empty() || target.len() > LINK_BYTES_MAX)
        {
            let cause = format!("the target of a link has 1 to {LINK_BYTES_MAX} bytes");
            return Err(Fault::BadRequest { cause });
        }
        let free = || match self.tree.borrow().inside(directory, &part)? {
            Some(_) => Err(Fault::FileExists { name: part.clone() }),
            None => {
                self.tree.borrow().check_length(directory, &part, None)?;
                Ok(((), Claim::Names(vec![(directory, part.clone())])))
            }
        };
        let ((), _claimed) = self.claims.claim(free).await?;
        let now = self.world.timestamp();
        let kind = match kind {
            NewKind::Directory => {
                NodeKind::Directory { defaults: self.tree.borrow().defaults(directory).clone() }
            }
            NewKind::File(record) => {
                let size = record.size();
                let FileRecord { stripe, pool, buffering, protection, .. } = record;
                NodeKind::File { size, stripe, pool, buffering, protection }
            }
            NewKind::Special(special) => NodeKind::Special(special),
        };
        // A directory with the set-group-id bit gives its group to what is made in it.
        let above = self.look(directory)?.attributes;
        let (group, mode) = match (above.mode & SET_GROUP_ID, &kind) {
            (0, _) => (Some(group), mode & MODE_BITS),
            (bit, NodeKind::Directory { .. }) => (above.group, (mode & MODE_BITS) | bit),
            (_, _) => (above.group, mode & MODE_BITS),
        };
        let owner = Some(made.owner);
        let attributes = Some(Attributes { mode, owner, group, accessed: now, changed: now });
        let (parent, part) = (directory, part.clone());
        let node = Node { parent, part, made, modified: now, attributes, kind };
        let id = self.store_new(&node).await?;
        let entry = node_entry(id, &node, true);
        self.keep_new(id, node);
        Ok(entry)
    }

    async fn change_attributes(
        &self,
        id: FileId,
        changes: AttributeChanges,
    ) -> Result<NodeEntry, Fault> {
        if id == ROOT {
            return self.change_root(changes).await;
        }
        let (mut node, _claimed) = match self.claim_file(id).await {
            Err(Fault::NoSuchFile { .. }) => return self.change_nameless(id, changes).await,
            claimed => claimed?,
        };
        let attributes = node.attributes.unwrap_or_else(|| usual_attributes(&node));
        let attributes = self.changed(attributes, changes);
        node.attributes = Some(attributes);
        node.modified = changes.modified.unwrap_or(node.modified);
        self.change(vec![RecordChange::put(id.0, wire::encode_record(&node))]).await?;
        let mut tree = self.tree.borrow_mut();
        tree.set_attributes(id, changes.modified, attributes);
        tree.node_entry(id).ok_or_else(|| Fault::NoSuchFile { name: id.to_string() })
    }

    async fn change_root(&self, changes: AttributeChanges) -> Result<NodeEntry, Fault> {
        // No change reserves numbers with the old record of the root.
        let ((), _claimed) = self.claims.claim(|| Ok(((), Claim::Everything))).await?;
        let attributes = self.changed(self.look(ROOT)?.attributes, changes);
        let root = self.tree.borrow().root().clone();
        let modified = changes.modified.unwrap_or(root.modified);
        let root = Root { modified, attributes: Some(attributes), ..root };
        self.change(vec![self.root_record(root)]).await?;
        self.tree.borrow_mut().set_attributes(ROOT, changes.modified, attributes);
        self.look(ROOT)
    }

    /// Changes the attributes of a file without a name, which a program has open.
    async fn change_nameless(
        &self,
        id: FileId,
        changes: AttributeChanges,
    ) -> Result<NodeEntry, Fault> {
        let gone = || Fault::NoSuchFile { name: id.to_string() };
        let mut node = self.nameless.borrow().get(&id).cloned().ok_or_else(gone)?;
        let attributes = node.attributes.unwrap_or_else(|| usual_attributes(&node));
        node.attributes = Some(self.changed(attributes, changes));
        node.modified = changes.modified.unwrap_or(node.modified);
        self.change(vec![nameless_record(id, &node)]).await?;
        let entry = node_entry(id, &node, false);
        match self.nameless.borrow_mut().get_mut(&id) {
            Some(known) => *known = node,
            // Its data has gone meanwhile, and the record has come back.
            None => self.forget_record(id),
        }
        Ok(entry)
    }

    fn changed(&self, old: Attributes, changes: AttributeChanges) -> Attributes {
        Attributes {
            mode: changes.mode.unwrap_or(old.mode) & MODE_BITS,
            owner: changes.owner.or(old.owner),
            group: changes.group.or(old.group),
            accessed: changes.accessed.unwrap_or(old.accessed),
            changed: old.changed.advanced_to(self.world.timestamp()),
        }
    }

    async fn remove_place(&self, place: Place, is_directory: bool) -> Result<Reply, Fault> {
        let wanted = || {
            let tree = self.tree.borrow();
            let (id, node) = existing(&tree, &place)?;
            let name = || place.part.clone();
            let claim = match (is_directory, node.is_directory()) {
                (true, false) => return Err(Fault::NotADirectory { name: name() }),
                (false, true) => return Err(Fault::IsADirectory { name: name() }),
                (true, true) if !tree.is_empty(id) => {
                    return Err(Fault::DirectoryNotEmpty { name: name() });
                }
                (true, true) => Claim::Everything,
                (false, false) => Claim::Names(vec![name_place(&place)]),
            };
            Ok(((id, node.clone()), claim))
        };
        let ((id, node), _claimed) = self.claims.claim(wanted).await?;
        self.store_lost(id, &node).await?;
        Ok(lost_reply(id, &node))
    }

    async fn rename_place(
        &self,
        from: Place,
        to: Place,
        manner: RenameManner,
    ) -> Result<Reply, Fault> {
        check_part(&to.part)?;
        let wanted = || {
            let tree = self.tree.borrow();
            let (id, node) = existing(&tree, &from)?;
            let there = tree.inside(to.directory, &to.part)?;
            let there = there.and_then(|there| Some((there, tree.node(there)?)));
            check_rename(&tree, ((id, node), &from), (there, &to), manner)?;
            tree.check_length(to.directory, &to.part, Some(id))?;
            if let (Some((other, _)), RenameManner::Exchange) = (there, manner) {
                tree.check_length(from.directory, &from.part, Some(other))?;
            }
            let has_directory = node.is_directory() || there.is_some_and(|it| it.1.is_directory());
            let claim = match has_directory {
                true => Claim::Everything,
                false => Claim::Names(vec![name_place(&from), name_place(&to)]),
            };
            Ok(((id, node.clone(), there.map(|(id, node)| (id, node.clone()))), claim))
        };
        let ((id, node, there), _claimed) = self.claims.claim(wanted).await?;
        let now = self.world.timestamp();
        match there {
            // Both are names of the same entry.
            Some((there, _)) if there == id => Ok(Reply::Done),
            Some((other, exchanged)) if manner == RenameManner::Exchange => {
                let moved = vec![(id, moved(node, to, now)), (other, moved(exchanged, from, now))];
                self.store_moved(moved, None).await?;
                Ok(Reply::Done)
            }
            replaced => {
                let reply = replaced.as_ref().map_or(Reply::Done, |(id, old)| lost_reply(*id, old));
                self.store_moved(vec![(id, moved(node, to, now))], replaced).await?;
                Ok(reply)
            }
        }
    }
}

/// Refuses a rename that is not possible.
fn check_rename(
    tree: &Tree,
    ((id, node), from): ((FileId, &Node), &Place),
    (there, to): (Option<(FileId, &Node)>, &Place),
    manner: RenameManner,
) -> Result<(), Fault> {
    let into_itself = || {
        let cause = "the new name is inside the directory itself".to_owned();
        Fault::BadName { name: to.part.clone(), cause }
    };
    if tree.is_within(to.directory, id) {
        return Err(into_itself());
    }
    match (there, manner) {
        (Some((there, _)), RenameManner::Replace | RenameManner::Exchange) if there == id => Ok(()),
        (Some((there, _)), RenameManner::Exchange) => match tree.is_within(from.directory, there) {
            true => Err(into_itself()),
            false => Ok(()),
        },
        (None, RenameManner::Exchange) => Err(Fault::NoSuchFile { name: to.part.clone() }),
        (None, _) => Ok(()),
        (Some(_), RenameManner::Keep) => Err(Fault::FileExists { name: to.part.clone() }),
        (Some((there, old)), RenameManner::Replace) => {
            let name = to.part.clone();
            match (node.is_directory(), old.is_directory()) {
                (true, false) => Err(Fault::NotADirectory { name }),
                (false, true) => Err(Fault::IsADirectory { name }),
                (true, true) if !tree.is_empty(there) => Err(Fault::DirectoryNotEmpty { name }),
                _ => Ok(()),
            }
        }
    }
}

/// Returns a node with another name. The rename counts as a change of its attributes.
fn moved(mut node: Node, to: Place, now: Timestamp) -> Node {
    let attributes = node.attributes.unwrap_or_else(|| usual_attributes(&node));
    let changed = attributes.changed.advanced_to(now);
    node.attributes = Some(Attributes { changed, ..attributes });
    Node { parent: to.directory, part: to.part, ..node }
}

/// Returns the node of a name.
fn existing<'a>(tree: &'a Tree, place: &Place) -> Result<(FileId, &'a Node), Fault> {
    let missing = || Fault::NoSuchFile { name: place.part.clone() };
    let id = tree.inside(place.directory, &place.part)?.ok_or_else(missing)?;
    tree.node(id).map(|node| (id, node)).ok_or_else(|| root(&place.part))
}

fn check_part(part: &str) -> Result<(), Fault> {
    match part_flaw(part) {
        None => Ok(()),
        Some(cause) => {
            let name = part.chars().take(40).collect();
            Err(Fault::BadName { name, cause: cause.to_owned() })
        }
    }
}

fn name_place(place: &Place) -> NamePlace {
    (place.directory, place.part.clone())
}

fn node_reply(entry: NodeEntry) -> Reply {
    Reply::Node(Box::new(entry))
}

/// Reply to the removal of a name: the sender must drop the data of a file.
fn lost_reply(id: FileId, node: &Node) -> Reply {
    match node.is_file() {
        true => node_reply(node_entry(id, node, false)),
        false => Reply::Done,
    }
}
