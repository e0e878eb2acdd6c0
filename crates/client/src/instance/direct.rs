//! Choice of the disks that bypass the page cache of their system (O_DIRECT).

use super::path::absolute;
use interface::UserError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The disks of an instance that use O_DIRECT.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direct {
    /// No disk.
    #[default]
    None,
    /// All disks.
    All,
    /// The disks whose directories are among these or lie below them.
    In(Vec<PathBuf>),
}

impl Direct {
    /// Selects the disks in `directories`, which must be some of the `data` directories.
    ///
    /// # Errors
    /// Fails when one of them is not a data directory.
    pub fn in_some(directories: &[PathBuf], data: &[PathBuf]) -> Result<Self, UserError> {
        let data: Vec<PathBuf> = data.iter().map(|path| absolute(path)).collect();
        let named: Vec<PathBuf> = directories.iter().map(|path| absolute(path)).collect();
        match named.iter().find(|one| !data.contains(one)) {
            None => Ok(Self::In(named)),
            Some(other) => Err(UserError::usage(
                format!("no disk is in {}", other.display()),
                "a directory of --direct must also be a directory of --data",
                "name it with --data too, or use --direct without a directory for all disks",
            )),
        }
    }

    /// True if the disk in this directory uses O_DIRECT.
    pub fn is_for(&self, directory: &Path) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::In(some) => some.iter().any(|one| directory.starts_with(one)),
        }
    }
}
