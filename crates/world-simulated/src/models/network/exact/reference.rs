//! The same network in the longest way: a queue of flits for each lane, one tick after the other.
//!
//! It follows the rules of [`worms`](super::worms) to the letter, and shares no code with it.

use super::worms::LaneSpec;
use std::collections::{BTreeMap, VecDeque};

/// One flit: of which worm, and which of its flits.
#[derive(Clone, Copy)]
struct Flit {
    worm: usize,
    number: u64,
}

/// A worm to send.
pub(super) struct Message {
    /// The tick from which it lies in its node.
    pub(super) from_tick: u64,
    pub(super) flits: u64,
    pub(super) way: Vec<u32>,
}

#[derive(Default)]
struct Lane {
    buffer: VecDeque<Flit>,
    owner: Option<usize>,
    waiting: VecDeque<usize>,
}

struct Network<'a> {
    specs: &'a [LaneSpec],
    messages: &'a [Message],
    lanes: Vec<Lane>,
    /// The lane that each link carried last.
    last: BTreeMap<u32, u32>,
    /// Worms whose head has asked for the lane after the one whose number comes with it.
    asked: Vec<(usize, u32)>,
}

/// At the end of which tick each message has arrived, counting from 1.
pub(super) fn arrivals(specs: &[LaneSpec], messages: &[Message]) -> Vec<u64> {
    let lanes = specs.iter().map(|_| Lane::default()).collect();
    let (last, asked) = (BTreeMap::new(), Vec::new());
    let mut network = Network { specs, messages, lanes, last, asked };
    let mut ends = vec![0; messages.len()];
    let mut tick = 0;
    while ends.contains(&0) {
        network.lay_out(tick);
        network.ask();
        network.give();
        for worm in network.carry() {
            ends[worm] = tick + 1;
        }
        tick += 1;
        assert!(tick < 1_000_000, "the worms of a test must arrive");
    }
    ends
}

impl Network<'_> {
    fn lay_out(&mut self, tick: u64) {
        for (worm, message) in self.messages.iter().enumerate() {
            if message.from_tick == tick {
                let flits = (0..message.flits).map(|number| Flit { worm, number });
                self.lanes[message.way[0] as usize].buffer.extend(flits);
            }
        }
    }

    fn next_lane(&self, worm: usize, lane: u32) -> u32 {
        let way = &self.messages[worm].way;
        let place = way.iter().position(|&other| other == lane);
        way[place.expect("a worm must be on its way") + 1]
    }

    fn ask(&mut self) {
        let fronts = self.lanes.iter().enumerate().filter_map(|(lane, state)| {
            let front = state.buffer.front().filter(|flit| flit.number == 0)?;
            Some((front.worm, lane as u32))
        });
        let mut asking: Vec<(usize, u32)> =
            fronts.filter(|asking| !self.asked.contains(asking)).collect();
        asking.sort_unstable();
        for (worm, lane) in asking {
            let next = self.next_lane(worm, lane);
            self.lanes[next as usize].waiting.push_back(worm);
            self.asked.push((worm, lane));
        }
    }

    fn give(&mut self) {
        for lane in &mut self.lanes {
            if lane.owner.is_none() {
                lane.owner = lane.waiting.pop_front();
            }
        }
    }

    /// Whether a flit may move into `lane`; from which lane it would come.
    fn comes_from(&self, lane: u32) -> Option<u32> {
        let state = &self.lanes[lane as usize];
        let worm = state.owner?;
        let way = &self.messages[worm].way;
        let place = way.iter().position(|&other| other == lane)?;
        let before = way[place - 1];
        let front = self.lanes[before as usize].buffer.front()?;
        let has_room = (state.buffer.len() as u64) < self.specs[lane as usize].room_flits;
        (front.worm == worm && has_room).then_some(before)
    }

    /// Moves what may move; returns the worms that end.
    fn carry(&mut self) -> Vec<usize> {
        let mut wanted: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
        for lane in 0..self.lanes.len() as u32 {
            if let Some(before) = self.comes_from(lane) {
                wanted.entry(self.specs[lane as usize].link).or_default().push((before, lane));
            }
        }
        let mut ended = Vec::new();
        for (link, mut moves) in wanted {
            if moves.len() > 1 {
                let last = self.last.get(&link).copied().unwrap_or(moves[1].1);
                moves.retain(|&(_, lane)| lane != last);
            }
            let (before, lane) = moves[0];
            self.last.insert(link, lane);
            let flit = self.lanes[before as usize].buffer.pop_front();
            ended.extend(self.arrive(flit.expect("what may move must be there"), lane));
        }
        ended
    }

    fn arrive(&mut self, flit: Flit, lane: u32) -> Option<usize> {
        let message = &self.messages[flit.worm];
        let is_last = flit.number + 1 == message.flits;
        let is_there = message.way.last() == Some(&lane);
        let lane = &mut self.lanes[lane as usize];
        if is_last {
            lane.owner = None;
        }
        if !is_there {
            lane.buffer.push_back(flit);
        }
        (is_last && is_there).then_some(flit.worm)
    }
}
