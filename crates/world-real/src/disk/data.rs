//! The bytes of one object: a sparse file, used through the page cache or past it.
//!
//! Past it (O_DIRECT) memory, offset and length of each transfer are multiples of
//! [`SECTOR_BYTES`]; whoever calls sees to offset and length, and memory that is not aligned is
//! copied here. The system calls are those of the C library, so that a test can make them fail.

use crate::memory::RealMemory;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};

/// What offsets, lengths and memory are multiples of in transfers past the page cache: no device
/// in use asks for more.
pub(super) const SECTOR_BYTES: u64 = 4096;

/// Bytes that are copied at a time when memory is not aligned.
const COPY_BYTES: usize = 1 << 20;

/// The file of an object's bytes.
pub(super) struct Data {
    file: File,
    direct: bool,
}

impl Data {
    /// The flags to open it with.
    pub(super) fn flags(direct: bool) -> OFlags {
        if direct { OFlags::DIRECT } else { OFlags::empty() }
    }

    /// An open file, opened with the flags for `direct`.
    pub(super) fn new(file: File, direct: bool) -> Self {
        Self { file, direct }
    }

    /// Whether transfers go past the page cache.
    pub(super) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Where the file ends.
    pub(super) fn length(&self) -> std::io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Bytes of the device that the file takes.
    pub(super) fn room(&self) -> std::io::Result<u64> {
        // `st_blocks` counts units of 512 bytes, whatever the device has.
        Ok(self.file.metadata()?.blocks() * 512)
    }

    /// Fills `bytes` with those from `offset` on; zeros beyond the end of the file. Past the page
    /// cache `bytes` are aligned.
    pub(super) fn read(&self, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // Past the page cache, a read that ends within a sector has met the end of the file.
            if self.direct && !(filled as u64).is_multiple_of(SECTOR_BYTES) {
                break;
            }
        }
        bytes[filled..].fill(0);
        Ok(())
    }

    /// Writes `bytes` at `offset`.
    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> std::io::Result<()> {
        let is_aligned = (bytes.as_ptr() as u64).is_multiple_of(SECTOR_BYTES);
        if !self.direct || is_aligned {
            return self.file.write_all_at(bytes, offset);
        }
        let memory = RealMemory::new(COPY_BYTES);
        let mut aligned = memory.bytes_mut();
        let mut at = offset;
        for part in bytes.chunks(COPY_BYTES) {
            aligned[..part.len()].copy_from_slice(part);
            self.file.write_all_at(&aligned[..part.len()], at)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Frees what lies beyond `length`.
    pub(super) fn truncate(&self, length: u64) -> std::io::Result<()> {
        self.file.set_len(length)
    }

    /// Returns when every byte is on stable storage.
    pub(super) fn sync(&self) -> std::io::Result<()> {
        self.file.sync_data()
    }
}

impl AsFd for Data {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}
