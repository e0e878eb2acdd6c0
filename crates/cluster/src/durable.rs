//! Files that are replaced in one step.
//!
//! Invariant: a file has its old content or its new one, also after a kill or a crash of the
//! machine. One process at a time replaces the files of a directory: it holds a lock.

use interface::UserError;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Replaces the file `path` by one of mode 0600 with these bytes. The new file has a fixed name
/// beside it meanwhile, so that interrupted attempts do not add up.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = name_of_new(path);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_directory(path)
}

/// Makes changes of the directory of `path` durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

fn name_of_new(path: &Path) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".new");
    path.with_file_name(name)
}

/// Error of a file of an instance that cannot be written.
pub(crate) fn cannot_write(path: &Path, error: &std::io::Error) -> UserError {
    UserError::usage(
        format!("cannot write {}", path.display()),
        error.to_string(),
        "name another instance directory with --instance",
    )
}

#[cfg(test)]
mod tests {
    //! Proves: a replaced file is whole and private, and an interrupted attempt is overwritten.
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_after_an_interrupted_attempt() {
        let room = tempfile::tempdir().expect("a test must have room");
        let path = room.path().join("file");
        fs::write(name_of_new(&path), "half").expect("it can be written");
        for content in ["first", "second"] {
            replace(&path, content.as_bytes()).expect("it can be replaced");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), content);
        }
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(room.path()).expect("it is there").count(), 1);
    }
}
