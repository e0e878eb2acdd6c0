//! What is worth reading before it is asked for: "one block ahead on same disk" (TOCS 1997,
//! Table I).

use crate::stripe::Stripe;

/// The block behind `block` on the same disk, or `None` at the end of a file of `file_bytes`.
pub fn next_on_disk(stripe: &Stripe, block: u64, file_bytes: u64) -> Option<u64> {
    let blocks = file_bytes.div_ceil(stripe.block_bytes);
    block.checked_add(stripe.disks()).filter(|next| *next < blocks)
}
