//! Processor cost of the file system's own work.
//!
//! In a simulation each kind of work takes this time on the machine's reference processor; on a
//! real machine it takes its own time. Moving messages and data costs extra, which only the world
//! knows.

use policy::Access;
use units::{Duration, PieceRun};

/// Processor time of each kind of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Costs {
    /// Caching client: find the server of a block, build a read request, and accept the answer.
    pub client_read: Duration,
    /// Caching client: the work of `client_read` for a write request.
    pub client_write: Duration,
    /// Server: look up a block for a read, bookkeeping included.
    pub cache_read: Duration,
    /// Server: look up a block for a write, bookkeeping included.
    pub cache_write: Duration,
    /// Server: copy one byte from a message to the cache, in picoseconds.
    pub copy_ps_per_byte: u64,
    /// Server that directs a transfer: wake threads, start the disk and take the interrupt of one
    /// block.
    pub block: Duration,
    /// Find the owner and place of a piece, for each distributed dimension.
    pub piece_per_dimension: Duration,
    /// Two-phase client: copy within its own memory, for each byte and copy, in picoseconds.
    pub segment_ps_per_byte: u64,
    /// Client: one collective call as a whole.
    pub collective: Duration,
    /// Look at one byte of records that may match, in picoseconds.
    pub look_ps_per_byte: u64,
    /// Server: have a module look at one byte of records, in picoseconds.
    pub module_ps_per_byte: u64,
    /// Client: one write that it gathers.
    pub gather: BytesCost,
    /// Client: one read from a page that it keeps.
    pub kept_read: BytesCost,
    /// Server: one gathered write, beyond the message that brings it and the copy to the cache.
    pub gathered_write: BytesCost,
}

/// Processor time of something that is done to bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BytesCost {
    /// Each time.
    pub once: Duration,
    /// For each byte, in picoseconds.
    pub ps_per_byte: u64,
}

impl BytesCost {
    /// No time.
    pub const FREE: Self = Self { once: Duration::ZERO, ps_per_byte: 0 };

    /// Returns the cost of doing it `times` times, to `bytes` bytes in all.
    pub(crate) fn of(&self, times: u64, bytes: u64) -> Duration {
        self.once * times + Duration::from_ns(bytes.saturating_mul(self.ps_per_byte) / 1_000)
    }
}

impl Costs {
    /// Costs on real machines, where time passes by itself: zero.
    pub const FREE: Self = Self {
        client_read: Duration::ZERO,
        client_write: Duration::ZERO,
        cache_read: Duration::ZERO,
        cache_write: Duration::ZERO,
        copy_ps_per_byte: 0,
        block: Duration::ZERO,
        piece_per_dimension: Duration::ZERO,
        segment_ps_per_byte: 0,
        collective: Duration::ZERO,
        look_ps_per_byte: 0,
        module_ps_per_byte: 0,
        gather: BytesCost::FREE,
        kept_read: BytesCost::FREE,
        gathered_write: BytesCost::FREE,
    };

    /// Returns the cost of copying `bytes` bytes from a message to the cache.
    pub(crate) fn copy(&self, bytes: u64) -> Duration {
        Duration::from_ns(bytes.saturating_mul(self.copy_ps_per_byte) / 1_000)
    }

    /// Returns the cost of looking at `bytes` bytes of records.
    pub fn look(&self, bytes: u64) -> Duration {
        Duration::from_ns(bytes.saturating_mul(self.look_ps_per_byte) / 1_000)
    }

    /// Returns the cost of having a module look at `bytes` bytes of records, and of compiling one
    /// of so many bytes.
    pub(crate) fn module(&self, bytes: u64) -> Duration {
        Duration::from_ns(bytes.saturating_mul(self.module_ps_per_byte) / 1_000)
    }

    /// Returns the cost of `copies` copies of a segment of `bytes` bytes within a client.
    pub(crate) fn segment(&self, copies: u64, bytes: u64) -> Duration {
        let ps = self.segment_ps_per_byte.saturating_mul(copies);
        Duration::from_ns(bytes.saturating_mul(ps) / 1_000)
    }

    /// Returns the cost of finding the places of these pieces of an access.
    pub(crate) fn pieces(&self, access: &Access, pieces: &[PieceRun]) -> Duration {
        let count: u64 = pieces.iter().map(|piece| piece.count).sum();
        let steps = count.saturating_mul(access.dealt_dimensions().into());
        Duration::from_ns(self.piece_per_dimension.as_ns().saturating_mul(steps))
    }
}
