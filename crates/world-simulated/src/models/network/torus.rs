//! A two-dimensional torus, modelled: when a message arrives is known as soon as it is sent.
//!
//! A message is a worm: its head opens the way link by link, its tail follows without a gap. A
//! route goes along x first and along y then, each the shorter way round. A head that meets a taken
//! link waits there, and the rest of its worm gathers behind it in the router, however long it is:
//! it keeps no link behind it.
//!
//! Letting a worm keep its links while it waits would serialise too much here, where links are
//! given in the order of the calls: worms that wait for one another would hold the way of others
//! that could long have passed (`ra` by caching then takes a third longer than published, and a
//! tenth less without). The [exact](super::exact) torus gives links in the order in which heads
//! arrive, has buffers of a stated depth, and lets worms keep what they hold.
//!
//! Invariant: a directed link, the way from a node into the network and the way out included,
//! carries one worm at a time, in the order in which [`Torus::deliver`] was called.

use super::grid::Grid;
use super::links::{Links, Pace};
use super::{LinkSpec, TorusSize};
use units::Instant;

/// The state of one network.
#[derive(Clone, Debug)]
pub struct Torus {
    grid: Grid,
    pace: Pace,
    hop_ns: u64,
    links: Links,
}

impl Torus {
    /// A quiet torus. Panics unless it has 1 to [`NODES_MAX`](super::NODES_MAX) places.
    pub fn new(size: TorusSize, link: LinkSpec) -> Self {
        let grid = Grid::new(size);
        let links = Links::new(grid.links());
        Self { grid, pace: Pace::of(link), hop_ns: link.hop.as_ns(), links }
    }

    /// Sends `bytes` now: when the last of them arrives. At once when a node sends to itself.
    ///
    /// With the links of the papers an undisturbed message takes 20 ns a hop and 5 ns a byte: 8 KB
    /// over 3 hops 41.02 us.
    pub fn deliver(&mut self, now: Instant, from: u32, to: u32, bytes: u64) -> Instant {
        let route = self.grid.route(from, to);
        if from == to {
            return now;
        }
        let (busy_ns, hop_ns) = (self.pace.ns(bytes), self.hop_ns);

        // The head leaves each link's start when it has come there and the link is free; the link
        // is free again when as many bytes have followed.
        let mut head_ns = now.as_ns();
        route.for_each_link(|link, hops| {
            head_ns = self.links.enter(link as usize, head_ns, busy_ns) + hops * hop_ns;
        });

        // The tail follows the head without a gap.
        Instant::from_ns(head_ns + busy_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn torus(width: u32, height: u32) -> Torus {
        Torus::new(TorusSize { width, height }, LinkSpec::TOCS_1997)
    }

    /// Hops from node 0 by breadth-first search, the long way to say it.
    fn hops_by_search(width: u32, height: u32) -> Vec<u32> {
        let mut hops = vec![u32::MAX; (width * height) as usize];
        let mut queue = VecDeque::from([(0, 0)]);
        hops[0] = 0;
        while let Some((x, y)) = queue.pop_front() {
            let next = hops[(y * width + x) as usize] + 1;
            let around = [
                ((x + 1) % width, y),
                ((x + width - 1) % width, y),
                (x, (y + 1) % height),
                (x, (y + height - 1) % height),
            ];
            for (x, y) in around {
                let known = &mut hops[(y * width + x) as usize];
                if *known == u32::MAX {
                    *known = next;
                    queue.push_back((x, y));
                }
            }
        }
        hops
    }

    /// Proves that routes are shortest, from every node to every node, and that a message alone
    /// costs 5 ns a byte and 20 ns a hop on each.
    #[test]
    fn alone_a_message_costs_its_bytes_and_the_shortest_way() {
        for (width, height) in [(1, 1), (2, 1), (2, 2), (3, 2), (5, 4), (6, 6), (7, 3)] {
            let hops = hops_by_search(width, height);
            for from in 0..width * height {
                for to in 0..width * height {
                    let mut torus = self::torus(width, height);
                    let x = (to % width + width - from % width) % width;
                    let y = (to / width + height - from / width) % height;
                    let expected = hops[(y * width + x) as usize];
                    assert_eq!(torus.grid.route(from, to).hops(), expected, "{from} to {to}");
                    let arrival = torus.deliver(Instant::from_ns(7), from, to, 8192);
                    let ns = if from == to { 0 } else { 40_960 + 20 * u64::from(expected) };
                    assert_eq!(arrival, Instant::from_ns(7 + ns), "{from} to {to}");
                }
            }
        }
    }

    /// Proves that two worms over one link go one after the other, and that two worms with no
    /// common link do not disturb each other.
    #[test]
    fn a_link_carries_one_worm_at_a_time() {
        let mut torus = self::torus(6, 6);
        let now = Instant::START;
        assert_eq!(torus.deliver(now, 0, 2, 8192), Instant::from_ns(40_960 + 40));
        // From 1 to 2 over the link that the first worm holds until its tail has passed.
        assert_eq!(torus.deliver(now, 1, 2, 8192), Instant::from_ns(2 * 40_960 + 40));
        // The other direction of the same wire is another link.
        assert_eq!(torus.deliver(now, 2, 1, 8192), Instant::from_ns(40_960 + 20));
        assert_eq!(torus.deliver(now, 20, 21, 8192), Instant::from_ns(40_960 + 20));
    }

    /// Proves that a worm that waits keeps the link before which it waits, and none behind it.
    #[test]
    fn a_waiting_worm_lets_others_pass() {
        let mut torus = self::torus(6, 6);
        let now = Instant::START;
        torus.deliver(now, 2, 3, 100_000);
        let waiting = torus.deliver(now, 0, 3, 1_000);
        assert_eq!(waiting, Instant::from_ns(500_000 + 20 + 5_000));
        let behind = torus.deliver(now, 0, 1, 10);
        assert_eq!(behind, Instant::from_ns(5_000 + 20 + 50), "only node 0's way in was taken");
        let after = torus.deliver(now, 2, 3, 10);
        assert_eq!(after, Instant::from_ns(505_000 + 20 + 50));
    }
}
