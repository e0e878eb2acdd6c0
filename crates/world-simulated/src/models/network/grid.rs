//! The routers of a torus, their links, and the way of a message over them.
//!
//! Node `n` is at `x = n % width`, `y = n / width`. A way goes along x first and along y then, each
//! the shorter way round, and in the positive direction when both are equal.

use super::{NODES_MAX, TorusSize, UnfitNetwork};

/// The ways out of a node, by their place in its links: right, left, down, up, and to and from the
/// node itself.
pub(super) const RIGHT: u32 = 0;
pub(super) const LEFT: u32 = 1;
pub(super) const DOWN: u32 = 2;
pub(super) const UP: u32 = 3;
pub(super) const INJECTION: u32 = 4;
pub(super) const EJECTION: u32 = 5;
/// Six links a node, padded so that they start on a multiple of a power of two.
pub(super) const LINKS_PER_NODE: u32 = 8;

impl TorusSize {
    /// The smallest torus, nearly square, that holds `nodes` nodes: 36 are 6 by 6, as in the
    /// papers, and so are 33. Panics when there are none.
    pub fn for_nodes(nodes: u32) -> Self {
        let root = nodes.isqrt();
        let width = if root * root < nodes { root + 1 } else { root };
        assert!(width > 0, "a torus must have a node");
        Self { width, height: nodes.div_ceil(width) }
    }

    /// Places for nodes.
    pub fn places(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Whether `nodes` nodes have a place each.
    pub(super) fn check(&self, nodes: u32) -> Result<(), UnfitNetwork> {
        if (u64::from(nodes)..=u64::from(NODES_MAX)).contains(&self.places()) {
            return Ok(());
        }
        let Self { width, height } = *self;
        Err(UnfitNetwork::TorusSize { width, height, nodes })
    }
}

/// The routers of a torus.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    size: TorusSize,
    /// `(x, y)` of each node, to spare the hot path a division.
    places: Box<[(u32, u32)]>,
}

impl Grid {
    /// Panics unless there are 1 to [`NODES_MAX`] places.
    pub(super) fn new(size: TorusSize) -> Self {
        let TorusSize { width, height } = size;
        assert!(
            (1..=u64::from(NODES_MAX)).contains(&size.places()),
            "a torus must have 1 to {NODES_MAX} nodes, not {width} by {height}"
        );
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).collect();
        Self { size, places }
    }

    /// Places for links: [`LINKS_PER_NODE`] for each node.
    pub(super) fn links(&self) -> usize {
        self.places.len() * LINKS_PER_NODE as usize
    }

    /// The way between two different nodes.
    #[inline(always)]
    pub(super) fn route(&self, from: u32, to: u32) -> Route {
        let (start, end) = (self.place(from), self.place(to));
        let TorusSize { width, height } = self.size;
        Route {
            along_x: Leg::new(start.0, end.0, width),
            along_y: Leg::new(start.1, end.1, height),
            row: start.1 * width,
            column: end.0,
            width,
            from,
            to,
        }
    }

    /// Whether `link` is the one that closes its ring: from the last router to the first, or from
    /// the first to the last.
    pub(super) fn closes_ring(&self, link: u32) -> bool {
        let (x, y) = self.place(link / LINKS_PER_NODE);
        match link % LINKS_PER_NODE {
            RIGHT => x + 1 == self.size.width,
            LEFT => x == 0,
            DOWN => y + 1 == self.size.height,
            UP => y == 0,
            _ => false,
        }
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
    #[inline]
    fn new(at: u32, to: u32, length: u32) -> Self {
        let forward_hops = if to >= at { to - at } else { to + length - at };
        let backward_hops = length - forward_hops;
        let forward = forward_hops <= backward_hops;
        Self { at, length, hops: if forward { forward_hops } else { backward_hops }, forward }
    }

    /// Calls `visit` with the link of each hop. That of position 0 is `first`, and those of the
    /// positions that follow are `stride` apart.
    #[inline(always)]
    fn for_each_link(self, first: u32, stride: u32, mut visit: impl FnMut(u32)) {
        let last = first + (self.length - 1) * stride;
        let (edge, beyond, step) = match self.forward {
            true => (last, first, stride),
            false => (first, last, stride.wrapping_neg()),
        };
        let mut link = first + self.at * stride;
        for _ in 0..self.hops {
            visit(link);
            link = if link == edge { beyond } else { link.wrapping_add(step) };
        }
    }
}

/// The way between two different nodes.
#[derive(Clone, Copy)]
pub(super) struct Route {
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
    /// Links between routers.
    #[cfg(test)]
    pub(super) fn hops(&self) -> u32 {
        self.along_x.hops + self.along_y.hops
    }

    /// Calls `visit(link, hops)` for each link in order; `hops` (0 or 1) is what the head has to
    /// go, after the link before, until it stands at the start of this one.
    #[inline(always)]
    pub(super) fn for_each_link(self, mut visit: impl FnMut(u32, u64)) {
        visit(self.from * LINKS_PER_NODE + INJECTION, 0);
        let mut hops = 0;
        let way = if self.along_x.forward { RIGHT } else { LEFT };
        self.along_x.for_each_link(self.row * LINKS_PER_NODE + way, LINKS_PER_NODE, |link| {
            visit(link, hops);
            hops = 1;
        });
        let way = if self.along_y.forward { DOWN } else { UP };
        let (first, stride) = (self.column * LINKS_PER_NODE + way, self.width * LINKS_PER_NODE);
        self.along_y.for_each_link(first, stride, |link| {
            visit(link, hops);
            hops = 1;
        });
        visit(self.to * LINKS_PER_NODE + EJECTION, hops);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the sizes asked for become the smallest nearly square torus.
    #[test]
    fn sizes() {
        let size = |nodes| {
            let TorusSize { width, height } = TorusSize::for_nodes(nodes);
            (width, height)
        };
        let sizes = [1, 2, 3, 4, 5, 33, 36, 37].map(size);
        assert_eq!(sizes, [(1, 1), (2, 1), (2, 2), (2, 2), (3, 2), (6, 6), (6, 6), (7, 6)]);
        assert!((1..2_000).all(|nodes| TorusSize::for_nodes(nodes).places() >= u64::from(nodes)));
    }

    /// Proves that every way round a ring, and only that, passes the link that closes it.
    #[test]
    fn a_way_closes_its_ring_when_it_goes_over_the_edge() {
        let grid = Grid::new(TorusSize { width: 6, height: 5 });
        for (from, to, closing) in
            [(0, 3, 0), (4, 1, 1), (0, 5, 1), (5, 0, 1), (6, 24, 1), (5, 24, 2)]
        {
            let mut count = 0;
            grid.route(from, to)
                .for_each_link(|link, _| count += u32::from(grid.closes_ring(link)));
            assert_eq!(count, closing, "{from} to {to}");
        }
    }
}
