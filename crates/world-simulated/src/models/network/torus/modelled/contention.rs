//! Contention in the modelled torus: packets that wait, the channels that they hold, and their
//! progress.
//!
//! A packet waits for one virtual channel. It holds the channels behind its head that its tail has
//! not entered, except those that its flits vacate because the buffers take them; these are
//! released in time. When the channel is free, its head moves on as far as it can. When the head
//! has reached its node, all release times are known.
//!
//! Let a packet of length `L` (the time a link needs for it) begin to stream into channel `k` of
//! its route at `S(k)`. Let a hop last `h`, and let a link carry the content of a buffer in `B`.
//! Then the tail is in channel `i` at the latest of
//!
//! ```text
//! S(k) + (i - k) h + L                    for k <= i: a head moves a hop at a time
//! S(k) + L - (k - i) (B - h)              for k > i with (k - i) B < L: flits behind a head that
//!                                         waits stay where they are when the buffers are full
//! ```
//!
//! With whole flits the exact torus does the same. Only those `S(k)` at which a packet has waited
//! can be the latest.
//!
//! Two packets in the channels of one link share it. If the release time of one is known, the other
//! streams, `S(k)`, from then on. Its head does not wait for that, and may be in further channels.
//!
//! Invariants:
//!
//! - A waiting packet is in one queue. The first in a queue is due when the channel is free, if
//!   that is known.
//! - Packets wait for packets only in the order of channels, so one is always due (no deadlock).

use super::release_times::ReleaseTimes;
use super::state::{ChannelQueue, Contention, Packet, Torus};
use super::virtual_channels::{CONTESTED, UNKNOWN, has_queue};
use crate::models::network::torus::grid::{BUFFER_FLITS, CHANNELS_PER_LINK, Route};
use std::cmp::Reverse;
use std::collections::VecDeque;
use units::Instant;

impl Torus {
    /// Returns the next parcel, in order, whose last flit has arrived by now, among those whose
    /// arrival was not known at sending.
    pub fn arrived(&mut self, now: Instant) -> Option<u32> {
        self.advance(now);
        let Reverse((at_ns, _, parcel)) = *self.contention.arriving.peek()?;
        if at_ns > now.as_ns() {
            return None;
        }
        self.contention.arriving.pop();
        Some(parcel)
    }

    /// Lower bound of the next arrival, whatever else is sent; `None` when nothing is under way.
    pub fn next_arrival_from(&self) -> Option<Instant> {
        let arriving = self.contention.arriving.peek();
        let at_ns = arriving.map_or(u64::MAX, |&Reverse((at_ns, ..))| at_ns).min(self.due_at_ns);
        (at_ns != u64::MAX).then_some(Instant::from_ns(at_ns))
    }

    /// Moves on all packets that are due by now.
    pub(super) fn advance(&mut self, now: Instant) {
        while self.due_at_ns <= now.as_ns()
            && let Some(Reverse((at_ns, _, index))) = self.contention.due.pop()
        {
            self.go_on(at_ns, index);
            self.due_at_ns = self.first_due_at_ns();
        }
    }

    fn first_due_at_ns(&self) -> u64 {
        self.contention.due.peek().map_or(u64::MAX, |&Reverse((at_ns, ..))| at_ns)
    }

    /// Sends a packet that has `passed` so many channels of its route and reached one that is not
    /// free, or whose link is not, or has not reached its first. The times are its sending, the
    /// position of its head, and its length. Returns its arrival if that is known.
    #[inline(never)]
    pub(super) fn meet(
        &mut self,
        route: Route,
        passed: u32,
        (start_ns, head_ns, busy_ns): (u64, u64, u64),
        parcel: impl FnOnce() -> u32,
    ) -> Option<Instant> {
        let fills = self.buffers_filled(busy_ns);
        let contention = &mut self.contention;
        let index = contention.free_packets.pop().unwrap_or_else(|| {
            contention.packets.push(Some(Box::default()));
            contention.packets.len() as u32 - 1
        });
        let mut packet = contention.take(index);
        contention.met += 1;
        (packet.number, packet.busy_ns) = (contention.met, busy_ns);
        (packet.settled, packet.held, packet.waits) = (0, 0, false);
        (packet.fills, packet.route) = (fills, route);
        packet.starts.clear();
        if passed > 1 {
            packet.starts.push((1, start_ns));
        }
        (packet.place, packet.head_ns) = (passed, head_ns);
        let arrival = if self.longest_route_ns.is_some() {
            self.come(&mut packet, index);
            None
        } else {
            self.walk(&mut packet, index, start_ns)
        };
        if arrival.is_none() {
            packet.parcel = parcel();
        }
        self.keep(packet, index, arrival);
        self.due_at_ns = self.first_due_at_ns();
        arrival.map(Instant::from_ns)
    }

    /// Moves a packet on: the channel for which it waits is free, or its head has reached the next
    /// one.
    fn go_on(&mut self, now_ns: u64, index: u32) {
        let mut packet = self.contention.take(index);
        if packet.waits {
            let channel = packet.route.channel(packet.place);
            let queue = self.queue_of(channel).expect("a waiting packet must be in a queue");
            let first = queue.waiting.pop_front();
            assert_eq!(first, Some(index), "channels must be given in the order of asking");
            queue.free_at_ns = UNKNOWN;
            if queue.waiting.is_empty() {
                self.end_queue(channel, UNKNOWN);
            }
            self.contention.waiting -= 1;
            packet.waits = false;
            self.share_again(&mut packet, now_ns);
            self.enter(&mut packet, channel, now_ns);
        }
        let arrival = self.walk(&mut packet, index, now_ns);
        if let Some(at_ns) = arrival {
            self.contention.arriving.push(Reverse((at_ns, packet.number, packet.parcel)));
        }
        self.keep(packet, index, arrival);
        let Contention { waiting, due, .. } = &self.contention;
        assert!(*waiting == 0 || !due.is_empty(), "packets must not wait in a circle");
    }

    /// Makes a packet due when its head reaches the next channel.
    fn come(&mut self, packet: &mut Packet, index: u32) {
        self.settle(packet);
        self.contention.due.push(Reverse((packet.head_ns, packet.number, index)));
    }

    fn keep(&mut self, packet: Box<Packet>, index: u32, arrival: Option<u64>) {
        self.contention.packets[index as usize] = Some(packet);
        if arrival.is_some() {
            self.contention.free_packets.push(index);
        }
    }

    /// Moves a head on until it has to wait, or is ahead of the present where that matters, or has
    /// reached its node. In the last case, returns the arrival of its tail in ns.
    fn walk(&mut self, packet: &mut Packet, index: u32, now_ns: u64) -> Option<u64> {
        let last = packet.route.last();
        let is_ahead = |torus: &Self, packet: &Packet| {
            packet.head_ns > now_ns && torus.longest_route_ns.is_some()
        };
        while packet.place < last {
            if self.longest_route_ns.is_none() {
                self.run(packet, last);
            } else if is_ahead(self, packet) {
                self.come(packet, index);
                return None;
            }
            if packet.place == last {
                break;
            }
            let channel = packet.route.channel(packet.place);
            if *self.channels.free_at_ns(channel) > packet.head_ns {
                self.wait(packet, channel, index);
                self.settle(packet);
                return None;
            }
            self.enter(packet, channel, packet.head_ns);
        }
        if is_ahead(self, packet) {
            self.come(packet, index);
            return None;
        }
        // The packet before it there is in its node already, so its release time is known.
        let channel = packet.route.channel(last);
        let free_at_ns = *self.channels.free_at_ns(channel);
        assert!(free_at_ns < CONTESTED, "no packet in the link into a node waits");
        self.enter(packet, channel, packet.head_ns.max(free_at_ns));
        let tail_ns = self.leave(packet, last);
        self.release(channel, tail_ns);
        Some(tail_ns)
    }

    /// Moves a head through channels whose links are free, with the effect of
    /// [`enter`](Self::enter) for each. A head that does not wait needs no new entry in `starts`.
    #[inline]
    fn run(&mut self, packet: &mut Packet, last: u32) {
        #[cfg(test)]
        if self.moves_hop_by_hop {
            return;
        }
        let Some(&(before, at_ns)) = packet.starts.last() else { return };
        let (mut place, mut head_ns) = (packet.place, packet.head_ns);
        let told_ns = at_ns + u64::from(place - before) * self.hop_ns;
        assert!(head_ns <= told_ns, "a packet must not stream before its head comes");
        while place < last {
            // Only the link out of a node has no hop, and the head has passed it.
            let stretch = packet.route.stretch(place);
            let free = self.channels.count_free(&stretch, head_ns, self.hop_ns);
            (place, head_ns) = (place + free, head_ns + u64::from(free) * self.hop_ns);
            if free < stretch.links {
                break;
            }
        }
        (packet.place, packet.head_ns) = (place, head_ns);
    }

    /// Moves a head into the channel that it has reached.
    fn enter(&mut self, packet: &mut Packet, channel: u32, now_ns: u64) {
        let place = packet.place;
        (packet.place, packet.head_ns) = (place + 1, now_ns);
        if place == 0 {
            return;
        }
        packet.head_ns += self.hop_ns;
        // A packet in the other channel of the link goes first, if its release time is known.
        let other_ns = self.channel_free_at_ns(channel ^ 1);
        let start_ns = if other_ns == UNKNOWN { now_ns } else { other_ns.max(now_ns) };
        let told_ns = packet
            .starts
            .last()
            .map(|&(before, at_ns)| at_ns + u64::from(place - before) * self.hop_ns);
        if told_ns.is_none_or(|told_ns| start_ns > told_ns) {
            packet.starts.push((place, start_ns));
        }
    }

    /// Lets packets in the other channels of the links behind the head of a packet that moves on go
    /// first.
    fn share_again(&mut self, packet: &mut Packet, now_ns: u64) {
        let told = packet.starts.len();
        let from = packet.settled.max(1);
        let mut channels = packet.route.channels_from(from);
        for i in from..packet.place {
            let other = channels.next() ^ 1;
            if *self.channels.free_at_ns(other) <= now_ns {
                continue;
            }
            let other_ns = self.channel_free_at_ns(other);
            if other_ns != UNKNOWN && other_ns > now_ns {
                // Flits in the buffers have passed the link.
                let passed_ns = u64::from(packet.place - i) * self.buffer_ns();
                packet.starts.push((i, other_ns - passed_ns.min(other_ns)));
            }
        }
        if packet.starts.len() > told {
            packet.starts.sort_unstable();
        }
    }

    /// Appends a packet to the queue of a channel that is not free.
    fn wait(&mut self, packet: &mut Packet, channel: u32, index: u32) {
        let free_at_ns = *self.channels.free_at_ns(channel);
        if !has_queue(free_at_ns) {
            self.contest(channel, free_at_ns);
        }
        packet.waits = true;
        self.contention.waiting += 1;
        let queue = self.queue_of(channel).expect("the channel must have a queue");
        queue.waiting.push_back(index);
        if queue.waiting.len() == 1 && queue.free_at_ns != UNKNOWN {
            let at_ns = queue.free_at_ns.max(packet.head_ns);
            self.contention.due.push(Reverse((at_ns, packet.number, index)));
        }
    }

    /// Sets the release times of all channels behind a head, or marks them as unknown.
    fn settle(&mut self, packet: &mut Packet) {
        let place = packet.place;
        let end = place.saturating_sub(packet.fills);
        if end > packet.settled {
            self.leave(packet, end);
            packet.settled = end;
        }
        let from = packet.held.max(packet.settled);
        let mut channels = packet.route.channels_from(from);
        for _ in from..place {
            let free_at_ns = self.channels.free_at_ns(channels.next());
            if !has_queue(*free_at_ns) {
                *free_at_ns = UNKNOWN;
            }
        }
        packet.held = place;
    }

    /// Sets the release times of the channels from the first unsettled one to `end`. Returns the
    /// instant at which the tail is in channel `end`.
    fn leave(&mut self, packet: &mut Packet, end: u32) -> u64 {
        let held_up_ns = self.buffer_ns() - self.hop_ns;
        let releases = ReleaseTimes::of(packet.busy_ns, packet.fills, self.hop_ns, held_up_ns);
        let route = &packet.route;
        releases.between(packet.settled, end, &mut packet.starts, |places, mut leaves| {
            let mut place = places.start;
            while place < places.end {
                let stretch = route.stretch(place).first(places.end - place);
                let quiet = self.channels.release_quiet(&stretch, &mut leaves);
                if quiet < stretch.links {
                    self.release_contested(route.channel(place + quiet), leaves.next_ns());
                    place += 1;
                }
                place += quiet;
            }
        })
    }

    #[inline]
    fn release(&mut self, channel: u32, free_at_ns: u64) {
        let place = self.channels.free_at_ns(channel);
        if !has_queue(*place) {
            *place = free_at_ns;
        } else {
            self.release_contested(channel, free_at_ns);
        }
    }

    #[inline(never)]
    fn release_contested(&mut self, channel: u32, free_at_ns: u64) {
        let queue = self.queue_of(channel).expect("a contested channel must have a queue");
        queue.free_at_ns = free_at_ns;
        let first = *queue.waiting.front().expect("a queue must not be empty");
        let packet = self.contention.packets[first as usize].as_ref();
        let packet = packet.expect("a packet that waits must be in its place");
        let due = (free_at_ns.max(packet.head_ns), packet.number, first);
        self.contention.due.push(Reverse(due));
    }

    /// Removes the queue of a channel in which no packet waits any more.
    fn end_queue(&mut self, channel: u32, free_at_ns: u64) {
        let place = self.channels.free_at_ns(channel);
        self.contention.free_queues.push((*place & !CONTESTED) as u32);
        *place = free_at_ns;
    }

    /// Gives a channel a queue.
    fn contest(&mut self, channel: u32, free_at_ns: u64) {
        let Contention { queues, free_queues, .. } = &mut self.contention;
        let place = free_queues.pop().unwrap_or_else(|| {
            queues.push(ChannelQueue { free_at_ns, waiting: VecDeque::new() });
            queues.len() as u32 - 1
        });
        queues[place as usize].free_at_ns = free_at_ns;
        *self.channels.free_at_ns(channel) = CONTESTED | u64::from(place);
    }

    fn queue_of(&mut self, channel: u32) -> Option<&mut ChannelQueue> {
        let place = *self.channels.free_at_ns(channel);
        has_queue(place).then(|| &mut self.contention.queues[(place & !CONTESTED) as usize])
    }

    /// Returns the instant from which a channel is free, in ns, or [`UNKNOWN`].
    fn channel_free_at_ns(&mut self, channel: u32) -> u64 {
        let free_at_ns = *self.channels.free_at_ns(channel);
        self.queue_of(channel).map_or(free_at_ns, |queue| queue.free_at_ns)
    }

    /// Number of buffers that a packet fills for which a link needs `busy_ns`.
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

const _: () = assert!(CHANNELS_PER_LINK == 2, "the other channel of a link must be one bit away");
