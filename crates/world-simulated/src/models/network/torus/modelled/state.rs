//! The state of a modelled torus: its channels, and the packets that contend.

use super::release_times::Starts;
use super::virtual_channels::VirtualChannels;
use crate::models::network::LinkSpec;
use crate::models::network::links::Pace;
use crate::models::network::torus::grid::{Grid, Route, TorusSize};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Longest route, in hops, up to which channels are granted in the order in which heads reach them:
/// that of a torus of 16 by 16 nodes.
const IN_ORDER_HOPS_MAX: u32 = 16;

/// State of one network.
#[derive(Debug)]
pub struct Torus {
    pub(super) grid: Grid,
    pub(super) pace: Pace,
    pub(super) hop_ns: u64,
    /// Bytes of a flit, if a hop carries a whole number of them.
    pub(super) flit_bytes: Option<u64>,
    /// Longest time of a head on its route; set where channels are granted in the order in which
    /// heads reach them.
    pub(super) longest_route_ns: Option<u64>,
    pub(super) channels: VirtualChannels,
    pub(super) contention: Contention,
    /// Instant at which the next contending packet moves on; `u64::MAX` for none.
    pub(super) due_at_ns: u64,
    /// For tests: heads do not skip through free channels.
    #[cfg(test)]
    pub(super) moves_hop_by_hop: bool,
}

impl Torus {
    /// Creates a quiet torus.
    ///
    /// # Panics
    /// Unless it has 1 to [`NODES_MAX`](crate::models::network::NODES_MAX) places.
    pub fn new(size: TorusSize, link: LinkSpec) -> Self {
        let grid = Grid::new(size);
        let channels = VirtualChannels::new(grid.links() as usize);
        let hop_ns = link.hop.as_ns();
        let hops = size.width / 2 + size.height / 2;
        Self {
            grid,
            pace: Pace::of(link),
            hop_ns,
            flit_bytes: link.flit_bytes(),
            longest_route_ns: (hops <= IN_ORDER_HOPS_MAX).then(|| u64::from(hops) * hop_ns),
            channels,
            contention: Contention::default(),
            due_at_ns: u64::MAX,
            #[cfg(test)]
            moves_hop_by_hop: false,
        }
    }
}

/// Packets that have met contention, and their queues.
#[derive(Debug, Default)]
pub(super) struct Contention {
    /// The packets; one that is being moved is out of its place.
    pub(super) packets: Vec<Option<Box<Packet>>>,
    pub(super) free_packets: Vec<u32>,
    pub(super) queues: Vec<ChannelQueue>,
    pub(super) free_queues: Vec<u32>,
    /// Number of waiting packets.
    pub(super) waiting: usize,
    /// Number of packets that have met contention so far.
    pub(super) met: u64,
    /// Packets that move on, with the instant in ns; those of one instant in the order of sending.
    pub(super) due: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Parcels that have arrived or will, with the instant in ns; those of one instant in the order
    /// of sending.
    pub(super) arriving: BinaryHeap<Reverse<(u64, u64, u32)>>,
}

#[derive(Debug, Default)]
pub(super) struct Packet {
    /// Sequence number of its sending.
    pub(super) number: u64,
    pub(super) parcel: u32,
    pub(super) busy_ns: u64,
    /// Number of buffers that it fills.
    pub(super) fills: u32,
    /// Its route: out of the node, from router to router, into a node.
    pub(super) route: Route,
    /// Number of channels whose release time is known, and of channels marked as its own.
    pub(super) settled: u32,
    pub(super) held: u32,
    /// Channel that its head reaches next, and the instant; it may have to wait there.
    pub(super) place: u32,
    pub(super) head_ns: u64,
    pub(super) waits: bool,
    /// Channels into which it began to stream later than the previous start implies, with the
    /// instant, in the order of channels.
    pub(super) starts: Starts,
}

/// Packets that wait for a channel, in the order of their requests; never empty.
#[derive(Debug)]
pub(super) struct ChannelQueue {
    /// Instant from which the channel is free, in ns, or
    /// [`UNKNOWN`](super::virtual_channels::UNKNOWN).
    pub(super) free_at_ns: u64,
    pub(super) waiting: VecDeque<u32>,
}

impl Contention {
    /// Takes a packet out of its place, to move it on.
    pub(super) fn take(&mut self, index: u32) -> Box<Packet> {
        self.packets[index as usize].take().expect("a packet must be in its place")
    }
}
