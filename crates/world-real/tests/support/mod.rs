//! Nodes in a directory of their own, for the tests of this crate.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod device;
pub(crate) mod disks;
pub(crate) mod nodes;
pub(crate) mod preloaded;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use units::MIB;
use world::{Address, RecordTable};
use world_real::{DiskConfig, NodeConfig, RealWorld, WireProtection};

/// Network between nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Unix sockets, with one-sided copies between processes.
    OneSided,
    /// Unix sockets, with frames only.
    Framed,
    /// TCP without protection.
    Tcp,
    /// TCP whose bytes are authenticated.
    TcpIntegrity,
    /// TCP whose bytes are authenticated and encrypted.
    TcpPrivate,
}

/// All kinds.
pub(crate) const KINDS: [Kind; 5] =
    [Kind::OneSided, Kind::Framed, Kind::Tcp, Kind::TcpIntegrity, Kind::TcpPrivate];

impl Kind {
    /// Returns the protection of connections over TCP.
    pub(crate) fn protection(self) -> Option<WireProtection> {
        match self {
            Self::OneSided | Self::Framed => None,
            Self::Tcp => Some(WireProtection::Plain),
            Self::TcpIntegrity => Some(WireProtection::Integrity),
            Self::TcpPrivate => Some(WireProtection::Private),
        }
    }
}

/// Key of nodes that connect over TCP.
pub(crate) const KEY: [u8; 32] = [7; 32];

/// Directory that is removed with its contents.
pub(crate) struct Place(PathBuf);

impl Place {
    /// Creates a directory.
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("unisono-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a test must have room");
        Self(path)
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the configuration of node `index`: one disk, records, and an address.
    pub(crate) fn config(&self, kind: Kind, index: usize) -> NodeConfig {
        let home = self.0.join(format!("node-{index}"));
        std::fs::create_dir_all(&home).expect("a test must have room");
        let protection = kind.protection();
        let listen = match protection {
            Some(_) => "tcp:127.0.0.1:0".to_owned(),
            None => format!("unix:{}/socket", home.display()),
        };
        let records = RecordTable::ALL.map(|table| {
            let directory = home.join(format!("{table:?}"));
            std::fs::create_dir_all(&directory).expect("a test must have room");
            (table, directory)
        });
        NodeConfig {
            listen: Some(Address(listen)),
            disks: vec![DiskConfig::at(&home)],
            records: records.into(),
            key: protection.map(|_| KEY),
            wire: protection,
            // The first node lends to the others.
            lent_bytes_max: if kind == Kind::OneSided && index == 0 { 64 * MIB } else { 0 },
            hang_limit: None,
            limits: None,
        }
    }

    /// Opens node `index`.
    pub(crate) fn node(&self, kind: Kind, index: usize) -> RealWorld {
        open(kind, self.config(kind, index))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Opens a node.
pub(crate) fn open(kind: Kind, config: NodeConfig) -> RealWorld {
    let opened = match kind {
        Kind::Framed => RealWorld::open_framed(config),
        _ => RealWorld::open(config),
    };
    opened.expect("a node must open")
}
