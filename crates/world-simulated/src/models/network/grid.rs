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

/// The routers of a torus. Distances are counted in links, so that the way of a message is nothing
/// but additions: a step along x is [`LINKS_PER_NODE`], one along y as many as a row has.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    links_per_row: u32,
    links: u32,
    /// Of each node the first link of its column and the first one of its row, to spare the hot
    /// path a division. Both together are its own first link.
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
        let links_per_row = width * LINKS_PER_NODE;
        let place = |x, y| (x * LINKS_PER_NODE, y * links_per_row);
        let places = (0..height).flat_map(|y| (0..width).map(move |x| place(x, y))).collect();
        Self { links_per_row, links: height * links_per_row, places }
    }

    /// Places for links: [`LINKS_PER_NODE`] for each node.
    pub(super) fn links(&self) -> usize {
        self.links as usize
    }

    /// The way between two different nodes.
    #[inline(always)]
    pub(super) fn route(&self, from: u32, to: u32) -> Route {
        let (start, end) = (self.place(from), self.place(to));
        Route {
            along_x: Leg::new(start.0, end.0, self.links_per_row, LINKS_PER_NODE),
            along_y: Leg::new(start.1, end.1, self.links, self.links_per_row),
        }
    }

    /// Whether `link` is the one that closes its ring: from the last router to the first, or from
    /// the first to the last.
    pub(super) fn closes_ring(&self, link: u32) -> bool {
        let (column, row) = self.place(link / LINKS_PER_NODE);
        match link % LINKS_PER_NODE {
            RIGHT => column + LINKS_PER_NODE == self.links_per_row,
            LEFT => column == 0,
            DOWN => row + self.links_per_row == self.links,
            UP => row == 0,
            _ => false,
        }
    }

    fn place(&self, node: u32) -> (u32, u32) {
        let place = self.places.get(node as usize);
        *place.expect("a message must go from and to a node of the torus")
    }
}

/// The way along one ring, in links from its position 0.
#[derive(Clone, Copy)]
struct Leg {
    from: u32,
    to: u32,
    ring: u32,
    /// From one node to the next; backward as the rest of the way round, so that both directions
    /// are one loop, which a processor predicts better than two.
    step: u32,
    forward: bool,
}

impl Leg {
    #[inline(always)]
    fn new(from: u32, to: u32, ring: u32, step: u32) -> Self {
        let ahead = if to >= from { to - from } else { to + ring - from };
        let forward = ahead <= ring - ahead;
        Self { from, to, ring, step: if forward { step } else { ring - step }, forward }
    }

    /// Calls `visit` with the link of each hop; that of position 0 is `first`.
    #[inline(always)]
    fn for_each_link(self, first: u32, mut visit: impl FnMut(u32)) {
        let Self { from: mut at, to, ring, step, .. } = self;
        while at != to {
            visit(first + at);
            at += step;
            at = if at >= ring { at - ring } else { at };
        }
    }
}

/// The way between two different nodes.
#[derive(Clone, Copy)]
pub(super) struct Route {
    along_x: Leg,
    along_y: Leg,
}

impl Route {
    /// Links between routers.
    #[cfg(test)]
    pub(super) fn hops(&self) -> u32 {
        let mut hops = 0;
        self.for_each_link(|_, hops_behind| hops += hops_behind as u32);
        hops
    }

    /// Calls `visit(link, hops)` for each link in order; `hops` (0 or 1) is what the head has to
    /// go from the start of this one until it stands at the start of the next.
    #[inline(always)]
    pub(super) fn for_each_link(self, mut visit: impl FnMut(u32, u64)) {
        let Self { along_x, along_y } = self;
        visit(along_y.from + along_x.from + INJECTION, 0);
        // Along x in the row where it begins, and along y in the column where it ends.
        let way = if along_x.forward { RIGHT } else { LEFT };
        along_x.for_each_link(along_y.from + way, |link| visit(link, 1));
        let way = if along_y.forward { DOWN } else { UP };
        along_y.for_each_link(along_x.to + way, |link| visit(link, 1));
        visit(along_y.to + along_x.to + EJECTION, 0);
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
