//! How many transactions were made at least, beside the database that counts them.
//!
//! Damage of what a killed process wrote last looks like a transaction that was cut short, and the
//! library goes back to the one before. So whoever has been told of a transaction is remembered in
//! a file of its own: a call of the system each time, which outlives the process, and no wait for
//! the disk. A loss of power may leave an older number there, never a later one.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// The file, beside the database.
pub(super) const LAST_FILE: &str = "records.last";

/// A number and the checksum of its bytes, little-endian.
const BYTES: usize = 12;

/// The number; without a file where the disk has no room for one.
pub(super) struct Last(Option<File>);

impl Last {
    /// The number in `directory`.
    pub(super) fn open(directory: &Path) -> std::io::Result<Self> {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        match options.open(directory.join(LAST_FILE)) {
            Err(error) if matches!(error.kind(), StorageFull | QuotaExceeded) => Ok(Self(None)),
            opened => opened.map(|file| Self(Some(file))),
        }
    }

    /// Remembers that so many transactions were made. Where that fails, an older number stays.
    pub(super) fn tell(&self, count: u64) {
        if let Some(file) = &self.0 {
            let _ = file.write_all_at(&encode(count), 0);
        }
    }

    /// So many were made at least; 0 where nothing can be read.
    pub(super) fn told(&self) -> u64 {
        let mut bytes = [0; BYTES];
        let read = self.0.as_ref().map(|file| file.read_exact_at(&mut bytes, 0));
        let count = bytes[..8].iter().rev().fold(0, |count, byte| count << 8 | u64::from(*byte));
        if matches!(read, Some(Ok(()))) && encode(count) == bytes { count } else { 0 }
    }

    /// Has the number on stable storage, where the disk can.
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
