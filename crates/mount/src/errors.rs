//! Errors of the system for those of the servers.

use fuser::Errno;
use interface::{ErrorKind, UserError};

/// Returns the error that a program gets.
pub(crate) fn errno(error: &UserError) -> Errno {
    let errno = match error.kind {
        ErrorKind::NotFound => Errno::ENOENT,
        ErrorKind::AlreadyExists => Errno::EEXIST,
        // Parts of names were checked before; the whole may still be too long.
        ErrorKind::BadName => Errno::ENAMETOOLONG,
        ErrorKind::BadAccess => Errno::EINVAL,
        ErrorKind::NotADirectory => Errno::ENOTDIR,
        ErrorKind::IsADirectory => Errno::EISDIR,
        ErrorKind::DirectoryNotEmpty => Errno::ENOTEMPTY,
        ErrorKind::NoSpace => Errno::ENOSPC,
        ErrorKind::ReadOnly => Errno::EROFS,
        // The library refuses nothing else that the kernel lets pass.
        ErrorKind::Usage => Errno::EFBIG,
        _ => Errno::EIO,
    };
    if errno.code() == Errno::EIO.code() {
        tracing::warn!(%error, "a request of a mount failed");
    }
    errno
}
