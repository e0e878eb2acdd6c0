//! Strided copies: the inner loop of every transfer.
//!
//! An 8-byte cyclic distribution moves a 1 MiB block as 131,072 pieces, so the time per piece
//! dominates. Each common length has its own loop, in which a piece is one unaligned load and one
//! store.
//!
//! Invariant: nothing here checks bounds; callers have checked whole runs before.
#![allow(unsafe_code)]

use std::ops::Range;

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
        return unsafe { copy_range(source.base, target.base, length * count) };
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

/// Lengths for which `memcpy` of the C library uses `rep movsb`.
const REP_MOVSB_BYTES: Range<usize> = 2 << 10..512 << 10;

/// Bytes that [`copy_range`] moves at a time: the most that compilers move without a call.
const CHUNK_BYTES: usize = 128;

/// Copies `length` bytes.
///
/// `rep movsb` is 3 to 4 times as slow as a loop on processors of AMD (Zen 3 and 4) when source and
/// target lie at the same place of their pages, as parts of files and of page-aligned memory do
/// (bug 30994 of glibc, fixed in 2.39).
///
/// # Safety
///
/// As for [`copy_strided`] with one piece.
unsafe fn copy_range(source: *const u8, target: *mut u8, length: usize) {
    if !cfg!(target_arch = "x86_64") || !REP_MOVSB_BYTES.contains(&length) {
        // SAFETY: the caller guarantees both ranges.
        return unsafe { std::ptr::copy_nonoverlapping(source, target, length) };
    }
    // Hidden, because the compiler makes a call of `memcpy` of a loop whose stride it knows.
    let stride = std::hint::black_box(CHUNK_BYTES);
    let (from, to) = (Side { base: source, stride }, Side { base: target, stride });
    let (chunks, rest) = (length / CHUNK_BYTES, length % CHUNK_BYTES);
    // SAFETY: the chunks and the rest make up the two ranges that the caller guarantees.
    unsafe {
        copy_fixed::<CHUNK_BYTES>(from, to, chunks);
        let done = length - rest;
        std::ptr::copy_nonoverlapping(source.add(done), target.add(done), rest);
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
        unsafe { copy_range(from, to, length) };
        from = from.wrapping_add(source.stride);
        to = to.wrapping_add(target.stride);
    }
}

#[cfg(test)]
mod tests {
    //! Proves: pieces of any length arrive whole, and nothing else changes.

    use super::*;

    #[test]
    fn pieces_of_any_length_arrive_and_gaps_stay() {
        let lengths = (0..300).chain([2047, 2048, 2049, 2175, 2176, 8192, 8199, 512 << 10]);
        for length in lengths {
            let (from_stride, to_stride, count) = (length + 5, length + 3, 3);
            let source: Vec<u8> = (0..count * from_stride).map(|at| (at % 251) as u8).collect();
            let mut target = vec![255; count * to_stride];
            let from = Side { base: source.as_ptr(), stride: from_stride };
            let to = Side { base: target.as_mut_ptr(), stride: to_stride };
            // SAFETY: both vectors have room for all pieces.
            unsafe { copy_strided(from, to, length, count) };
            let mut expected = vec![255; count * to_stride];
            for index in 0..count {
                let piece = &source[index * from_stride..][..length];
                expected[index * to_stride..][..length].copy_from_slice(piece);
            }
            assert!(target == expected, "pieces of {length} bytes");
        }
    }
}
