//! A two-dimensional torus: the network between the nodes.
//!
//! A message is a worm: its head opens the way link by link, its tail follows without a gap. A
//! route goes along x first and along y then, each the shorter way round, and in the positive
//! direction when both are equal. A head that meets a taken link waits there, and the rest of its
//! worm gathers behind it in the router, as in the deep hardware queue that the simulations of
//! the papers had (TOCS 1997, section 4.1): it keeps no link behind it.
//!
//! This is the modelled form of wormhole routing. Letting a worm keep its links while it waits
//! would serialise too much here, where links are given in the order of the calls: worms that
//! wait for one another would hold the way of others that could long have passed (`ra` by caching
//! then takes a third longer than published, and a tenth less without).
//!
//! Invariant: a directed link, the way from a node into the network and the way out included,
//! carries one worm at a time, in the order in which [`Torus::deliver`] was called.

use units::{Duration, Instant};

/// The state of one network.
///
/// Node `n` is at `x = n % width`, `y = n / width`.
#[derive(Clone, Debug)]
pub struct Torus {
    width: u32,
    height: u32,
    /// `(x, y)` of each node, to spare the hot path a division.
    places: Box<[(u32, u32)]>,
    /// When each link is free, in ns, at `node * LINKS_PER_NODE + way`.
    free_at_ns: Box<[u64]>,
}

/// The ways out of a node, by their place in `free_at_ns`: right, left, down, up, and to and from
/// the node itself.
const RIGHT: u32 = 0;
const LEFT: u32 = 1;
const DOWN: u32 = 2;
const UP: u32 = 3;
const INJECTION: u32 = 4;
const EJECTION: u32 = 5;
/// Six links a node, padded so that they start on a multiple of a power of two.
const LINKS_PER_NODE: u32 = 8;

impl Torus {
    /// Time a head needs from one router to the next (Kotz, ACM TOCS 15(1), 1997, Table I).
    pub const HOP: Duration = Duration::from_ns(20);
    /// Time a byte needs to pass a link: 200 * 10^6 bytes/s in each direction (the same table).
    pub const NS_PER_BYTE: u64 = 5;
    /// Most nodes of a torus.
    pub const NODES_MAX: u32 = 1 << 20;

    /// The smallest torus, nearly square, that holds `nodes` nodes: 36 are 6 by 6, as in the
    /// papers, and so are 33. Panics unless there are 1 to [`NODES_MAX`](Self::NODES_MAX).
    pub fn for_nodes(nodes: u32) -> Self {
        let root = nodes.isqrt();
        let width = if root * root < nodes { root + 1 } else { root };
        assert!(width > 0, "a torus must have a node");
        Self::new(width, nodes.div_ceil(width))
    }

    /// A quiet torus of `width` by `height` nodes, 1 to [`NODES_MAX`](Self::NODES_MAX) together.
    pub fn new(width: u32, height: u32) -> Self {
        let nodes = u64::from(width) * u64::from(height);
        assert!(
            nodes > 0 && nodes <= u64::from(Self::NODES_MAX),
            "a torus must have 1 to {} nodes, not {width} by {height}",
            Self::NODES_MAX
        );
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).collect();
        let free_at_ns = vec![0; nodes as usize * LINKS_PER_NODE as usize].into();
        Self { width, height, places, free_at_ns }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u32 {
        self.width * self.height
    }

    /// Links between routers on the way from one node to another.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        let ((x, y), (to_x, to_y)) = (self.place(from), self.place(to));
        Leg::new(x, to_x, self.width).hops + Leg::new(y, to_y, self.height).hops
    }

    /// Sends `bytes` now: when the last of them arrives. At once when a node sends to itself.
    ///
    /// An undisturbed message takes 20 ns a hop and 5 ns a byte: 8 KB over 3 hops 41.02 us.
    pub fn deliver(&mut self, now: Instant, from: u32, to: u32, bytes: u64) -> Instant {
        let (start, end) = (self.place(from), self.place(to));
        if from == to {
            return now;
        }
        let route = Route {
            along_x: Leg::new(start.0, end.0, self.width),
            along_y: Leg::new(start.1, end.1, self.height),
            row: start.1 * self.width,
            column: end.0,
            width: self.width,
            from,
            to,
        };
        let hop_ns = Self::HOP.as_ns();

        // The head leaves each link's start when it has come there and the link is free; the link
        // is free again when as many bytes have followed.
        let mut head_ns = now.as_ns();
        route.for_each_link(|link, hops| {
            head_ns = (head_ns + hops * hop_ns).max(self.free_at_ns[link as usize]);
            self.free_at_ns[link as usize] = head_ns + Self::NS_PER_BYTE * bytes;
        });

        // The tail follows the head without a gap.
        Instant::from_ns(head_ns) + Duration::from_ns(Self::NS_PER_BYTE) * bytes
    }

    fn place(&self, node: u32) -> (u32, u32) {
        let place = self.places.get(node as usize);
        *place.expect("a message must go from and to a node of the torus")
    }
}

/// The way along one ring.
#[derive(Clone, Copy)]
struct Leg {
    at: u32,
    length: u32,
    hops: u32,
    forward: bool,
}

impl Leg {
    fn new(at: u32, to: u32, length: u32) -> Self {
        let forward_hops = if to >= at { to - at } else { to + length - at };
        let backward_hops = length - forward_hops;
        let forward = forward_hops <= backward_hops;
        Self { at, length, hops: if forward { forward_hops } else { backward_hops }, forward }
    }

    /// Calls `visit` with the position at which each link starts.
    fn for_each_position(self, mut visit: impl FnMut(u32)) {
        let mut at = self.at;
        for _ in 0..self.hops {
            visit(at);
            at = if self.forward {
                if at + 1 == self.length { 0 } else { at + 1 }
            } else {
                (if at == 0 { self.length } else { at }) - 1
            };
        }
    }
}

#[derive(Clone, Copy)]
struct Route {
    along_x: Leg,
    along_y: Leg,
    /// First node of the row in which the message moves along x.
    row: u32,
    /// The x at which it moves along y.
    column: u32,
    width: u32,
    from: u32,
    to: u32,
}

impl Route {
    /// Calls `visit(link, hops)` for each link in order; `hops` (0 or 1) is what the head has to
    /// go, after the link before, until it stands at the start of this one.
    #[inline]
    fn for_each_link(self, mut visit: impl FnMut(u32, u64)) {
        visit(self.from * LINKS_PER_NODE + INJECTION, 0);
        let mut hops = 0;
        let way = if self.along_x.forward { RIGHT } else { LEFT };
        self.along_x.for_each_position(|x| {
            visit((self.row + x) * LINKS_PER_NODE + way, hops);
            hops = 1;
        });
        let way = if self.along_y.forward { DOWN } else { UP };
        self.along_y.for_each_position(|y| {
            visit((y * self.width + self.column) * LINKS_PER_NODE + way, hops);
            hops = 1;
        });
        visit(self.to * LINKS_PER_NODE + EJECTION, hops);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

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
                    let mut torus = Torus::new(width, height);
                    let x = (to % width + width - from % width) % width;
                    let y = (to / width + height - from / width) % height;
                    let expected = hops[(y * width + x) as usize];
                    assert_eq!(torus.hops(from, to), expected, "{from} to {to}");
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
        let mut torus = Torus::new(6, 6);
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
        let mut torus = Torus::new(6, 6);
        let now = Instant::START;
        torus.deliver(now, 2, 3, 100_000);
        let waiting = torus.deliver(now, 0, 3, 1_000);
        assert_eq!(waiting, Instant::from_ns(500_000 + 20 + 5_000));
        let behind = torus.deliver(now, 0, 1, 10);
        assert_eq!(behind, Instant::from_ns(5_000 + 20 + 50), "only node 0's way in was taken");
        let after = torus.deliver(now, 2, 3, 10);
        assert_eq!(after, Instant::from_ns(505_000 + 20 + 50));
    }

    /// Proves that the sizes asked for become the smallest nearly square torus.
    #[test]
    fn sizes() {
        let size = |nodes| {
            let torus = Torus::for_nodes(nodes);
            (torus.width, torus.height)
        };
        let sizes = [1, 2, 3, 4, 5, 33, 36, 37].map(size);
        assert_eq!(sizes, [(1, 1), (2, 1), (2, 2), (2, 2), (3, 2), (6, 6), (6, 6), (7, 6)]);
        assert!((1..2_000).all(|nodes| Torus::for_nodes(nodes).nodes() >= nodes));
    }
}
