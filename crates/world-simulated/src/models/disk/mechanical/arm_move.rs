//! A move of the arm, and the pass of sectors that it prepares.

use super::geometry::Track;
use super::rotation::{Medium, Pass};
use units::Instant;

/// A move of the arm, and the pass for which it is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArmMove {
    /// Track from which the arm moves.
    pub(super) left: Track,
    /// Beginning of the move.
    pub(super) from: Instant,
    /// Instant at which the head is over the target track.
    pub(super) arrived: Instant,
    /// Instant from which only rotation delays the pass.
    pub(super) ready: Instant,
    /// Instant at which the first sector begins to pass.
    pub(super) begins: Instant,
    /// The pass that follows, from its beginning.
    pub(super) pass: Pass,
}

impl Default for ArmMove {
    /// The move to the position of a disk at rest.
    fn default() -> Self {
        let (from, pass) = (Instant::START, Pass { sector: 0, tick: 0 });
        Self { left: Track::FIRST, from, arrived: from, ready: from, begins: from, pass }
    }
}

impl ArmMove {
    /// Creates the move from `left` to the beginning of `pass`. The arm moves from `times[0]` to
    /// `times[1]`; the pass is ready at `times[2]`.
    pub(super) fn new(medium: &Medium, left: Track, times: [Instant; 3], pass: Pass) -> Self {
        let track_sectors = medium.drive.segment_of(pass.sector).track_sectors;
        let [from, arrived, ready] = times;
        let begins = medium.instant_of(track_sectors, pass.tick);
        Self { left, from, arrived, ready, begins, pass }
    }
}
