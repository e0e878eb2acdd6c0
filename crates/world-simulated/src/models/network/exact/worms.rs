//! Worms in a network of links and lanes, flit by flit.
//!
//! A link carries one flit a tick into the buffer of one of its lanes. The rules, in the order in
//! which a tick applies them:
//!
//! 1. A head that is in a buffer, with no other worm before it there, asks for the next lane of
//!    its way. A lane belongs to one worm at a time. It is given in the order of asking, and in the
//!    order of sending to those that ask in one tick.
//! 2. A flit may move when its worm has the next lane, no flit of the worm is before it in its
//!    buffer, and that lane's buffer has room; both as they are at the beginning of the tick.
//! 3. If two lanes of a link have a flit that may move, the one that moved last waits.
//! 4. When the last flit of a worm has entered a lane, the lane is free, and the worm behind it in
//!    the buffer that it left is the first there.
//!
//! So a worm that is held up goes on until all buffers behind its head are full, and keeps every
//! lane into which its tail has not come. The first lane of a way is the way out of a node, where
//! the whole worm lies when it is sent; the last one's buffer is the node and has no end.
//!
//! As long as the same lanes carry flits, all these ticks are done in one step ([`alike`]).
//! Invariant: the result is that of doing one tick after the other.

mod alike;

use std::collections::VecDeque;

/// All worms and the lanes on which they move.
#[derive(Debug)]
pub(super) struct Worms {
    /// Ticks that have been done.
    tick: u64,
    lanes: Box<[Lane]>,
    links: Box<[Link]>,
    worms: Vec<Worm>,
    free: Vec<u32>,
    sent: u64,
    /// Those that have left the queue of their node.
    active: Vec<u32>,
    /// Those whose head asks for a lane in the next tick.
    asking: Vec<u32>,
    /// Lanes that may be given in the next tick.
    open: Vec<u32>,
    /// What moves in this tick.
    moves: Vec<Move>,
    /// Those whose tail has arrived in this tick.
    ending: Vec<u32>,
}

/// What a lane is.
pub(super) struct LaneSpec {
    /// Number of the link of which it is a lane; lanes of a link follow one another.
    pub(super) link: u32,
    /// Flits that its buffer holds.
    pub(super) room_flits: u64,
}

/// A worm that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ended {
    /// At the end of which tick, counting from 1.
    pub(super) tick: u64,
    /// What its sender calls it.
    pub(super) parcel: u32,
}

#[derive(Debug)]
struct Lane {
    link: u32,
    room: u64,
    /// Flits in its buffer.
    flits: u64,
    /// The worm to which it belongs, until its last flit has come.
    owner: Option<u32>,
    /// Worms that have flits in the buffer, or will have, in their order.
    order: VecDeque<u32>,
    /// Worms that wait for the lane, in the order of asking.
    waiting: VecDeque<u32>,
    /// Whether a flit comes, and whether one leaves, in this tick.
    fills: bool,
    drains: bool,
}

#[derive(Clone, Debug)]
struct Link {
    /// The lane whose flit it carried last.
    last: u32,
    /// The latest tick in which it had a flit to carry, and where among the moves that is.
    used: Option<u64>,
    index: usize,
}

#[derive(Debug, Default)]
struct Worm {
    /// In the order of sending.
    number: u64,
    parcel: u32,
    flits: u64,
    /// The lanes of its way.
    way: Vec<u32>,
    /// How many of its flits have entered each of them.
    entered: Vec<u64>,
    /// The first of them, after the way out of the node, that its tail has not entered.
    tail: usize,
    /// The last of them that it has been given.
    head: usize,
}

#[derive(Clone, Copy, Debug)]
struct Move {
    worm: u32,
    /// Into which lane of its way.
    stage: usize,
    lane: u32,
}

impl Worms {
    /// Empty lanes, at tick zero.
    pub(super) fn new(lanes: impl Iterator<Item = LaneSpec>) -> Self {
        let lanes: Box<[Lane]> = lanes.map(Lane::new).collect();
        let mut links = vec![];
        for (lane, spec) in lanes.iter().enumerate() {
            // The last of its lanes moved last, so the first one has the first turn.
            let link = Link { last: lane as u32, used: None, index: 0 };
            links.resize(links.len().max(spec.link as usize + 1), link.clone());
            links[spec.link as usize] = link;
        }
        Self {
            tick: 0,
            lanes,
            links: links.into(),
            worms: Vec::new(),
            free: Vec::new(),
            sent: 0,
            active: Vec::new(),
            asking: Vec::new(),
            open: Vec::new(),
            moves: Vec::new(),
            ending: Vec::new(),
        }
    }

    /// Sends a worm of at least one flit at the beginning of the next tick, on the way that `fill`
    /// writes: the way out of its node, and one lane after the other.
    pub(super) fn send(&mut self, parcel: u32, flits: u64, fill: impl FnOnce(&mut Vec<u32>)) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.worms.push(Worm::default());
            self.worms.len() as u32 - 1
        });
        let worm = &mut self.worms[index as usize];
        (worm.number, worm.parcel, worm.flits) = (self.sent, parcel, flits);
        (worm.tail, worm.head) = (1, 0);
        worm.way.clear();
        fill(&mut worm.way);
        worm.entered.clear();
        worm.entered.resize(worm.way.len(), 0);
        worm.entered[0] = flits;
        self.sent += 1;
        let out = &mut self.lanes[worm.way[0] as usize];
        out.flits += flits;
        out.order.push_back(index);
        if out.order.len() == 1 {
            self.active.push(index);
            self.asking.push(index);
        }
    }

    /// Does all ticks before tick number `until`, and adds the worms that end in them.
    pub(super) fn advance(&mut self, until: u64, ended: &mut VecDeque<Ended>) {
        while self.tick < until {
            if self.active.is_empty() {
                self.tick = until;
                return;
            }
            self.give_lanes();
            let is_contested = self.find_moves();
            assert!(!self.moves.is_empty(), "worms must not wait for one another in a circle");
            let ticks = if is_contested { 1 } else { self.ticks_alike(until - self.tick) };
            self.tick += ticks;
            self.apply(ticks);
            self.end(ended);
        }
    }

    /// No worm ends before that tick does, counting from 1; `None` when none is under way.
    pub(super) fn next_end_from(&self) -> Option<u64> {
        let ticks = self.active.iter().map(|&index| {
            let worm = &self.worms[index as usize];
            let out = &self.lanes[worm.way[0] as usize].order;
            if out.len() > 1 && out[0] == index {
                // The next one leaves the node after this one, and needs two ticks at least.
                let next = worm.flits - worm.entered[1] + 2;
                return worm.ticks_left_min().min(next);
            }
            worm.ticks_left_min()
        });
        ticks.min().map(|ticks| self.tick + ticks)
    }

    /// Rule 1.
    fn give_lanes(&mut self) {
        let worms = &mut self.worms;
        self.asking.sort_unstable_by_key(|&index| worms[index as usize].number);
        for index in self.asking.drain(..) {
            let worm = &worms[index as usize];
            let lane = worm.way[worm.head + 1];
            self.lanes[lane as usize].waiting.push_back(index);
            self.open.push(lane);
        }
        for lane in self.open.drain(..) {
            let lane = &mut self.lanes[lane as usize];
            if lane.owner.is_some() {
                continue;
            }
            let Some(index) = lane.waiting.pop_front() else { continue };
            let worm = &mut worms[index as usize];
            worm.head += 1;
            lane.owner = Some(index);
            if worm.head + 1 < worm.way.len() {
                lane.order.push_back(index);
            }
        }
    }

    /// Rules 2 and 3: what moves in this tick; whether any link had to choose.
    fn find_moves(&mut self) -> bool {
        self.moves.clear();
        let mut is_contested = false;
        for &index in &self.active {
            let worm = &self.worms[index as usize];
            for stage in worm.tail..=worm.head {
                let lane = &self.lanes[worm.way[stage] as usize];
                if worm.entered[stage - 1] == worm.entered[stage] || lane.flits >= lane.room {
                    continue;
                }
                let found = Move { worm: index, stage, lane: worm.way[stage] };
                let link = &mut self.links[lane.link as usize];
                if link.used == Some(self.tick) {
                    is_contested = true;
                    if self.moves[link.index].lane == link.last {
                        self.moves[link.index] = found;
                    }
                } else {
                    (link.used, link.index) = (Some(self.tick), self.moves.len());
                    self.moves.push(found);
                }
            }
        }
        is_contested
    }

    /// Moves the flits, `ticks` times the same; rule 4.
    fn apply(&mut self, ticks: u64) {
        for place in 0..self.moves.len() {
            let Move { worm: index, stage, lane } = self.moves[place];
            let worm = &mut self.worms[index as usize];
            worm.entered[stage] += ticks;
            let is_head = worm.entered[stage] == ticks;
            let is_tail = worm.entered[stage] == worm.flits;
            self.lanes[worm.way[stage - 1] as usize].flits -= ticks;
            let lane_state = &mut self.lanes[lane as usize];
            lane_state.flits += ticks;
            self.links[lane_state.link as usize].last = lane;
            // In the last lane of a way there is no order, and nothing to ask for.
            if is_head && lane_state.order.front() == Some(&index) {
                self.asking.push(index);
            }
            if is_tail {
                self.tail_entered(index, stage);
            }
        }
    }

    fn tail_entered(&mut self, index: u32, stage: usize) {
        let worm = &mut self.worms[index as usize];
        worm.tail = stage + 1;
        let (lane, before) = (worm.way[stage], worm.way[stage - 1]);
        if stage + 1 == worm.way.len() {
            self.ending.push(index);
        }
        self.lanes[lane as usize].owner = None;
        self.open.push(lane);
        let order = &mut self.lanes[before as usize].order;
        order.pop_front();
        let Some(&next) = order.front() else { return };
        let worm = &self.worms[next as usize];
        if worm.head == 0 {
            self.active.push(next);
        }
        if worm.entered[worm.head] > 0 {
            self.asking.push(next);
        }
    }

    /// Forgets those that have arrived, and tells of them.
    fn end(&mut self, ended: &mut VecDeque<Ended>) {
        let worms = &self.worms;
        self.ending.sort_unstable_by_key(|&index| worms[index as usize].number);
        for index in self.ending.drain(..) {
            let worm = &worms[index as usize];
            self.lanes[worm.way[worm.head] as usize].flits -= worm.flits;
            let place = self.active.iter().position(|&active| active == index);
            self.active.swap_remove(place.expect("a worm that arrives must be under way"));
            self.free.push(index);
            ended.push_back(Ended { tick: self.tick, parcel: worm.parcel });
        }
    }
}

impl Lane {
    fn new(spec: LaneSpec) -> Self {
        Self {
            link: spec.link,
            room: spec.room_flits,
            flits: 0,
            owner: None,
            order: VecDeque::new(),
            waiting: VecDeque::new(),
            fills: false,
            drains: false,
        }
    }
}

impl Worm {
    /// The fewest ticks in which it can end: its head a lane a tick, its tail behind it.
    fn ticks_left_min(&self) -> u64 {
        let last = self.way.len() - 1;
        if self.entered[last] > 0 {
            return self.flits - self.entered[last];
        }
        let reached = if self.entered[self.head] > 0 { self.head } else { self.head - 1 };
        (last - reached) as u64 + self.flits - 1
    }
}
