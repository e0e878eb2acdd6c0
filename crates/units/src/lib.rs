//! The numbers every other crate speaks in: ranges of bytes, strided runs, time, and ids.
//!
//! Invariant: a value of a type in this crate is always meaningful. Ranges never run backwards,
//! arithmetic that would wrap panics (a wrong program) or returns `None` (`checked_*`, for numbers
//! that came from outside).

mod ids;
mod range;
mod run;
mod split_mix;
mod time;

pub use ids::{ClientId, DiskId, FileId, PeerId, RegionId, ServerId};
pub use range::ByteRange;
pub use run::{PieceRun, Run};
pub use split_mix::SplitMix64;
pub use time::{Duration, Instant};

/// 2^10 bytes.
pub const KIB: u64 = 1 << 10;
/// 2^20 bytes. The papers write MB for this (TOCS 1997, footnote 1).
pub const MIB: u64 = 1 << 20;
/// 2^30 bytes.
pub const GIB: u64 = 1 << 30;
