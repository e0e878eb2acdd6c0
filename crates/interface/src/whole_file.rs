//! Files that appear in full or not at all.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that is being written. An earlier file of its name stays until all data is written, and
/// stays for good if this is dropped.
pub struct WholeFile(Kind);

enum Kind {
    New {
        path: PathBuf,
        file: NamedTempFile,
    },
    /// A target that cannot be replaced, and is written in place.
    Stream(File),
}

impl WholeFile {
    /// Creates an empty file that will replace `path`. A link there stays, and its target is
    /// replaced. A terminal or a pipe is written directly, and so is a file in a folder in which no
    /// file can be made.
    ///
    /// # Errors
    /// Fails when `path` cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        let stream = |path: &Path| File::create(path).map(|file| Self(Kind::Stream(file)));
        let is_link = std::fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink());
        let there = match path.canonicalize() {
            Ok(path) => Some((std::fs::metadata(&path)?, path)),
            // A link without a target.
            Err(_) if is_link => return stream(path),
            Err(_) => None,
        };
        // An open file, such as the standard output, has other writers.
        let is_open = ["/dev", "/proc"].iter().any(|system| path.starts_with(system));
        if is_open || there.as_ref().is_some_and(|(there, _)| !there.is_file()) {
            return stream(path);
        }
        let (rights, path) = match there {
            Some((there, path)) => {
                // A user who may not change a file may not replace it either.
                File::options().write(true).open(&path)?;
                (Some(there.permissions()), path)
            }
            None => (None, path.to_owned()),
        };
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The user's umask applies as always.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = match builder.tempfile_in(folder.unwrap_or(Path::new("."))) {
            Err(error) if rights.is_some() && error.kind() == ErrorKind::PermissionDenied => {
                return stream(&path);
            }
            made => made?,
        };
        if let Some(rights) = rights {
            file.as_file().set_permissions(rights)?;
        }
        Ok(Self(Kind::New { path, file }))
    }

    /// Returns a handle for writing.
    ///
    /// # Errors
    /// Fails when the process has no more descriptors.
    pub fn writer(&self) -> io::Result<File> {
        match &self.0 {
            Kind::New { file, .. } => file.as_file().try_clone(),
            Kind::Stream(file) => file.try_clone(),
        }
    }

    /// Completes the file: makes its data durable, then gives it its name. Does nothing for a
    /// stream.
    ///
    /// # Errors
    /// Fails when the data cannot be synchronised or the file cannot be renamed.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Kind::New { path, file } => {
                // The bytes are durable before the name appears, so that a crash leaves the old
                // file or the new one.
                file.as_file().sync_all()?;
                file.persist(path).map(|_| ()).map_err(|error| error.error)
            }
            Kind::Stream(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: an unfinished file leaves the old one; a finished file replaces it, also behind a
    //! link, with its permissions.
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_there_in_full_or_not_at_all() {
        let room = tempfile::tempdir().expect("a test must have room");
        let (path, link) = (room.path().join("file"), room.path().join("link"));
        fs::write(&path, "old").expect("it can be written");
        std::os::unix::fs::symlink(&path, &link).expect("it can be made");
        let write = |at: &Path| {
            let file = WholeFile::create(at).expect("it can be made");
            file.writer().and_then(|mut out| out.write_all(b"new")).expect("it has room");
            file
        };
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&path, private).expect("it is ours");
        drop(write(&path));
        assert_eq!(fs::read(&path).expect("it is there"), b"old");
        write(&link).finish().expect("it can have its name");
        assert_eq!(fs::read(&path).expect("it is there"), b"new");
        let rights = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(rights & 0o777, 0o600);
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        assert_eq!(fs::read_dir(room.path()).expect("it is there").count(), 2, "nothing is left");
        assert!(WholeFile::create(&room.path().join("no/folder")).is_err());
        let (nowhere, later) = (room.path().join("nowhere"), room.path().join("later"));
        std::os::unix::fs::symlink(&later, &nowhere).expect("it can be made");
        write(&nowhere).finish().expect("it is written");
        assert_eq!(fs::read(&later).expect("it is there"), b"new");
    }
}
