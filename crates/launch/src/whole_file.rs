//! Files that are there in full or not at all.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that is being written. What had its name before stays until all of it is there, and for
/// good when this is dropped.
pub struct WholeFile(Kind);

enum Kind {
    New {
        path: PathBuf,
        file: NamedTempFile,
    },
    /// What is no file, such as a terminal or a pipe, cannot be replaced.
    Stream(File),
}

impl WholeFile {
    /// An empty one, to be at `path`; a link there keeps its place, and its target is replaced.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn create(path: &Path) -> io::Result<Self> {
        let is_stream = std::fs::metadata(path).is_ok_and(|there| !there.is_file());
        if is_stream {
            return Ok(Self(Kind::Stream(File::create(path)?)));
        }
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if path.exists() {
            // Whoever may not change a file may not replace it either.
            File::options().write(true).open(&path)?;
        }
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The user's mask takes away what it always does.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
        Ok(Self(Kind::New { path, file }))
    }

    /// Where to write.
    ///
    /// # Errors
    /// When the process has no more descriptors.
    pub fn writer(&self) -> io::Result<File> {
        match &self.0 {
            Kind::New { file, .. } => file.as_file().try_clone(),
            Kind::Stream(file) => file.try_clone(),
        }
    }

    /// All of it is written.
    ///
    /// # Errors
    /// When it cannot have its name.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Kind::New { path, file } => file.persist(path).map(|_| ()).map_err(|error| error.error),
            Kind::Stream(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: what is not finished leaves what was there; what is finished replaces it, also
    //! behind a link.
    use super::*;
    use std::fs;
    use std::io::Write;

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
        drop(write(&path));
        assert_eq!(fs::read(&path).expect("it is there"), b"old");
        write(&link).finish().expect("it can have its name");
        assert_eq!(fs::read(&path).expect("it is there"), b"new");
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        assert_eq!(fs::read_dir(room.path()).expect("it is there").count(), 2, "nothing is left");
        assert!(WholeFile::create(&room.path().join("no/folder")).is_err());
    }
}
