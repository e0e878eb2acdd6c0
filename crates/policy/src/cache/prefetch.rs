//! Read-ahead of one block: "one block ahead on same disk" (TOCS 1997, Table I).

use crate::placement::Stripe;

/// Returns the next block on the disk of `block`, or `None` at the end of a file of `file_bytes`.
pub fn next_on_disk(stripe: &Stripe, block: u64, file_bytes: u64) -> Option<u64> {
    let blocks = file_bytes.div_ceil(stripe.block_bytes);
    let next = match stripe.map() {
        None => block.checked_add(stripe.disks())?,
        Some(_) => {
            let at = stripe.locate(block);
            stripe.blocks_on(at.server, at.disk, block.checked_add(1)?..blocks).next()?
        }
    };
    (next < blocks).then_some(next)
}
