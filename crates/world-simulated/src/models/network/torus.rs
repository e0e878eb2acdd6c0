//! A two-dimensional torus, modelled: worms meet and wait as in the [exact](super::exact) form, but
//! only their heads are moved, and only where they meet.
//!
//! A message is a worm: its head opens the way lane by lane, its tail follows without a gap. Ways,
//! lanes, flits and ticks are those of the exact torus. A worm that finds all of its way free has
//! it as soon as it is sent, and its arrival is known at once; that is one look at each lane. One
//! that has to wait is moved on when the lane for which it waits is free ([`meetings`]).
//!
//! What is simplified: a worm that finds its way free has it at once, although one that is sent
//! while its head is still on the way may have a nearer one; two worms in the lanes of one link
//! pass one after the other, not flit by flit in turn, if it is known when the first will have
//! passed, and as if they did not share it otherwise; and a head enters the buffer in which another
//! worm still lies only when that one is about to leave it.
//!
//! On a torus whose ways are longer than [`IN_ORDER_HOPS_MAX`], heads do not wait for the present
//! either: lanes that are free are given in the order of sending, so that of two heads that come to
//! a lane within the time of a way, the later may go first. Somewhere on a large machine some head
//! is always on its way, and to move each of them hop by hop would double what a message costs.
//!
//! A hop in which a link carries no whole number of bytes, zero included, has neither flits nor
//! ticks: then messages enter at once and take as long as their bytes do.
//!
//! Invariants: a lane carries one worm at a time; what is known to arrive is not put off any more.

mod lanes;
mod meetings;
mod tails;

#[cfg(test)]
mod tests;

use super::grid::{Grid, LANES_PER_LINK, Route};
use super::links::Pace;
use super::{LinkSpec, TorusSize};
use lanes::Lanes;
use meetings::Meetings;
use units::Instant;

/// Up to ways of so many hops, lanes are given in the order in which heads come to them: tori of 16
/// by 16 nodes.
const IN_ORDER_HOPS_MAX: u32 = 16;

/// The state of one network.
#[derive(Debug)]
pub struct Torus {
    grid: Grid,
    pace: Pace,
    hop_ns: u64,
    /// Bytes of a flit, when a hop carries a whole number of them.
    flit_bytes: Option<u64>,
    /// How long a head needs at most, where lanes are given in the order in which heads come.
    longest_way_ns: Option<u64>,
    lanes: Lanes,
    meetings: Meetings,
    /// When the next of the worms that have met others goes on; `u64::MAX` when none does.
    due_at_ns: u64,
    /// For tests: heads do not run through free lanes at once.
    #[cfg(test)]
    goes_lane_by_lane: bool,
}

impl Torus {
    /// A quiet torus. Panics unless it has 1 to [`NODES_MAX`](super::NODES_MAX) places.
    pub fn new(size: TorusSize, link: LinkSpec) -> Self {
        let grid = Grid::new(size);
        let lanes = Lanes::new(grid.links() as usize);
        let hop_ns = link.hop.as_ns();
        let hops = size.width / 2 + size.height / 2;
        Self {
            grid,
            pace: Pace::of(link),
            hop_ns,
            flit_bytes: link.flit_bytes(),
            longest_way_ns: (hops <= IN_ORDER_HOPS_MAX).then(|| u64::from(hops) * hop_ns),
            lanes,
            meetings: Meetings::default(),
            due_at_ns: u64::MAX,
            #[cfg(test)]
            goes_lane_by_lane: false,
        }
    }

    /// Sends `bytes` now: when the last of them arrives, if that is known already; otherwise
    /// [`arrived`](Self::arrived) will return what `parcel` does. At once when a node sends to
    /// itself.
    ///
    /// With the links of the papers an undisturbed message takes 20 ns a hop and 20 ns for each 4
    /// bytes begun, from the first multiple of 20 ns on: 8 KB over 3 hops 41.02 us.
    #[inline]
    pub fn send(
        &mut self,
        now: Instant,
        (from, to): (u32, u32),
        bytes: u64,
        parcel: impl FnOnce() -> u32,
    ) -> Option<Instant> {
        if from == to {
            return Some(now);
        }
        let (start_ns, busy_ns) = self.times(now, bytes);
        // Whoever goes on before this head can be in its node may be at a lane before it.
        let ahead_ns = self.longest_way_ns.unwrap_or(0);
        if self.due_at_ns <= start_ns + ahead_ns {
            self.advance(now);
            if self.longest_way_ns.is_some() {
                let route = self.grid.route(from, to);
                return self.meet(route, 0, (start_ns, start_ns, busy_ns), parcel);
            }
        }
        let (head_ns, passed, is_free) = match self.grid.way(from, to) {
            Some(way) => {
                let links_with_hop = self.grid.links_with_hop();
                let (mut head_ns, mut passed) = (start_ns, 0);
                let is_free = way.iter().all(|&lane| {
                    let is_free = self.lanes.enter(lane.into(), head_ns, busy_ns);
                    let has_hop = u32::from(lane) / LANES_PER_LINK < links_with_hop;
                    head_ns += if is_free && has_hop { self.hop_ns } else { 0 };
                    passed += u32::from(is_free);
                    is_free
                });
                (head_ns, passed, is_free)
            }
            None => self.enter_far(&self.grid.route(from, to), start_ns, busy_ns),
        };
        if is_free {
            return Some(Instant::from_ns(head_ns + busy_ns));
        }
        let route = self.grid.route(from, to);
        self.meet(route, passed, (start_ns, head_ns, busy_ns), parcel)
    }

    /// Has a worm have the lanes of its way up to the first whose link is not free: when its head
    /// is there, how many it has, and whether that is all of them.
    #[inline(always)]
    fn enter_far(&mut self, route: &Route, start_ns: u64, busy_ns: u64) -> (u64, u32, bool) {
        let (mut head_ns, mut passed) = (start_ns, 0);
        while passed <= route.last() {
            let stretch = route.stretch(passed);
            let hop_ns = if stretch.has_hop { self.hop_ns } else { 0 };
            let entered = self.lanes.enter_free(&stretch, head_ns, hop_ns, busy_ns);
            (head_ns, passed) = (head_ns + u64::from(entered) * hop_ns, passed + entered);
            if entered < stretch.links {
                return (head_ns, passed, false);
            }
        }
        (head_ns, passed, true)
    }

    /// When a message that is sent now can enter, and how long a link carries it, in ns.
    #[inline(always)]
    fn times(&self, now: Instant, bytes: u64) -> (u64, u64) {
        let (now_ns, tick_ns) = (now.as_ns(), self.hop_ns);
        match self.flit_bytes {
            Some(flit_bytes) => {
                let flits = bytes.div_ceil(flit_bytes).max(1);
                (now_ns.div_ceil(tick_ns) * tick_ns, flits * tick_ns)
            }
            None => (now_ns, self.pace.ns(bytes)),
        }
    }
}
