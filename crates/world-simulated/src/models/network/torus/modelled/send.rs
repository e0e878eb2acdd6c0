//! A two-dimensional torus, modelled: packets meet and wait as in the [exact](super::exact) form, but
//! only their heads are moved, and only where they meet.
//!
//! A message is a packet: its head opens the way channel by channel, its tail follows without a gap. Routes,
//! channels, flits and ticks are those of the exact torus. A packet that finds all of its way free has
//! it as soon as it is sent, and its arrival is known at once; that is one look at each channel. One
//! that has to wait is moved on when the channel for which it waits is free ([`contention`]).
//!
//! What is simplified: a packet that finds its way free has it at once, although one that is sent
//! while its head is still on the way may have a nearer one; two packets in the channels of one link
//! pass one after the other, not flit by flit in turn, if it is known when the first will have
//! passed, and as if they did not share it otherwise; and a head enters the buffer in which another
//! packet still lies only when that one is about to leave it.
//!
//! On a torus whose ways are longer than [`IN_ORDER_HOPS_MAX`], heads do not wait for the present
//! either: channels that are free are given in the order of sending, so that of two heads that come to
//! a channel within the time of a way, the later may go first. Somewhere on a large machine some head
//! is always on its way, and to move each of them hop by hop would double what a message costs.
//!
//! A hop in which a link carries no whole number of bytes, zero included, has neither flits nor
//! ticks: then messages enter at once and take as long as their bytes do.
//!
//! Invariants: a channel carries one packet at a time; what is known to arrive is not put off any more.

use super::state::Torus;
use crate::models::network::torus::grid::{CHANNELS_PER_LINK, Route};
use units::Instant;

impl Torus {
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
        // Whoever goes on before this head can be in its node may be at a channel before it.
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

    /// Has a packet have the channels of its way up to the first whose link is not free: when its head
    /// is there, how many it has, and whether that is all of them.
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
