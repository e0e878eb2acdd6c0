//! Failure of a request, before the name of the disk is added.

use rustix::io::Errno;
use units::{ByteRange, FileId};
use world::{Damage, DiskError};

/// Failure reported by a disk's thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// The directory of the disk is gone.
    Vanished,
    /// Another process has locked the ordinary file.
    Locked,
    /// The file system of the ordinary file has no direct I/O.
    NotDirect,
    /// Error of the system.
    System(Errno),
    /// Bytes that are not those that were written.
    Corrupt(FileId, ByteRange, Damage),
}

impl Failure {
    /// Failure of a request for `range` of an object that cannot be used at all.
    pub(super) fn within(self, range: ByteRange) -> Self {
        match self {
            Self::Corrupt(object, _, Damage::Missing) => {
                Self::Corrupt(object, range, Damage::Missing)
            }
            Self::Corrupt(object, bytes, damage) => {
                let common = bytes.intersect(range);
                let bytes = if common.is_empty() { range } else { common };
                Self::Corrupt(object, bytes, damage)
            }
            other => other,
        }
    }

    /// Converts to the error of `disk`, which was to execute `operation`.
    pub(crate) fn of(self, disk: String, operation: String) -> DiskError {
        match self {
            Self::Vanished => DiskError::Vanished { disk },
            Self::Locked => {
                let cause = "another instance works on it, or another program has locked it";
                DiskError::Failed { disk, operation, cause: cause.to_owned() }
            }
            Self::NotDirect => {
                let cause = "its file system supports no direct I/O, which --direct asks for";
                DiskError::Failed { disk, operation, cause: cause.to_owned() }
            }
            // EFBIG: the file exceeds the limit of the process or the file system.
            Self::System(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => DiskError::NoSpace { disk },
            Self::System(error) => DiskError::Failed { disk, operation, cause: error.to_string() },
            Self::Corrupt(object, bytes, damage) => {
                let (offset, length) = (bytes.start, bytes.length());
                DiskError::Corrupt { disk, object, offset, length, damage }
            }
        }
    }
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::System(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}
