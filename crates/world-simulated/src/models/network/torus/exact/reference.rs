//! A reference implementation of the exact torus: a queue of flits for each channel, one tick after
//! the other.
//!
//! It follows the rules of [`flit_network`](super::flit_network) literally, and shares no code with
//! it.

use super::flit_network::ChannelSpec;
use std::collections::{BTreeMap, VecDeque};

/// One flit: its packet, and its number in the packet.
#[derive(Clone, Copy)]
struct Flit {
    packet: usize,
    number: u64,
}

/// A packet to send.
pub(super) struct Message {
    /// Tick from which it lies in its node.
    pub(super) from_tick: u64,
    pub(super) flits: u64,
    pub(super) route: Vec<u32>,
}

#[derive(Default)]
struct VirtualChannel {
    buffer: VecDeque<Flit>,
    owner: Option<usize>,
    waiting: VecDeque<usize>,
}

struct Network<'a> {
    specs: &'a [ChannelSpec],
    messages: &'a [Message],
    channels: Vec<VirtualChannel>,
    /// Channel that each link carried last.
    last: BTreeMap<u32, u32>,
    /// Packets whose head has requested the channel after the one stated with them.
    asked: Vec<(usize, u32)>,
}

/// Returns the tick at whose end each message has arrived, counted from 1.
pub(super) fn arrivals(specs: &[ChannelSpec], messages: &[Message]) -> Vec<u64> {
    let channels = specs.iter().map(|_| VirtualChannel::default()).collect();
    let (last, asked) = (BTreeMap::new(), Vec::new());
    let mut network = Network { specs, messages, channels, last, asked };
    let mut ends = vec![0; messages.len()];
    let mut tick = 0;
    while ends.contains(&0) {
        network.lay_out(tick);
        network.ask();
        network.give();
        for packet in network.carry() {
            ends[packet] = tick + 1;
        }
        tick += 1;
        assert!(tick < 1_000_000, "the packets of a test must arrive");
    }
    ends
}

impl Network<'_> {
    fn lay_out(&mut self, tick: u64) {
        for (packet, message) in self.messages.iter().enumerate() {
            if message.from_tick == tick {
                let flits = (0..message.flits).map(|number| Flit { packet, number });
                self.channels[message.route[0] as usize].buffer.extend(flits);
            }
        }
    }

    fn next_channel(&self, packet: usize, channel: u32) -> u32 {
        let route = &self.messages[packet].route;
        let place = route.iter().position(|&other| other == channel);
        route[place.expect("a packet must be on its route") + 1]
    }

    fn ask(&mut self) {
        let fronts = self.channels.iter().enumerate().filter_map(|(channel, state)| {
            let front = state.buffer.front().filter(|flit| flit.number == 0)?;
            Some((front.packet, channel as u32))
        });
        let mut asking: Vec<(usize, u32)> =
            fronts.filter(|asking| !self.asked.contains(asking)).collect();
        asking.sort_unstable();
        for (packet, channel) in asking {
            let next = self.next_channel(packet, channel);
            self.channels[next as usize].waiting.push_back(packet);
            self.asked.push((packet, channel));
        }
    }

    fn give(&mut self) {
        for channel in &mut self.channels {
            if channel.owner.is_none() {
                channel.owner = channel.waiting.pop_front();
            }
        }
    }

    /// Returns the channel from which a flit may move into `channel`, if one may.
    fn comes_from(&self, channel: u32) -> Option<u32> {
        let state = &self.channels[channel as usize];
        let packet = state.owner?;
        let route = &self.messages[packet].route;
        let place = route.iter().position(|&other| other == channel)?;
        let before = route[place - 1];
        let front = self.channels[before as usize].buffer.front()?;
        let has_room = (state.buffer.len() as u64) < self.specs[channel as usize].room_flits;
        (front.packet == packet && has_room).then_some(before)
    }

    /// Moves all flits that may move. Returns the packets that arrive.
    fn carry(&mut self) -> Vec<usize> {
        let mut wanted: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
        for channel in 0..self.channels.len() as u32 {
            if let Some(before) = self.comes_from(channel) {
                wanted
                    .entry(self.specs[channel as usize].link)
                    .or_default()
                    .push((before, channel));
            }
        }
        let mut ended = Vec::new();
        for (link, mut moves) in wanted {
            if moves.len() > 1 {
                let last = self.last.get(&link).copied().unwrap_or(moves[1].1);
                moves.retain(|&(_, channel)| channel != last);
            }
            let (before, channel) = moves[0];
            self.last.insert(link, channel);
            let flit = self.channels[before as usize].buffer.pop_front();
            ended.extend(self.arrive(flit.expect("what may move must be there"), channel));
        }
        ended
    }

    fn arrive(&mut self, flit: Flit, channel: u32) -> Option<usize> {
        let message = &self.messages[flit.packet];
        let is_last = flit.number + 1 == message.flits;
        let is_there = message.route.last() == Some(&channel);
        let channel = &mut self.channels[channel as usize];
        if is_last {
            channel.owner = None;
        }
        if !is_there {
            channel.buffer.push_back(flit);
        }
        (is_last && is_there).then_some(flit.packet)
    }
}
