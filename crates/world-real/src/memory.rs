//! Memory and payloads with real bytes.
//!
//! Invariants:
//!
//! - An [`Area`] is written only through a [`RealMemory`], never while a payload shares it.
//! - A memory stays on the thread of its world; a payload may go to the thread of a disk.
//! - Other *processes* write an exposed memory too: the rules of Rust end at the process. So bytes
//!   seen through [`RealMemory::bytes`] during an exposure may change under the reader, but nothing
//!   else.
#![allow(unsafe_code)]

use crate::copy::{Side, copy_strided};
use crate::pool;
use std::any::Any;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use units::{PieceRun, Run};
use world::{Memory, Payload, crc_of_xor};

/// Reference-counted bytes.
struct Area {
    base: NonNull<u8>,
    length: usize,
    origin: Origin,
    /// Number of views through `bytes` (positive) or `bytes_mut` (-1). Only memories use it, on one
    /// thread, so relaxed ordering suffices.
    views: AtomicI32,
}

/// Source of an area, to which it returns.
enum Origin {
    /// Buffer pool, which reserved this many bytes.
    Pool { reserved: usize },
    /// Vector of this capacity.
    Vector { capacity: usize },
    /// Caller of [`RealMemory::foreign`], who keeps the bytes.
    Foreign { revoked: AtomicBool },
    /// Peer that lent the bytes, which are read-only.
    Borrowed(#[expect(dead_code, reason = "given back when dropped")] PeerLoan),
}

/// Loan of a peer's bytes, returned to the peer when dropped. Only the network knows its type.
type PeerLoan = Box<dyn Any + Send + Sync>;

// SAFETY: an area is plain memory. While payloads (which may move between threads) hold it, nobody
// writes it; memories that hold it are all on one thread (`RealMemory` is not `Send`).
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

impl Area {
    fn new(length: usize) -> Self {
        if length < pool::POOLED_BYTES_MIN {
            return vec![0; length].into();
        }
        let reserved = pool::reserved_bytes(length);
        let base = pool::allocate(reserved, length);
        Self { base, length, origin: Origin::Pool { reserved }, views: AtomicI32::new(0) }
    }

    fn pointer(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= self.length, "an offset must lie in its area");
        // SAFETY: every caller has checked that `offset` is at most the length of the area.
        unsafe { self.base.as_ptr().add(offset) }
    }
}

impl From<Vec<u8>> for Area {
    fn from(bytes: Vec<u8>) -> Self {
        let mut bytes = ManuallyDrop::new(bytes);
        let base = NonNull::new(bytes.as_mut_ptr()).unwrap_or(NonNull::dangling());
        let origin = Origin::Vector { capacity: bytes.capacity() };
        Self { base, length: bytes.len(), origin, views: AtomicI32::new(0) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        match self.origin {
            // SAFETY: the area came from the pool with this size, and this was its last handle.
            Origin::Pool { reserved } => unsafe { pool::free(self.base, reserved) },
            Origin::Vector { capacity } => {
                // SAFETY: these are the parts of the vector that the area was made from.
                drop(unsafe { Vec::from_raw_parts(self.base.as_ptr(), self.length, capacity) });
            }
            Origin::Foreign { .. } | Origin::Borrowed(_) => {}
        }
    }
}

/// Immutable bytes, shared by all clones; may be sent to another thread.
#[derive(Clone)]
pub struct RealPayload {
    area: Arc<Area>,
    offset: usize,
    length: usize,
}

impl RealPayload {
    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the range was checked when the payload was cut, and nobody writes the area of a
        // payload.
        unsafe { std::slice::from_raw_parts(self.area.pointer(self.offset), self.length) }
    }

    /// Returns a payload of `length` bytes at `base` that a peer lends. The peer must not change
    /// them while the loan is held, as with exposed memory.
    pub(crate) fn borrowed(loan: PeerLoan, base: NonNull<u8>, length: usize) -> Self {
        let (origin, views) = (Origin::Borrowed(loan), AtomicI32::new(0));
        Self { area: Arc::new(Area { base, length, origin, views }), offset: 0, length }
    }

    /// Returns the address of the first byte.
    pub(crate) fn pointer(&self) -> *const u8 {
        self.area.pointer(self.offset)
    }

    /// Returns the address of the part that [`pool::allocate`] gave, if the payload has all of it.
    pub(crate) fn whole_part(&self) -> Option<*const u8> {
        let Origin::Pool { reserved } = self.area.origin else { return None };
        let has_all = self.offset == 0 && self.length == reserved;
        has_all.then(|| self.pointer())
    }

    /// True if another handle to the bytes exists.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.area) > 1
    }

    /// Packs the file sides of `pieces`, in order, into one payload. Panics when a piece leaves the
    /// payload.
    pub(crate) fn gather_pieces(&self, pieces: &[PieceRun]) -> Self {
        let runs = pieces.iter().map(|piece| piece.file_side());
        // SAFETY: a payload is readable in its whole length.
        unsafe { gather(self.pointer(), self.length, runs) }.freeze()
    }
}

impl From<Vec<u8>> for RealPayload {
    fn from(bytes: Vec<u8>) -> Self {
        let length = bytes.len();
        Self { area: Arc::new(bytes.into()), offset: 0, length }
    }
}

impl std::fmt::Debug for RealPayload {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "RealPayload({} bytes)", self.length)
    }
}

impl Payload for RealPayload {
    fn length(&self) -> u64 {
        self.length as u64
    }

    fn slice(&self, offset: u64, length: u64) -> Self {
        let end = offset.checked_add(length);
        let inside = end.is_some_and(|end| end <= self.length as u64);
        assert!(inside, "a slice must lie in its payload");
        let offset = self.offset + offset as usize;
        Self { area: Arc::clone(&self.area), offset, length: length as usize }
    }

    fn gather(&self, runs: &[Run]) -> Self {
        // SAFETY: a payload is readable in its whole length.
        unsafe { gather(self.pointer(), self.length, runs.iter().copied()) }.freeze()
    }

    fn look_inside(&self) -> Option<&[u8]> {
        Some(self.bytes())
    }

    fn digest(&self) -> u32 {
        digest(self.bytes())
    }

    fn xor(&self, other: &Self) -> Self {
        assert!(self.length == other.length, "both payloads must have the same length");
        let memory = RealMemory::new(self.length);
        memory.with_bytes_mut(|to| {
            let both = self.bytes().iter().zip(other.bytes());
            to.iter_mut().zip(both).for_each(|(to, (one, other))| *to = one ^ other);
        });
        memory.freeze()
    }

    fn digest_of_xor(digests: &[u32], length: u64) -> Option<u32> {
        Some(crc_of_xor(digests, length))
    }
}

/// Returns the digest of a payload with these bytes.
pub fn digest(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// Writable bytes; clones are handles to the same bytes, all on one thread.
#[derive(Clone)]
pub struct RealMemory {
    area: Arc<Area>,
    one_thread: PhantomData<*mut u8>,
}

impl RealMemory {
    /// Allocates `length` bytes with unspecified contents. From 16 KiB on they are page-aligned,
    /// and use huge pages where that pays, so that direct reads from disks can fill them.
    pub fn new(length: usize) -> Self {
        Self { area: Arc::new(Area::new(length)), one_thread: PhantomData }
    }

    /// Wraps all of a part of the pool, which is freed after the last handle.
    ///
    /// # Safety
    ///
    /// The part is of `reserved` bytes, and only this memory uses it from here on.
    pub(crate) unsafe fn of_part(base: NonNull<u8>, reserved: usize) -> Self {
        let (origin, views) = (Origin::Pool { reserved }, AtomicI32::new(0));
        let area = Area { base, length: reserved, origin, views };
        Self { area: Arc::new(area), one_thread: PhantomData }
    }

    /// Wraps bytes that the caller keeps, for instance a buffer of an MPI program.
    ///
    /// # Safety
    ///
    /// Until the last handle of the memory and of every payload frozen from it is gone, `base` is
    /// valid for reads and writes of `length` bytes, and nobody else in this process accesses them.
    pub unsafe fn foreign(base: NonNull<u8>, length: usize) -> Self {
        let origin = Origin::Foreign { revoked: AtomicBool::new(false) };
        let area = Area { base, length, origin, views: AtomicI32::new(0) };
        Self { area: Arc::new(area), one_thread: PhantomData }
    }

    /// Ends all use of a foreign memory by this process, whoever still has a handle: transfers that
    /// are under way drop what still comes. Withdraw its regions first.
    pub fn revoke(&self) {
        if let Origin::Foreign { revoked } = &self.area.origin {
            revoked.store(true, Ordering::Relaxed);
        }
    }

    /// True for a memory of [`RealMemory::foreign`].
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.area.origin, Origin::Foreign { .. })
    }

    /// True when its bytes must no longer be touched.
    pub(crate) fn is_revoked(&self) -> bool {
        matches!(&self.area.origin, Origin::Foreign { revoked } if revoked.load(Ordering::Relaxed))
    }

    /// Panics when the memory was revoked: whoever touches it now would touch bytes that belong to
    /// somebody else again.
    fn assert_usable(&self) {
        assert!(!self.is_revoked(), "a memory must not be used after it was revoked");
    }

    /// Copies `pieces` from their file sides at `source` to their memory sides here. Panics when a
    /// piece leaves the memory; the caller has checked the file sides against the source.
    ///
    /// # Safety
    ///
    /// The file side of every piece is readable at `source`.
    pub(crate) unsafe fn take_pieces(&self, source: *const u8, pieces: &[PieceRun]) {
        self.assert_writable();
        for piece in pieces {
            assert!(holds(self.area.length, piece.memory_side()), "a piece must lie in its memory");
            let from = source.wrapping_add(piece.offset as usize);
            let to = self.pointer().wrapping_add(piece.memory_offset as usize);
            let from = Side { base: from, stride: piece.stride as usize };
            let to = Side { base: to, stride: piece.memory_stride as usize };
            // SAFETY: the memory side was just checked, the caller vouches for the other; what is
            // seen of another process is not part of a memory of this one.
            unsafe { copy_strided(from, to, piece.length as usize, piece.count as usize) };
        }
    }

    /// Returns a view of the bytes. Panics while a [`RealMemory::bytes_mut`] view exists. Drop the
    /// view before peers may write the memory: its contents would change.
    pub fn bytes(&self) -> Bytes<'_> {
        self.assert_usable();
        let views = self.area.views.load(Ordering::Relaxed);
        assert!(views >= 0, "a memory must not be viewed while it is written");
        self.area.views.store(views + 1, Ordering::Relaxed);
        Bytes(self)
    }

    /// Returns a writable view of the bytes. Panics while another view exists.
    pub fn bytes_mut(&self) -> BytesMut<'_> {
        self.assert_writable();
        self.area.views.store(-1, Ordering::Relaxed);
        BytesMut(self)
    }

    /// Calls `work` with the writable bytes. Panics while a view exists.
    pub fn with_bytes_mut<R>(&self, work: impl FnOnce(&mut [u8]) -> R) -> R {
        work(&mut self.bytes_mut())
    }

    /// Returns the address of the first byte.
    pub(crate) fn pointer(&self) -> *mut u8 {
        self.area.base.as_ptr()
    }

    /// Scatters pieces from a packed `source` to their file sides here. `source` holds the span of
    /// their memory sides from byte `span_start` on. Panics when a piece leaves either side.
    pub(crate) fn scatter_span(&self, pieces: &[PieceRun], source: &RealPayload, span_start: u64) {
        self.assert_writable();
        for piece in pieces {
            let mut near = piece.memory_side();
            near.offset =
                near.offset.checked_sub(span_start).expect("a piece must lie in its span");
            let from = Side { base: source.pointer(), stride: near.stride as usize };
            let to = Side { base: self.pointer(), stride: piece.stride as usize };
            let (near_start, far_start) = (near.offset as usize, piece.offset as usize);
            assert!(holds(source.length, near), "a piece must lie in its span");
            assert!(holds(self.area.length, piece.file_side()), "a piece must lie in its memory");
            let from = Side { base: from.base.wrapping_add(near_start), ..from };
            let to = Side { base: to.base.wrapping_add(far_start), ..to };
            // SAFETY: both runs were just checked; a payload and a memory share no area.
            unsafe { copy_strided(from, to, piece.length as usize, piece.count as usize) };
        }
    }

    /// Returns the `length` bytes at `offset`, to be filled by the transport. Panics when they
    /// leave the memory.
    pub(crate) fn place(&self, offset: usize, length: usize) -> Filling {
        let end = offset.checked_add(length).filter(|end| *end <= self.area.length);
        let end = end.expect("a place must lie in its memory");
        Filling { memory: self.clone(), next: offset, end }
    }

    /// Leaks the memory: its bytes are never reused. For memory that a peer which can no longer be
    /// reached might still write.
    pub(crate) fn leak(self) {
        std::mem::forget(self);
    }

    /// True if this is the only handle.
    fn is_unique(&mut self) -> bool {
        Arc::get_mut(&mut self.area).is_some()
    }

    /// Panics while a view of the memory exists.
    pub(crate) fn assert_writable(&self) {
        self.assert_usable();
        let views = self.area.views.load(Ordering::Relaxed);
        assert!(views == 0, "a memory must not be written while it is viewed");
    }

    fn length_bytes(&self) -> usize {
        self.area.length
    }
}

impl std::fmt::Debug for RealMemory {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "RealMemory({} bytes)", self.area.length)
    }
}

impl Memory for RealMemory {
    type Payload = RealPayload;

    fn length(&self) -> u64 {
        self.area.length as u64
    }

    fn gather(&self, runs: &[Run]) -> RealPayload {
        self.assert_usable();
        let views = self.area.views.load(Ordering::Relaxed);
        assert!(views >= 0, "a memory must not be read while it is written");
        // SAFETY: a memory is readable in its whole length.
        unsafe { gather(self.pointer(), self.area.length, runs.iter().copied()) }.freeze()
    }

    fn scatter(&self, runs: &[Run], payload: &RealPayload) {
        self.assert_writable();
        let total = runs_bytes(runs.iter().copied(), self.area.length);
        let total = total.expect("a run must lie in its memory");
        assert!(total == payload.length, "a scatter must place every byte of its payload");
        let mut from = payload.pointer();
        for run in runs {
            let source = Side { base: from, stride: run.length as usize };
            let target = Side {
                base: self.pointer().wrapping_add(run.offset as usize),
                stride: run.stride as usize,
            };
            // SAFETY: the run lies in the memory and the payload holds the bytes of all runs, both
            // checked above; a payload and a memory share no area.
            unsafe { copy_strided(source, target, run.length as usize, run.count as usize) };
            from = from.wrapping_add(run.bytes() as usize);
        }
    }

    fn freeze(mut self) -> RealPayload {
        // Bytes of somebody else may change when they are revoked.
        if self.is_foreign() || !self.is_unique() {
            let all = Run::contiguous(0, self.area.length as u64);
            return self.gather(&[all]);
        }
        let length = self.length_bytes();
        RealPayload { area: self.area, offset: 0, length }
    }
}

/// Part of a memory that is filled from the front.
pub(crate) struct Filling {
    memory: RealMemory,
    next: usize,
    end: usize,
}

impl Filling {
    /// Returns the number of bytes that are not filled yet.
    pub(crate) fn remaining(&self) -> usize {
        self.end - self.next
    }

    /// True when the memory was revoked: nothing can be filled any more.
    pub(crate) fn is_revoked(&self) -> bool {
        self.memory.is_revoked()
    }

    /// Calls `fill` with the unfilled bytes; it returns the number of bytes that it filled. Panics
    /// while a view of the memory exists.
    pub(crate) fn fill<E>(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        self.memory.assert_writable();
        let pointer = self.memory.area.pointer(self.next);
        // SAFETY: `next .. end` lies in the area, nobody views it, and the slice ends before this
        // thread does anything else.
        let rest = unsafe { std::slice::from_raw_parts_mut(pointer, self.end - self.next) };
        let count = fill(rest)?;
        assert!(count <= self.remaining(), "no more can be filled than there is");
        self.next += count;
        Ok(count)
    }

    /// Fills from the front of `bytes`, as far as there is room; returns the number of bytes
    /// copied.
    pub(crate) fn copy_from(&mut self, bytes: &[u8]) -> usize {
        let filled: Result<usize, std::convert::Infallible> = self.fill(|rest| {
            let count = rest.len().min(bytes.len());
            rest[..count].copy_from_slice(&bytes[..count]);
            Ok(count)
        });
        filled.unwrap_or_else(|never| match never {})
    }
}

/// Returns a memory with the contents of `payload`; without a copy if no other handle exists.
pub(crate) fn thaw(mut payload: RealPayload) -> RealMemory {
    let whole = payload.length == payload.area.length;
    let is_own = !matches!(payload.area.origin, Origin::Borrowed(_));
    if whole && is_own && Arc::get_mut(&mut payload.area).is_some() {
        return RealMemory { area: payload.area, one_thread: PhantomData };
    }
    let memory = RealMemory::new(payload.length);
    memory.scatter(&[Run::contiguous(0, payload.length as u64)], &payload);
    memory
}

/// Returns the number of bytes in `runs`; `None` when a run leaves a memory of `length` bytes, or
/// the sum overflows. Safe for runs from peers.
pub(crate) fn runs_bytes(runs: impl Iterator<Item = Run>, length: usize) -> Option<usize> {
    let mut total = 0_u64;
    for run in runs {
        if !holds(length, run) {
            return None;
        }
        total = total.checked_add(run.length.checked_mul(run.count)?)?;
    }
    usize::try_from(total).ok()
}

/// True if every piece of `run` lies in `length` bytes.
fn holds(length: usize, run: Run) -> bool {
    run.checked_end().is_some_and(|end| end <= length as u64)
}

/// Packs `runs` of the `length` bytes at `base`. Panics when a run leaves them.
///
/// # Safety
///
/// `length` bytes at `base` are readable.
unsafe fn gather(
    base: *const u8,
    length: usize,
    runs: impl Iterator<Item = Run> + Clone,
) -> RealMemory {
    let total = runs_bytes(runs.clone(), length).expect("a run must lie in what it is cut from");
    let packed = RealMemory::new(total);
    let mut to = packed.pointer();
    for run in runs {
        let source =
            Side { base: base.wrapping_add(run.offset as usize), stride: run.stride as usize };
        let target = Side { base: to, stride: run.length as usize };
        // SAFETY: the run lies in the source and `packed` has room for all runs, both checked
        // above; `packed` is new and so shares no byte with the source.
        unsafe { copy_strided(source, target, run.length as usize, run.count as usize) };
        to = to.wrapping_add(run.bytes() as usize);
    }
    packed
}

/// View of the bytes of a memory.
pub struct Bytes<'a>(&'a RealMemory);

impl Deref for Bytes<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the area is that long, and the count of views excludes writers of this process.
        unsafe { std::slice::from_raw_parts(self.0.pointer(), self.0.area.length) }
    }
}

impl Drop for Bytes<'_> {
    fn drop(&mut self) {
        self.0.area.views.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Writable view of the bytes of a memory.
pub struct BytesMut<'a>(&'a RealMemory);

impl Deref for BytesMut<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the area is that long, and this is the only view of it.
        unsafe { std::slice::from_raw_parts(self.0.pointer(), self.0.area.length) }
    }
}

impl DerefMut for BytesMut<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and the view is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.0.pointer(), self.0.area.length) }
    }
}

impl Drop for BytesMut<'_> {
    fn drop(&mut self) {
        self.0.area.views.store(0, Ordering::Relaxed);
    }
}
