//! The pieces of a disk that were compared with their sums last.
//!
//! Requests for less than a piece come one after the other along an object; the piece that holds
//! them is read and compared once. Invariant: what is kept is what the object holds, or was asked
//! to hold.

use crate::memory::RealPayload;
use std::collections::VecDeque;
use std::ops::Range;
use units::FileId;

/// Pieces that a disk keeps: 1 MiB.
const PIECES_MAX: usize = 16;

/// Whole pieces, the last used one at the end.
#[derive(Default)]
pub(super) struct Recent(VecDeque<(FileId, u64, RealPayload)>);

impl Recent {
    /// All bytes of a piece, if they are kept.
    pub(super) fn piece(&mut self, object: FileId, piece: u64) -> Option<RealPayload> {
        let is_it = |kept: &(FileId, u64, RealPayload)| (kept.0, kept.1) == (object, piece);
        let kept = self.0.remove(self.0.iter().rposition(is_it)?)?;
        let bytes = kept.2.clone();
        self.0.push_back(kept);
        Some(bytes)
    }

    /// Keeps a piece that is not kept.
    pub(super) fn keep(&mut self, object: FileId, piece: u64, bytes: RealPayload) {
        if self.0.len() == PIECES_MAX {
            self.0.pop_front();
        }
        self.0.push_back((object, piece, bytes));
    }

    /// Forgets pieces that change.
    pub(super) fn forget(&mut self, object: FileId, pieces: Range<u64>) {
        self.0.retain(|kept| kept.0 != object || !pieces.contains(&kept.1));
    }
}
