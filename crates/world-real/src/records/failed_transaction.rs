//! Failed transaction, which may have been committed nevertheless, and its undo record, in a file
//! beside the database. The next process that opens the database must not find the transaction
//! either.
//!
//! ```text
//! byte 0     8         12
//!      | crc | count   | key | present | length | bytes | the next change | ...
//! ```
//!
//! All numbers are little-endian. An unreadable file counts as missing: the failed disk may have
//! lost it too.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use world::RecordChange;

const FAILED_FILE: &str = "records.failed";

/// Failed transaction with its undo record.
pub(super) struct FailedTransaction {
    /// Number of transactions, including this one.
    pub(super) count: u64,
    /// Changes that undo it, in this order; applying them twice is harmless.
    pub(super) inverse: Vec<RecordChange>,
}

impl FailedTransaction {
    /// Loads the transaction that is saved in `directory`.
    pub(super) fn load(directory: &Path) -> Option<Self> {
        decode(&std::fs::read(directory.join(FAILED_FILE)).ok()?)
    }

    /// Saves the transaction for the next process that opens the database.
    pub(super) fn save(&self, directory: &Path) {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(directory.join(FAILED_FILE));
        // The process remembers it too, as long as it lives.
        let _ = file.and_then(|mut file| file.write_all(&self.encode()));
    }

    /// Removes the saved transaction durably, after the undo or when it never took effect.
    pub(super) fn forget(directory: &Path) -> io::Result<()> {
        match std::fs::remove_file(directory.join(FAILED_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            // The sync is needed after an earlier removal too, which may not be durable.
            _ => File::open(directory)?.sync_all(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend(self.count.to_le_bytes());
        for RecordChange { key, value } in &self.inverse {
            let content = value.as_deref().unwrap_or_default();
            bytes.extend(key.to_le_bytes());
            bytes.push(u8::from(value.is_some()));
            bytes.extend((content.len() as u64).to_le_bytes());
            bytes.extend(content);
        }
        let crc = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

fn decode(bytes: &[u8]) -> Option<FailedTransaction> {
    let (crc, mut rest) = bytes.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*crc) != crc32c::crc32c(rest) {
        return None;
    }
    let number = |rest: &mut &[u8]| {
        let (number, behind) = rest.split_first_chunk::<8>()?;
        *rest = behind;
        Some(u64::from_le_bytes(*number))
    };
    let count = number(&mut rest)?;
    let mut inverse = Vec::new();
    while !rest.is_empty() {
        let key = number(&mut rest)?;
        let (is_present, behind) = rest.split_first()?;
        rest = behind;
        let length = usize::try_from(number(&mut rest)?).ok()?;
        let (content, behind) = rest.split_at_checked(length)?;
        rest = behind;
        let value = (*is_present == 1).then(|| content.to_vec());
        inverse.push(RecordChange { key, value });
    }
    Some(FailedTransaction { count, inverse })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_transaction_loads_and_truncated_one_does_not() {
        let directory = tempfile::tempdir().expect("a test must have room");
        let path = directory.path();
        assert!(FailedTransaction::load(path).is_none());
        let inverse = vec![RecordChange::put(7, b"seven".to_vec()), RecordChange::remove(u64::MAX)];
        FailedTransaction { count: 3, inverse: inverse.clone() }.save(path);
        let loaded = FailedTransaction::load(path).expect("it is there");
        assert_eq!((loaded.count, loaded.inverse), (3, inverse));
        let file = path.join(FAILED_FILE);
        let whole = std::fs::read(&file).expect("it is there");
        for length in 0..whole.len() {
            std::fs::write(&file, &whole[..length]).expect("a test may write");
            assert!(FailedTransaction::load(path).is_none(), "{length} bytes of it");
        }
        FailedTransaction::forget(path).expect("it can go");
        assert!(!file.exists() && FailedTransaction::forget(path).is_ok());
    }
}
