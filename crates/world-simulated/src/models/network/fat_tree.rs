//! A fat tree of two levels: leaf switches with the nodes, and spine switches above them.
//!
//! ```text
//!   spine 0      spine 1        every leaf has a link up to, and one down from, every spine
//!     | \________/ |
//!     | /        \ |
//!   leaf 0       leaf 1
//!   | | | |      | | | |
//!   0 1 2 3      4 5 6 7        nodes
//! ```
//!
//! A message to a node of the same leaf passes that one switch. Any other goes up, over the spine
//! whose number is its receiver's modulo the number of spines, and down: static routing by
//! destination (*d-mod-k*; Zahavi, Johnson, Kerbyson and Lang, "Optimized InfiniBand fat-tree
//! routing for shift all-to-all communication patterns", 2010). So all messages to one node meet
//! on one spine, and those to neighbouring nodes spread over all.
//!
//! A message that waits for a link does so in the switch before it, in a queue of any depth, and
//! holds no link behind it. What a message takes at its ends (adapters, interrupts, wake-ups) is a
//! time that occupies nothing. Invariant: each link carries one message at a time, in the order in
//! which [`FatTree::deliver`] was called.

use super::built_network::{BuiltNetwork, SwitchedNetwork};
use super::links::{Links, Pace};
use super::spec::{NetworkDeclaration, NetworkKind, NetworkShape};
use super::{LinkSpec, NODES_MAX, UnfitNetwork};
use crate::models::{ModelInfo, Parameter, ParameterValues, Unit};
use units::{Duration, Instant};

/// Declaration of the fat tree. By default half the nodes of a leaf can send to other leaves at the
/// same time.
pub const NETWORK: NetworkDeclaration = NetworkDeclaration {
    info: ModelInfo {
        name: "fat-tree",
        help: "two levels of switches: leaves with the nodes, and spines above",
    },
    parameters: &[LEAF_NODES, SPINES, ENDS],
    make: |values: &ParameterValues| {
        let (leaf_nodes, spines) = (values.count(&LEAF_NODES), values.count(&SPINES));
        NetworkKind::of(FatTreeShape { leaf_nodes, spines, ends: values.time(&ENDS) })
    },
};

/// Nodes on each leaf switch.
pub const LEAF_NODES: Parameter = Parameter {
    name: "fat-tree-leaf-nodes",
    unit: Unit::Count,
    least: 1,
    most: NODES_MAX as u64,
    default: 8,
    meaning: "Number of nodes on each leaf switch of a fat tree.",
    source: "Our choice.",
};

/// Spine switches.
pub const SPINES: Parameter = Parameter {
    name: "fat-tree-spines",
    default: 4,
    meaning: "Number of spine switches of a fat tree. Each leaf switch has one uplink to each. \
              With fewer spine switches than nodes on a leaf, the network is oversubscribed.",
    ..LEAF_NODES
};

/// Time at the ends of a message.
pub const ENDS: Parameter = Parameter {
    name: "fat-tree-ends-ns",
    unit: Unit::Time,
    least: 0,
    most: 10_000_000,
    default: 0,
    meaning: "Time that a message between two nodes of a fat tree takes besides switches, bytes \
              and processors: adapters, interrupts and wake-ups at both ends together. It occupies \
              nothing.",
    source: "Our choice: adapters of the papers' time are in the cost of a message.",
};

/// Largest number of links between leaves and spines, in each direction.
const SPINE_LINKS_MAX: u64 = 1 << 24;

/// Shape of a two-level fat tree. The tree is oversubscribed when a leaf has more nodes than there
/// are spines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FatTreeShape {
    /// Nodes on each leaf switch.
    pub leaf_nodes: u32,
    /// Spine switches; each leaf has one link up to each, and one down from it.
    pub spines: u32,
    /// Time of a message at both ends together, which occupies nothing.
    pub ends: Duration,
}

impl NetworkShape for FatTreeShape {
    /// Fails when the tree has no nodes on a leaf, no spine, or more of either than [`NODES_MAX`];
    /// or too many links in between.
    fn check(&self, _link: LinkSpec, nodes: u32) -> Result<(), UnfitNetwork> {
        let Self { leaf_nodes, spines, .. } = *self;
        let counts = 1..=NODES_MAX;
        if !counts.contains(&leaf_nodes) || !counts.contains(&spines) {
            return Err(UnfitNetwork::Shape(format!(
                "a fat tree must have nodes on each leaf and spines, from 1 to {NODES_MAX}"
            )));
        }
        let links = u64::from(nodes.div_ceil(leaf_nodes)) * u64::from(spines);
        if links > SPINE_LINKS_MAX {
            return Err(UnfitNetwork::Shape(format!(
                "{links} links between leaves and spines are too many; the maximum is \
                 {SPINE_LINKS_MAX}"
            )));
        }
        Ok(())
    }

    fn build(&self, link: LinkSpec, nodes: u32) -> Result<BuiltNetwork, UnfitNetwork> {
        Ok(BuiltNetwork::Switched(Box::new(FatTree::new(nodes, *self, link)?)))
    }
}

/// State of one fat tree.
#[derive(Clone, Debug)]
pub struct FatTree {
    nodes: u32,
    shape: FatTreeShape,
    pace: Pace,
    hop_ns: u64,
    /// Links from each node to its leaf, then from its leaf to each node.
    node_links: Links,
    /// Links from each leaf to each spine, then from each spine to each leaf: `leaf * spines +
    /// spine`.
    spine_links: Links,
    down: usize,
}

impl FatTree {
    /// Creates a quiet fat tree with as many leaves as `nodes` nodes need.
    ///
    /// # Errors
    /// As for the check of [`FatTreeShape`].
    pub fn new(nodes: u32, shape: FatTreeShape, link: LinkSpec) -> Result<Self, UnfitNetwork> {
        shape.check(link, nodes)?;
        let FatTreeShape { leaf_nodes, spines, .. } = shape;
        let down = nodes.div_ceil(leaf_nodes) as usize * spines as usize;
        Ok(Self {
            nodes,
            shape,
            pace: Pace::of(link),
            hop_ns: link.hop.as_ns(),
            node_links: Links::new(2 * nodes as usize),
            spine_links: Links::new(2 * down),
            down,
        })
    }

    /// Sends `bytes` now. Returns the arrival of the last byte: `now` for a message of a node to
    /// itself.
    pub fn deliver(&mut self, now: Instant, from: u32, to: u32, bytes: u64) -> Instant {
        assert!(
            from < self.nodes && to < self.nodes,
            "a message must go from and to a node of the fat tree"
        );
        if from == to {
            return now;
        }
        let FatTreeShape { leaf_nodes, spines, ends } = self.shape;
        let (busy_ns, hop_ns) = (self.pace.ns(bytes), self.hop_ns);
        let (up_leaf, down_leaf) = (from / leaf_nodes, to / leaf_nodes);
        let mut head_ns = self.node_links.enter(from as usize, now.as_ns(), busy_ns);
        if up_leaf != down_leaf {
            let spine = (to % spines) as usize;
            let link = |leaf: u32| leaf as usize * spines as usize + spine;
            head_ns = self.spine_links.enter(link(up_leaf), head_ns + hop_ns, busy_ns);
            let down = self.down + link(down_leaf);
            head_ns = self.spine_links.enter(down, head_ns + hop_ns, busy_ns);
        }
        let into = (self.nodes + to) as usize;
        head_ns = self.node_links.enter(into, head_ns + hop_ns, busy_ns);
        Instant::from_ns(head_ns + busy_ns) + ends
    }
}

impl SwitchedNetwork for FatTree {
    fn deliver(&mut self, now: Instant, from: u32, to: u32, bytes: u64) -> Instant {
        Self::deliver(self, now, from, to, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: FatTreeShape = FatTreeShape { leaf_nodes: 4, spines: 2, ends: Duration::ZERO };

    /// Proves that a tree without leaves or spines is refused.
    #[test]
    fn a_tree_without_parts_is_refused() {
        for (leaf_nodes, spines) in [(0, 1), (1, 0), (1, u32::MAX)] {
            let shape = FatTreeShape { leaf_nodes, spines, ..SHAPE };
            assert!(shape.check(LinkSpec::TOCS_1997, 2).is_err(), "{shape:?}");
        }
    }

    /// Three leaves of four nodes, two spines: oversubscribed by two.
    fn tree() -> FatTree {
        FatTree::new(12, SHAPE, LinkSpec::TOCS_1997).unwrap()
    }

    const NOW: Instant = Instant::START;

    /// Proves that a message without contention costs its bytes, and one switch within a leaf or
    /// three.
    #[test]
    fn alone_a_message_costs_its_bytes_and_its_switches() {
        for (from, to, switches) in [(0, 3, 1), (5, 4, 1), (0, 4, 3), (11, 0, 3)] {
            let arrival = tree().deliver(Instant::from_ns(7), from, to, 1_000);
            assert_eq!(arrival, Instant::from_ns(7 + 20 * switches + 5_000), "{from} to {to}");
        }
        assert_eq!(tree().deliver(Instant::from_ns(7), 1, 1, 1_000), Instant::from_ns(7));
    }

    /// Proves that flows from one leaf contend when they go up to one spine, and not when they go
    /// up to different ones.
    #[test]
    fn flows_meet_on_the_way_up_when_their_spine_is_the_same() {
        let mut other_spine = tree();
        other_spine.deliver(NOW, 0, 4, 1_000);
        assert_eq!(other_spine.deliver(NOW, 1, 5, 1_000), Instant::from_ns(5_060));
        let mut same_spine = tree();
        same_spine.deliver(NOW, 0, 4, 1_000);
        assert_eq!(same_spine.deliver(NOW, 1, 6, 1_000), Instant::from_ns(10_060));
        // A flow within the leaf uses no spine.
        assert_eq!(same_spine.deliver(NOW, 2, 3, 1_000), Instant::from_ns(5_020));
    }

    /// Proves that flows into one leaf contend on the way down, although they come from two leaves
    /// and go to two nodes.
    #[test]
    fn flows_meet_on_the_way_down() {
        let mut tree = tree();
        tree.deliver(NOW, 0, 8, 1_000);
        assert_eq!(tree.deliver(NOW, 4, 10, 1_000), Instant::from_ns(10_060), "spine 0");
        assert_eq!(tree.deliver(NOW, 5, 9, 1_000), Instant::from_ns(5_060), "spine 1");
        assert_eq!(tree.deliver(NOW, 9, 1, 1_000), Instant::from_ns(5_060), "the other way");
    }

    /// Proves that the links of a sender and of a receiver carry one message at a time.
    #[test]
    fn flows_meet_at_their_sender_and_at_their_receiver() {
        let mut tree = tree();
        tree.deliver(NOW, 0, 1, 1_000);
        assert_eq!(tree.deliver(NOW, 0, 4, 100), Instant::from_ns(5_000 + 60 + 500));
        assert_eq!(tree.deliver(NOW, 2, 1, 100), Instant::from_ns(5_020 + 500));
    }

    /// Proves that four nodes of a leaf that send to four of another get what two spines carry,
    /// and four spines the full rate.
    #[test]
    fn oversubscription_halves_the_rate() {
        for (spines, last_ns) in [(2, 2 * 5_000 + 60), (4, 5_000 + 60)] {
            let shape = FatTreeShape { spines, ..SHAPE };
            let mut tree = FatTree::new(8, shape, LinkSpec::TOCS_1997).unwrap();
            let last = (0..4).map(|node| tree.deliver(NOW, node, node + 4, 1_000)).max();
            assert_eq!(last, Some(Instant::from_ns(last_ns)), "{spines} spines");
        }
    }

    /// Links of 100 Gbit/s, switches of 300 ns, and 8 us at the ends: 512 nodes on leaves of 16.
    fn cluster(spines: u32) -> FatTree {
        let link = LinkSpec { bytes_per_second: 12_500_000_000, hop: Duration::from_ns(300) };
        let shape = FatTreeShape { leaf_nodes: 16, spines, ends: Duration::from_us(8) };
        FatTree::new(512, shape, link).unwrap()
    }

    /// Proves that a message takes exactly the time at its ends, that of one or three switches, and
    /// that of its bytes.
    #[test]
    fn time_at_the_ends_is_added_once() {
        for (from, to, switches) in [(0, 15, 1), (15, 16, 3), (511, 0, 3)] {
            for (bytes, bytes_ns) in [(0, 0), (1, 1), (125, 10), (1 << 20, 83_887)] {
                let arrival = cluster(16).deliver(NOW, from, to, bytes);
                let expected = 8_000 + 300 * switches + bytes_ns;
                assert_eq!(arrival, Instant::from_ns(expected), "{from} to {to}, {bytes} bytes");
            }
        }
        assert_eq!(cluster(16).deliver(NOW, 3, 3, 1 << 20), NOW, "to itself");
        // The time at the ends occupies no link: the next message is behind only the bytes.
        let mut tree = cluster(16);
        let first = tree.deliver(NOW, 0, 100, 125_000);
        assert_eq!(tree.deliver(NOW, 0, 100, 125_000), first + Duration::from_us(10));
    }

    /// Proves that every node can send to the node half the tree away at the rate of its link, and
    /// at the part of it that fewer spines have: the bisection limits, and nothing else.
    #[test]
    fn the_bisection_limits_a_permutation() {
        const BYTES: u64 = 1_250_000; // 100 us on a link
        for (spines, factor) in [(16, 1), (8, 2), (4, 4), (1, 16)] {
            let mut tree = cluster(spines);
            let arrivals: Vec<Instant> =
                (0..512).map(|node| tree.deliver(NOW, node, (node + 256) % 512, BYTES)).collect();
            let expected = Instant::from_ns(8_900 + factor * 100_000);
            assert_eq!(arrivals.iter().max(), Some(&expected), "{spines} spines");
        }
    }

    /// Proves that an exchange of all with all, in 511 rounds of shifts, takes the time of the
    /// bytes of each node, without a conflict: the property for which the routes are chosen.
    #[test]
    fn shifts_of_all_nodes_meet_nowhere() {
        const BYTES: u64 = 12_500; // 1 us on a link
        let mut tree = cluster(16);
        let mut last = NOW;
        for shift in 1..512 {
            for node in 0..512 {
                last = last.max(tree.deliver(NOW, node, (node + shift) % 512, BYTES));
            }
        }
        assert_eq!(last, Instant::from_ns(8_900 + 511 * 1_000));
    }
}
