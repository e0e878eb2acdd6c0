//! Paths that mean the same in every directory.

use std::path::{Path, PathBuf};

/// The same path from the root, without a slash at its end, which would lead through a link; as it
/// is when it is empty.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components().collect()
}
