//! Requests for the catalogue, which server 0 has.

use crate::{FileDefaults, FileRecord, FileSize, Made};
use policy::Protection;
use serde::{Deserialize, Serialize};
use units::{FileId, ServerId, Timestamp};

/// Request for the catalogue.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum CatalogueRequest {
    /// Creates a file. The catalogue chooses its number and ignores `record.file`.
    Create {
        /// Record of the file.
        record: FileRecord,
        /// Owner and time of the creation.
        made: Made,
    },
    /// Creates a directory.
    MakeDirectory {
        /// Name of the entry.
        name: String,
        /// Owner and time of the creation.
        made: Made,
    },
    /// Sets the defaults of new files in a directory. Existing files keep theirs.
    SetDefaults {
        /// Name of the directory.
        directory: String,
        /// Defaults of new files.
        defaults: FileDefaults,
    },
    /// Looks up a name.
    Stat {
        /// Name of the entry.
        name: String,
    },
    /// Lists a directory in the order of its names, one part at a time.
    List {
        /// Name of the entry.
        directory: String,
        /// Last part of the name to begin after. Without it, the list begins with the first name.
        after: Option<String>,
    },
    /// Renames a file, or a directory with its contents.
    Rename {
        /// Name of the entry.
        from: String,
        /// New name.
        to: String,
        /// True if a file with the new name is replaced atomically. The reply names that file, and
        /// the sender must drop its data. If false, the new name must be free.
        replace: bool,
    },
    /// Removes an empty directory, or the name of a file. The reply names that file, and
    /// the sender must drop its data.
    Remove {
        /// Name of the entry.
        name: String,
    },
    /// Records the size of a file, if it is greater than the known one, after all its
    /// servers know it.
    RecordSize {
        /// Number of the file.
        file: FileId,
        /// Size of the file.
        size: FileSize,
    },
    /// Records the time of the last change of a file.
    RecordModified {
        /// Number of the file.
        file: FileId,
        /// Time of the last change, as its servers know it.
        modified: Timestamp,
        /// True if a user has set the time, which is then on stable storage before the reply. If
        /// false, a later recorded time stays.
        is_set: bool,
    },
    /// Lists the files without a name that may still have data at their servers.
    Nameless {
        /// File to begin after, in the order of file numbers.
        after: Option<FileId>,
    },
    /// Forgets a file without a name, because no server has data of it any more.
    Forget {
        /// Number of the file.
        file: FileId,
    },
    /// Changes the copy of the catalogue at a server that does not keep the catalogue. The reply is
    /// [`Reply::Copied`](crate::Reply::Copied).
    Copy(CatalogueChange),
    /// Records whether copies of what a server holds of mirrored files may be behind. Only that
    /// server asks for it.
    SetBehind {
        /// Number of the server that holds what is copied.
        server: ServerId,
        /// True if a copy of its part of some file may lack changes.
        is_behind: bool,
    },
    /// Asks for the servers of which copies may be behind. The reply is
    /// [`Reply::Servers`](crate::Reply::Servers).
    Behind,
    /// Lists all files, in the order of their numbers. The reply is
    /// [`Reply::Entries`](crate::Reply::Entries).
    Files {
        /// File to begin after.
        after: Option<FileId>,
    },
    /// Records the protection of a file. Its servers know it before they write copies, and after
    /// they have ceased to.
    Protect {
        /// Number of the file.
        file: FileId,
        /// Protection of the file.
        protection: Protection,
    },
}

/// Changes of the records of the catalogue, for a copy of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CatalogueChange {
    /// Position that the copy must have; `None` for a copy that begins anew.
    pub from: Option<u64>,
    /// Position of the copy afterwards; 0 while a new one is not whole.
    pub to: u64,
    /// Each record by its key, in the order of the changes; `None` removes it.
    pub records: Vec<(u64, Option<Vec<u8>>)>,
}
