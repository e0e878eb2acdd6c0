//! The one table of error kinds: exit code, errno and MPI error class of each.
//!
//! *Invariants:*
//! - Each fault of the file system has one kind ([`ErrorKind::of_fault`] is exhaustive).
//! - Numbers and names of kinds are part of the interface: new ones go to the end.

use crate::exit_code::ExitCode;
use units::{ByteRange, ClientId, ServerId};
use wire::Fault;

/// Kind of an error: what a program may decide by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
pub enum ErrorKind {
    /// A failure that no other kind names.
    Other = 1,
    /// A request that makes no sense.
    Usage = 2,
    /// There is no instance, or its key cannot be used.
    NoInstance = 3,
    /// There is no such file or directory.
    NotFound = 4,
    /// The name is taken.
    AlreadyExists = 5,
    /// The name cannot name a file.
    BadName = 6,
    /// A file, where a directory must be.
    NotADirectory = 7,
    /// A directory, where a file must be.
    IsADirectory = 8,
    /// The directory holds something.
    DirectoryNotEmpty = 9,
    /// The access does not fit the file or the memory.
    BadAccess = 10,
    /// The file ends before the bytes that were asked for.
    PastEnd = 11,
    /// A server refuses the request.
    Refused = 12,
    /// Client and server are of different releases.
    WrongVersion = 13,
    /// A disk is full.
    NoSpace = 14,
    /// Data is not what was written.
    Corrupt = 15,
    /// A disk failed.
    DiskFailed = 16,
    /// The catalogue failed.
    CatalogueFailed = 17,
    /// A server has left, or cannot be reached.
    ServerLeft = 18,
    /// A server does not answer.
    ServerStalled = 19,
    /// A member of a group has left during a collective call.
    MemberLeft = 20,
    /// A member of a group did not join a collective call in time.
    MembersMissing = 21,
    /// Members of a group made different calls.
    CallsDiffer = 22,
    /// The call was cancelled, because another server or member failed.
    Cancelled = 23,
    /// A transfer failed in an unforeseen way.
    TransferFailed = 24,
    /// The process was forked after it connected.
    Forked = 25,
    /// The library failed: a wrong program.
    Internal = 26,
    /// The user interrupted the call.
    Interrupted = 27,
    /// A local file could not be read or written.
    LocalFile = 28,
    /// A member of a group holds a lock for longer than the time-out.
    LockTimedOut = 29,
    /// Nothing can be changed: some data of the instance is lost.
    ReadOnly = 30,
}

/// One row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KindRow {
    /// The kind.
    pub kind: ErrorKind,
    /// Name of the kind, as programs and logs write it.
    pub name: &'static str,
    /// Exit code of a command that ends with it.
    pub code: ExitCode,
    /// Number of the fitting system error, positive.
    pub errno: i32,
    /// Name of the MPI error class.
    pub mpi_class: &'static str,
}

use ErrorKind as K;
use ExitCode as X;

/// Every kind, by number.
pub const KINDS: [KindRow; 30] = [
    row(K::Other, "other", X::Failed, libc::EIO, "MPI_ERR_IO"),
    row(K::Usage, "usage", X::Usage, libc::EINVAL, "MPI_ERR_ARG"),
    row(K::NoInstance, "no-instance", X::NoServer, libc::ENXIO, "MPI_ERR_NO_SUCH_FILE"),
    row(K::NotFound, "not-found", X::Failed, libc::ENOENT, "MPI_ERR_NO_SUCH_FILE"),
    row(K::AlreadyExists, "already-exists", X::Failed, libc::EEXIST, "MPI_ERR_FILE_EXISTS"),
    row(K::BadName, "bad-name", X::Usage, libc::EINVAL, "MPI_ERR_BAD_FILE"),
    row(K::NotADirectory, "not-a-directory", X::Failed, libc::ENOTDIR, "MPI_ERR_BAD_FILE"),
    row(K::IsADirectory, "is-a-directory", X::Failed, libc::EISDIR, "MPI_ERR_BAD_FILE"),
    row(K::DirectoryNotEmpty, "directory-not-empty", X::Failed, libc::ENOTEMPTY, "MPI_ERR_IO"),
    row(K::BadAccess, "bad-access", X::Usage, libc::EINVAL, "MPI_ERR_ARG"),
    row(K::PastEnd, "past-end", X::Failed, libc::ENODATA, "MPI_ERR_IO"),
    row(K::Refused, "refused", X::Failed, libc::EPROTO, "MPI_ERR_IO"),
    row(K::WrongVersion, "wrong-version", X::Failed, libc::EPROTONOSUPPORT, "MPI_ERR_IO"),
    row(K::NoSpace, "no-space", X::NoSpace, libc::ENOSPC, "MPI_ERR_NO_SPACE"),
    row(K::Corrupt, "corrupt", X::DataCheck, libc::EBADMSG, "MPI_ERR_IO"),
    row(K::DiskFailed, "disk-failed", X::Failed, libc::EIO, "MPI_ERR_IO"),
    row(K::CatalogueFailed, "catalogue-failed", X::Failed, libc::EIO, "MPI_ERR_IO"),
    row(K::ServerLeft, "server-left", X::NoServer, libc::ENOTCONN, "MPI_ERR_IO"),
    row(K::ServerStalled, "server-stalled", X::NoServer, libc::ETIMEDOUT, "MPI_ERR_IO"),
    row(K::MemberLeft, "member-left", X::Collective, libc::ECONNABORTED, "MPI_ERR_IO"),
    row(K::MembersMissing, "members-missing", X::Collective, libc::ETIMEDOUT, "MPI_ERR_NOT_SAME"),
    row(K::CallsDiffer, "calls-differ", X::Collective, libc::EINVAL, "MPI_ERR_NOT_SAME"),
    row(K::Cancelled, "cancelled", X::Collective, libc::ECANCELED, "MPI_ERR_IO"),
    row(K::TransferFailed, "transfer-failed", X::Failed, libc::EIO, "MPI_ERR_IO"),
    row(K::Forked, "forked", X::Usage, libc::EPERM, "MPI_ERR_OTHER"),
    row(K::Internal, "internal", X::Failed, libc::ENOTRECOVERABLE, "MPI_ERR_INTERN"),
    row(K::Interrupted, "interrupted", X::Failed, libc::EINTR, "MPI_ERR_OTHER"),
    row(K::LocalFile, "local-file", X::Failed, libc::EIO, "MPI_ERR_IO"),
    row(K::LockTimedOut, "lock-timed-out", X::Collective, libc::ETIMEDOUT, "MPI_ERR_FILE_IN_USE"),
    row(K::ReadOnly, "read-only", X::Failed, libc::EROFS, "MPI_ERR_READ_ONLY"),
];

const fn row(
    kind: ErrorKind,
    name: &'static str,
    code: ExitCode,
    errno: i32,
    mpi_class: &'static str,
) -> KindRow {
    KindRow { kind, name, code, errno, mpi_class }
}

impl ErrorKind {
    /// Row of the kind in the table.
    pub fn row(self) -> &'static KindRow {
        &KINDS[self as usize - 1]
    }

    /// Kind of the given number, if there is one.
    pub fn of_number(number: u32) -> Option<Self> {
        KINDS.iter().map(|row| row.kind).find(|kind| *kind as u32 == number)
    }

    /// Kind of a fault of the file system.
    pub fn of_fault(fault: &Fault) -> Self {
        match fault {
            Fault::NoSuchFile { .. } | Fault::NoSuchDirectory { .. } => Self::NotFound,
            Fault::FileExists { .. } => Self::AlreadyExists,
            Fault::BadName { .. } | Fault::IsSpecial { .. } => Self::BadName,
            Fault::NotADirectory { .. } => Self::NotADirectory,
            Fault::IsADirectory { .. } => Self::IsADirectory,
            Fault::DirectoryNotEmpty { .. } => Self::DirectoryNotEmpty,
            Fault::BadAccess { .. } | Fault::BadSelection { .. } => Self::BadAccess,
            Fault::BadRequest { .. } => Self::Refused,
            Fault::WrongVersion { .. } => Self::WrongVersion,
            Fault::NoSpace { .. } => Self::NoSpace,
            Fault::Corrupt { .. } => Self::Corrupt,
            Fault::DiskFailed { .. } => Self::DiskFailed,
            Fault::ClientLeft { .. } => Self::MemberLeft,
            Fault::ServerLeft { .. } | Fault::WritesLost { .. } => Self::ServerLeft,
            Fault::CatalogueFailed { .. } => Self::CatalogueFailed,
            Fault::TransferFailed { .. } => Self::TransferFailed,
            Fault::PastEnd { .. } => Self::PastEnd,
            Fault::MembersMissing { .. } => Self::MembersMissing,
            Fault::CallsDiffer { .. } => Self::CallsDiffer,
            Fault::ServerStalled { .. } => Self::ServerStalled,
            Fault::CounterOverflow { .. } => Self::Usage,
            Fault::LockTimedOut { .. } => Self::LockTimedOut,
            Fault::ReadOnly => Self::ReadOnly,
            Fault::Cancelled => Self::Cancelled,
        }
    }

    /// Kind of an error of which only the exit code is known.
    pub fn of_code(code: ExitCode) -> Self {
        match code {
            ExitCode::Done | ExitCode::Failed => Self::Other,
            ExitCode::Usage => Self::Usage,
            ExitCode::NoServer => Self::NoInstance,
            ExitCode::DataCheck => Self::Corrupt,
            ExitCode::Collective => Self::Cancelled,
            ExitCode::NoSpace => Self::NoSpace,
            ExitCode::NotStagedOut => Self::LocalFile,
        }
    }
}

/// Things that an error is about, as far as they are known.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ErrorPlace {
    /// Name of the file.
    pub file: Option<String>,
    /// Bytes of the file.
    pub range: Option<ByteRange>,
    /// Server whose disk, process or connection it is.
    pub server: Option<ServerId>,
    /// Ranks of the group, ascending.
    pub ranks: Vec<ClientId>,
}

impl ErrorPlace {
    /// Place that a fault names.
    pub fn of_fault(fault: &Fault) -> Self {
        let nowhere = Self::default();
        let file = |name: &str| Self { file: Some(name.to_owned()), ..Self::default() };
        match fault {
            Fault::NoSuchFile { name }
            | Fault::FileExists { name }
            | Fault::NoSuchDirectory { name }
            | Fault::NotADirectory { name }
            | Fault::IsADirectory { name }
            | Fault::DirectoryNotEmpty { name } => file(name),
            Fault::BadName { name, .. } | Fault::IsSpecial { name, .. } => file(name),
            Fault::PastEnd { file: name, .. } => file(name),
            Fault::Corrupt { file: name, offset, length, server, .. } => Self {
                range: Some(ByteRange::at(*offset, *length)),
                server: Some(*server),
                ..file(name)
            },
            Fault::NoSpace { server, .. }
            | Fault::DiskFailed { server, .. }
            | Fault::ServerLeft { server, .. }
            | Fault::ServerStalled { server, .. } => Self { server: Some(*server), ..nowhere },
            Fault::ClientLeft { client, .. } => Self { ranks: vec![*client], ..nowhere },
            Fault::LockTimedOut { holder, .. } => Self { ranks: vec![*holder], ..nowhere },
            Fault::MembersMissing { missing, .. } => Self { ranks: missing.clone(), ..nowhere },
            Fault::BadAccess { .. }
            | Fault::BadSelection { .. }
            | Fault::BadRequest { .. }
            | Fault::WrongVersion { .. }
            | Fault::CatalogueFailed { .. }
            | Fault::TransferFailed { .. }
            | Fault::WritesLost { .. }
            | Fault::CallsDiffer { .. }
            | Fault::CounterOverflow { .. }
            | Fault::ReadOnly
            | Fault::Cancelled => nowhere,
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the table has one row for each kind, in the order of their numbers, with a name that
    //! no other has, an errno, and an error class that MPI defines.
    use super::*;
    use std::collections::BTreeSet;

    /// The error classes of MPI-4.0, table 9.4 and section 14.7, that a file operation may have.
    const MPI_CLASSES: [&str; 12] = [
        "MPI_ERR_ARG",
        "MPI_ERR_BAD_FILE",
        "MPI_ERR_FILE_EXISTS",
        "MPI_ERR_FILE_IN_USE",
        "MPI_ERR_INTERN",
        "MPI_ERR_IO",
        "MPI_ERR_NOT_SAME",
        "MPI_ERR_NO_SPACE",
        "MPI_ERR_NO_SUCH_FILE",
        "MPI_ERR_OTHER",
        "MPI_ERR_QUOTA",
        "MPI_ERR_READ_ONLY",
    ];

    #[test]
    fn the_table_has_one_row_for_each_kind() {
        let names: BTreeSet<_> = KINDS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), KINDS.len());
        for (number, row) in (1..).zip(KINDS) {
            assert_eq!(row.kind as u32, number);
            assert_eq!(ErrorKind::of_number(number), Some(row.kind));
            assert_eq!(row.kind.row(), &row);
            assert!(row.errno > 0 && row.code != ExitCode::Done, "{row:?}");
            assert!(MPI_CLASSES.contains(&row.mpi_class), "{row:?}");
        }
        assert_eq!(ErrorKind::of_number(0), None);
        assert_eq!(ErrorKind::of_number(KINDS.len() as u32 + 1), None);
    }

    #[test]
    fn a_fault_keeps_what_it_names() {
        let (file, cause) = ("f".to_owned(), String::new());
        let (offset, length, server) = (4096, 10, ServerId(2));
        let damaged = Fault::Corrupt { file, offset, length, server, cause };
        let place = ErrorPlace::of_fault(&damaged);
        assert_eq!(place.file.as_deref(), Some("f"));
        assert_eq!(place.range, Some(ByteRange::at(4096, 10)));
        assert_eq!((place.server, place.ranks), (Some(ServerId(2)), vec![]));
        assert_eq!(ErrorKind::of_fault(&damaged).row().code, ExitCode::DataCheck);
        let missing = vec![ClientId(1), ClientId(5)];
        let fault = Fault::MembersMissing { missing, call: String::new(), waited_ms: 1 };
        assert_eq!(ErrorPlace::of_fault(&fault).ranks, [ClientId(1), ClientId(5)]);
        let fault =
            Fault::LockTimedOut { holder: ClientId(3), start: 0, end: 1, waited_ms: 60_000 };
        assert_eq!(ErrorPlace::of_fault(&fault).ranks, [ClientId(3)]);
        assert_eq!(ErrorKind::of_fault(&fault).row().code, ExitCode::Collective);
    }
}
