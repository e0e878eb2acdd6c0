//! Absolute paths, which do not depend on the working directory.

use std::path::{Path, PathBuf};

/// Makes a path absolute and removes a slash at its end, which would lead through a link. An empty
/// path stays empty.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components().collect()
}
