//! Small parts of members whose bytes go with the messages of a call, instead of one-sided
//! transfers: one message to each server and one back.
//!
//! Client and server compute the order of the bytes alike: blocks ascend, and in each block the
//! pieces are in the order of [`Access::pieces`].

use policy::{Access, OwnPart, Stripe};
use std::collections::BTreeMap;
use units::{ByteRange, ClientId, KIB, Run, ServerId};

/// Maximum number of bytes of such a part, and of the memory that it lies in.
const CARRIED_BYTES_MAX: u64 = 64 * KIB;

/// Maximum number of pieces of such a part. One-sided transfers copy many pieces faster.
const CARRIED_PIECES_MAX: u64 = 256;

/// Returns the pieces of the memory of a part, by the number of the server among those of the file;
/// `None` for a part that is too large.
pub(crate) fn carried_runs(
    part: &OwnPart,
    stripe: &Stripe,
) -> Option<BTreeMap<ServerId, Vec<Run>>> {
    if part.memory_bytes().max(part.bytes()) > CARRIED_BYTES_MAX {
        return None;
    }
    let access = Access::Parts(vec![part.clone()]);
    let (mut runs, mut count) = (BTreeMap::<ServerId, Vec<Run>>::new(), 0);
    for block in access.blocks_of(ClientId(0), stripe, None) {
        let range = ByteRange::at(block * stripe.block_bytes, stripe.block_bytes);
        let here = runs.entry(stripe.locate(block).server).or_default();
        for piece in access.pieces(ClientId(0), range) {
            count += piece.count;
            if count > CARRIED_PIECES_MAX {
                return None;
            }
            here.push(piece.memory_side());
        }
    }
    Some(runs)
}

/// Number of bytes of pieces of a memory.
pub(crate) fn bytes_of(runs: &[Run]) -> u64 {
    runs.iter().map(|run| run.bytes()).sum()
}
