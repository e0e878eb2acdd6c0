//! Memory of the program while the I/O thread reads and writes it.
#![allow(unsafe_code)]

use super::operation::Operation;
use interface::UserError;
use policy::Direction;
use std::future::Future;
use std::io::{IoSlice, IoSliceMut};
use std::ops::Deref;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};
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

    /// Reads to a slice: begins an operation with it, and waits for its end.
    pub(super) fn read_to<T>(
        into: &mut [u8],
        begin: impl FnOnce(Self) -> Operation<T>,
    ) -> Result<T, UserError> {
        // SAFETY: the slice is borrowed until the operation has ended, which is waited for here.
        let memory = unsafe { Self::new(into.as_mut_ptr(), into.len()) };
        begin(memory).wait()
    }

    /// Writes from a slice: begins an operation with it, and waits for its end.
    pub(super) fn write_from<T>(
        from: &[u8],
        begin: impl FnOnce(Self) -> Operation<T>,
    ) -> Result<T, UserError> {
        // SAFETY: as for a read; a write only reads the memory.
        let memory = unsafe { Self::new(from.as_ptr().cast_mut(), from.len()) };
        begin(memory).wait()
    }

    /// [`RawMemory::read_to`] with several slices.
    pub(super) fn read_to_all<T>(
        into: &mut [IoSliceMut<'_>],
        begin: impl FnOnce(Vec<Self>) -> Operation<T>,
    ) -> Result<T, UserError> {
        // SAFETY: the slices are borrowed until the operation has ended, which is waited for here.
        let memory =
            |slice: &mut IoSliceMut<'_>| unsafe { Self::new(slice.as_mut_ptr(), slice.len()) };
        begin(into.iter_mut().map(memory).collect()).wait()
    }

    /// [`RawMemory::write_from`] with several slices.
    pub(super) fn write_from_all<T>(
        from: &[IoSlice<'_>],
        begin: impl FnOnce(Vec<Self>) -> Operation<T>,
    ) -> Result<T, UserError> {
        // SAFETY: as for a read; a write only reads the memories.
        let memory =
            |slice: &IoSlice<'_>| unsafe { Self::new(slice.as_ptr().cast_mut(), slice.len()) };
        begin(from.iter().map(memory).collect()).wait()
    }

    /// Memory of a vector, which goes with the work and comes back with its result.
    pub(super) fn of_vector<T>(
        mut bytes: Vec<u8>,
        begin: impl FnOnce(Self, Vec<u8>) -> Operation<T>,
    ) -> Operation<T> {
        // SAFETY: the vector keeps its bytes in their place until the work drops or returns it.
        let memory = unsafe { Self::new(bytes.as_mut_ptr(), bytes.len()) };
        begin(memory, bytes)
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Looks at the memory of a write before it is given to an operation.
    pub(super) fn look(&self) -> &[u8] {
        // SAFETY: the promise of `new` holds until an operation that was given the memory has
        // ended, and none was.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.bytes) }
    }

    /// Fills the memory of a read before it is given to an operation.
    pub(super) fn fill(&mut self) -> &mut [u8] {
        // SAFETY: as for `look`; a read may write the memory.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.bytes) }
    }

    /// Uses the memory for a read that ends here.
    pub(super) fn read<T>(self, read: impl FnOnce(&mut [u8]) -> T) -> T {
        // SAFETY: the promise of `new` holds until the read has ended.
        read(unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.bytes) })
    }

    /// Uses the memory for a write that ends here.
    pub(super) fn write<T>(self, write: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: as for a read; a write only reads the memory.
        write(unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.bytes) })
    }

    /// Begins the use by this thread, the I/O thread; it ends when the value is dropped.
    pub(super) fn lend(self) -> UserMemory {
        // SAFETY: the promise of `new` holds until the operation has ended, and it ends after the
        // value was dropped, which revokes the memory.
        UserMemory(unsafe { RealMemory::foreign(self.base, self.bytes) })
    }
}

/// Memory of the caller for one of several transfers.
pub enum Slice<'a> {
    /// Memory that a file is read to.
    To(&'a mut [u8]),
    /// Memory that a file is written from.
    From(&'a [u8]),
}

impl Slice<'_> {
    /// Begins an operation with several slices, and waits for its end.
    pub(super) fn transfer_all<T>(
        slices: Vec<Self>,
        begin: impl FnOnce(Vec<(Direction, RawMemory)>) -> Operation<T>,
    ) -> Result<T, UserError> {
        // SAFETY: the slices are borrowed until the operation has ended, which is waited for here.
        // A write only reads the memory.
        let memory = |base: *mut u8, bytes| unsafe { RawMemory::new(base, bytes) };
        let lent = slices.into_iter().map(|slice| match slice {
            Slice::To(into) => (Direction::Read, memory(into.as_mut_ptr(), into.len())),
            Slice::From(from) => (Direction::Write, memory(from.as_ptr().cast_mut(), from.len())),
        });
        begin(lent.collect()).wait()
    }
}

/// A call under way with a vector, which comes back with the result. Dropping it waits for the end.
pub struct VectorOperation<T> {
    // Dropped first, which waits until nobody uses the bytes.
    operation: Operation<T>,
    bytes: Vec<u8>,
}

impl<T> VectorOperation<T> {
    pub(super) fn begin(mut bytes: Vec<u8>, begin: impl FnOnce(RawMemory) -> Operation<T>) -> Self {
        // SAFETY: the vector keeps its bytes in their place, and is dropped after the operation has
        // ended.
        let memory = unsafe { RawMemory::new(bytes.as_mut_ptr(), bytes.len()) };
        Self { operation: begin(memory), bytes }
    }
}

impl<T> Future for VectorOperation<T> {
    type Output = Result<Vec<u8>, UserError>;

    /// Must not be polled again when it is ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = Pin::new(&mut self.operation).poll(context);
        ended.map(|ended| ended.map(|_| std::mem::take(&mut self.bytes)))
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
