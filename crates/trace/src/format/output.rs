//! The file of a stream while it is written: mapped windows, so that what was written outlives a
//! killed process.
//!
//! *Invariants:*
//! - The length in the head counts whole records only: it is stored after their bytes.
//! - Each window has blocks on the disk before it is mapped. A full disk is an error of
//!   [`Output::append`] and never a signal.
#![allow(unsafe_code)]

use super::head::{CHECKSUM_AT, CLOSED_AT, HEAD_BYTES, LENGTH_AT, new_head};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes of a window; a multiple of every page size.
const WINDOW_BYTES: usize = 1 << 20;

/// File of a stream.
pub(crate) struct Output {
    file: File,
    /// First window, for the head.
    head: Window,
    window: Window,
    /// Offset of the window in the file.
    window_start: u64,
    /// Next free byte of the window.
    at: usize,
    /// First byte of the window that is not in the checksum.
    unchecked: usize,
    checksum: u32,
    /// Bytes of whole records.
    length: u64,
}

impl Output {
    /// Makes an empty stream in place of any other of that name.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        reserve(&file, 0)?;
        file.write_all_at(&new_head(), 0)?;
        let (head, window) = (Window::map(&file, 0)?, Window::map(&file, 0)?);
        let at = HEAD_BYTES;
        let (window_start, unchecked) = (0, at);
        Ok(Self { file, head, window, window_start, at, unchecked, checksum: 0, length: 0 })
    }

    /// Appends a whole record. After an error nothing more may be appended.
    #[inline]
    pub(crate) fn append(&mut self, record: &[u8]) -> io::Result<()> {
        let mut rest = record;
        while rest.len() > WINDOW_BYTES - self.at {
            let (now, later) = rest.split_at(WINDOW_BYTES - self.at);
            self.window.copy(self.at, now);
            self.at = WINDOW_BYTES;
            self.advance()?;
            rest = later;
        }
        self.window.copy(self.at, rest);
        self.at += rest.len();
        self.length += record.len() as u64;
        self.head.length().store(self.length.to_le(), Ordering::Release);
        Ok(())
    }

    /// Goes on with the next window.
    fn advance(&mut self) -> io::Result<()> {
        self.check();
        let start = self.window_start + WINDOW_BYTES as u64;
        reserve(&self.file, start)?;
        self.window = Window::map(&self.file, start)?;
        (self.window_start, self.at, self.unchecked) = (start, 0, 0);
        Ok(())
    }

    /// Brings the checksum up to date.
    fn check(&mut self) {
        self.checksum =
            crc32c::crc32c_append(self.checksum, self.window.slice(self.unchecked..self.at));
        self.unchecked = self.at;
    }

    /// Cuts the file behind the last whole record. A stream without errors is marked as closed.
    pub(crate) fn close(mut self, had_error: bool) -> io::Result<()> {
        if !had_error {
            self.check();
            self.head.checksum().store(self.checksum.to_le(), Ordering::Release);
            self.head.closed().store(1_u32.to_le(), Ordering::Release);
        }
        self.file.set_len(HEAD_BYTES as u64 + self.length)
    }
}

/// Gives a window of the file its size and its blocks on the disk.
fn reserve(file: &File, start: u64) -> io::Result<()> {
    let reserved = loop {
        match fallocate(file, FallocateFlags::empty(), start, WINDOW_BYTES as u64) {
            Err(Errno::INTR) => {}
            ended => break ended,
        }
    };
    match reserved {
        // File systems that cannot reserve have the blocks after a write.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.write_all_at(&vec![0; WINDOW_BYTES], start),
        ended => Ok(ended?),
    }
}

/// Mapping of a window.
struct Window(NonNull<c_void>);

// SAFETY: a mapping belongs to the process, not to a thread, and is used through `&mut Output`.
unsafe impl Send for Window {}

impl Window {
    fn map(file: &File, start: u64) -> io::Result<Self> {
        let (rights, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: the system chooses a place that nothing else uses.
        let base = unsafe { mmap(std::ptr::null_mut(), WINDOW_BYTES, rights, flags, file, start) }?;
        NonNull::new(base).map(Self).ok_or_else(|| io::Error::other("the mapping has no address"))
    }

    /// Copies bytes into the window. Panics when they do not fit.
    #[inline]
    fn copy(&mut self, at: usize, bytes: &[u8]) {
        assert!(at <= WINDOW_BYTES && bytes.len() <= WINDOW_BYTES - at, "a window was overrun");
        // SAFETY: the place is inside the mapping, as was just checked.
        let to = unsafe { self.0.cast::<u8>().add(at) };
        // SAFETY: there is room for the bytes, and no reference to it while `self` is borrowed.
        unsafe { to.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// Bytes of the window.
    fn slice(&self, range: std::ops::Range<usize>) -> &[u8] {
        // SAFETY: the mapping has so many bytes and is written through `&mut self` only. (The head
        // has a mapping of its own, but its bytes are not asked for.)
        let all = unsafe { std::slice::from_raw_parts(self.0.cast::<u8>().as_ptr(), WINDOW_BYTES) };
        &all[range]
    }

    fn length(&self) -> &AtomicU64 {
        // SAFETY: the place is inside the mapping.
        let place = unsafe { self.0.cast::<u8>().add(LENGTH_AT) };
        // SAFETY: the mapping is aligned to pages, so the place is to 8 bytes; the field of the
        // head is accessed by atomic operations only.
        unsafe { AtomicU64::from_ptr(place.cast::<u64>().as_ptr()) }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at < HEAD_BYTES && at.is_multiple_of(4), "a word of the head has another place");
        // SAFETY: the place is inside the mapping.
        let place = unsafe { self.0.cast::<u8>().add(at) };
        // SAFETY: the mapping is aligned to pages, so the place is to 4 bytes; the field of the
        // head is accessed by atomic operations only.
        unsafe { AtomicU32::from_ptr(place.cast::<u32>().as_ptr()) }
    }

    fn checksum(&self) -> &AtomicU32 {
        self.word(CHECKSUM_AT)
    }

    fn closed(&self) -> &AtomicU32 {
        self.word(CLOSED_AT)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and no reference to it is left.
        let unmapped = unsafe { munmap(self.0.as_ptr(), WINDOW_BYTES) };
        debug_assert!(unmapped.is_ok(), "a mapping could not be removed");
    }
}
