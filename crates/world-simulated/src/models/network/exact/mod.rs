//! A two-dimensional torus, exact: every flit of every worm is moved, link by link.
//!
//! A flit is what a link carries in the time of a hop: 4 bytes with the links of the papers, 20 ns
//! at 200 * 10^6 bytes/s. That time is the tick of the network, and all routers move at ticks: a
//! message enters at the next one, and its last flit is sent whole. So a message alone costs
//! 20 ns a hop and 20 ns for each 4 bytes begun, from the first tick that is not before its
//! sending, as in the [modelled](super::torus) torus.
//!
//! How worms move is said in `worms.rs`. Ways are those of the modelled torus. The rings of a torus
//! would let worms wait for one another in a circle, so every link between routers has two lanes
//! with buffers of their own (Dally and Seitz, "Deadlock-free message routing in multiprocessor
//! interconnection networks", IEEE Transactions on Computers C-36(5), 1987): a worm starts each
//! leg of its way in lane 0 and is in lane 1 from the link on that closes the ring. Then no order
//! of waiting is a circle: out of a node, along x in lane 0, in lane 1, along y likewise, into a
//! node. The link into a node never waits, because each processor has a deep queue for what
//! arrives (TOCS 1997, section 4.1).

mod worms;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use super::grid::{Grid, LANES_PER_LINK};
use super::{LinkSpec, TorusSize, UnfitNetwork};
use std::collections::VecDeque;
use units::Instant;
use worms::{Ended, LaneSpec, Worms};

/// Flits that a router keeps for each lane that ends there, unless another number is stated.
///
/// Two are the fewest that let a worm move at the full rate, since a place that is left in one
/// tick can be taken in the next. The papers name none; eight are our choice, and
/// docs/validation.md says what other depths change.
pub const BUFFER_FLITS: u32 = 8;

/// The state of one network.
#[derive(Debug)]
pub struct ExactTorus {
    grid: Grid,
    flit_bytes: u64,
    /// Length of a tick.
    tick_ns: u64,
    worms: Worms,
    /// Those that have arrived, or will at the end of the tick that has begun, in order.
    ended: VecDeque<Ended>,
}

impl ExactTorus {
    /// A quiet torus whose routers keep `buffer_flits` flits for each lane that ends there.
    ///
    /// # Errors
    /// When the buffers hold nothing, or a link carries no whole number of bytes in a hop.
    pub fn new(size: TorusSize, link: LinkSpec, buffer_flits: u32) -> Result<Self, UnfitNetwork> {
        let flit_bytes = check(link, buffer_flits)?;
        let grid = Grid::new(size);
        let worms = Worms::new(lane_specs(&grid, buffer_flits));
        let tick_ns = link.hop.as_ns();
        Ok(Self { grid, flit_bytes, tick_ns, worms, ended: VecDeque::new() })
    }

    /// Sends `bytes` now from one node to another; [`arrived`](Self::arrived) will return `parcel`.
    /// Panics when both are the same: such a message is there at once.
    pub fn send(&mut self, now: Instant, (from, to): (u32, u32), bytes: u64, parcel: u32) {
        assert_ne!(from, to, "a message to its own sender uses no network");
        self.advance(now);
        let grid = &self.grid;
        let flits = bytes.div_ceil(self.flit_bytes).max(1);
        self.worms.send(parcel, flits, |way| way.extend(grid.route(from, to).lanes()));
    }

    /// The next parcel, in order, whose last flit has arrived by now.
    pub fn arrived(&mut self, now: Instant) -> Option<u32> {
        self.advance(now);
        let next = self.ended.front()?;
        if next.tick * self.tick_ns > now.as_ns() {
            return None;
        }
        self.ended.pop_front().map(|ended| ended.parcel)
    }

    /// No parcel arrives before, whatever else is sent; `None` when nothing is under way.
    pub fn next_arrival_from(&self) -> Option<Instant> {
        let ended = self.ended.front().map(|ended| ended.tick);
        let tick = ended.or_else(|| self.worms.next_end_from())?;
        Some(Instant::from_ns(tick * self.tick_ns))
    }

    /// Does all ticks that have begun: what is sent now cannot change them.
    fn advance(&mut self, now: Instant) {
        self.worms.advance(now.as_ns().div_ceil(self.tick_ns), &mut self.ended);
    }
}

/// Whether a torus of such links and buffers can be exact; returns the bytes of a flit.
///
/// # Errors
/// When the buffers hold nothing, or a link carries no whole number of bytes in a hop.
pub(super) fn check(link: LinkSpec, buffer_flits: u32) -> Result<u64, UnfitNetwork> {
    if buffer_flits == 0 {
        return Err(UnfitNetwork::Buffer);
    }
    let LinkSpec { bytes_per_second, hop } = link;
    let unfit = UnfitNetwork::Flit { hop_ns: hop.as_ns(), bytes_per_second };
    link.flit_bytes().ok_or(unfit)
}

/// All lanes of a torus, in the order of their numbers.
fn lane_specs(grid: &Grid, buffer_flits: u32) -> impl Iterator<Item = LaneSpec> {
    (0..grid.links() * LANES_PER_LINK).map(move |lane| {
        let link = lane / LANES_PER_LINK;
        let has_hop = link < grid.links_with_hop();
        let room_flits = if has_hop { u64::from(buffer_flits) } else { u64::MAX };
        LaneSpec { link, room_flits }
    })
}
