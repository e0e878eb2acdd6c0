//! Worms that have met others: who waits where, what it keeps, and when it goes on.
//!
//! A worm waits for one lane. The lanes behind its head into which its tail has not come stay its
//! own; those that its buffers leave behind are released in time. When the lane is free, its head
//! goes on, as far as it comes; when it has reached its node, all of its times are known.
//!
//! Let a worm of length `L` (the time a link needs for it) begin to stream into lane `k` of its way
//! at `S(k)`, let a hop last `h`, and a buffer hold what a link carries in `B`. Then the tail is in
//! lane `i` at the latest of
//!
//! ```text
//! S(k) + (i - k) h + L                    for k <= i: a head moves a hop at a time
//! S(k) + L - (k - i) (B - h)              for k > i with (k - i) B < L: flits behind a head that
//!                                         waits stay where they are when the buffers are full
//! ```
//!
//! which with whole flits is what the exact torus does. Only the `S(k)` at which a worm has waited
//! can be the latest.
//!
//! Two worms in the lanes of one link share it. If it is known when one of them has passed, the
//! other streams, `S(k)`, from then on; its head does not wait for that, and may be in further
//! lanes.
//!
//! Invariants: a worm that waits is in one queue, and the first in it is due when the lane is free
//! if that is known; worms wait for worms only in the order of lanes, so one is always due.

use super::super::exact::BUFFER_FLITS;
use super::super::grid::{LANES_PER_LINK, Route};
use super::Torus;
use super::tails::Tails;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::Instant;

/// Marks a lane that has a queue; the rest of the number says which.
pub(super) const CONTESTED: u64 = 1 << 63;

/// Of a lane that belongs to a worm which does not know when it will leave it, and for which nobody
/// waits.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// Worms that have met others.
#[derive(Debug, Default)]
pub(super) struct Meetings {
    /// One that goes on is out of its place.
    worms: Vec<Option<Box<Worm>>>,
    free_worms: Vec<u32>,
    queues: Vec<Queue>,
    free_queues: Vec<u32>,
    /// Worms that wait.
    waiting: usize,
    /// Those that have met others, so far.
    met: u64,
    /// Who goes on, and when in ns; at one instant in the order of sending.
    due: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// What has arrived, or will, and when in ns; at one instant in the order of sending.
    arriving: BinaryHeap<Reverse<(u64, u64, u32)>>,
}

#[derive(Debug, Default)]
struct Worm {
    /// In the order of sending.
    number: u64,
    parcel: u32,
    busy_ns: u64,
    /// How many buffers it fills.
    fills: u32,
    /// The lanes of its way: out of the node, from router to router, into a node.
    way: Route,
    /// How many of them it will leave at a known time, and how many others know that they are its.
    settled: u32,
    held: u32,
    /// The one to which its head comes next, and when; it may have to wait there.
    place: u32,
    head_ns: u64,
    waits: bool,
    /// The lanes in which it began to stream later than the one before tells, and when; in the
    /// order of lanes.
    starts: Starts,
}

/// Places of lanes and times in ns; of few worms there are more.
pub(super) type Starts = SmallVec<[(u32, u64); 4]>;

/// Worms that wait for a lane, in the order of asking; somebody does.
#[derive(Debug)]
struct Queue {
    /// When the lane is free, or [`UNKNOWN`].
    free_at_ns: u64,
    waiting: VecDeque<u32>,
}

impl Meetings {
    fn take(&mut self, index: u32) -> Box<Worm> {
        self.worms[index as usize].take().expect("a worm must be in its place")
    }
}

impl Torus {
    /// The next parcel, in order, whose last flit has arrived by now; of those that were sent
    /// without it being known when.
    pub fn arrived(&mut self, now: Instant) -> Option<u32> {
        self.advance(now);
        let Reverse((at_ns, _, parcel)) = *self.meetings.arriving.peek()?;
        if at_ns > now.as_ns() {
            return None;
        }
        self.meetings.arriving.pop();
        Some(parcel)
    }

    /// No parcel arrives before, whatever else is sent; `None` when none is under way.
    pub fn next_arrival_from(&self) -> Option<Instant> {
        let arriving = self.meetings.arriving.peek();
        let at_ns = arriving.map_or(u64::MAX, |&Reverse((at_ns, ..))| at_ns).min(self.due_at_ns);
        (at_ns != u64::MAX).then_some(Instant::from_ns(at_ns))
    }

    /// Has everyone go on who is due by now.
    pub(super) fn advance(&mut self, now: Instant) {
        while self.due_at_ns <= now.as_ns()
            && let Some(Reverse((at_ns, _, index))) = self.meetings.due.pop()
        {
            self.go_on(at_ns, index);
            self.due_at_ns = self.first_due_at_ns();
        }
    }

    fn first_due_at_ns(&self) -> u64 {
        self.meetings.due.peek().map_or(u64::MAX, |&Reverse((at_ns, ..))| at_ns)
    }

    /// Sends a worm that has `passed` so many lanes of its way and come to one that is taken, or
    /// whose link is, or not yet to its first. The times are when it was sent, when its head is
    /// there, and its length. Returns when it arrives if that is known.
    #[inline(never)]
    pub(super) fn meet(
        &mut self,
        route: Route,
        passed: u32,
        (start_ns, head_ns, busy_ns): (u64, u64, u64),
        parcel: impl FnOnce() -> u32,
    ) -> Option<Instant> {
        let fills = self.buffers_filled(busy_ns);
        let meetings = &mut self.meetings;
        let index = meetings.free_worms.pop().unwrap_or_else(|| {
            meetings.worms.push(Some(Box::default()));
            meetings.worms.len() as u32 - 1
        });
        let mut worm = meetings.take(index);
        meetings.met += 1;
        (worm.number, worm.busy_ns) = (meetings.met, busy_ns);
        (worm.settled, worm.held, worm.waits) = (0, 0, false);
        (worm.fills, worm.way) = (fills, route);
        worm.starts.clear();
        if passed > 1 {
            worm.starts.push((1, start_ns));
        }
        (worm.place, worm.head_ns) = (passed, head_ns);
        let arrival = if self.longest_way_ns.is_some() {
            self.come(&mut worm, index);
            None
        } else {
            self.walk(&mut worm, index, start_ns)
        };
        if arrival.is_none() {
            worm.parcel = parcel();
        }
        self.keep(worm, index, arrival);
        self.due_at_ns = self.first_due_at_ns();
        arrival.map(Instant::from_ns)
    }

    /// Has a worm go on: the lane for which it waits is free, or its head has come to the next one.
    fn go_on(&mut self, now_ns: u64, index: u32) {
        let mut worm = self.meetings.take(index);
        if worm.waits {
            let lane = worm.way.lane(worm.place);
            let queue = self.queue_of(lane).expect("who waits must be in a queue");
            let first = queue.waiting.pop_front();
            assert_eq!(first, Some(index), "lanes must be given in the order of asking");
            queue.free_at_ns = UNKNOWN;
            if queue.waiting.is_empty() {
                self.end_queue(lane, UNKNOWN);
            }
            self.meetings.waiting -= 1;
            worm.waits = false;
            self.share_again(&mut worm, now_ns);
            self.enter(&mut worm, lane, now_ns);
        }
        let arrival = self.walk(&mut worm, index, now_ns);
        if let Some(at_ns) = arrival {
            self.meetings.arriving.push(Reverse((at_ns, worm.number, worm.parcel)));
        }
        self.keep(worm, index, arrival);
        let Meetings { waiting, due, .. } = &self.meetings;
        assert!(*waiting == 0 || !due.is_empty(), "worms must not wait in a circle");
    }

    /// Lets a worm be due when its head comes to the next lane.
    fn come(&mut self, worm: &mut Worm, index: u32) {
        self.settle(worm);
        self.meetings.due.push(Reverse((worm.head_ns, worm.number, index)));
    }

    fn keep(&mut self, worm: Box<Worm>, index: u32, arrival: Option<u64>) {
        self.meetings.worms[index as usize] = Some(worm);
        if arrival.is_some() {
            self.meetings.free_worms.push(index);
        }
    }

    /// Moves a head on until it has to wait, or is ahead of the present where that matters, or has
    /// reached its node: then when its tail does, in ns.
    fn walk(&mut self, worm: &mut Worm, index: u32, now_ns: u64) -> Option<u64> {
        let last = worm.way.last();
        let is_ahead =
            |torus: &Self, worm: &Worm| worm.head_ns > now_ns && torus.longest_way_ns.is_some();
        while worm.place < last {
            if self.longest_way_ns.is_none() {
                self.run(worm, last);
            } else if is_ahead(self, worm) {
                self.come(worm, index);
                return None;
            }
            if worm.place == last {
                break;
            }
            let lane = worm.way.lane(worm.place);
            if *self.lanes.free_at_ns(lane) > worm.head_ns {
                self.wait(worm, lane, index);
                self.settle(worm);
                return None;
            }
            self.enter(worm, lane, worm.head_ns);
        }
        if is_ahead(self, worm) {
            self.come(worm, index);
            return None;
        }
        // Whoever is before it there is in its node already, so it is known when it will be done.
        let lane = worm.way.lane(last);
        let free_at_ns = *self.lanes.free_at_ns(lane);
        assert!(free_at_ns < CONTESTED, "nobody waits for anything in the way into a node");
        self.enter(worm, lane, worm.head_ns.max(free_at_ns));
        let tail_ns = self.leave(worm, last);
        self.release(lane, tail_ns);
        Some(tail_ns)
    }

    /// Has a head go on through lanes whose links nobody else uses, as [`enter`](Self::enter) would
    /// lane by lane: where it is not held up, nothing has to be told of it.
    #[inline]
    fn run(&mut self, worm: &mut Worm, last: u32) {
        #[cfg(test)]
        if self.goes_lane_by_lane {
            return;
        }
        let Some(&(before, at_ns)) = worm.starts.last() else { return };
        let (mut place, mut head_ns) = (worm.place, worm.head_ns);
        let told_ns = at_ns + u64::from(place - before) * self.hop_ns;
        assert!(head_ns <= told_ns, "a worm must not stream before its head comes");
        while place < last {
            // (Only the way out of a node has no hop, and it is passed.)
            let stretch = worm.way.stretch(place);
            let free = self.lanes.count_free(&stretch, head_ns, self.hop_ns);
            (place, head_ns) = (place + free, head_ns + u64::from(free) * self.hop_ns);
            if free < stretch.links {
                break;
            }
        }
        (worm.place, worm.head_ns) = (place, head_ns);
    }

    /// Has a head enter the lane to which it has come.
    fn enter(&mut self, worm: &mut Worm, lane: u32, now_ns: u64) {
        let place = worm.place;
        (worm.place, worm.head_ns) = (place + 1, now_ns);
        if place == 0 {
            return;
        }
        worm.head_ns += self.hop_ns;
        // A worm in the other lane of the link goes first, if it is known when it will have gone.
        let other_ns = self.lane_free_at_ns(lane ^ 1);
        let start_ns = if other_ns == UNKNOWN { now_ns } else { other_ns.max(now_ns) };
        let told_ns = worm
            .starts
            .last()
            .map(|&(before, at_ns)| at_ns + u64::from(place - before) * self.hop_ns);
        if told_ns.is_none_or(|told_ns| start_ns > told_ns) {
            worm.starts.push((place, start_ns));
        }
    }

    /// Has a worm that goes on let others go first in the other lanes of the links behind its head.
    fn share_again(&mut self, worm: &mut Worm, now_ns: u64) {
        let told = worm.starts.len();
        let from = worm.settled.max(1);
        let mut lanes = worm.way.lanes_from(from);
        for i in from..worm.place {
            let other = lanes.next() ^ 1;
            if *self.lanes.free_at_ns(other) <= now_ns {
                continue;
            }
            let other_ns = self.lane_free_at_ns(other);
            if other_ns != UNKNOWN && other_ns > now_ns {
                // What the buffers have taken has passed the link.
                let passed_ns = u64::from(worm.place - i) * self.buffer_ns();
                worm.starts.push((i, other_ns - passed_ns.min(other_ns)));
            }
        }
        if worm.starts.len() > told {
            worm.starts.sort_unstable();
        }
    }

    /// Puts a worm last in the queue for a lane that is not free.
    fn wait(&mut self, worm: &mut Worm, lane: u32, index: u32) {
        let free_at_ns = *self.lanes.free_at_ns(lane);
        if !has_queue(free_at_ns) {
            self.contest(lane, free_at_ns);
        }
        worm.waits = true;
        self.meetings.waiting += 1;
        let queue = self.queue_of(lane).expect("the lane must have a queue");
        queue.waiting.push_back(index);
        if queue.waiting.len() == 1 && queue.free_at_ns != UNKNOWN {
            let at_ns = queue.free_at_ns.max(worm.head_ns);
            self.meetings.due.push(Reverse((at_ns, worm.number, index)));
        }
    }

    /// Says of all lanes behind a head when its worm leaves them, or that this is not known.
    fn settle(&mut self, worm: &mut Worm) {
        let place = worm.place;
        let end = place.saturating_sub(worm.fills);
        if end > worm.settled {
            self.leave(worm, end);
            worm.settled = end;
        }
        let from = worm.held.max(worm.settled);
        let mut lanes = worm.way.lanes_from(from);
        for _ in from..place {
            let free_at_ns = self.lanes.free_at_ns(lanes.next());
            if !has_queue(*free_at_ns) {
                *free_at_ns = UNKNOWN;
            }
        }
        worm.held = place;
    }

    /// Says of the lanes from the first that is not settled to `end` when its worm leaves them.
    /// Returns when its tail is in the next one.
    fn leave(&mut self, worm: &mut Worm, end: u32) -> u64 {
        let held_up_ns = self.buffer_ns() - self.hop_ns;
        let tails = Tails::of(worm.busy_ns, worm.fills, self.hop_ns, held_up_ns);
        let way = &worm.way;
        tails.between(worm.settled, end, &mut worm.starts, |places, mut leaves| {
            let mut place = places.start;
            while place < places.end {
                let stretch = way.stretch(place).first(places.end - place);
                let quiet = self.lanes.release_quiet(&stretch, &mut leaves);
                if quiet < stretch.links {
                    self.release_contested(way.lane(place + quiet), leaves.next_ns());
                    place += 1;
                }
                place += quiet;
            }
        })
    }

    #[inline]
    fn release(&mut self, lane: u32, free_at_ns: u64) {
        let place = self.lanes.free_at_ns(lane);
        if !has_queue(*place) {
            *place = free_at_ns;
        } else {
            self.release_contested(lane, free_at_ns);
        }
    }

    #[inline(never)]
    fn release_contested(&mut self, lane: u32, free_at_ns: u64) {
        let queue = self.queue_of(lane).expect("a contested lane must have a queue");
        queue.free_at_ns = free_at_ns;
        let first = *queue.waiting.front().expect("somebody must wait in a queue");
        let worm = self.meetings.worms[first as usize].as_ref();
        let worm = worm.expect("a worm that waits must be in its place");
        let due = (free_at_ns.max(worm.head_ns), worm.number, first);
        self.meetings.due.push(Reverse(due));
    }

    /// Takes the queue of a lane, in which nobody is any more.
    fn end_queue(&mut self, lane: u32, free_at_ns: u64) {
        let place = self.lanes.free_at_ns(lane);
        self.meetings.free_queues.push((*place & !CONTESTED) as u32);
        *place = free_at_ns;
    }

    /// Gives a lane a queue.
    fn contest(&mut self, lane: u32, free_at_ns: u64) {
        let Meetings { queues, free_queues, .. } = &mut self.meetings;
        let place = free_queues.pop().unwrap_or_else(|| {
            queues.push(Queue { free_at_ns, waiting: VecDeque::new() });
            queues.len() as u32 - 1
        });
        queues[place as usize].free_at_ns = free_at_ns;
        *self.lanes.free_at_ns(lane) = CONTESTED | u64::from(place);
    }

    fn queue_of(&mut self, lane: u32) -> Option<&mut Queue> {
        let place = *self.lanes.free_at_ns(lane);
        has_queue(place).then(|| &mut self.meetings.queues[(place & !CONTESTED) as usize])
    }

    /// When a lane is free, in ns, or [`UNKNOWN`].
    fn lane_free_at_ns(&mut self, lane: u32) -> u64 {
        let free_at_ns = *self.lanes.free_at_ns(lane);
        self.queue_of(lane).map_or(free_at_ns, |queue| queue.free_at_ns)
    }

    /// How many buffers a worm fills that a link needs `busy_ns` for.
    fn buffers_filled(&self, busy_ns: u64) -> u32 {
        match self.buffer_ns() {
            0 => u32::from(busy_ns > 0) * u32::MAX,
            buffer_ns => u32::try_from(busy_ns.div_ceil(buffer_ns)).unwrap_or(u32::MAX),
        }
    }

    fn buffer_ns(&self) -> u64 {
        u64::from(BUFFER_FLITS) * self.hop_ns
    }
}

/// Whether what is said of a lane is which worms wait for it.
#[inline(always)]
pub(super) fn has_queue(free_at_ns: u64) -> bool {
    (CONTESTED..UNKNOWN).contains(&free_at_ns)
}

const _: () = assert!(LANES_PER_LINK == 2, "the other lane of a link must be one bit away");
