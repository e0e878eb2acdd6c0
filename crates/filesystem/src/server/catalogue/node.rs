//! A file or a directory of the catalogue, and its stored form.

use policy::{Buffering, Pool, Stripe};
use serde::{Deserialize, Serialize};
use units::{FileId, Timestamp};
use wire::{FileDefaults, FileSize, Made};

/// A file or a directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "StoredNode", into = "StoredNode")]
pub(super) struct Node {
    /// Directory that contains it.
    pub(super) parent: FileId,
    /// Last part of its name.
    pub(super) part: String,
    pub(super) made: Made,
    pub(super) kind: NodeKind,
}

/// Kind of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum NodeKind {
    Directory {
        defaults: FileDefaults,
    },
    File {
        size: FileSize,
        stripe: Stripe,
        pool: Pool,
        buffering: Buffering,
        /// Time of the last change that a client has reported.
        modified: Timestamp,
    },
}

impl Node {
    pub(super) fn is_file(&self) -> bool {
        matches!(self.kind, NodeKind::File { .. })
    }
}

/// A node as its record holds it.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredNode {
    parent: FileId,
    part: String,
    made: Made,
    kind: StoredKind,
}

/// Kind of a node, with what is stored of it.
// Stored: append only, pinned by the test below. The numbers are the positions that are stored.
#[derive(Serialize, Deserialize)]
#[repr(u8)]
enum StoredKind {
    Directory {
        defaults: FileDefaults,
    } = 0,
    /// File of an older version, which kept no times.
    FileWithoutTime {
        size: FileSize,
        stripe: Stripe,
        pool: Pool,
        buffering: Buffering,
    } = 1,
    File {
        size: FileSize,
        stripe: Stripe,
        pool: Pool,
        buffering: Buffering,
        modified: Timestamp,
    } = 2,
}

impl From<StoredNode> for Node {
    fn from(StoredNode { parent, part, made, kind }: StoredNode) -> Self {
        let kind = match kind {
            StoredKind::Directory { defaults } => NodeKind::Directory { defaults },
            StoredKind::FileWithoutTime { size, stripe, pool, buffering } => {
                NodeKind::File { size, stripe, pool, buffering, modified: made.at() }
            }
            StoredKind::File { size, stripe, pool, buffering, modified } => {
                NodeKind::File { size, stripe, pool, buffering, modified }
            }
        };
        Self { parent, part, made, kind }
    }
}

impl From<Node> for StoredNode {
    fn from(Node { parent, part, made, kind }: Node) -> Self {
        let kind = match kind {
            NodeKind::Directory { defaults } => StoredKind::Directory { defaults },
            NodeKind::File { size, stripe, pool, buffering, modified } => {
                StoredKind::File { size, stripe, pool, buffering, modified }
            }
        };
        Self { parent, part, made, kind }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the record of each kind of node keeps its exact bytes.
    use super::*;
    use policy::{Declared, Prefetch, Replacement};
    use units::ServerId;
    use wire::{decode_record, encode_record};

    /// Number of the kind in a record of [`node`], behind the fields that all kinds have.
    const KIND_AT: usize = 6;

    fn node(kind: NodeKind) -> Node {
        let made = Made { owner: 1000, at_s: 2 };
        Node { parent: FileId(9), part: "a".to_owned(), made, kind }
    }

    /// Number of a kind. A kind without an arm, and so without a row below, does not compile.
    fn number(kind: &NodeKind) -> u8 {
        match kind {
            NodeKind::Directory { .. } => 0,
            NodeKind::File { .. } => 2,
        }
    }

    #[test]
    fn each_kind_of_node_keeps_its_stored_bytes() {
        let (declared, replacement) = (Declared::Sequential, Some(Replacement::Mru));
        let prefetch = Some(Prefetch::Next);
        let buffering = Buffering { declared, replacement, prefetch, blocks_min: 2, blocks_max: 3 };
        let defaults = FileDefaults {
            block_bytes: Some(64),
            servers: Some(2),
            pool: vec![ServerId(4)],
            map: vec![ServerId(5)],
            buffering,
        };
        let size = FileSize { cuts: 1, bytes: 300 };
        let (stripe, pool) = (Stripe::round_robin(64, 2, 3), Pool::all(2));
        let modified = Timestamp::from_ns(300);
        let rows = [
            (
                NodeKind::Directory { defaults },
                "09 01 61 e8 07 02 00 01 40 01 02 01 04 01 05 01 01 01 01 01 02 03",
            ),
            (
                NodeKind::File { size, stripe, pool, buffering, modified },
                "09 01 61 e8 07 02 02 01 ac 02 40 02 03 00 00 00 02 01 01 01 01 01 02 03 ac 02",
            ),
        ];
        for (kind, bytes) in rows {
            let node = node(kind);
            let encoded = encode_record(&node);
            let shown: Vec<String> = encoded.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(shown.join(" "), bytes, "the bytes of {node:?} changed");
            assert_eq!(encoded[KIND_AT], number(&node.kind), "{node:?}");
            assert_eq!(decode_record::<Node>(&encoded), Ok(node));
        }
    }

    #[test]
    fn a_file_stored_without_a_time_has_that_of_its_creation() {
        let bytes =
            [9, 1, 0x61, 0xe8, 7, 2, 1, 1, 0xac, 2, 0x40, 2, 3, 0, 0, 0, 2, 1, 1, 1, 1, 1, 2, 3];
        let node: Node = decode_record(&bytes).unwrap();
        let NodeKind::File { size, modified, .. } = node.kind else { panic!("{node:?}") };
        assert_eq!((size.bytes, modified), (300, Timestamp::from_seconds(2)));
    }
}
