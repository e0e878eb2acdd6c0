//! Paths of socket files that fit into the address of a socket.

use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Longest path in the address of a socket, in bytes: `sun_path` without its end.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Path of a socket file, for `bind` and `connect`. A path that is too long is replaced by one
/// through a descriptor of its directory, which is open as long as this lives.
pub(super) struct SocketPath {
    path: PathBuf,
    _directory: Option<OwnedFd>,
}

impl SocketPath {
    /// # Errors
    /// Fails when the directory of a long path cannot be opened.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(Self { path: path.to_owned(), _directory: None });
        };
        if path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
            return Ok(Self { path: path.to_owned(), _directory: None });
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent, flags, Mode::empty())?;
        let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
        Ok(Self { path: short, _directory: Some(directory) })
    }
}

impl AsRef<Path> for SocketPath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    //! Proves: programs listen at paths of any length and connect to them.
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn paths_of_any_length_lead_to_the_socket() {
        let folder = tempfile::tempdir().unwrap();
        for length in [1, 60, 100, 200] {
            let directory = folder.path().join("d".repeat(length));
            std::fs::create_dir(&directory).unwrap();
            let path = directory.join("server.sock");
            let listener = UnixListener::bind(SocketPath::of(&path).unwrap()).unwrap();
            UnixStream::connect(SocketPath::of(&path).unwrap()).unwrap();
            listener.accept().unwrap();
            assert!(path.exists());
        }
        let missing = folder.path().join("e".repeat(200)).join("server.sock");
        assert_eq!(SocketPath::of(&missing).err().unwrap().kind(), io::ErrorKind::NotFound);
    }
}
