//! The tree of names in memory: directories and files.
//!
//! Invariants:
//! - Every node but the root has a parent, a directory that lists it.
//! - No directory lies within itself.
//! - `files` counts the files of each server.

use super::name;
use super::node::{Node, NodeKind};
use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;
use std::rc::Rc;
use units::{FileId, ServerId, Timestamp};
use wire::{Entry, EntryKind, Fault, FileDefaults, FileRecord};

/// Number of the root directory.
pub(super) const ROOT: FileId = FileId(0);

/// All nodes.
pub(super) struct Tree {
    /// Defaults of files in the root.
    root: FileDefaults,
    nodes: BTreeMap<FileId, Node>,
    /// Content of each directory, by the last part of the name.
    directories: BTreeMap<FileId, BTreeMap<Rc<str>, FileId>>,
    /// Number of files on each server that has one.
    files: BTreeMap<ServerId, u64>,
}

impl Tree {
    /// Makes a tree of `nodes`, in any order, below a root with the defaults `root`. Returns the
    /// error when they form no tree.
    pub(super) fn new(
        root: FileDefaults,
        nodes: impl IntoIterator<Item = (FileId, Node)>,
    ) -> Result<Self, String> {
        let directories = BTreeMap::from([(ROOT, BTreeMap::new())]);
        let mut tree = Self { root, nodes: BTreeMap::new(), directories, files: BTreeMap::new() };
        let nodes: BTreeMap<FileId, Node> = nodes.into_iter().collect();
        for (id, node) in &nodes {
            if matches!(node.kind, NodeKind::Directory { .. }) {
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

    /// Returns the defaults of files in a directory.
    pub(super) fn defaults(&self, directory: FileId) -> &FileDefaults {
        match self.nodes.get(&directory).map(|node| &node.kind) {
            Some(NodeKind::Directory { defaults }) => defaults,
            _ => &self.root,
        }
    }

    /// Sets the defaults of files in a directory.
    pub(super) fn set_defaults(&mut self, directory: FileId, new: FileDefaults) {
        match self.nodes.get_mut(&directory).map(|node| &mut node.kind) {
            Some(NodeKind::Directory { defaults }) => *defaults = new,
            _ => self.root = new,
        }
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

    /// Records a later time of the last change of a file. Returns true if it is later.
    pub(super) fn learn_modified(&mut self, id: FileId, at: Timestamp) -> bool {
        match self.nodes.get_mut(&id).map(|node| &mut node.kind) {
            Some(NodeKind::File { modified, .. }) if *modified < at => {
                *modified = at;
                true
            }
            _ => false,
        }
    }

    /// Returns the node of a number.
    pub(super) fn node(&self, id: FileId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// Inserts a node into its directory.
    pub(super) fn insert(&mut self, id: FileId, node: Node) {
        if matches!(node.kind, NodeKind::Directory { .. }) {
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
    }

    /// Returns the servers that have files, with the number of files of each.
    pub(super) fn files(&self) -> Vec<(ServerId, u64)> {
        self.files.iter().map(|(server, files)| (*server, *files)).collect()
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
        let mut inside = self.directories[&id].range::<str, _>((from, Bound::Unbounded));
        let entry = |(part, id): (&Rc<str>, &FileId)| {
            self.nodes.get(id).map(|node| entry(name::join(path, part), *id, node))
        };
        let entries = inside.by_ref().take(count).filter_map(entry).collect();
        Ok((entries, inside.next().is_some()))
    }
}

/// Returns the servers of a file; none for a directory.
fn servers_of(node: &Node) -> impl Iterator<Item = ServerId> + '_ {
    let file = match &node.kind {
        NodeKind::File { stripe, pool, .. } => Some((stripe, pool)),
        NodeKind::Directory { .. } => None,
    };
    file.into_iter()
        .flat_map(|(stripe, pool)| (0..stripe.servers).map(|place| pool.server(ServerId(place))))
}

/// Returns a node's entry for clients.
pub(super) fn entry(name: String, file: FileId, node: &Node) -> Entry {
    let (kind, modified) = match &node.kind {
        NodeKind::Directory { defaults } => {
            (EntryKind::Directory(defaults.clone()), node.made.at())
        }
        NodeKind::File { size, stripe, pool, buffering, modified } => {
            let record = FileRecord {
                file,
                name: name.clone(),
                bytes: size.bytes,
                cuts: size.cuts,
                stripe: stripe.clone(),
                pool: pool.clone(),
                buffering: *buffering,
            };
            (EntryKind::File(record), *modified)
        }
    };
    Entry { name, made: node.made, modified, kind }
}
