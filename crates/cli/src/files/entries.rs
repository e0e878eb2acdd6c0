//! Presentation of files and directories of an instance.

use crate::output::format::{plural, printable, show_size};
use client::{Entry, EntryKind, FileRecord, Special, Timestamp};
use serde_json::{Value, json};

/// Name, size and stripe of a file, in one line.
pub(crate) fn file_line(record: &FileRecord) -> String {
    format!(
        "{}  {} bytes in blocks of {} over {} with {} each",
        printable(&record.name),
        record.bytes,
        show_size(record.stripe.block_bytes),
        plural(record.stripe.servers, "server"),
        plural(record.stripe.disks_per_server, "disk"),
    )
}

pub(crate) fn file_json(record: &FileRecord) -> Value {
    let pool: Vec<u32> = record.servers().map(|server| server.0).collect();
    json!({
        "name": record.name, "bytes": record.bytes, "file": record.file.0,
        "block_bytes": record.stripe.block_bytes, "servers": record.stripe.servers,
        "disks_per_server": record.stripe.disks_per_server, "pool": pool,
    })
}

pub(crate) fn entry_json(entry: &Entry) -> Value {
    let mut object = match &entry.kind {
        EntryKind::File(record) => file_json(record),
        EntryKind::Special(Special::Link { target }) => {
            json!({ "name": entry.name, "target": target })
        }
        EntryKind::Directory(_) | EntryKind::Special(_) => json!({ "name": entry.name }),
    };
    object["type"] = kind_of(entry).into();
    object["owner"] = entry.made.owner.into();
    object["created"] = time_text(entry.made.at()).into();
    object["modified"] = time_text(entry.modified).into();
    object["modified_ns"] = entry.modified.as_ns().into();
    object
}

/// Line with the size, in units if `in_units`.
pub(crate) fn short_line(entry: &Entry, name: &str, in_units: bool) -> String {
    let name = printable(name);
    match &entry.kind {
        EntryKind::File(record) if in_units => format!("{:>14}  {name}", show_size(record.bytes)),
        EntryKind::File(record) => format!("{:>14}  {name}", record.bytes),
        EntryKind::Directory(_) => format!("{:>14}  {name}/", "-"),
        EntryKind::Special(Special::Link { target }) => {
            format!("{:>14}  {name} -> {}", target.len(), printable(target))
        }
        EntryKind::Special(_) => format!("{:>14}  {name}", "-"),
    }
}

/// Line with owner, time of the last change, and stripe.
pub(crate) fn long_line(entry: &Entry, name: &str, in_units: bool) -> String {
    let stripe = entry.file().map(|record| {
        let stripe = &record.stripe;
        let unit = show_size(stripe.block_bytes);
        format!("{unit} x {}", u64::from(stripe.servers) * u64::from(stripe.disks_per_server))
    });
    let stripe = stripe.unwrap_or_else(|| "-".to_owned());
    let (owner, time) = (entry.made.owner, time_text(entry.modified));
    let line = short_line(entry, name, in_units);
    format!("{owner:>7}  {time:<20}  {stripe:>12}  {line}")
}

pub(crate) fn kind_of(entry: &Entry) -> &'static str {
    match entry.kind {
        EntryKind::File(_) => "file",
        EntryKind::Directory(_) => "directory",
        EntryKind::Special(Special::Link { .. }) => "link",
        EntryKind::Special(Special::Fifo) => "fifo",
        EntryKind::Special(Special::Socket) => "socket",
    }
}

/// Time in UTC, to the second. A time outside the calendar is shown as none.
pub(crate) fn time_text(time: Timestamp) -> String {
    let seconds = i64::try_from(time.as_seconds()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "-".to_owned(), |time| time.to_string())
}

/// Last part of a name; a slash for the root.
pub(crate) fn last_part(name: &str) -> &str {
    match name.rsplit('/').next() {
        Some("") | None => "/",
        Some(part) => part,
    }
}
