//! The tree of names in memory: directories and files.
//!
//! Invariants:
//! - Every node but the root has a parent, a directory that lists it.
//! - No directory lies within itself.
//! - `files` counts the files of each server, and `protected` the bytes of protected ones.

use super::name;
use super::node::{Node, NodeKind};
use policy::{Protection, part_bytes};
use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;
use std::rc::Rc;
use units::{FileId, ServerId, Timestamp};
use wire::{
    Attributes, Entry, EntryKind, Fault, FileDefaults, FileRecord, Made, NAME_BYTES_MAX, NodeEntry,
    ROOT, Special,
};

/// Bytes of names and targets after which an answer to a list takes no further entry.
const ANSWER_TEXT_MAX: usize = 512 << 10;

/// Mode of a directory that no mount has changed.
const DIRECTORY_MODE: u16 = 0o755;

/// Mode of a file that no mount has changed.
const FILE_MODE: u16 = 0o644;

/// Root directory, which has no name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Root {
    /// Defaults of files in it.
    pub(super) defaults: FileDefaults,
    /// Time of the last change of its entries.
    pub(super) modified: Timestamp,
    /// Attributes, once a mount has set some.
    pub(super) attributes: Option<Attributes>,
}

/// All nodes.
pub(super) struct Tree {
    root: Root,
    nodes: BTreeMap<FileId, Node>,
    /// Content of each directory, by the last part of the name.
    directories: BTreeMap<FileId, BTreeMap<Rc<str>, FileId>>,
    /// Number of files on each server that has one.
    files: BTreeMap<ServerId, u64>,
    /// Number of bytes of protected files on each server that has had one.
    protected: BTreeMap<ServerId, u128>,
}

impl Tree {
    /// Makes a tree of `nodes`, in any order, below `root`. Returns the error when they form no
    /// tree.
    pub(super) fn new(
        root: Root,
        nodes: impl IntoIterator<Item = (FileId, Node)>,
    ) -> Result<Self, String> {
        let directories = BTreeMap::from([(ROOT, BTreeMap::new())]);
        let (files, protected) = (BTreeMap::new(), BTreeMap::new());
        let mut tree = Self { root, nodes: BTreeMap::new(), directories, files, protected };
        let nodes: BTreeMap<FileId, Node> = nodes.into_iter().collect();
        for (id, node) in &nodes {
            if node.is_directory() {
                tree.directories.insert(*id, BTreeMap::new());
            }
        }
        for (id, node) in nodes {
            let parent = tree.directories.get_mut(&node.parent);
            let parent = parent.ok_or_else(|| format!("{id} is in no directory"))?;
            if parent.insert(node.part.as_str().into(), id).is_some() {
                return Err(format!("{id} has the same name as another entry"));
            }
            tree.keep(id, node);
        }
        Ok(tree)
    }

    /// Finds the node of a name. The root has no node.
    pub(super) fn find(&self, path: &str) -> Result<(FileId, Option<&Node>), Fault> {
        let mut id = ROOT;
        for part in name::parts(path)? {
            let inside = self.directories.get(&id).and_then(|inside| inside.get(part));
            id = *inside.ok_or_else(|| Fault::NoSuchFile { name: path.to_owned() })?;
        }
        Ok((id, self.nodes.get(&id)))
    }

    /// Returns the directory of this name.
    pub(super) fn directory(&self, path: &str) -> Result<FileId, Fault> {
        let missing = |fault| match fault {
            Fault::NoSuchFile { name } => Fault::NoSuchDirectory { name },
            other => other,
        };
        let (id, _) = self.find(path).map_err(missing)?;
        match self.directories.contains_key(&id) {
            true => Ok(id),
            false => Err(Fault::NotADirectory { name: path.to_owned() }),
        }
    }

    /// Returns the number of bytes by which the longest name within a directory exceeds the
    /// directory's own; 0 for a file.
    pub(super) fn longest_within(&self, id: FileId) -> usize {
        let mut longest = 0;
        let mut left = vec![(id, 0)];
        while let Some((id, above)) = left.pop() {
            longest = longest.max(above);
            let inside = self.directories.get(&id).into_iter().flatten();
            left.extend(inside.map(|(part, id)| (*id, above + 1 + part.len())));
        }
        longest
    }

    /// Refuses a name that is too long, or with `moved` names below it that are.
    pub(super) fn check_length(
        &self,
        directory: FileId,
        part: &str,
        moved: Option<FileId>,
    ) -> Result<(), Fault> {
        let (mut bytes, mut above) = (part.len(), directory);
        while let Some(node) = self.nodes.get(&above) {
            bytes += node.part.len() + 1;
            above = node.parent;
        }
        match bytes + moved.map_or(0, |id| self.longest_within(id)) > NAME_BYTES_MAX {
            false => Ok(()),
            true => {
                let name = part.to_owned();
                let cause =
                    format!("the name, or one below it, has more than {NAME_BYTES_MAX} bytes");
                Err(Fault::BadName { name, cause })
            }
        }
    }

    /// Returns the defaults of files in a directory.
    pub(super) fn defaults(&self, directory: FileId) -> &FileDefaults {
        match self.nodes.get(&directory).map(|node| &node.kind) {
            Some(NodeKind::Directory { defaults }) => defaults,
            _ => &self.root.defaults,
        }
    }

    /// Sets the defaults of files in a directory.
    pub(super) fn set_defaults(&mut self, directory: FileId, new: FileDefaults) {
        match self.nodes.get_mut(&directory).map(|node| &mut node.kind) {
            Some(NodeKind::Directory { defaults }) => *defaults = new,
            _ => self.root.defaults = new,
        }
    }

    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    /// Returns the directory and last part of a name that is free.
    pub(super) fn free_place(&self, path: &str) -> Result<(FileId, String), Fault> {
        match self.place(path)? {
            (_, _, Some(_)) => Err(Fault::FileExists { name: path.to_owned() }),
            (parent, part, None) => Ok((parent, part)),
        }
    }

    /// Returns the directory and last part of a name, and the node that has it.
    pub(super) fn place(&self, path: &str) -> Result<(FileId, String, Option<FileId>), Fault> {
        let _ = name::parts(path)?;
        let Some((directory, part)) = name::split(path) else {
            return Err(Fault::FileExists { name: path.to_owned() });
        };
        let parent = self.directory(directory)?;
        let there = self.directories[&parent].get(part).copied();
        Ok((parent, part.to_owned(), there))
    }

    /// Tells if a directory is empty.
    pub(super) fn is_empty(&self, directory: FileId) -> bool {
        self.directories.get(&directory).is_none_or(BTreeMap::is_empty)
    }

    /// Tells if `id` is `directory` or lies in it, at any depth.
    pub(super) fn is_within(&self, mut id: FileId, directory: FileId) -> bool {
        while id != directory {
            match self.nodes.get(&id) {
                Some(node) => id = node.parent,
                None => return false,
            }
        }
        true
    }

    /// Records a later time of the last change of a file, or of the entries of a directory. Returns
    /// true if it is later.
    pub(super) fn learn_modified(&mut self, id: FileId, at: Timestamp) -> bool {
        let (modified, attributes) = match self.nodes.get_mut(&id) {
            Some(node) => (&mut node.modified, &mut node.attributes),
            None if id == ROOT => (&mut self.root.modified, &mut self.root.attributes),
            None => return false,
        };
        let is_later = *modified < at;
        if is_later {
            *modified = at;
            if let Some(attributes) = attributes {
                attributes.changed = at.max(attributes.changed);
            }
        }
        is_later
    }

    /// Sets the time of the last change and the attributes of an entry.
    pub(super) fn set_attributes(
        &mut self,
        id: FileId,
        modified: Option<Timestamp>,
        attributes: Attributes,
    ) {
        // An entry of the directory may have changed meanwhile.
        let latest = |had: &Option<Attributes>| {
            let changed = had.map_or(attributes.changed, |had| had.changed.max(attributes.changed));
            Attributes { changed, ..attributes }
        };
        let (known, had) = match self.nodes.get_mut(&id) {
            Some(node) => (&mut node.modified, &mut node.attributes),
            None if id == ROOT => (&mut self.root.modified, &mut self.root.attributes),
            None => return,
        };
        *known = modified.unwrap_or(*known);
        *had = Some(latest(had));
    }

    /// Tells if a mount has set attributes of an entry.
    pub(super) fn has_attributes(&self, id: FileId) -> bool {
        match self.nodes.get(&id) {
            Some(node) => node.attributes.is_some(),
            None => id == ROOT && self.root.attributes.is_some(),
        }
    }

    /// Returns the number that has a part of a name in a directory.
    pub(super) fn inside(&self, directory: FileId, part: &str) -> Result<Option<FileId>, Fault> {
        match self.directories.get(&directory) {
            Some(inside) => Ok(inside.get(part).copied()),
            None if self.nodes.contains_key(&directory) => {
                Err(Fault::NotADirectory { name: directory.to_string() })
            }
            None => Err(Fault::NoSuchDirectory { name: directory.to_string() }),
        }
    }

    /// Returns the whole name of a node.
    pub(super) fn path(&self, mut id: FileId) -> Option<String> {
        let mut parts = Vec::new();
        while id != ROOT {
            let node = self.nodes.get(&id)?;
            parts.push(node.part.as_str());
            id = node.parent;
        }
        parts.reverse();
        Some(parts.join("/"))
    }

    /// Returns the entry of a number, as a mount sees it.
    pub(super) fn node_entry(&self, id: FileId) -> Option<NodeEntry> {
        match self.nodes.get(&id) {
            Some(node) => Some(node_entry(id, node, true)),
            None if id == ROOT => {
                let Root { defaults, modified, attributes } = self.root.clone();
                let attributes = attributes.unwrap_or(Attributes {
                    mode: DIRECTORY_MODE,
                    owner: None,
                    group: None,
                    accessed: modified,
                    changed: modified,
                });
                let (name, made) = (String::new(), Made::default());
                let entry = Entry { name, made, modified, kind: EntryKind::Directory(defaults) };
                Some(NodeEntry { node: ROOT, is_named: true, entry, attributes })
            }
            None => None,
        }
    }

    /// Lists at most `count` entries of a directory behind `after`, as a mount sees them, and tells
    /// if there are more.
    pub(super) fn list_nodes(
        &self,
        directory: FileId,
        after: Option<&str>,
        count: usize,
    ) -> Result<(Vec<NodeEntry>, bool), Fault> {
        self.inside(directory, "")?;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let inside = self.directories[&directory].range::<str, _>((from, Bound::Unbounded));
        let mut inside = inside.peekable();
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while entries.len() < count && bytes < ANSWER_TEXT_MAX {
            let Some((part, id)) = inside.next() else { break };
            let Some(node) = self.nodes.get(id) else { continue };
            bytes += 2 * part.len() + text_bytes(node);
            entries.push(node_entry(*id, node, true));
        }
        Ok((entries, inside.peek().is_some()))
    }

    /// Returns the node of a number.
    pub(super) fn node(&self, id: FileId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// Inserts a node into its directory.
    pub(super) fn insert(&mut self, id: FileId, node: Node) {
        if node.is_directory() {
            self.directories.entry(id).or_default();
        }
        let parent = self.directories.get_mut(&node.parent);
        let parent = parent.expect("a node must go into a directory that is there");
        parent.insert(node.part.as_str().into(), id);
        self.keep(id, node);
    }

    /// Stores a node, replaces an old one, and counts its servers.
    fn keep(&mut self, id: FileId, node: Node) {
        for server in servers_of(&node) {
            *self.files.entry(server).or_default() += 1;
        }
        for (server, bytes) in protected_parts(&node) {
            *self.protected.entry(server).or_default() += u128::from(bytes);
        }
        if let Some(old) = self.nodes.insert(id, node) {
            self.uncount(&old);
        }
    }

    fn uncount(&mut self, node: &Node) {
        for server in servers_of(node) {
            if let btree_map::Entry::Occupied(mut files) = self.files.entry(server) {
                *files.get_mut() -= 1;
                if *files.get() == 0 {
                    files.remove();
                }
            }
        }
        for (server, bytes) in protected_parts(node) {
            *self.protected.entry(server).or_default() -= u128::from(bytes);
        }
    }

    /// Returns the servers that have files, with the number of files of each.
    pub(super) fn files(&self) -> Vec<(ServerId, u64)> {
        self.files.iter().map(|(server, files)| (*server, *files)).collect()
    }

    /// Returns the number of bytes of protected files on each server that has some.
    pub(super) fn protected_parts(&self) -> Vec<(ServerId, u64)> {
        let parts = self.protected.iter().filter(|(_, bytes)| **bytes > 0);
        let counted = |bytes: &u128| u64::try_from(*bytes).unwrap_or(u64::MAX);
        parts.map(|(server, bytes)| (*server, counted(bytes))).collect()
    }

    /// Lists at most `count` files behind `after`, in the order of their numbers, and tells if
    /// there are more.
    pub(super) fn files_by_number(
        &self,
        after: Option<FileId>,
        count: usize,
    ) -> (Vec<Entry>, bool) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.nodes.range((from, Bound::Unbounded));
        let mut files = behind.filter(|(_, node)| node.is_file()).peekable();
        let (mut entries, mut text) = (Vec::new(), 0);
        while entries.len() < count
            && text < ANSWER_TEXT_MAX
            && let Some((id, node)) = files.next()
        {
            let name = self.path(*id).unwrap_or_default();
            text += name.len();
            entries.push(entry(name, *id, node));
        }
        (entries, files.peek().is_some())
    }

    /// Takes a node out. The content of a directory stays stored, because the directory is inserted
    /// again.
    pub(super) fn take(&mut self, id: FileId) -> Option<Node> {
        let node = self.nodes.remove(&id)?;
        self.uncount(&node);
        if let Some(parent) = self.directories.get_mut(&node.parent) {
            parent.remove(node.part.as_str());
        }
        Some(node)
    }

    /// Forgets an empty directory or a file.
    pub(super) fn remove(&mut self, id: FileId) {
        self.take(id);
        self.directories.remove(&id);
    }

    /// Lists at most `count` entries of a directory behind `after`, and tells if there are more.
    pub(super) fn list(
        &self,
        path: &str,
        after: Option<&str>,
        count: usize,
    ) -> Result<(Vec<Entry>, bool), Fault> {
        let id = self.directory(path)?;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut inside = self.directories[&id].range::<str, _>((from, Bound::Unbounded)).peekable();
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while entries.len() < count && bytes < ANSWER_TEXT_MAX {
            let Some((part, id)) = inside.next() else { break };
            let Some(node) = self.nodes.get(id) else { continue };
            let entry = entry(name::join(path, part), *id, node);
            // A file has its name twice.
            bytes += 2 * entry.name.len() + text_bytes(node);
            entries.push(entry);
        }
        Ok((entries, inside.peek().is_some()))
    }
}

/// Number of bytes of text in a node besides its name.
fn text_bytes(node: &Node) -> usize {
    match &node.kind {
        NodeKind::Special(Special::Link { target }) => target.len(),
        _ => 0,
    }
}

/// Returns the servers of a file; none for other entries.
fn servers_of(node: &Node) -> impl Iterator<Item = ServerId> + '_ {
    let file = match &node.kind {
        NodeKind::File { stripe, pool, .. } => Some((stripe, pool)),
        NodeKind::Directory { .. } | NodeKind::Special(_) => None,
    };
    file.into_iter()
        .flat_map(|(stripe, pool)| (0..stripe.servers).map(|place| pool.server(ServerId(place))))
}

/// Returns the number of bytes that each server has of a protected file; none for other entries.
fn protected_parts(node: &Node) -> impl Iterator<Item = (ServerId, u64)> + '_ {
    let file = match &node.kind {
        NodeKind::File { protection: Protection::None, .. } => None,
        NodeKind::File { size, stripe, pool, .. } => Some((size.bytes, stripe, pool)),
        NodeKind::Directory { .. } | NodeKind::Special(_) => None,
    };
    file.into_iter().flat_map(|(bytes, stripe, pool)| {
        let places = (0..stripe.servers).map(ServerId);
        places.map(move |place| (pool.server(place), part_bytes(stripe, place, bytes)))
    })
}

/// Returns a node's entry for clients.
pub(super) fn entry(name: String, file: FileId, node: &Node) -> Entry {
    let kind = match &node.kind {
        NodeKind::Directory { defaults } => EntryKind::Directory(defaults.clone()),
        NodeKind::Special(special) => EntryKind::Special(special.clone()),
        NodeKind::File { size, stripe, pool, buffering, protection } => {
            EntryKind::File(FileRecord {
                file,
                name: name.clone(),
                bytes: size.bytes,
                cuts: size.cuts,
                stripe: stripe.clone(),
                pool: pool.clone(),
                buffering: *buffering,
                protection: *protection,
            })
        }
    };
    Entry { name, made: node.made, modified: node.modified, kind }
}

/// Returns a node's entry for a mount.
pub(super) fn node_entry(id: FileId, node: &Node, is_named: bool) -> NodeEntry {
    let attributes = node.attributes.unwrap_or_else(|| usual_attributes(node));
    let entry = entry(node.part.clone(), id, node);
    NodeEntry { node: id, is_named, entry, attributes }
}

/// Returns the attributes of a node that no mount has changed.
pub(super) fn usual_attributes(node: &Node) -> Attributes {
    let mode = if node.is_directory() { DIRECTORY_MODE } else { FILE_MODE };
    let (owner, changed) = (Some(node.made.owner), node.modified);
    Attributes { mode, owner, group: None, accessed: changed, changed }
}
