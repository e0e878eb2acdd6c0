//! Requests for files and directories by number, as a mount makes them.
//!
//! A name is the number of its directory and one part, so that an entry is found whatever its
//! directories are called by now. The catalogue, which server 0 has, serves these requests.

use crate::{Entry, FileRecord, Made, Special};
use serde::{Deserialize, Serialize};
use units::{FileId, Timestamp};

/// Number of the root directory.
pub const ROOT: FileId = FileId(0);

/// Largest target of a symbolic link, in bytes.
pub const LINK_BYTES_MAX: usize = 4095;

/// Bits of a mode: permissions, set-user-id, set-group-id and sticky.
pub const MODE_BITS: u16 = 0o7777;

/// Request for an entry by number.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum NodeRequest {
    /// Finds the entry of a name.
    Find(Place),
    /// Returns the entry of a number. A file without a name has one until its data is gone.
    Look {
        /// Number of the entry.
        node: FileId,
    },
    /// Makes an entry. The catalogue chooses its number.
    Make(Box<NewNode>),
    /// Changes the attributes of an entry.
    Change {
        /// Number of the entry.
        node: FileId,
        /// New values.
        changes: AttributeChanges,
    },
    /// Removes a name. If it was that of a file, the reply is its entry, and the sender must drop
    /// its data.
    Remove {
        /// Name.
        place: Place,
        /// True to remove a directory, which must be empty; false to remove anything else.
        is_directory: bool,
    },
    /// Gives an entry another name. If that was the name of another file, the reply is the entry of
    /// that file, and the sender must drop its data.
    Rename {
        /// Name.
        from: Place,
        /// New name.
        to: Place,
        /// Treatment of an entry that has the new name.
        manner: RenameManner,
    },
    /// Lists a directory in the order of its names, one part at a time.
    List {
        /// Number of the directory.
        directory: FileId,
        /// Name to begin after. Without it, the list begins with the first name.
        after: Option<String>,
    },
    /// Returns the entry of a number under its whole name.
    Path {
        /// Number of the entry.
        node: FileId,
    },
}

/// Name of an entry: a directory, and a part without a slash.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Place {
    /// Number of the directory.
    pub directory: FileId,
    /// Name in that directory.
    pub part: String,
}

/// Description of a new entry.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NewNode {
    /// Name. It must be free.
    pub place: Place,
    /// Owner and time of the creation.
    pub made: Made,
    /// Group.
    pub group: u32,
    /// Bits of its mode.
    pub mode: u16,
    /// Kind of entry.
    pub kind: NewKind,
}

/// Kind of a new entry.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum NewKind {
    /// Directory. It inherits the defaults of the directory that it is in.
    Directory,
    /// File. Number and name of the record are ignored.
    File(FileRecord),
    /// Entry that only a mount knows how to use.
    Special(Special),
}

/// Behaviour of a rename when another entry has the new name.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RenameManner {
    /// The entry replaces the other one, which must not be a directory with entries.
    Replace,
    /// The rename fails.
    Keep,
    /// The two entries exchange their names.
    Exchange,
}

/// Attributes of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attributes {
    /// Permissions, set-user-id, set-group-id and sticky bit.
    pub mode: u16,
    /// User id of the owner. `None` for the user of the instance.
    pub owner: Option<u32>,
    /// Group id. `None` for the group of the instance.
    pub group: Option<u32>,
    /// Time of the last access, as far as it was set.
    pub accessed: Timestamp,
    /// Time of the last change of data or attributes.
    pub changed: Timestamp,
}

/// New values of attributes; `None` leaves a value as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AttributeChanges {
    /// Bits of the mode.
    pub mode: Option<u16>,
    /// User id of the owner.
    pub owner: Option<u32>,
    /// Group id.
    pub group: Option<u32>,
    /// Time of the last access.
    pub accessed: Option<Timestamp>,
    /// Time of the last change of data. That of a file must also be set at its servers.
    pub modified: Option<Timestamp>,
}

/// Entry with its number and attributes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeEntry {
    /// Number of the entry.
    pub node: FileId,
    /// True if it has a name.
    pub is_named: bool,
    /// Entry. Its name is the last part of the whole name.
    pub entry: Entry,
    /// Attributes.
    pub attributes: Attributes,
}
