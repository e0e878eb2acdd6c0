//! The exact torus: it translates messages into packets whose flits are moved one by one.
//!
//! A flit is the data that a link carries in a hop time: 4 bytes with the links of the papers, 20
//! ns at 200 * 10^6 bytes/s. The hop time is the tick of the network, and all routers move at
//! ticks. A message enters at the next tick, and its last flit is sent whole. So a message without
//! contention costs 20 ns a hop and 20 ns for each 4 bytes begun, from the first tick that is not
//! before its sending, as in the [modelled](super::super::modelled) torus.
//!
//! The rules of movement are in `flit_network.rs`; the routes are those of the modelled torus.
//!
//! The rings of a torus could deadlock under wormhole routing. Therefore every link between routers
//! has two virtual channels with buffers of their own (Dally and Seitz, "Deadlock-free message
//! routing in multiprocessor interconnection networks", IEEE Transactions on Computers C-36(5),
//! 1987). A packet starts each leg of its route in channel 0 and uses channel 1 from the link on
//! that closes the ring. Then no order of waiting is a cycle: out of a node, along x in channel 0,
//! in channel 1, along y likewise, into a node. The link into a node never waits, because each
//! processor has a deep queue for arrivals (TOCS 1997, section 4.1).

use super::flit_network::{ChannelSpec, Ended, FlitNetwork};
use crate::models::network::torus::grid::{CHANNELS_PER_LINK, Grid, TorusSize};
use crate::models::network::{LinkSpec, UnfitNetwork};
use std::collections::VecDeque;
use units::Instant;

/// State of one network.
#[derive(Debug)]
pub struct ExactTorus {
    grid: Grid,
    flit_bytes: u64,
    /// Length of a tick.
    tick_ns: u64,
    network: FlitNetwork,
    /// Packets that have arrived, or will at the end of the tick that has begun, in order.
    ended: VecDeque<Ended>,
}

impl ExactTorus {
    /// Creates a quiet torus whose routers buffer `buffer_flits` flits for each virtual channel
    /// that ends there.
    ///
    /// # Errors
    /// Fails when the buffers hold nothing, or a link carries no whole number of bytes in a hop
    /// time.
    pub fn new(size: TorusSize, link: LinkSpec, buffer_flits: u32) -> Result<Self, UnfitNetwork> {
        let flit_bytes = check(link, buffer_flits)?;
        let grid = Grid::new(size);
        let network = FlitNetwork::new(channel_specs(&grid, buffer_flits));
        let tick_ns = link.hop.as_ns();
        Ok(Self { grid, flit_bytes, tick_ns, network, ended: VecDeque::new() })
    }

    /// Sends `bytes` now from one node to another; [`arrived`](Self::arrived) will return `parcel`.
    ///
    /// # Panics
    /// Panics when both nodes are the same: such a message uses no network.
    pub fn send(&mut self, now: Instant, (from, to): (u32, u32), bytes: u64, parcel: u32) {
        assert_ne!(from, to, "a message to its own sender uses no network");
        self.advance(now);
        let grid = &self.grid;
        let flits = bytes.div_ceil(self.flit_bytes).max(1);
        self.network.send(parcel, flits, |route| route.extend(grid.route(from, to).channels()));
    }

    /// Returns the next parcel, in order, whose last flit has arrived by now.
    pub fn arrived(&mut self, now: Instant) -> Option<u32> {
        self.advance(now);
        let next = self.ended.front()?;
        if next.tick * self.tick_ns > now.as_ns() {
            return None;
        }
        self.ended.pop_front().map(|ended| ended.parcel)
    }

    /// Lower bound of the next arrival, whatever else is sent; `None` when nothing is under way.
    pub fn next_arrival_from(&self) -> Option<Instant> {
        let ended = self.ended.front().map(|ended| ended.tick);
        let tick = ended.or_else(|| self.network.next_end_from())?;
        Some(Instant::from_ns(tick * self.tick_ns))
    }

    /// Completes all ticks that have begun: messages sent from now on cannot change them.
    fn advance(&mut self, now: Instant) {
        self.network.advance(now.as_ns().div_ceil(self.tick_ns), &mut self.ended);
    }
}

/// Checks that a torus of such links and buffers can be simulated exactly. Returns the bytes of a
/// flit.
///
/// # Errors
/// Fails when the buffers hold nothing, or a link carries no whole number of bytes in a hop time.
pub(super) fn check(link: LinkSpec, buffer_flits: u32) -> Result<u64, UnfitNetwork> {
    if buffer_flits == 0 {
        let cause = "the buffers of an exact network must hold at least one flit";
        return Err(UnfitNetwork::Shape(cause.to_owned()));
    }
    let LinkSpec { bytes_per_second, hop } = link;
    link.flit_bytes().ok_or_else(|| {
        UnfitNetwork::Shape(format!(
            "in an exact network, a link must carry a whole number of bytes in one hop time; {} ns \
             at {bytes_per_second} bytes/s do not give one",
            hop.as_ns(),
        ))
    })
}

/// Returns all channels of a torus, in the order of their numbers.
pub(super) fn channel_specs(grid: &Grid, buffer_flits: u32) -> impl Iterator<Item = ChannelSpec> {
    (0..grid.links() * CHANNELS_PER_LINK).map(move |channel| {
        let link = channel / CHANNELS_PER_LINK;
        let has_hop = link < grid.links_with_hop();
        let room_flits = if has_hop { u64::from(buffer_flits) } else { u64::MAX };
        ChannelSpec { link, room_flits }
    })
}
