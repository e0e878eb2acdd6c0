//! Conforming distribution of two-phase I/O: the part of the file that each client transfers
//! itself.
//!
//! Invariant: the segments of all clients cover the transferred range of the file, each byte once,
//! in the order of clients.

use crate::placement::Stripe;
use units::{ByteRange, ClientId};

/// Segment of `client`, one of `clients`: "the file is logically broken into approximately
/// equal-sized contiguous segments, one for each CP" (TOCS 1997, section 3). The papers transfer
/// whole files. Here `range` is what a transfer needs of the file.
///
/// Segments end with blocks, so that no block is requested twice. Their numbers of blocks differ by
/// at most one. A client without a block, or beyond the last client, has an empty segment.
pub fn conforming_segment(
    client: ClientId,
    clients: u32,
    range: ByteRange,
    stripe: &Stripe,
) -> ByteRange {
    if client.0 >= clients {
        return ByteRange::new(range.end, range.end);
    }
    let first = range.start / stripe.block_bytes;
    let blocks = u128::from(range.end.div_ceil(stripe.block_bytes).saturating_sub(first));
    let cut = |place: u32| {
        let block = u128::from(first) + blocks * u128::from(place) / u128::from(clients);
        let byte = block * u128::from(stripe.block_bytes);
        u64::try_from(byte).unwrap_or(u64::MAX).clamp(range.start, range.end)
    };
    ByteRange::new(cut(client.0), cut(client.0 + 1))
}
