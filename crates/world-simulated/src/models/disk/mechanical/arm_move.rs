//! A move of the arm, and the pass of sectors that it prepares.

use super::geometry::Track;
use super::rotation::{Medium, Pass};
use units::Instant;

/// A move of the arm, and the pass that it is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArmMove {
    /// Where it began.
    pub(super) left: Track,
    /// When it began.
    pub(super) from: Instant,
    /// When the head was over the track.
    pub(super) arrived: Instant,
    /// From when on only the turning medium was waited for.
    pub(super) ready: Instant,
    /// When the first sector began to pass.
    pub(super) begins: Instant,
    /// What passed then, from its beginning.
    pub(super) pass: Pass,
}

impl Default for ArmMove {
    /// The way to where a disk at rest is.
    fn default() -> Self {
        let (from, pass) = (Instant::START, Pass { sector: 0, tick: 0 });
        Self { left: Track::FIRST, from, arrived: from, ready: from, begins: from, pass }
    }
}

impl ArmMove {
    /// The way from `left` to the beginning of `pass`, which the arm takes from `times[0]` to
    /// `times[1]`, and which is ready at `times[2]`.
    pub(super) fn new(medium: &Medium, left: Track, times: [Instant; 3], pass: Pass) -> Self {
        let track_sectors = medium.drive.segment_of(pass.sector).track_sectors;
        let [from, arrived, ready] = times;
        let begins = medium.instant_of(track_sectors, pass.tick);
        Self { left, from, arrived, ready, begins, pass }
    }
}
