//! Entries of the catalogue that are kept for a moment, so that a call need not ask again.
//!
//! Records of files never change but in their sizes, which an open asks the servers for. Defaults
//! of directories change seldom, and only new files need them.

use client::{EntryKind, FileDefaults, FileId, FileRecord, NodeEntry};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time for which the defaults of a directory are kept.
const DEFAULTS_KEPT: Duration = Duration::from_secs(1);

/// Maximum number of entries that are kept. When there are more, all are forgotten.
const KEPT_MAX: usize = 1 << 14;

/// Entries that were found lately.
#[derive(Default)]
pub(crate) struct Kept {
    records: Mutex<HashMap<FileId, FileRecord>>,
    names: Mutex<HashMap<(FileId, String), FileId>>,
    defaults: Mutex<HashMap<FileId, (Instant, FileDefaults)>>,
}

impl Kept {
    /// Keeps what an entry says.
    pub(crate) fn learn(&self, found: &NodeEntry) {
        match &found.entry.kind {
            EntryKind::File(record) => put(&self.records, found.node, record.clone()),
            EntryKind::Directory(defaults) => {
                put(&self.defaults, found.node, (Instant::now(), defaults.clone()));
            }
            EntryKind::Special(_) => {}
        }
    }

    /// Keeps what the entry of a name says.
    pub(crate) fn learn_name(&self, directory: FileId, found: &NodeEntry) {
        self.learn(found);
        if found.entry.file().is_some() {
            put(&self.names, (directory, found.entry.name.clone()), found.node);
        }
    }

    /// Record of the file that had a name lately.
    pub(crate) fn named(&self, directory: FileId, name: &str) -> Option<FileRecord> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let file = names.get(&(directory, name.to_owned())).copied();
        drop(names);
        self.record(file?)
    }

    /// Record of a file, with a size that it had.
    pub(crate) fn record(&self, file: FileId) -> Option<FileRecord> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).get(&file).cloned()
    }

    /// Defaults of files in a directory.
    pub(crate) fn defaults(&self, directory: FileId) -> Option<FileDefaults> {
        let all = self.defaults.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, defaults) = all.get(&directory)?;
        (at.elapsed() < DEFAULTS_KEPT).then(|| defaults.clone())
    }

    /// Forgets the defaults of a directory, which a program has changed.
    pub(crate) fn forget_defaults(&self, directory: FileId) {
        self.defaults.lock().unwrap_or_else(PoisonError::into_inner).remove(&directory);
    }
}

fn put<K: Eq + Hash, T>(into: &Mutex<HashMap<K, T>>, key: K, value: T) {
    let mut all = into.lock().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= KEPT_MAX {
        all.clear();
    }
    all.insert(key, value);
}
