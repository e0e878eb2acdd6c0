//! What the file system's own work costs a processor.
//!
//! A simulated machine is told how long each kind of work takes on its reference processor; a real
//! one takes the time it takes. Moving messages and data costs extra, and only the world knows how
//! much.

use policy::Access;
use units::{Duration, PieceRun};

/// Processor time of each kind of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Costs {
    /// Of a caching client, to find the server of a block, build a request to read, and take up
    /// the answer.
    pub client_read: Duration,
    /// The same for a request to write.
    pub client_write: Duration,
    /// Of a server, to look up a block that is read, bookkeeping included.
    pub cache_read: Duration,
    /// The same for a block that is written.
    pub cache_write: Duration,
    /// Of a server, to copy one byte from a message to its cache, in picoseconds.
    pub copy_ps_per_byte: u64,
    /// Of a server that directs a transfer, for each block: threads woken, disk started,
    /// interrupt taken.
    pub block: Duration,
    /// To find whose a piece is and where it goes, for each dimension that is dealt out.
    pub piece_per_dimension: Duration,
    /// Of a client, for a collective call as a whole.
    pub collective: Duration,
}

impl Costs {
    /// Of real machines, where time passes by itself.
    pub const FREE: Self = Self {
        client_read: Duration::ZERO,
        client_write: Duration::ZERO,
        cache_read: Duration::ZERO,
        cache_write: Duration::ZERO,
        copy_ps_per_byte: 0,
        block: Duration::ZERO,
        piece_per_dimension: Duration::ZERO,
        collective: Duration::ZERO,
    };

    /// To copy `bytes` from a message to the cache.
    pub(crate) fn copy(&self, bytes: u64) -> Duration {
        Duration::from_ns(bytes.saturating_mul(self.copy_ps_per_byte) / 1_000)
    }

    /// To find the places of these pieces of an access.
    pub(crate) fn pieces(&self, access: &Access, pieces: &[PieceRun]) -> Duration {
        let count: u64 = pieces.iter().map(|piece| piece.count).sum();
        let steps = count.saturating_mul(access.dealt_dimensions().into());
        Duration::from_ns(self.piece_per_dimension.as_ns().saturating_mul(steps))
    }
}
