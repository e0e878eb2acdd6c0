//! Sending in the modelled torus: packets contend as in the [exact](super::super::exact) form, but
//! only heads are moved, and only where packets contend.
//!
//! A message is a packet under wormhole routing: its head opens the route channel by channel, its
//! tail follows without a gap. Routes, virtual channels, flits and ticks are those of the exact
//! torus. A packet that finds its whole route free reserves it when it is sent, and its arrival is
//! known at once; that costs one look at each channel. A packet that has to wait moves on when its
//! channel is free (`contention.rs`).
//!
//! Simplifications:
//!
//! - A packet that finds its route free reserves it at once, although a packet that is sent while
//!   its head is still on its way may be nearer.
//! - Two packets in the channels of one link pass one after the other, not flit by flit in turn, if
//!   the release time of the first is known. Otherwise they pass as if they did not share the link.
//! - A head enters a buffer in which another packet still lies only when that one is about to leave
//!   it.
//!
//! On a torus with routes longer than [`IN_ORDER_HOPS_MAX`](super::state::IN_ORDER_HOPS_MAX), heads
//! do not wait for the present either. Free channels are granted in the order of sending, so of two
//! heads that reach a channel within the time of a route, the later may go first. On a large
//! machine some head is always on its way, and moving each of them hop by hop would double the cost
//! of a message.
//!
//! If a link carries no whole number of bytes in a hop time, zero included, there are neither flits
//! nor ticks. Then messages enter at once and take the transfer time of their bytes.
//!
//! Invariants:
//!
//! - A channel carries one packet at a time.
//! - A known arrival is never postponed.

use super::state::Torus;
use crate::models::network::torus::grid::{CHANNELS_PER_LINK, Route};
use units::Instant;

impl Torus {
    /// Sends `bytes` now. Returns the arrival of the last byte if it is known already: `now` for a
    /// message of a node to itself. Otherwise [`arrived`](Self::arrived) will return the number
    /// that `parcel` gives.
    ///
    /// With the links of the papers a message without contention takes 20 ns a hop and 20 ns for
    /// each 4 bytes begun, from the first multiple of 20 ns on: 8 KB over 3 hops 41.02 us.
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
        // Packets that move on before this head can be in its node may reach a channel before it.
        let ahead_ns = self.longest_route_ns.unwrap_or(0);
        if self.due_at_ns <= start_ns + ahead_ns {
            self.advance(now);
            if self.longest_route_ns.is_some() {
                let route = self.grid.route(from, to);
                return self.meet(route, 0, (start_ns, start_ns, busy_ns), parcel);
            }
        }
        let (head_ns, passed, is_free) = match self.grid.stored_route(from, to) {
            Some(stored) => {
                let links_with_hop = self.grid.links_with_hop();
                let (mut head_ns, mut passed) = (start_ns, 0);
                let is_free = stored.iter().all(|&channel| {
                    let is_free = self.channels.enter(channel.into(), head_ns, busy_ns);
                    let has_hop = u32::from(channel) / CHANNELS_PER_LINK < links_with_hop;
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

    /// Reserves the channels of a route up to the first whose link is not free. Returns the time of
    /// the head there, the number of reserved channels, and true if those are all.
    #[inline(always)]
    fn enter_far(&mut self, route: &Route, start_ns: u64, busy_ns: u64) -> (u64, u32, bool) {
        let (mut head_ns, mut passed) = (start_ns, 0);
        while passed <= route.last() {
            let stretch = route.stretch(passed);
            let hop_ns = if stretch.has_hop { self.hop_ns } else { 0 };
            let entered = self.channels.enter_free(&stretch, head_ns, hop_ns, busy_ns);
            (head_ns, passed) = (head_ns + u64::from(entered) * hop_ns, passed + entered);
            if entered < stretch.links {
                return (head_ns, passed, false);
            }
        }
        (head_ns, passed, true)
    }

    /// Returns the instant at which a message sent now can enter, and the time for which it
    /// occupies a link, in ns.
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
