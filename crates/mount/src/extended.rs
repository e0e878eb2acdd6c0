//! Extended attributes: instance, name and layout of an entry.
//!
//! | name | value |
//! |---|---|
//! | `user.unisono.instance` | directory of the instance |
//! | `user.unisono.path` | name in the instance, empty for the root |
//! | `user.unisono.layout` | of a file its layout, of a directory that of new files in it |
//!
//! Of these the layout of a directory can be set. Lists of attributes leave them out: otherwise
//! programs that copy attributes would copy them. Other attributes are not kept.

use client::{Connection, EntryKind, FileDefaults, NodeEntry};
use fuser::Errno;

pub(crate) use client::{INSTANCE_ATTRIBUTE as INSTANCE, NAME_ATTRIBUTE as PATH};

pub(crate) const LAYOUT: &str = "user.unisono.layout";

/// Text of a layout: words `block_bytes=N`, `servers=N` and `disks_per_server=N`.
pub(crate) fn layout_text(found: &NodeEntry) -> String {
    let word = |name: &str, value: Option<u64>| value.map(|value| format!("{name}={value}"));
    let words = match &found.entry.kind {
        EntryKind::File(record) => [
            word("block_bytes", Some(record.stripe.block_bytes)),
            word("servers", Some(record.stripe.servers.into())),
            word("disks_per_server", Some(record.stripe.disks_per_server.into())),
        ],
        EntryKind::Directory(defaults) => [
            word("block_bytes", defaults.block_bytes),
            word("servers", defaults.servers.map(u64::from)),
            None,
        ],
        EntryKind::Special(_) => [None, None, None],
    };
    words.into_iter().flatten().collect::<Vec<String>>().join(" ")
}

/// Sets the layout of new files in a directory. Values that the text leaves out stay.
///
/// # Errors
/// `EINVAL` for a text that is no layout; `EPERM` for a file, whose layout never changes.
pub(crate) fn set_layout(
    connection: &Connection,
    found: &NodeEntry,
    text: &[u8],
) -> Result<(), Errno> {
    let EntryKind::Directory(defaults) = &found.entry.kind else { return Err(Errno::EPERM) };
    let text = std::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
    let mut defaults: FileDefaults = defaults.clone();
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').ok_or(Errno::EINVAL)?;
        match name {
            "block_bytes" => defaults.block_bytes = Some(number(value)?),
            "servers" => defaults.servers = Some(number(value)?),
            _ => return Err(Errno::EINVAL),
        }
    }
    let path = connection.node_path(found.node).map_err(|error| crate::errors::errno(&error))?;
    connection.set_defaults(&path, defaults).map_err(|_| Errno::EINVAL)
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, Errno> {
    value.parse().map_err(|_| Errno::EINVAL)
}
