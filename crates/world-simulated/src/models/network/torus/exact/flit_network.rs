//! Wormhole routing flit by flit: packets on links with virtual channels.
//!
//! A link carries one flit a tick into the buffer of one of its channels. A tick applies these
//! rules in order:
//!
//! 1. A head that is first in its buffer, with no other packet before it there, requests the next
//!    channel of its route. A channel belongs to one packet at a time. Channels are granted in the
//!    order of the requests; requests of one tick in the order of sending.
//! 2. Flow control: a flit may move when its packet owns the next channel, no flit of the packet is
//!    before it in its buffer, and the buffer of that channel has room (a credit). Both are judged
//!    at the beginning of the tick.
//! 3. If two channels of a link have a flit that may move, the channel that moved last waits.
//! 4. When the last flit of a packet has entered a channel, the channel is free. The next packet in
//!    the buffer that it left becomes the first there.
//!
//! So a blocked packet goes on until all buffers behind its head are full, and holds every channel
//! that its tail has not entered. The first channel of a route leads out of a node, where the whole
//! packet lies when it is sent. The buffer of the last channel is the destination node and has no
//! limit.
//!
//! As long as the same channels carry flits, all ticks are done in one step
//! ([`identical_ticks`](super::identical_ticks)).
//!
//! Invariant: the result is that of one tick after the other.

use std::collections::VecDeque;

/// All packets, and the channels on which they move.
#[derive(Debug)]
pub(super) struct FlitNetwork {
    /// Number of completed ticks.
    pub(super) tick: u64,
    pub(super) channels: Box<[VirtualChannel]>,
    pub(super) links: Box<[Link]>,
    pub(super) packets: Vec<Packet>,
    pub(super) free: Vec<u32>,
    pub(super) sent: u64,
    /// Packets that have left the queue of their node.
    pub(super) active: Vec<u32>,
    /// Packets whose head requests a channel in the next tick.
    pub(super) asking: Vec<u32>,
    /// Channels that may be granted in the next tick.
    pub(super) open: Vec<u32>,
    /// Moves of this tick.
    pub(super) moves: Vec<Move>,
    /// Packets whose tail has arrived in this tick.
    pub(super) ending: Vec<u32>,
}

/// Specification of a virtual channel.
pub(super) struct ChannelSpec {
    /// Number of its link; the channels of a link are adjacent.
    pub(super) link: u32,
    /// Capacity of its buffer, in flits.
    pub(super) room_flits: u64,
}

/// A packet that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ended {
    /// Tick at whose end it arrived, counted from 1.
    pub(super) tick: u64,
    /// Number that the sender gave it.
    pub(super) parcel: u32,
}

#[derive(Debug)]
pub(super) struct VirtualChannel {
    pub(super) link: u32,
    pub(super) room: u64,
    /// Flits in its buffer.
    pub(super) flits: u64,
    /// Packet that owns the channel, until its last flit has entered.
    pub(super) owner: Option<u32>,
    /// Packets with flits in the buffer, now or later, in their order.
    pub(super) order: VecDeque<u32>,
    /// Packets that wait for the channel, in the order of their requests.
    pub(super) waiting: VecDeque<u32>,
    /// True if a flit enters, and if one leaves, in this tick.
    pub(super) fills: bool,
    pub(super) drains: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Channel whose flit it carried last.
    pub(super) last: u32,
    /// Latest tick in which it had a flit to carry, and the index of that move.
    pub(super) used: Option<u64>,
    pub(super) index: usize,
}

#[derive(Debug, Default)]
pub(super) struct Packet {
    /// Sequence number of its sending.
    pub(super) number: u64,
    pub(super) parcel: u32,
    pub(super) flits: u64,
    /// Channels of its route.
    pub(super) route: Vec<u32>,
    /// Number of its flits that have entered each channel.
    pub(super) entered: Vec<u64>,
    /// Index of the first channel, after the one out of the node, that its tail has not entered.
    pub(super) tail: usize,
    /// Index of the last channel that it owns.
    pub(super) head: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) packet: u32,
    /// Index, in the route, of the channel that the flit enters.
    pub(super) stage: usize,
    pub(super) channel: u32,
}

impl FlitNetwork {
    /// Creates a network of empty channels at tick zero.
    pub(super) fn new(channels: impl Iterator<Item = ChannelSpec>) -> Self {
        let channels: Box<[VirtualChannel]> = channels.map(VirtualChannel::new).collect();
        let mut links = vec![];
        for (channel, spec) in channels.iter().enumerate() {
            // The last of its channels counts as the last to move, so the first has the first turn.
            let link = Link { last: channel as u32, used: None, index: 0 };
            links.resize(links.len().max(spec.link as usize + 1), link.clone());
            links[spec.link as usize] = link;
        }
        Self {
            tick: 0,
            channels,
            links: links.into(),
            packets: Vec::new(),
            free: Vec::new(),
            sent: 0,
            active: Vec::new(),
            asking: Vec::new(),
            open: Vec::new(),
            moves: Vec::new(),
            ending: Vec::new(),
        }
    }

    /// Sends a packet of at least one flit at the beginning of the next tick. `fill` writes its
    /// route: the channel out of its node, then one channel after the other.
    pub(super) fn send(&mut self, parcel: u32, flits: u64, fill: impl FnOnce(&mut Vec<u32>)) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.packets.push(Packet::default());
            self.packets.len() as u32 - 1
        });
        let packet = &mut self.packets[index as usize];
        (packet.number, packet.parcel, packet.flits) = (self.sent, parcel, flits);
        (packet.tail, packet.head) = (1, 0);
        packet.route.clear();
        fill(&mut packet.route);
        packet.entered.clear();
        packet.entered.resize(packet.route.len(), 0);
        packet.entered[0] = flits;
        self.sent += 1;
        let out = &mut self.channels[packet.route[0] as usize];
        out.flits += flits;
        out.order.push_back(index);
        if out.order.len() == 1 {
            self.active.push(index);
            self.asking.push(index);
        }
    }

    /// Completes all ticks before tick number `until`, and appends the packets that arrive in them.
    pub(super) fn advance(&mut self, until: u64, ended: &mut VecDeque<Ended>) {
        while self.tick < until {
            if self.active.is_empty() {
                self.tick = until;
                return;
            }
            self.assign_channels();
            let is_contested = self.find_moves();
            assert!(!self.moves.is_empty(), "packets must not wait for one another in a circle");
            let ticks = if is_contested { 1 } else { self.identical_ticks(until - self.tick) };
            self.tick += ticks;
            self.apply(ticks);
            self.end(ended);
        }
    }

    /// Lower bound of the tick in which the next packet arrives, counted from 1; `None` when none
    /// is under way.
    pub(super) fn next_end_from(&self) -> Option<u64> {
        let ticks = self.active.iter().map(|&index| {
            let packet = &self.packets[index as usize];
            let out = &self.channels[packet.route[0] as usize].order;
            if out.len() > 1 && out[0] == index {
                // The next packet leaves the node after this one, and needs two ticks at least.
                let next = packet.flits - packet.entered[1] + 2;
                return packet.ticks_left_min().min(next);
            }
            packet.ticks_left_min()
        });
        ticks.min().map(|ticks| self.tick + ticks)
    }

    /// Applies rule 1: grants channels.
    fn assign_channels(&mut self) {
        let packets = &mut self.packets;
        self.asking.sort_unstable_by_key(|&index| packets[index as usize].number);
        for index in self.asking.drain(..) {
            let packet = &packets[index as usize];
            let channel = packet.route[packet.head + 1];
            self.channels[channel as usize].waiting.push_back(index);
            self.open.push(channel);
        }
        for channel in self.open.drain(..) {
            let channel = &mut self.channels[channel as usize];
            if channel.owner.is_some() {
                continue;
            }
            let Some(index) = channel.waiting.pop_front() else { continue };
            let packet = &mut packets[index as usize];
            packet.head += 1;
            channel.owner = Some(index);
            if packet.head + 1 < packet.route.len() {
                channel.order.push_back(index);
            }
        }
    }

    /// Applies rules 2 and 3: finds the moves of this tick. Returns true if any link had to choose.
    fn find_moves(&mut self) -> bool {
        self.moves.clear();
        let mut is_contested = false;
        for &index in &self.active {
            let packet = &self.packets[index as usize];
            for stage in packet.tail..=packet.head {
                let channel = &self.channels[packet.route[stage] as usize];
                if packet.entered[stage - 1] == packet.entered[stage]
                    || channel.flits >= channel.room
                {
                    continue;
                }
                let found = Move { packet: index, stage, channel: packet.route[stage] };
                let link = &mut self.links[channel.link as usize];
                if link.used == Some(self.tick) {
                    is_contested = true;
                    if self.moves[link.index].channel == link.last {
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

    /// Moves the flits, `ticks` times alike, and applies rule 4.
    fn apply(&mut self, ticks: u64) {
        for place in 0..self.moves.len() {
            let Move { packet: index, stage, channel } = self.moves[place];
            let packet = &mut self.packets[index as usize];
            packet.entered[stage] += ticks;
            let is_head = packet.entered[stage] == ticks;
            let is_tail = packet.entered[stage] == packet.flits;
            self.channels[packet.route[stage - 1] as usize].flits -= ticks;
            let channel_state = &mut self.channels[channel as usize];
            channel_state.flits += ticks;
            self.links[channel_state.link as usize].last = channel;
            // The last channel of a route has no order, and its packets request nothing.
            if is_head && channel_state.order.front() == Some(&index) {
                self.asking.push(index);
            }
            if is_tail {
                self.tail_entered(index, stage);
            }
        }
    }

    fn tail_entered(&mut self, index: u32, stage: usize) {
        let packet = &mut self.packets[index as usize];
        packet.tail = stage + 1;
        let (channel, before) = (packet.route[stage], packet.route[stage - 1]);
        if stage + 1 == packet.route.len() {
            self.ending.push(index);
        }
        self.channels[channel as usize].owner = None;
        self.open.push(channel);
        let order = &mut self.channels[before as usize].order;
        order.pop_front();
        let Some(&next) = order.front() else { return };
        let packet = &self.packets[next as usize];
        if packet.head == 0 {
            self.active.push(next);
        }
        if packet.entered[packet.head] > 0 {
            self.asking.push(next);
        }
    }

    /// Removes the packets that have arrived, and reports them.
    fn end(&mut self, ended: &mut VecDeque<Ended>) {
        let packets = &self.packets;
        self.ending.sort_unstable_by_key(|&index| packets[index as usize].number);
        for index in self.ending.drain(..) {
            let packet = &packets[index as usize];
            self.channels[packet.route[packet.head] as usize].flits -= packet.flits;
            let place = self.active.iter().position(|&active| active == index);
            self.active.swap_remove(place.expect("a packet that arrives must be under way"));
            self.free.push(index);
            ended.push_back(Ended { tick: self.tick, parcel: packet.parcel });
        }
    }
}

impl VirtualChannel {
    fn new(spec: ChannelSpec) -> Self {
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

impl Packet {
    /// Lower bound of the ticks until it arrives: its head moves a channel a tick, its tail
    /// follows.
    fn ticks_left_min(&self) -> u64 {
        let last = self.route.len() - 1;
        if self.entered[last] > 0 {
            return self.flits - self.entered[last];
        }
        let reached = if self.entered[self.head] > 0 { self.head } else { self.head - 1 };
        (last - reached) as u64 + self.flits - 1
    }
}
