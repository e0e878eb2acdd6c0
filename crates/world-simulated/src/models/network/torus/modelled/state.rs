//! The state of a modelled torus: its channels, and the packets that contend.

use super::release_times::Starts;
use super::virtual_channels::VirtualChannels;
use crate::models::network::LinkSpec;
use crate::models::network::links::Pace;
use crate::models::network::torus::grid::{Grid, Route, TorusSize};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Up to ways of so many hops, channels are given in the order in which heads come to them: tori of 16
/// by 16 nodes.
const IN_ORDER_HOPS_MAX: u32 = 16;

/// The state of one network.
#[derive(Debug)]
pub struct Torus {
    pub(super) grid: Grid,
    pub(super) pace: Pace,
    pub(super) hop_ns: u64,
    /// Bytes of a flit, when a hop carries a whole number of them.
    pub(super) flit_bytes: Option<u64>,
    /// How long a head needs at most, where channels are given in the order in which heads come.
    pub(super) longest_route_ns: Option<u64>,
    pub(super) channels: VirtualChannels,
    pub(super) contention: Contention,
    /// When the next of the packets that have met others goes on; `u64::MAX` when none does.
    pub(super) due_at_ns: u64,
    /// For tests: heads do not run through free channels at once.
    #[cfg(test)]
    pub(super) moves_hop_by_hop: bool,
}

impl Torus {
    /// A quiet torus. Panics unless it has 1 to [`NODES_MAX`](super::NODES_MAX) places.
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

/// Packets that have met others.
#[derive(Debug, Default)]
pub(super) struct Contention {
    /// One that goes on is out of its place.
    pub(super) packets: Vec<Option<Box<Packet>>>,
    pub(super) free_packets: Vec<u32>,
    pub(super) queues: Vec<ChannelQueue>,
    pub(super) free_queues: Vec<u32>,
    /// Packets that wait.
    pub(super) waiting: usize,
    /// Those that have met others, so far.
    pub(super) met: u64,
    /// Who goes on, and when in ns; at one instant in the order of sending.
    pub(super) due: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// What has arrived, or will, and when in ns; at one instant in the order of sending.
    pub(super) arriving: BinaryHeap<Reverse<(u64, u64, u32)>>,
}

#[derive(Debug, Default)]
pub(super) struct Packet {
    /// In the order of sending.
    pub(super) number: u64,
    pub(super) parcel: u32,
    pub(super) busy_ns: u64,
    /// How many buffers it fills.
    pub(super) fills: u32,
    /// The channels of its way: out of the node, from router to router, into a node.
    pub(super) route: Route,
    /// How many of them it will leave at a known time, and how many others know that they are its.
    pub(super) settled: u32,
    pub(super) held: u32,
    /// The one to which its head comes next, and when; it may have to wait there.
    pub(super) place: u32,
    pub(super) head_ns: u64,
    pub(super) waits: bool,
    /// The channels in which it began to stream later than the one before tells, and when; in the
    /// order of channels.
    pub(super) starts: Starts,
}

/// Packets that wait for a channel, in the order of asking; somebody does.
#[derive(Debug)]
pub(super) struct ChannelQueue {
    /// When the channel is free, or [`UNKNOWN`].
    pub(super) free_at_ns: u64,
    pub(super) waiting: VecDeque<u32>,
}

impl Contention {
    /// Takes a packet out of its place, to move it on.
    pub(super) fn take(&mut self, index: u32) -> Box<Packet> {
        self.packets[index as usize].take().expect("a packet must be in its place")
    }
}
