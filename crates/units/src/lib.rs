//! Numbers that all crates share: ranges of bytes, strided runs, time, ids, and the pseudo-random
//! generator.
//!
//! Invariants:
//! - A range never runs backwards.
//! - Arithmetic that would wrap panics, since the program is wrong. `checked_*` functions return
//!   `None` instead; they are for numbers from outside.

mod ids;
mod range;
mod run;
mod split_mix;
mod time;

pub use ids::{ClientId, DiskId, FileId, PeerId, RegionId, ServerId};
pub use range::ByteRange;
pub use run::{PieceRun, Run};
pub use split_mix::SplitMix64;
pub use time::{Duration, Instant, Timestamp};

/// 2^10 bytes.
pub const KIB: u64 = 1 << 10;
/// 2^20 bytes; MB in the papers (TOCS 1997, footnote 1).
pub const MIB: u64 = 1 << 20;
/// 2^30 bytes.
pub const GIB: u64 = 1 << 30;
