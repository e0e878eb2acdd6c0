//! Why a request failed, before the disk's name is put to it.

use rustix::io::Errno;
use units::{ByteRange, FileId};
use world::DiskError;

/// What the thread of a disk reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// The directory is gone.
    Vanished,
    /// The system refused.
    System(Errno),
    /// These bytes do not match their checksum.
    Corrupt(FileId, ByteRange),
}

impl Failure {
    /// The error of `disk`, which was asked to do `operation`.
    pub(super) fn of(self, disk: String, operation: String) -> DiskError {
        match self {
            Self::Vanished => DiskError::Vanished { disk },
            // A file may also be larger than the system permits this process, or any.
            Self::System(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => DiskError::NoSpace { disk },
            Self::System(error) => DiskError::Failed { disk, operation, cause: error.to_string() },
            Self::Corrupt(object, bytes) => {
                DiskError::Corrupt { disk, object, offset: bytes.start, length: bytes.length() }
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
