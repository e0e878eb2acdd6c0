//! Messages that tests of the torus send: both forms are told the same.

use super::grid::TorusSize;

/// The torus of the papers.
pub(super) const SIX: TorusSize = TorusSize { width: 6, height: 6 };
/// Time of a hop, in ns.
pub(super) const TICK_NS: u64 = 20;
/// What a link carries in it.
pub(super) const FLIT_BYTES: u64 = 4;

/// One message of a test.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub(super) at_ns: u64,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: u64,
}

/// A message of so many flits, at the beginning.
pub(super) fn flits(from: u32, to: u32, flits: u64) -> Sending {
    Sending { at_ns: 0, from, to, bytes: flits * FLIT_BYTES }
}
