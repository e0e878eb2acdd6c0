//! Trajectory of one disk's head over its sectors, kept for a plot.

use std::ops::Range;
use world_simulated::{Activity, Link, Mark, Recorder, Slice, Track, What};

/// Motions that are kept; later ones are only counted. A plot shows no more.
const HEAD_MOTIONS_MAX: usize = 200_000;

/// Positions of a disk's head over time, in nanoseconds of simulated time.
#[derive(Clone, Default, Debug)]
pub struct HeadPath {
    /// Motions of arm and medium, in the order of time.
    pub motions: Vec<HeadMotion>,
    /// Motions that were not kept.
    pub motions_left_out: u64,
    /// Start of the measured transfer.
    pub began_ns: u64,
    /// End of the measured transfer.
    pub ended_ns: u64,
}

/// One motion of arm and medium.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeadMotion {
    /// Kind of motion.
    pub activity: Activity,
    /// Start and end of the motion.
    pub time_ns: Range<u64>,
    /// Sectors that passed under the head. A move or a wait has an empty range, at the first sector
    /// to come.
    pub sectors: Range<u64>,
}

/// Records the motions of one disk.
pub(super) struct HeadRecorder {
    disk: u32,
    path: HeadPath,
}

impl HeadRecorder {
    pub(super) fn new(disk: u32) -> Self {
        Self { disk, path: HeadPath::default() }
    }

    /// Returns the recorded motions, sorted by time.
    pub(super) fn take(&mut self) -> HeadPath {
        let mut path = std::mem::take(&mut self.path);
        path.motions.sort_by_key(|motion| motion.time_ns.start);
        path
    }
}

impl Recorder for HeadRecorder {
    fn slice(&mut self, slice: &Slice<'_>) -> Option<Mark> {
        let Slice { track, from, until, what, .. } = slice;
        match (track, what) {
            (Track::Transfer, _) => {
                (self.path.began_ns, self.path.ended_ns) = (from.as_ns(), until.as_ns());
            }
            (Track::Mechanism(disk), What::Motion { activity, sectors }) if *disk == self.disk => {
                if self.path.motions.len() < HEAD_MOTIONS_MAX {
                    let time_ns = from.as_ns()..until.as_ns();
                    let sectors = sectors.clone();
                    self.path.motions.push(HeadMotion { activity: *activity, time_ns, sectors });
                } else {
                    self.path.motions_left_out += 1;
                }
            }
            _ => {}
        }
        None
    }

    fn arrow(&mut self, _link: Link, _from: Mark, _to: Mark) {}
}
