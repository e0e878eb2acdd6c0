//! Bytes of one object: a sparse file, read and written through the page cache or by direct I/O.
//!
//! For direct I/O (O_DIRECT), memory, offset and length of each transfer are multiples of
//! [`SECTOR_BYTES`]. Callers align offset and length; unaligned memory is copied here. The system
//! calls are those of the C library, so that a test can make them fail.

use crate::memory::RealMemory;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Alignment of offsets, lengths and memory in direct I/O: no device in use requires more.
pub(super) const SECTOR_BYTES: u64 = 4096;

/// Bytes copied at a time when memory is not aligned.
const COPY_BYTES: usize = 1 << 20;

/// File with the bytes of an object.
pub(super) struct Data {
    file: File,
    direct: bool,
}

impl Data {
    /// Returns the flags to open the file with.
    pub(super) fn flags(direct: bool) -> OFlags {
        if direct { OFlags::DIRECT } else { OFlags::empty() }
    }

    /// Wraps a file that was opened with the flags for `direct`.
    pub(super) fn new(file: File, direct: bool) -> Self {
        Self { file, direct }
    }

    /// True if transfers bypass the page cache.
    pub(super) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Returns the size of the file.
    pub(super) fn length(&self) -> std::io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Returns the number of bytes allocated on the device.
    pub(super) fn room(&self) -> std::io::Result<u64> {
        // `st_blocks` counts units of 512 bytes, whatever the sector size is.
        Ok(self.file.metadata()?.blocks() * 512)
    }

    /// Fills `bytes` from `offset` on, with zeros beyond the end of the file. For direct I/O
    /// `bytes` are aligned.
    pub(super) fn read(&self, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // A direct read that ends within a sector has reached the end of the file.
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

    /// Truncates the file to `length`.
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
