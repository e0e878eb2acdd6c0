//! Bytes of one object: a sparse file, read and written through the page cache or by direct I/O.
//!
//! For direct I/O (O_DIRECT), memory, offset and length of each transfer are multiples of
//! [`SECTOR_BYTES`]. Callers align offset and length; unaligned memory is copied here. Of an
//! ordinary file, whose neighbouring bytes other programs may write, only whole sectors of long
//! transfers bypass the page cache. The system calls are those of the C library, so that a test can
//! make them fail.

use crate::memory::RealMemory;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use units::ByteRange;

/// Alignment of offsets, lengths and memory in direct I/O: no device in use requires more.
pub(super) const SECTOR_BYTES: u64 = 4096;

/// Bytes copied at a time when memory is not aligned.
const COPY_BYTES: usize = 1 << 20;

/// Least length of whole sectors of an ordinary file that bypass the page cache.
const LONG_BYTES: u64 = 64 << 10;

/// File with the bytes of an object.
pub(super) struct Data {
    file: File,
    direct: bool,
    /// The same ordinary file, opened for direct I/O of whole sectors.
    sectors: Option<File>,
}

impl Data {
    /// Returns the flags to open the file with.
    pub(super) fn flags(direct: bool) -> OFlags {
        if direct { OFlags::DIRECT } else { OFlags::empty() }
    }

    /// Wraps a file that was opened with the flags for `direct`.
    pub(super) fn new(file: File, direct: bool) -> Self {
        Self { file, direct, sectors: None }
    }

    /// Wraps an ordinary file, and the same file opened for direct I/O, if it is to be used.
    pub(super) fn ordinary(file: File, sectors: Option<File>) -> Self {
        Self { file, direct: false, sectors }
    }

    /// True if a transfer of whole sectors of an ordinary file bypasses the page cache.
    pub(super) fn is_direct_for(&self, range: ByteRange) -> bool {
        self.sectors.is_some() && range.length() >= LONG_BYTES
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
        let range = ByteRange::at(offset, bytes.len() as u64);
        let is_whole = is_aligned(bytes) && sectors_within(range) == range;
        if let Some(sectors) = self.sectors.as_ref().filter(|_| is_whole)
            && self.is_direct_for(range)
        {
            match fill(sectors, true, bytes, offset) {
                // The file system wants another alignment.
                Err(error) if error.kind() == ErrorKind::InvalidInput => {}
                done => return done,
            }
        }
        fill(&self.file, self.direct, bytes, offset)
    }

    /// Writes `bytes` at `offset`.
    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> std::io::Result<()> {
        let range = ByteRange::at(offset, bytes.len() as u64);
        let whole = sectors_within(range);
        match &self.sectors {
            Some(sectors) if self.is_direct_for(whole) => {
                let at = |position: u64| (position - offset) as usize;
                self.file.write_all_at(&bytes[..at(whole.start)], offset)?;
                let part = &bytes[at(whole.start)..at(whole.end)];
                match write_aligned(sectors, part, whole.start) {
                    // The file system wants another alignment.
                    Err(error) if error.kind() == ErrorKind::InvalidInput => {
                        self.file.write_all_at(part, whole.start)?;
                    }
                    written => written?,
                }
                self.file.write_all_at(&bytes[at(whole.end)..], whole.end)
            }
            _ if self.direct => write_aligned(&self.file, bytes, offset),
            _ => self.file.write_all_at(bytes, offset),
        }
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

/// Sectors that lie in `range` as a whole; empty if there is none.
fn sectors_within(range: ByteRange) -> ByteRange {
    let start = range.start.next_multiple_of(SECTOR_BYTES).min(range.end);
    ByteRange::new(start, (range.end / SECTOR_BYTES * SECTOR_BYTES).max(start))
}

/// True if memory is aligned as direct I/O needs it.
fn is_aligned(bytes: &[u8]) -> bool {
    (bytes.as_ptr() as u64).is_multiple_of(SECTOR_BYTES)
}

/// Fills `bytes` from `offset` on, with zeros beyond the end of the file.
fn fill(file: &File, direct: bool, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        // A direct read that ends within a sector has reached the end of the file.
        if direct && !(filled as u64).is_multiple_of(SECTOR_BYTES) {
            break;
        }
    }
    bytes[filled..].fill(0);
    Ok(())
}

/// Writes whole sectors by direct I/O.
fn write_aligned(file: &File, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    if is_aligned(bytes) {
        return file.write_all_at(bytes, offset);
    }
    let memory = RealMemory::new(COPY_BYTES);
    let mut aligned = memory.bytes_mut();
    let mut at = offset;
    for part in bytes.chunks(COPY_BYTES) {
        aligned[..part.len()].copy_from_slice(part);
        file.write_all_at(&aligned[..part.len()], at)?;
        at += part.len() as u64;
    }
    Ok(())
}

impl AsFd for Data {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}
