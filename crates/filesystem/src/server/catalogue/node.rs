//! An entry of the catalogue, and its stored form.

use policy::{Buffering, Pool, Protection, Stripe};
use serde::{Deserialize, Serialize};
use units::{FileId, ServerId, Timestamp};
use wire::{Attributes, FileDefaults, FileSize, Made, Special};

/// A file, a directory or a special entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "StoredNode", into = "StoredNode")]
pub(super) struct Node {
    /// Directory that contains it.
    pub(super) parent: FileId,
    /// Last part of its name.
    pub(super) part: String,
    pub(super) made: Made,
    /// Time of the last change: of a file the last that a client has reported, of a directory that
    /// of its entries.
    pub(super) modified: Timestamp,
    /// Attributes, once a mount has set some.
    pub(super) attributes: Option<Attributes>,
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
        protection: Protection,
    },
    Special(Special),
}

impl Node {
    pub(super) fn is_directory(&self) -> bool {
        matches!(self.kind, NodeKind::Directory { .. })
    }

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

/// Defaults of a directory as its record holds them, without protection.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredDefaults {
    block_bytes: Option<u64>,
    servers: Option<u32>,
    pool: Vec<ServerId>,
    map: Vec<ServerId>,
    buffering: Buffering,
}

/// Kind of a node, with what is stored of it.
// Stored: append only, pinned by the test below. The numbers are the positions that are stored.
#[derive(Serialize, Deserialize)]
#[repr(u8)]
enum StoredKind {
    /// Directory that no mount has used, with the time of its creation.
    Directory {
        defaults: StoredDefaults,
    } = 0,
    /// File of an older version, which kept no times.
    FileWithoutTime {
        size: FileSize,
        stripe: Stripe,
        pool: Pool,
        buffering: Buffering,
    } = 1,
    /// File that no mount has used.
    File {
        size: FileSize,
        stripe: Stripe,
        pool: Pool,
        buffering: Buffering,
        modified: Timestamp,
    } = 2,
    DirectoryWithAttributes {
        defaults: StoredDefaults,
        modified: Timestamp,
        attributes: Attributes,
    } = 3,
    FileWithAttributes {
        size: FileSize,
        stripe: Stripe,
        pool: Pool,
        buffering: Buffering,
        modified: Timestamp,
        attributes: Attributes,
    } = 4,
    Special {
        special: Special,
        modified: Timestamp,
        attributes: Option<Attributes>,
    } = 5,
    /// File with a protection.
    ProtectedFile {
        size: FileSize,
        stripe: Stripe,
        pool: Pool,
        buffering: Buffering,
        protection: Protection,
        modified: Timestamp,
        attributes: Option<Attributes>,
    } = 6,
    /// Directory that says how its files are protected.
    ProtectingDirectory {
        defaults: StoredDefaults,
        protection: Protection,
        modified: Timestamp,
        attributes: Option<Attributes>,
    } = 7,
}

impl StoredDefaults {
    /// Returns what is stored of defaults, and their protection.
    pub(super) fn of(defaults: FileDefaults) -> (Self, Option<Protection>) {
        let FileDefaults { block_bytes, servers, pool, map, buffering, protection } = defaults;
        (Self { block_bytes, servers, pool, map, buffering }, protection)
    }

    /// Returns the defaults with this protection.
    pub(super) fn with(self, protection: Option<Protection>) -> FileDefaults {
        let Self { block_bytes, servers, pool, map, buffering } = self;
        FileDefaults { block_bytes, servers, pool, map, buffering, protection }
    }
}

impl From<StoredNode> for Node {
    fn from(StoredNode { parent, part, made, kind }: StoredNode) -> Self {
        let directory = |defaults: StoredDefaults, protection| NodeKind::Directory {
            defaults: defaults.with(protection),
        };
        let file = |size, stripe, pool, buffering, protection| NodeKind::File {
            size,
            stripe,
            pool,
            buffering,
            protection,
        };
        use Protection::None as Unprotected;
        let (kind, modified, attributes) = match kind {
            StoredKind::Directory { defaults } => (directory(defaults, None), made.at(), None),
            StoredKind::FileWithoutTime { size, stripe, pool, buffering } => {
                (file(size, stripe, pool, buffering, Unprotected), made.at(), None)
            }
            StoredKind::File { size, stripe, pool, buffering, modified } => {
                (file(size, stripe, pool, buffering, Unprotected), modified, None)
            }
            StoredKind::DirectoryWithAttributes { defaults, modified, attributes } => {
                (directory(defaults, None), modified, Some(attributes))
            }
            StoredKind::FileWithAttributes {
                size,
                stripe,
                pool,
                buffering,
                modified,
                attributes,
            } => (file(size, stripe, pool, buffering, Unprotected), modified, Some(attributes)),
            StoredKind::Special { special, modified, attributes } => {
                (NodeKind::Special(special), modified, attributes)
            }
            StoredKind::ProtectedFile {
                size,
                stripe,
                pool,
                buffering,
                protection,
                modified,
                attributes,
            } => (file(size, stripe, pool, buffering, protection), modified, attributes),
            StoredKind::ProtectingDirectory { defaults, protection, modified, attributes } => {
                (directory(defaults, Some(protection)), modified, attributes)
            }
        };
        Self { parent, part, made, modified, attributes, kind }
    }
}

impl From<Node> for StoredNode {
    fn from(node: Node) -> Self {
        let Node { parent, part, made, modified, attributes, kind } = node;
        let kind = match kind {
            NodeKind::Directory { defaults } => {
                let (defaults, protection) = StoredDefaults::of(defaults);
                match (protection, attributes) {
                    (None, None) => StoredKind::Directory { defaults },
                    (None, Some(attributes)) => {
                        StoredKind::DirectoryWithAttributes { defaults, modified, attributes }
                    }
                    (Some(protection), attributes) => StoredKind::ProtectingDirectory {
                        defaults,
                        protection,
                        modified,
                        attributes,
                    },
                }
            }
            NodeKind::File { size, stripe, pool, buffering, protection } => {
                match (protection, attributes) {
                    (Protection::None, None) => {
                        StoredKind::File { size, stripe, pool, buffering, modified }
                    }
                    (Protection::None, Some(attributes)) => StoredKind::FileWithAttributes {
                        size,
                        stripe,
                        pool,
                        buffering,
                        modified,
                        attributes,
                    },
                    (protection, attributes) => StoredKind::ProtectedFile {
                        size,
                        stripe,
                        pool,
                        buffering,
                        protection,
                        modified,
                        attributes,
                    },
                }
            }
            NodeKind::Special(special) => StoredKind::Special { special, modified, attributes },
        };
        Self { parent, part, made, kind }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the record of each kind of node keeps its exact bytes.
    use super::*;
    use policy::{Declared, Prefetch, Replacement};
    use wire::{decode_record, encode_record};

    /// Number of the kind in a record of [`node`], behind the fields that all kinds have.
    const KIND_AT: usize = 6;

    /// Time of a change that is not that of the creation.
    const LATER: Timestamp = Timestamp::from_ns(300);

    fn node(kind: NodeKind, modified: Timestamp, attributes: Option<Attributes>) -> Node {
        let made = Made { owner: 1000, at_s: 2 };
        Node { parent: FileId(9), part: "a".to_owned(), made, modified, attributes, kind }
    }

    /// Numbers of a kind, without and with attributes. A kind without an arm does not compile.
    fn numbers(kind: &NodeKind) -> [u8; 2] {
        match kind {
            NodeKind::Directory { defaults } if defaults.protection.is_some() => [7, 7],
            NodeKind::Directory { .. } => [0, 3],
            NodeKind::File { protection: Protection::None, .. } => [2, 4],
            NodeKind::File { .. } => [6, 6],
            NodeKind::Special(_) => [5, 5],
        }
    }

    /// Kinds of nodes.
    struct Kinds {
        directory: NodeKind,
        protecting: NodeKind,
        file: NodeKind,
        mirrored: NodeKind,
        link: NodeKind,
    }

    fn kinds() -> Kinds {
        let (declared, replacement) = (Declared::Sequential, Some(Replacement::Mru));
        let prefetch = Some(Prefetch::Next);
        let buffering = Buffering { declared, replacement, prefetch, blocks_min: 2, blocks_max: 3 };
        let defaults = FileDefaults {
            block_bytes: Some(64),
            servers: Some(2),
            pool: vec![ServerId(4)],
            map: vec![ServerId(5)],
            buffering,
            protection: None,
        };
        let size = FileSize { cuts: 1, bytes: 300 };
        let file = |protection| {
            let (stripe, pool) = (Stripe::round_robin(64, 2, 3), Pool::all(2));
            NodeKind::File { size, stripe, pool, buffering, protection }
        };
        let protection = Some(Protection::None);
        Kinds {
            protecting: NodeKind::Directory {
                defaults: FileDefaults { protection, ..defaults.clone() },
            },
            directory: NodeKind::Directory { defaults },
            file: file(Protection::None),
            mirrored: file(Protection::Mirror),
            link: NodeKind::Special(Special::Link { target: "b".to_owned() }),
        }
    }

    #[test]
    fn each_kind_of_node_keeps_its_stored_bytes() {
        let Kinds { directory, protecting, file, mirrored, link } = kinds();
        let some = Some(Attributes {
            mode: 0o640,
            owner: Some(7),
            group: None,
            accessed: Timestamp::from_ns(3),
            changed: Timestamp::from_ns(4),
        });
        let made = Timestamp::from_seconds(2);
        let rows = [
            (
                node(directory.clone(), made, None),
                "09 01 61 e8 07 02 00 01 40 01 02 01 04 01 05 01 01 01 01 01 02 03",
            ),
            (
                node(file.clone(), LATER, None),
                "09 01 61 e8 07 02 02 01 ac 02 40 02 03 00 00 00 02 01 01 01 01 01 02 03 ac 02",
            ),
            (
                node(directory, LATER, some),
                "09 01 61 e8 07 02 03 01 40 01 02 01 04 01 05 01 01 01 01 01 02 03 ac 02 a0 03 \
                 01 07 00 03 04",
            ),
            (
                node(file, LATER, some),
                "09 01 61 e8 07 02 04 01 ac 02 40 02 03 00 00 00 02 01 01 01 01 01 02 03 ac 02 a0 \
                 03 01 07 00 03 04",
            ),
            (
                node(mirrored, LATER, None),
                "09 01 61 e8 07 02 06 01 ac 02 40 02 03 00 00 00 02 01 01 01 01 01 02 03 01 ac 02 \
                 00",
            ),
            (
                node(protecting, LATER, some),
                "09 01 61 e8 07 02 07 01 40 01 02 01 04 01 05 01 01 01 01 01 02 03 00 ac 02 01 a0 \
                 03 01 07 00 03 04",
            ),
            (node(link.clone(), LATER, None), "09 01 61 e8 07 02 05 00 01 62 ac 02 00"),
            (
                node(link, LATER, some),
                "09 01 61 e8 07 02 05 00 01 62 ac 02 01 a0 03 01 07 00 03 04",
            ),
            (
                node(NodeKind::Special(Special::Fifo), LATER, None),
                "09 01 61 e8 07 02 05 01 ac 02 00",
            ),
            (
                node(NodeKind::Special(Special::Socket), LATER, None),
                "09 01 61 e8 07 02 05 02 ac 02 00",
            ),
        ];
        for (node, bytes) in rows {
            let encoded = encode_record(&node);
            let shown: Vec<String> = encoded.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(shown.join(" "), bytes, "the bytes of {node:?} changed");
            assert!(numbers(&node.kind).contains(&encoded[KIND_AT]), "{node:?}");
            assert_eq!(decode_record::<Node>(&encoded), Ok(node));
        }
    }

    #[test]
    fn a_file_stored_without_a_time_has_that_of_its_creation() {
        let bytes =
            [9, 1, 0x61, 0xe8, 7, 2, 1, 1, 0xac, 2, 0x40, 2, 3, 0, 0, 0, 2, 1, 1, 1, 1, 1, 2, 3];
        let node: Node = decode_record(&bytes).unwrap();
        let NodeKind::File { size, .. } = &node.kind else { panic!("{node:?}") };
        assert_eq!((size.bytes, node.modified), (300, Timestamp::from_seconds(2)));
    }
}
