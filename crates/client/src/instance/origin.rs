//! Mark that tells an instance's directory from a copy of it.

use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Name of the mark, an empty file that no program has a reason to touch.
const MARK: &str = "origin";

/// Inode number and change time of the mark. A copy of the directory has others, on any machine.
/// All machines that share the directory see the same.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Origin {
    inode: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Origin {
    /// Makes a new mark in a directory.
    pub fn mark(directory: &Path) -> io::Result<Self> {
        let path = directory.join(MARK);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Self::of(directory)
    }

    /// True if `directory` is the marked one, not a copy.
    pub fn is(&self, directory: &Path) -> bool {
        Self::of(directory).is_ok_and(|found| found == *self)
    }

    fn of(directory: &Path) -> io::Result<Self> {
        let mark = fs::symlink_metadata(directory.join(MARK))?;
        let (inode, changed_s, changed_ns) = (mark.ino(), mark.ctime(), mark.ctime_nsec());
        Ok(Self { inode, changed_s, changed_ns })
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a copy of a directory is not taken for it, with or without its mark.
    use super::*;

    #[test]
    fn copies_are_known() {
        let [first, second] = [(); 2].map(|()| tempfile::tempdir().expect("a test must have room"));
        let origin = Origin::mark(first.path()).expect("a test must have room");
        assert!(origin.is(first.path()) && !origin.is(second.path()));
        let copied = fs::copy(first.path().join(MARK), second.path().join(MARK));
        copied.expect("a test must have room");
        assert!(!origin.is(second.path()));
        Origin::mark(first.path()).expect("a test must have room");
        assert!(!origin.is(first.path()), "it is marked anew");
    }
}
