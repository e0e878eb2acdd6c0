//! Names of the files of a trace.

use std::path::{Path, PathBuf};

/// The header of a trace.
pub(crate) fn header_path(directory: &Path) -> PathBuf {
    directory.join("trace.json")
}

/// The stream of a rank.
pub(crate) fn stream_path(directory: &Path, rank: u32) -> PathBuf {
    directory.join(format!("rank-{rank:05}.events"))
}
