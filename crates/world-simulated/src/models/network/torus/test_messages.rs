//! Messages for tests of both forms of the torus.

use super::grid::TorusSize;

/// The torus of the papers.
pub(super) const SIX: TorusSize = TorusSize { width: 6, height: 6 };
/// Time of a hop, in ns.
pub(super) const TICK_NS: u64 = 20;
/// Bytes that a link carries in a hop time.
pub(super) const FLIT_BYTES: u64 = 4;

/// One message of a test.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub(super) at_ns: u64,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: u64,
}

/// Creates a message of this many flits, sent at the start.
pub(super) fn flits(from: u32, to: u32, flits: u64) -> Sending {
    Sending { at_ns: 0, from, to, bytes: flits * FLIT_BYTES }
}
