//! Buffers of a connection's pool: memory of the library that servers read and write by themselves.
#![allow(unsafe_code)]

use super::on_thread::OnThread;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use world_real::RealWorld;

/// Bytes of the pool of a connection, which transfers take no copy of. Given back when dropped.
///
/// Memory of a failed or abandoned transfer is not used again by the pool, because a server that
/// cannot be reached might still write it.
pub struct Buffer {
    base: NonNull<u8>,
    bytes: usize,
    pub(super) buffer: OnThread<filesystem::Buffer<RealWorld>>,
}

// SAFETY: the bytes belong to this buffer alone while no transfer holds it; a transfer takes the
// whole buffer and gives it back. What lives on the I/O thread is dropped there.
unsafe impl Send for Buffer {}
// SAFETY: as above; a shared buffer can only be read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Made by the I/O thread.
    pub(super) fn new(buffer: OnThread<filesystem::Buffer<RealWorld>>) -> Self {
        let (memory, range) = buffer.get().place();
        let bytes = range.length() as usize;
        let mut view = memory.bytes_mut();
        let base = NonNull::from(&mut view[range.start as usize..range.end as usize]).cast();
        drop(view);
        Self { base, bytes, buffer }
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the range lies in the memory of the pool, which lives as long as the buffer, and
        // nobody writes it while no transfer holds the buffer.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and whoever has the buffer for itself is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.bytes) }
    }
}
