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

/// Lanes of a link; those into and out of a node use only the first. Lanes are numbered in the
/// order of their links, so the eight between routers come first among those of a node.
pub(super) const LANES_PER_LINK: u32 = 2;
pub(super) const LANES_PER_NODE: u32 = LINKS_PER_NODE * LANES_PER_LINK;

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

/// The routers of a torus. Distances are counted in lanes, so that the way of a message is nothing
/// but additions: a step along x is [`LANES_PER_NODE`], one along y as many as a row has.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    lanes_per_row: u32,
    lanes: u32,
    /// Of each node the first lane of its column and the first one of its row, to spare the hot
    /// path a division. Both together are its own first lane.
    places: Box<[(u32, u32)]>,
    /// The ways of a small torus.
    ways: Option<Ways>,
}

/// All ways of a torus, worked out once: where messages are small, to follow a way would take
/// longer than to send a message over it.
#[derive(Clone, Debug)]
struct Ways {
    nodes: usize,
    /// Where the lanes of each way end, by the node from which it goes and then by the one to which
    /// it goes; they begin where those of the way before end.
    ends: Box<[u32]>,
    lanes: Box<[u16]>,
}

/// The most nodes of a torus whose ways are kept. Of 8 by 8 they take 64 KiB.
const KEPT_NODES_MAX: u64 = 64;

impl Grid {
    /// Panics unless there are 1 to [`NODES_MAX`] places.
    pub(super) fn new(size: TorusSize) -> Self {
        let TorusSize { width, height } = size;
        assert!(
            (1..=u64::from(NODES_MAX)).contains(&size.places()),
            "a torus must have 1 to {NODES_MAX} nodes, not {width} by {height}"
        );
        let lanes_per_row = width * LANES_PER_NODE;
        let place = |x, y| (x * LANES_PER_NODE, y * lanes_per_row);
        let places = (0..height).flat_map(|y| (0..width).map(move |x| place(x, y))).collect();
        let mut grid = Self { lanes_per_row, lanes: height * lanes_per_row, places, ways: None };
        if size.places() <= KEPT_NODES_MAX {
            grid.ways = Some(Ways::of(&grid));
        }
        grid
    }

    /// Places for lanes: [`LANES_PER_NODE`] for each node.
    pub(super) fn lanes(&self) -> u32 {
        self.lanes
    }

    /// The way between two different nodes.
    #[inline(always)]
    pub(super) fn route(&self, from: u32, to: u32) -> Route {
        let (start, end) = (self.place(from), self.place(to));
        Route {
            along_x: Leg::new(start.0, end.0, self.lanes_per_row, LANES_PER_NODE),
            along_y: Leg::new(start.1, end.1, self.lanes, self.lanes_per_row),
        }
    }

    /// The same, lane by lane, where it is kept.
    #[inline(always)]
    pub(super) fn way(&self, from: u32, to: u32) -> Option<&[u16]> {
        self.ways.as_ref().map(|ways| ways.between(from as usize, to as usize))
    }

    #[inline(always)]
    fn place(&self, node: u32) -> (u32, u32) {
        let place = self.places.get(node as usize);
        *place.expect("a message must go from and to a node of the torus")
    }
}

impl Ways {
    fn of(grid: &Grid) -> Self {
        let nodes = grid.places.len();
        let (mut ends, mut lanes) = (Vec::with_capacity(nodes * nodes), Vec::new());
        for from in 0..nodes as u32 {
            for to in 0..nodes as u32 {
                if from != to {
                    grid.route(from, to).for_each_lane(|lane, _| lanes.push(lane as u16));
                }
                ends.push(lanes.len() as u32);
            }
        }
        Self { nodes, ends: ends.into(), lanes: lanes.into() }
    }

    #[inline(always)]
    fn between(&self, from: usize, to: usize) -> &[u16] {
        assert!(to < self.nodes, "a message must go to a node of the torus");
        let way = from * self.nodes + to;
        let start = if way == 0 { 0 } else { self.ends[way - 1] };
        &self.lanes[start as usize..self.ends[way] as usize]
    }
}

/// Whether a head goes a hop from the start of a lane to that of the next.
#[inline(always)]
pub(super) fn has_hop(lane: u32) -> bool {
    lane % LANES_PER_NODE < INJECTION * LANES_PER_LINK
}

/// The way along one ring, in lanes from its position 0.
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

    /// Calls `visit` with the lane of each hop as long as it returns true; whether it always did.
    /// The lane at position 0 is `first`, one of the first of a link.
    ///
    /// The link that closes the ring is the one after which the position starts anew; backward,
    /// where a step is the rest of the way round, the only one after which it does not.
    #[inline(always)]
    fn all_lanes(self, first: u32, mut visit: impl FnMut(u32) -> bool) -> bool {
        let Self { from: mut at, to, ring, step, forward } = self;
        let mut lane = 0;
        while at != to {
            let next = at + step;
            let starts_anew = next >= ring;
            lane |= u32::from(starts_anew == forward);
            if !visit((first + at) | lane) {
                return false;
            }
            at = if starts_anew { next - ring } else { next };
        }
        true
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
        self.for_each_lane(|_, has_hop| hops += u32::from(has_hop));
        hops
    }

    /// Calls `visit(lane, has_hop)` for each lane in order; `has_hop` says whether the head has to
    /// go a hop from the start of this one until it stands at the start of the next.
    pub(super) fn for_each_lane(self, mut visit: impl FnMut(u32, bool)) {
        self.all_lanes(|lane, has_hop| {
            visit(lane, has_hop);
            true
        });
    }

    /// The same as long as `visit` returns true; whether it always did.
    ///
    /// A worm starts each leg of its way in lane 0 and is in lane 1 from the link on that closes
    /// the ring (Dally and Seitz, IEEE Transactions on Computers C-36(5), 1987): then worms that
    /// keep lanes while they wait for others never wait in a circle.
    #[inline(always)]
    pub(super) fn all_lanes(self, mut visit: impl FnMut(u32, bool) -> bool) -> bool {
        const LANES: u32 = LANES_PER_LINK;
        let Self { along_x, along_y } = self;
        // Along x in the row where it begins, and along y in the column where it ends.
        let way_x = if along_x.forward { RIGHT } else { LEFT };
        let way_y = if along_y.forward { DOWN } else { UP };
        visit(along_y.from + along_x.from + INJECTION * LANES, false)
            && along_x.all_lanes(along_y.from + way_x * LANES, |lane| visit(lane, true))
            && along_y.all_lanes(along_x.to + way_y * LANES, |lane| visit(lane, true))
            && visit(along_y.to + along_x.to + EJECTION * LANES, false)
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

    /// Proves that lanes are those of the links of the way, and that a way is in lane 1 of a leg
    /// from the link on that goes over the edge of the torus, and nowhere else.
    #[test]
    fn a_way_changes_its_lane_where_it_goes_over_the_edge() {
        let (width, height) = (6, 5);
        let grid = Grid::new(TorusSize { width, height });
        for from in 0..width * height {
            for to in (0..width * height).filter(|&to| to != from) {
                let (mut x, mut y) = (from % width, from / width);
                let (mut direction_before, mut lane_expected) = (INJECTION, 0);
                let mut kept = grid.way(from, to).expect("a small torus has it").iter();
                grid.route(from, to).for_each_lane(|number, has_hop| {
                    assert_eq!(kept.next().copied().map(u32::from), Some(number));
                    assert_eq!(has_hop, super::has_hop(number));
                    let (link, lane) = (number / LANES_PER_LINK, number % LANES_PER_LINK);
                    let (node, direction) = (link / LINKS_PER_NODE, link % LINKS_PER_NODE);
                    assert_eq!(node, y * width + x, "{from} to {to}");
                    if direction != direction_before {
                        (direction_before, lane_expected) = (direction, 0);
                    }
                    let (x_before, y_before) = (x, y);
                    match direction {
                        RIGHT => x = (x + 1) % width,
                        LEFT => x = (x + width - 1) % width,
                        DOWN => y = (y + 1) % height,
                        UP => y = (y + height - 1) % height,
                        _ => assert!(!has_hop),
                    }
                    let is_over_edge = x.abs_diff(x_before) > 1 || y.abs_diff(y_before) > 1;
                    lane_expected |= u32::from(is_over_edge);
                    assert_eq!(lane, lane_expected, "{from} to {to} at {node}");
                });
                assert_eq!((x, y), (to % width, to / width), "{from} to {to}");
                assert_eq!(kept.next(), None, "{from} to {to}");
            }
        }
    }
}
