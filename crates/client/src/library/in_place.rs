//! Ordinary files that servers work on at their own paths, which all hosts of the servers see.

use super::connection::Connection;
use super::file::File;
use super::liked_block;
use interface::{ErrorKind, UserError};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Help for servers that cannot work on a file.
const UNSUITABLE: &str = "use servers that find the file at this path and keep their data in \
                          directories (not --memory), with --direct only where the file system \
                          has direct I/O, and no other instance on this file";

/// Options of the open of an ordinary file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct InPlaceOptions {
    /// True to make the file if there is none.
    pub create: bool,
    /// True to refuse a file that is there. Only with `create`.
    pub exclusive: bool,
    /// Bytes in a block; by default at least 1 MiB, in a multiple of what the file system likes: a
    /// stripe of Lustre, else `st_blksize`.
    pub block_bytes: Option<u64>,
}

impl Connection {
    /// Opens an ordinary file, which the servers must find at the same path. They carry out all
    /// calls on the file itself; after a sync or the last close any program finds the data there.
    /// While a client has it open, no other instance may have.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::AlreadyExists`] and
    /// [`ErrorKind::Refused`] as the file system says; a directory and the like; a file
    /// that a server does not find, or on which another instance works.
    pub fn open_in_place(&self, path: &Path, options: InPlaceOptions) -> Result<File, UserError> {
        let found = Ordinary::open(path, options).map_err(|error| refused(path, &error))?;
        let Ordinary { path, inode, block_bytes } = found;
        let what = format!("cannot open {path:?} in place");
        let opened = self.run(
            || what,
            async move |shared| shared.client.open_in_place(&path, inode, block_bytes).await,
        );
        opened.map(|record| self.file(record)).map_err(|error| match error.kind {
            ErrorKind::DiskFailed => UserError { help: UNSUITABLE.to_owned(), ..error },
            _ => error,
        })
    }
}

/// Returns the number of bytes in a block of ordinary files in a directory, as its file system
/// likes it.
///
/// # Errors
/// Fails when the directory cannot be opened.
pub fn in_place_block_bytes(directory: &Path) -> io::Result<u64> {
    liked_block::block_bytes_for(&fs::File::open(directory)?)
}

/// An ordinary file that is there.
struct Ordinary {
    /// Absolute, without links.
    path: String,
    inode: u64,
    block_bytes: u64,
}

impl Ordinary {
    fn open(path: &Path, options: InPlaceOptions) -> io::Result<Self> {
        let InPlaceOptions { create, exclusive, block_bytes } = options;
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(create).create_new(create && exclusive);
        let file = match how.open(path) {
            // Servers then refuse to write.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !create => {
                fs::File::open(path)?
            }
            opened => opened?,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is no ordinary file"));
        }
        let absolute = fs::canonicalize(path)?;
        let path = absolute.into_os_string().into_string();
        let path = path.map_err(|_| io::Error::other("its path is not UTF-8"))?;
        let block_bytes = match block_bytes {
            Some(bytes) => bytes,
            None => liked_block::block_bytes_for(&file)?,
        };
        Ok(Self { path, inode: metadata.ino(), block_bytes })
    }
}

fn refused(path: &Path, error: &io::Error) -> UserError {
    let (kind, help) = match error.kind() {
        io::ErrorKind::NotFound => {
            (ErrorKind::NotFound, "check the path, or open the file so that it is created")
        }
        io::ErrorKind::AlreadyExists => {
            (ErrorKind::AlreadyExists, "remove the file, or open it without exclusive creation")
        }
        io::ErrorKind::PermissionDenied => {
            (ErrorKind::Refused, "name a file that you may read and write")
        }
        _ => (ErrorKind::Other, "name an ordinary file"),
    };
    UserError::of_kind(kind, format!("cannot open {path:?} in place"), error.to_string(), help)
}
