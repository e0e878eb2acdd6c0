//! Extended attributes: instance, name, layout and protection of an entry.
//!
//! | name | value |
//! |---|---|
//! | `user.unisono.instance` | directory of the instance |
//! | `user.unisono.path` | name in the instance, empty for the root |
//! | `user.unisono.layout` | of a file its layout, of a directory that of new files in it |
//! | `user.unisono.protection` | of a file its protection, of a directory that of new files in it |
//!
//! Of these the layout of a directory and the protection of both can be set. Lists of attributes
//! leave them out: otherwise programs that copy attributes would copy them. Other attributes are
//! not kept.

use client::{Connection, EntryKind, FileDefaults, NodeEntry, Protection};
use fuser::Errno;
use interface::{ErrorKind, UserError};

pub(crate) use client::{INSTANCE_ATTRIBUTE as INSTANCE, NAME_ATTRIBUTE as PATH};

pub(crate) const LAYOUT: &str = "user.unisono.layout";

pub(crate) const PROTECTION: &str = "user.unisono.protection";

/// Word of a protection: `none`, `mirror`, `parity` or `parity:N`.
///
/// # Errors
/// `ENODATA` for what has no data.
pub(crate) fn protection_word(found: &NodeEntry) -> Result<String, Errno> {
    match &found.entry.kind {
        EntryKind::File(record) => Ok(record.protection.to_string()),
        EntryKind::Directory(defaults) => Ok(defaults.protection.unwrap_or_default().to_string()),
        EntryKind::Special(_) => Err(Errno::ENODATA),
    }
}

/// Protects a file, or ceases to; of a directory, sets the protection of new files in it.
///
/// # Errors
/// `EINVAL` for a word that is no protection, and when there are too few servers; `EPERM` for what
/// has no data; faults of servers.
pub(crate) fn set_protection(
    connection: &Connection,
    found: &NodeEntry,
    word: &[u8],
) -> Result<(), Errno> {
    let word = std::str::from_utf8(word).map_err(|_| Errno::EINVAL)?;
    let protection: Protection = word.trim_end().parse().map_err(|_| Errno::EINVAL)?;
    protection.validate_on(connection.servers()).map_err(|_| Errno::EINVAL)?;
    let failed = |error: UserError| match error.kind {
        ErrorKind::Refused => Errno::EINVAL,
        _ => crate::errors::errno(&error),
    };
    match &found.entry.kind {
        EntryKind::File(record) => connection.protect_file(record.clone(), protection),
        EntryKind::Directory(defaults) => {
            let defaults = FileDefaults { protection: Some(protection), ..defaults.clone() };
            let path = connection.node_path(found.node).map_err(failed)?;
            connection.set_defaults(&path, defaults)
        }
        EntryKind::Special(_) => return Err(Errno::EPERM),
    }
    .map_err(failed)
}

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
