//! A full crossbar: one switch to which every node has a link in each direction.
//!
//! The switch itself never blocks. A message waits only for the link out of its sender and for the
//! link into its receiver. A message that waits for its receiver does so in the switch, which has a
//! queue of any depth for each pair of sender and receiver (virtual output queues). So the link of
//! its sender is free for the next message.
//!
//! Invariant: each link carries one message at a time, in the order of the calls of
//! [`Crossbar::deliver`].

use super::built_network::{BuiltNetwork, SwitchedNetwork};
use super::links::{Links, Pace};
use super::spec::{NetworkDeclaration, NetworkKind, NetworkShape};
use super::{LinkSpec, UnfitNetwork};
use crate::models::{ModelInfo, ParameterValues};
use units::Instant;

/// Declaration of the crossbar.
pub const NETWORK: NetworkDeclaration = NetworkDeclaration {
    info: ModelInfo {
        name: "crossbar",
        help: "one switch between all nodes, with a link to and from each",
    },
    parameters: &[],
    make: |_: &ParameterValues| NetworkKind::of(CrossbarShape),
};

/// Shape of a crossbar: it has no parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrossbarShape;

impl NetworkShape for CrossbarShape {
    fn check(&self, _link: LinkSpec, _nodes: u32) -> Result<(), UnfitNetwork> {
        Ok(())
    }

    fn build(&self, link: LinkSpec, nodes: u32) -> Result<BuiltNetwork, UnfitNetwork> {
        Ok(BuiltNetwork::Switched(Box::new(Crossbar::new(nodes, link))))
    }
}

/// State of one crossbar.
#[derive(Clone, Debug)]
pub struct Crossbar {
    nodes: u32,
    pace: Pace,
    hop_ns: u64,
    /// Links out of the nodes, then links into them.
    links: Links,
}

impl Crossbar {
    /// Creates a quiet crossbar of `nodes` nodes.
    pub fn new(nodes: u32, link: LinkSpec) -> Self {
        let links = Links::new(2 * nodes as usize);
        Self { nodes, pace: Pace::of(link), hop_ns: link.hop.as_ns(), links }
    }

    /// Sends `bytes` now. Returns the arrival of the last byte: `now` for a message of a node to
    /// itself.
    pub fn deliver(&mut self, now: Instant, from: u32, to: u32, bytes: u64) -> Instant {
        assert!(
            from < self.nodes && to < self.nodes,
            "a message must go from and to a node of the crossbar"
        );
        if from == to {
            return now;
        }
        let busy_ns = self.pace.ns(bytes);
        let head_ns = self.links.enter(from as usize, now.as_ns(), busy_ns);
        let into = self.nodes as usize + to as usize;
        let head_ns = self.links.enter(into, head_ns + self.hop_ns, busy_ns);
        Instant::from_ns(head_ns + busy_ns)
    }
}

impl SwitchedNetwork for Crossbar {
    fn deliver(&mut self, now: Instant, from: u32, to: u32, bytes: u64) -> Instant {
        Self::deliver(self, now, from, to, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crossbar() -> Crossbar {
        Crossbar::new(4, LinkSpec::TOCS_1997)
    }

    /// Proves that a message without contention costs one switch and its bytes.
    #[test]
    fn alone_a_message_costs_its_bytes_and_one_switch() {
        for (from, to) in [(0, 1), (1, 0), (0, 3), (3, 2)] {
            let arrival = crossbar().deliver(Instant::from_ns(7), from, to, 8192);
            assert_eq!(arrival, Instant::from_ns(7 + 20 + 40_960), "{from} to {to}");
        }
        assert_eq!(crossbar().deliver(Instant::from_ns(7), 2, 2, 8192), Instant::from_ns(7));
    }

    /// Proves that links out of a sender and into a receiver carry one message at a time, in the
    /// order of sending, each direction by itself, and that other pairs are not disturbed.
    #[test]
    fn messages_meet_at_their_sender_and_at_their_receiver_only() {
        let mut crossbar = crossbar();
        let now = Instant::START;
        assert_eq!(crossbar.deliver(now, 0, 1, 1_000), Instant::from_ns(5_020));
        let at_receiver = crossbar.deliver(now, 2, 1, 100);
        assert_eq!(at_receiver, Instant::from_ns(5_020 + 500), "behind the first");
        let at_sender = crossbar.deliver(now, 0, 3, 100);
        assert_eq!(at_sender, Instant::from_ns(5_000 + 20 + 500), "behind the first");
        assert_eq!(crossbar.deliver(now, 1, 0, 100), Instant::from_ns(520), "the other direction");
        assert_eq!(crossbar.deliver(now, 2, 3, 100), Instant::from_ns(5_520 + 500));
        let mut quiet = self::crossbar();
        quiet.deliver(now, 0, 1, 1_000);
        assert_eq!(quiet.deliver(now, 2, 3, 1_000), Instant::from_ns(5_020), "other links");
    }

    /// Proves that no link exceeds its rate: messages to one node from all others arrive in the
    /// time of their bytes, without a gap.
    #[test]
    fn a_busy_receiver_takes_the_full_rate_and_no_more() {
        let mut crossbar = crossbar();
        let arrivals = (0..300).map(|number| crossbar.deliver(Instant::START, number % 3, 3, 200));
        let arrivals: Vec<u64> = arrivals.map(Instant::as_ns).collect();
        let expected: Vec<u64> = (1..=300).map(|number| 20 + 1_000 * number).collect();
        assert_eq!(arrivals, expected);
    }
}
