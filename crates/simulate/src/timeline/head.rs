//! The way of one disk's head over its sectors, kept for a picture.

use std::ops::Range;
use world_simulated::{Activity, Link, Mark, Recorder, Slice, Track, What};

/// Motions that are kept; those after them are only counted. A picture shows no more.
const HEAD_MOTIONS_MAX: usize = 200_000;

/// Where the head of a disk was, in nanoseconds of simulated time.
#[derive(Clone, Default, Debug)]
pub struct HeadPath {
    /// What arm and medium did, in the order of time.
    pub motions: Vec<HeadMotion>,
    /// Motions that were not kept.
    pub motions_left_out: u64,
    /// When the measured transfer began.
    pub began_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
}

/// What arm and medium did for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeadMotion {
    /// What they did.
    pub activity: Activity,
    /// From when to when.
    pub time_ns: Range<u64>,
    /// The sectors that passed; for a move and a wait none, at the place of the first to come.
    pub sectors: Range<u64>,
}

/// Listens to one disk.
pub(super) struct HeadRecorder {
    disk: u32,
    path: HeadPath,
}

impl HeadRecorder {
    pub(super) fn new(disk: u32) -> Self {
        Self { disk, path: HeadPath::default() }
    }

    /// What was heard.
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
