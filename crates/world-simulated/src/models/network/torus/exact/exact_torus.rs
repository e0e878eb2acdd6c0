//! A two-dimensional torus, exact: every flit of every packet is moved, link by link.
//!
//! A flit is what a link carries in the time of a hop: 4 bytes with the links of the papers, 20 ns
//! at 200 * 10^6 bytes/s. That time is the tick of the network, and all routers move at ticks: a
//! message enters at the next one, and its last flit is sent whole. So a message alone costs
//! 20 ns a hop and 20 ns for each 4 bytes begun, from the first tick that is not before its
//! sending, as in the [modelled](super::torus) torus.
//!
//! How packets move is said in `packets.rs`. Routes are those of the modelled torus. The rings of a torus
//! would let packets wait for one another in a circle, so every link between routers has two channels
//! with buffers of their own (Dally and Seitz, "Deadlock-free message routing in multiprocessor
//! interconnection networks", IEEE Transactions on Computers C-36(5), 1987): a packet starts each
//! leg of its way in channel 0 and is in channel 1 from the link on that closes the ring. Then no order
//! of waiting is a circle: out of a node, along x in channel 0, in channel 1, along y likewise, into a
//! node. The link into a node never waits, because each processor has a deep queue for what
//! arrives (TOCS 1997, section 4.1).

use super::flit_network::{ChannelSpec, Ended, FlitNetwork};
use crate::models::network::torus::grid::{CHANNELS_PER_LINK, Grid, TorusSize};
use crate::models::network::{LinkSpec, UnfitNetwork};
use std::collections::VecDeque;
use units::Instant;

/// The state of one network.
#[derive(Debug)]
pub struct ExactTorus {
    grid: Grid,
    flit_bytes: u64,
    /// Length of a tick.
    tick_ns: u64,
    network: FlitNetwork,
    /// Those that have arrived, or will at the end of the tick that has begun, in order.
    ended: VecDeque<Ended>,
}

impl ExactTorus {
    /// A quiet torus whose routers keep `buffer_flits` flits for each channel that ends there.
    ///
    /// # Errors
    /// When the buffers hold nothing, or a link carries no whole number of bytes in a hop.
    pub fn new(size: TorusSize, link: LinkSpec, buffer_flits: u32) -> Result<Self, UnfitNetwork> {
        let flit_bytes = check(link, buffer_flits)?;
        let grid = Grid::new(size);
        let network = FlitNetwork::new(channel_specs(&grid, buffer_flits));
        let tick_ns = link.hop.as_ns();
        Ok(Self { grid, flit_bytes, tick_ns, network, ended: VecDeque::new() })
    }

    /// Sends `bytes` now from one node to another; [`arrived`](Self::arrived) will return `parcel`.
    /// Panics when both are the same: such a message is there at once.
    pub fn send(&mut self, now: Instant, (from, to): (u32, u32), bytes: u64, parcel: u32) {
        assert_ne!(from, to, "a message to its own sender uses no network");
        self.advance(now);
        let grid = &self.grid;
        let flits = bytes.div_ceil(self.flit_bytes).max(1);
        self.network.send(parcel, flits, |route| route.extend(grid.route(from, to).channels()));
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
        let tick = ended.or_else(|| self.network.next_end_from())?;
        Some(Instant::from_ns(tick * self.tick_ns))
    }

    /// Does all ticks that have begun: what is sent now cannot change them.
    fn advance(&mut self, now: Instant) {
        self.network.advance(now.as_ns().div_ceil(self.tick_ns), &mut self.ended);
    }
}

/// Whether a torus of such links and buffers can be exact; returns the bytes of a flit.
///
/// # Errors
/// When the buffers hold nothing, or a link carries no whole number of bytes in a hop.
pub(in crate::models::network::torus) fn check(
    link: LinkSpec,
    buffer_flits: u32,
) -> Result<u64, UnfitNetwork> {
    if buffer_flits == 0 {
        return Err(UnfitNetwork::Buffer);
    }
    let LinkSpec { bytes_per_second, hop } = link;
    let unfit = UnfitNetwork::Flit { hop_ns: hop.as_ns(), bytes_per_second };
    link.flit_bytes().ok_or(unfit)
}

/// All channels of a torus, in the order of their numbers.
pub(super) fn channel_specs(grid: &Grid, buffer_flits: u32) -> impl Iterator<Item = ChannelSpec> {
    (0..grid.links() * CHANNELS_PER_LINK).map(move |channel| {
        let link = channel / CHANNELS_PER_LINK;
        let has_hop = link < grid.links_with_hop();
        let room_flits = if has_hop { u64::from(buffer_flits) } else { u64::MAX };
        ChannelSpec { link, room_flits }
    })
}
