//! Strided copies: the inner loop of every transfer.
//!
//! An 8-byte cyclic distribution moves a 1 MiB block as 131,072 pieces, so the time per piece
//! dominates. Each common length has its own loop, in which a piece is one unaligned load and one
//! store.
//!
//! Invariant: nothing here checks bounds; callers have checked whole runs before.
#![allow(unsafe_code)]

/// One side of a strided copy: address of the first piece, and distance to the next.
#[derive(Clone, Copy)]
pub(crate) struct Side<P> {
    /// Address of the first byte of the first piece.
    pub(crate) base: P,
    /// Bytes from the start of a piece to the start of the next.
    pub(crate) stride: usize,
}

/// Copies `count` pieces of `length` bytes from `source` to `target`, in order.
///
/// # Safety
///
/// Every piece of `source` is readable and every piece of `target` writable, and no byte belongs
/// to both sides.
pub(crate) unsafe fn copy_strided(
    source: Side<*const u8>,
    target: Side<*mut u8>,
    length: usize,
    count: usize,
) {
    if length == 0 || count == 0 {
        return;
    }
    let packed = source.stride == length && target.stride == length;
    if count == 1 || packed {
        // SAFETY: the caller guarantees all pieces of both sides; here they are two ranges.
        return unsafe { std::ptr::copy_nonoverlapping(source.base, target.base, length * count) };
    }
    // SAFETY: the caller's guarantee is passed on unchanged, in every arm.
    unsafe {
        match length {
            1 => copy_fixed::<1>(source, target, count),
            2 => copy_fixed::<2>(source, target, count),
            4 => copy_fixed::<4>(source, target, count),
            8 => copy_fixed::<8>(source, target, count),
            12 => copy_fixed::<12>(source, target, count),
            16 => copy_fixed::<16>(source, target, count),
            24 => copy_fixed::<24>(source, target, count),
            32 => copy_fixed::<32>(source, target, count),
            48 => copy_fixed::<48>(source, target, count),
            64 => copy_fixed::<64>(source, target, count),
            128 => copy_fixed::<128>(source, target, count),
            _ => copy_any(source, target, length, count),
        }
    }
}

/// Implements [`copy_strided`] for lengths known at compile time.
unsafe fn copy_fixed<const LENGTH: usize>(
    source: Side<*const u8>,
    target: Side<*mut u8>,
    count: usize,
) {
    let (mut from, mut to) = (source.base, target.base);
    for _ in 0..count {
        // SAFETY: `from` and `to` are the starts of piece `i`, which the caller guarantees. An
        // array of bytes has alignment 1, so this is one unaligned load and one store.
        unsafe { to.cast::<[u8; LENGTH]>().write(from.cast::<[u8; LENGTH]>().read()) };
        // After the last piece the pointers may leave their areas; they are not used then.
        from = from.wrapping_add(source.stride);
        to = to.wrapping_add(target.stride);
    }
}

/// Implements [`copy_strided`] for any length.
unsafe fn copy_any(source: Side<*const u8>, target: Side<*mut u8>, length: usize, count: usize) {
    let (mut from, mut to) = (source.base, target.base);
    for _ in 0..count {
        // SAFETY: `from` and `to` are the starts of piece `i`, which the caller guarantees.
        unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
        from = from.wrapping_add(source.stride);
        to = to.wrapping_add(target.stride);
    }
}
