//! Ids: numbers that name something and must never be added to anything.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($number:ty), $word:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $number);

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, concat!($word, " {}"), self.0)
            }
        }
    };
}

id!(
    /// The rank of a client in its group: 0, 1, 2, …
    ClientId(u32), "client"
);
id!(
    /// The number of a server in its instance: 0, 1, 2, …
    ServerId(u32), "server"
);
id!(
    /// The number of a disk among the disks of its server: 0, 1, 2, …
    DiskId(u32), "disk"
);
id!(
    /// A file, for the life of an instance; never used again after removal.
    FileId(u64), "file"
);
id!(
    /// The other end of a connection, as the network of one node numbers it.
    PeerId(u32), "peer"
);
id!(
    /// A memory that its owner exposed to one-sided access.
    RegionId(u64), "region"
);
