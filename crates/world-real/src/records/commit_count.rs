//! Commit count: a lower bound of the number of committed transactions, beside the database that
//! counts them.
//!
//! Damage to the last writes of a killed process looks like an interrupted transaction, and the
//! library falls back to the one before. So each acknowledged transaction is counted in a file of
//! its own. That costs one system call, which survives a kill, and no disk wait. After a power
//! failure the count may be too small, never too large.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Name of the file, beside the database.
pub(super) const LAST_FILE: &str = "records.last";

/// Size of the count and the checksum of its bytes, little-endian.
const BYTES: usize = 12;

/// Commit count; `None` on a disk without space for the file.
pub(super) struct CommitCount(Option<File>);

impl CommitCount {
    /// Opens the count in `directory`.
    pub(super) fn open(directory: &Path) -> std::io::Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        match options.open(directory.join(LAST_FILE)) {
            Err(error) if super::is_no_room(&error) => Ok(Self(None)),
            opened => opened.map(|file| Self(Some(file))),
        }
    }

    /// Sets the count. After an error the older count stays.
    pub(super) fn set(&self, count: u64) {
        if let Some(file) = &self.0 {
            let _ = file.write_all_at(&encode(count), 0);
        }
    }

    /// Returns the count; 0 when it cannot be read.
    pub(super) fn count(&self) -> u64 {
        let mut bytes = [0; BYTES];
        let read = self.0.as_ref().map(|file| file.read_exact_at(&mut bytes, 0));
        let count = bytes[..8].iter().rev().fold(0, |count, byte| count << 8 | u64::from(*byte));
        if matches!(read, Some(Ok(()))) && encode(count) == bytes { count } else { 0 }
    }

    /// Makes the count durable, if the disk permits it.
    pub(super) fn sync(&self) {
        let _ = self.0.as_ref().map(File::sync_data);
    }
}

fn encode(count: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&count.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..8]);
    bytes[8..].copy_from_slice(&crc.to_le_bytes());
    bytes
}
