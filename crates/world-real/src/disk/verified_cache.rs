//! Cache of the most recently verified pieces of a disk.
//!
//! Small requests follow one another along an object; the piece that holds them is read and
//! verified once.
//!
//! Invariant: a cached piece equals the contents of the object, or its pending contents.

use crate::memory::RealPayload;
use std::collections::VecDeque;
use std::ops::Range;
use units::FileId;

/// Maximum number of pieces that a disk caches: 1 MiB.
const PIECES_MAX: usize = 16;

/// Whole pieces, the most recently used at the end.
#[derive(Default)]
pub(super) struct VerifiedCache(VecDeque<(FileId, u64, RealPayload)>);

impl VerifiedCache {
    /// Returns all bytes of a piece, if it is cached.
    pub(super) fn piece(&mut self, object: FileId, piece: u64) -> Option<RealPayload> {
        let is_it = |kept: &(FileId, u64, RealPayload)| (kept.0, kept.1) == (object, piece);
        let kept = self.0.remove(self.0.iter().rposition(is_it)?)?;
        let bytes = kept.2.clone();
        self.0.push_back(kept);
        Some(bytes)
    }

    /// Caches a piece that is not cached.
    pub(super) fn keep(&mut self, object: FileId, piece: u64, bytes: RealPayload) {
        if self.0.len() == PIECES_MAX {
            self.0.pop_front();
        }
        self.0.push_back((object, piece, bytes));
    }

    /// Removes pieces that change.
    pub(super) fn forget(&mut self, object: FileId, pieces: Range<u64>) {
        self.0.retain(|kept| kept.0 != object || !pieces.contains(&kept.1));
    }
}
