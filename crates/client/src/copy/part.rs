//! Temporary file of a copy, which replaces the target when it is complete.

use crate::cleanup::{Cleanup, Undo};
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that replaces another when it is complete. Until then it lies beside the target, under an
/// unpredictable name. It is removed when dropped, or when the user interrupts.
pub(super) struct PartFile {
    file: NamedTempFile,
    target: PathBuf,
    // Dropped last: an interrupt may have to remove the file until it is gone.
    _undo: Undo,
}

impl PartFile {
    /// Makes an empty file that will replace `target`. It gets the mode of the file it replaces,
    /// if there is one.
    ///
    /// # Errors
    /// Fails when the directory of `target` cannot be written to.
    pub(super) fn new(target: &Path) -> io::Result<Self> {
        let replaced = fs::metadata(target).ok().filter(fs::Metadata::is_file);
        let mode = replaced.map(|file| file.permissions().mode() & 0o777);
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut new = tempfile::Builder::new();
        // A file that replaces none gets its mode from the umask, as any new file.
        let permissions = Permissions::from_mode(mode.unwrap_or(0o666));
        new.prefix(".unisono-part-").permissions(permissions);
        let (file, undo) = Undo::made(
            || new.tempfile_in(parent.unwrap_or(Path::new("."))),
            |file| Cleanup::RemoveFile(file.path().to_owned()),
        )?;
        if let Some(mode) = mode {
            file.as_file().set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(Self { file, target: target.to_owned(), _undo: undo })
    }

    /// The file itself.
    pub(super) fn as_file(&self) -> &std::fs::File {
        self.file.as_file()
    }

    /// Renames the file to its target.
    ///
    /// # Errors
    /// Fails when the rename fails, for example because the target is a directory.
    pub(super) fn keep(self) -> io::Result<()> {
        self.file.persist(&self.target).map(|_| ()).map_err(|error| error.error)
    }
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
