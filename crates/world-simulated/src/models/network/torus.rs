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

mod meetings;

#[cfg(test)]
mod tests;

use super::grid::{self, Grid};
use super::links::Pace;
use super::{LinkSpec, TorusSize};
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
        let lanes = Lanes::new(size.places() as usize);
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
                return self.meet(route, None, (start_ns, start_ns, busy_ns), parcel);
            }
        }
        let (nodes, hop_ns) = (&mut *self.lanes.0, self.hop_ns);
        let (mut head_ns, mut taken) = (start_ns, None);
        let mut enter = |lane: u32, has_hop: bool| {
            let node = &mut nodes[lane as usize / LANES_PER_NODE].0;
            let place = lane as usize % LANES_PER_NODE;
            if node[place].max(node[place ^ 1]) > head_ns {
                taken = Some(lane);
                return false;
            }
            node[place] = head_ns + busy_ns;
            head_ns += if has_hop { hop_ns } else { 0 };
            true
        };
        let is_free = match self.grid.way(from, to) {
            Some(way) => way.iter().all(|&lane| enter(lane.into(), grid::has_hop(lane.into()))),
            None => self.grid.route(from, to).all_lanes(enter),
        };
        if is_free {
            return Some(Instant::from_ns(head_ns + busy_ns));
        }
        let route = self.grid.route(from, to);
        self.meet(route, taken, (start_ns, head_ns, busy_ns), parcel)
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

/// When each lane is free, in ns; or, with [`CONTESTED`](meetings::CONTESTED), where it is said
/// which worms wait for it or do not know when they will leave it.
#[derive(Debug)]
struct Lanes(Box<[NodeLanes]>);

/// The lanes that begin at a router, and those into and out of its node, by their number: the eight
/// between routers are one line of a processor's caches.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct NodeLanes([u64; LANES_PER_NODE]);

const LANES_PER_NODE: usize = grid::LANES_PER_NODE as usize;

impl Lanes {
    fn new(nodes: usize) -> Self {
        Self(vec![NodeLanes([0; LANES_PER_NODE]); nodes].into())
    }

    /// When both lanes of a link are.
    #[inline(always)]
    fn link_free_at_ns(&self, lane: u32) -> u64 {
        let node = &self.0[lane as usize / LANES_PER_NODE].0;
        let place = lane as usize % LANES_PER_NODE;
        node[place].max(node[place ^ 1])
    }

    #[inline(always)]
    fn free_at_ns(&mut self, lane: u32) -> &mut u64 {
        &mut self.0[lane as usize / LANES_PER_NODE].0[lane as usize % LANES_PER_NODE]
    }
}
