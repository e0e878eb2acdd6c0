//! Writes that clients gather before they send them: which of several writes of the same bytes
//! counts.

mod order;

pub use order::{GatheredPart, GatheredWrite, WriteOrder};
