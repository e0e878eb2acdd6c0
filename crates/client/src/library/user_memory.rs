//! Memory of the program while the I/O thread reads and writes it.
#![allow(unsafe_code)]

use std::ops::Deref;
use std::ptr::NonNull;
use world_real::RealMemory;

/// Memory of the caller on its way to the I/O thread.
#[derive(Debug)]
pub struct RawMemory {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is an address and a length; whoever made it has promised that the I/O thread may use
// the bytes.
unsafe impl Send for RawMemory {}

impl RawMemory {
    /// `bytes` bytes at `base`, which may be anything when there are none.
    ///
    /// # Safety
    ///
    /// Until the operation that it is given to has ended, the bytes are valid for reads and, if it
    /// reads from a file, for writes; then nobody else touches them, and nobody writes them
    /// otherwise.
    pub unsafe fn new(base: *mut u8, bytes: usize) -> Self {
        Self { base: NonNull::new(base).unwrap_or(NonNull::dangling()), bytes }
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Begins the use by this thread, the I/O thread; it ends when the value is dropped.
    pub(super) fn lend(self) -> UserMemory {
        // SAFETY: the promise of `new` holds until the operation has ended, and it ends after the
        // value was dropped, which revokes the memory.
        UserMemory(unsafe { RealMemory::foreign(self.base, self.bytes) })
    }
}

/// Memory of the program in use by the I/O thread; revoked when dropped.
pub(super) struct UserMemory(RealMemory);

impl Deref for UserMemory {
    type Target = RealMemory;
    fn deref(&self) -> &RealMemory {
        &self.0
    }
}

impl Drop for UserMemory {
    fn drop(&mut self) {
        self.0.revoke();
    }
}
