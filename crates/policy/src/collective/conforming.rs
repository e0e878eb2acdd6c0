//! Conforming distribution of two-phase I/O: the part of the file that each client transfers
//! itself.
//!
//! Invariant: the segments of all clients cover the file, each byte once, in the order of clients.

use crate::placement::Stripe;
use units::{ByteRange, ClientId};

/// Segment of `client`, one of `clients`: "the file is logically broken into approximately
/// equal-sized contiguous segments, one for each CP" (TOCS 1997, section 3).
///
/// Segments are whole blocks, so that no block is requested twice. Their sizes differ by at most
/// one block. A client without a block, or beyond the last client, has an empty segment.
pub fn conforming_segment(
    client: ClientId,
    clients: u32,
    file_bytes: u64,
    stripe: &Stripe,
) -> ByteRange {
    if client.0 >= clients {
        return ByteRange::new(file_bytes, file_bytes);
    }
    let blocks = u128::from(file_bytes.div_ceil(stripe.block_bytes));
    let cut = |place: u32| {
        let block = blocks * u128::from(place) / u128::from(clients);
        let byte = block * u128::from(stripe.block_bytes);
        u64::try_from(byte).unwrap_or(u64::MAX).min(file_bytes)
    };
    ByteRange::new(cut(client.0), cut(client.0 + 1))
}
