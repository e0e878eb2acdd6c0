//! Ids: numbers that name something. They have no arithmetic.

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
    /// Rank of a client in its group: 0, 1, 2, …
    ClientId(u32), "client"
);
id!(
    /// Number of a server in its instance: 0, 1, 2, …
    ServerId(u32), "server"
);
id!(
    /// Number of a disk among the disks of its server: 0, 1, 2, …
    DiskId(u32), "disk"
);
id!(
    /// File number, unique for the life of an instance. It is not reused after removal.
    FileId(u64), "file"
);
id!(
    /// Number of a connection's other end, given by the network of one node.
    PeerId(u32), "peer"
);
id!(
    /// Memory that its owner exposed to one-sided access.
    RegionId(u64), "region"
);
