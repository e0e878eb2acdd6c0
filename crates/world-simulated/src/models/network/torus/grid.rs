//! The routers of a torus, their links, and the routes of messages over them.
//!
//! Node `n` is at `x = n % width`, `y = n / width`. Routing is dimension-ordered: a route goes
//! along x first, then along y, each in the shorter direction, and in the positive one when both
//! are equal.

use crate::models::network::{NODES_MAX, UnfitNetwork};

/// Virtual channels of a link. Routes use only the first of the links into and out of a node.
pub(super) const CHANNELS_PER_LINK: u32 = 2;

/// Usual depth of the buffer that a router has for each virtual channel that ends there, in flits.
///
/// Two flits are the fewest that let a packet move at the full rate, since a place that becomes
/// free in one tick can be taken in the next. The papers state no depth; eight is our choice, and
/// docs/validation.md states the effect of other depths.
pub const BUFFER_FLITS: u32 = 8;

/// Number of routers of a torus along each dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TorusSize {
    /// Routers along x, the dimension of consecutive node numbers.
    pub width: u32,
    /// Routers along y.
    pub height: u32,
}

impl TorusSize {
    /// Returns the smallest, nearly square torus that holds `nodes` nodes: 36 are 6 by 6, as in the
    /// papers, and so are 33.
    ///
    /// # Panics
    /// Panics when there are no nodes.
    pub fn for_nodes(nodes: u32) -> Self {
        let root = nodes.isqrt();
        let width = if root * root < nodes { root + 1 } else { root };
        assert!(width > 0, "a torus must have a node");
        Self { width, height: nodes.div_ceil(width) }
    }

    /// Number of places for nodes.
    pub fn places(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Checks that `nodes` nodes have a place each.
    pub(super) fn check(&self, nodes: u32) -> Result<(), UnfitNetwork> {
        if (u64::from(nodes)..=u64::from(NODES_MAX)).contains(&self.places()) {
            return Ok(());
        }
        let Self { width, height } = *self;
        Err(UnfitNetwork::Shape(format!(
            "a torus of {width} by {height} cannot hold {nodes} nodes; it needs a place for \
             each node, and has at most {NODES_MAX}"
        )))
    }
}

/// The routers of a torus, and the numbers of its virtual channels.
///
/// The links of a ring are adjacent, in the direction of travel: first the links to the right, row
/// by row, then those to the left, down, up, then those out of nodes and into them. So a route is
/// little more than two runs of neighbours, in few cache lines.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    width: u32,
    height: u32,
    /// Coordinates of each node, which spare the hot path a division.
    places: Box<[(u32, u32)]>,
    /// All routes of a small torus.
    stored: Option<RouteTable>,
}

/// All routes of a torus, precomputed: for small messages, the computation of a route would take
/// longer than the sending.
#[derive(Clone, Debug)]
struct RouteTable {
    nodes: usize,
    /// Ends of the routes in `channels`, ordered by source and then by destination. A route begins
    /// at the end of the previous one.
    ends: Box<[u32]>,
    channels: Box<[u16]>,
}

/// Largest number of nodes of a torus whose routes are stored. Those of 8 by 8 take 64 KiB.
const KEPT_NODES_MAX: u64 = 64;

impl Grid {
    /// Creates the routers and routes of a torus.
    ///
    /// # Panics
    /// Unless there are 1 to [`NODES_MAX`] places.
    pub(super) fn new(size: TorusSize) -> Self {
        let TorusSize { width, height } = size;
        assert!(
            (1..=u64::from(NODES_MAX)).contains(&size.places()),
            "a torus must have 1 to {NODES_MAX} nodes, not {width} by {height}"
        );
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).collect();
        let mut grid = Self { width, height, places, stored: None };
        if size.places() <= KEPT_NODES_MAX {
            grid.stored = Some(RouteTable::of(&grid));
        }
        grid
    }

    /// Number of nodes, and of links of each kind: right, left, down, up, out of a node, into a
    /// node.
    fn nodes(&self) -> u32 {
        self.width * self.height
    }

    /// Number of links, with [`CHANNELS_PER_LINK`] channels each.
    pub(super) fn links(&self) -> u32 {
        6 * self.nodes()
    }

    /// Number of links from router to router, which have the first numbers. A head takes a hop time
    /// from the start of such a link to that of the next.
    #[inline(always)]
    pub(super) fn links_with_hop(&self) -> u32 {
        4 * self.nodes()
    }

    /// Returns the route between two different nodes.
    #[inline(always)]
    pub(super) fn route(&self, from: u32, to: u32) -> Route {
        let (nodes, width, height) = (self.nodes(), self.width, self.height);
        let ((from_x, from_y), (to_x, to_y)) = (self.place(from), self.place(to));
        // Along x in the row of the source, and along y in the column of the destination.
        let (row, column) = (from_y * width, to_x * height);
        Route {
            out: 4 * nodes + from,
            along_x: Leg::new(from_x, to_x, width, (row, nodes + row)),
            along_y: Leg::new(from_y, to_y, height, (2 * nodes + column, 3 * nodes + column)),
            into: 5 * nodes + to,
        }
    }

    /// Returns the channels of the route between two different nodes, if routes are stored.
    #[inline(always)]
    pub(super) fn stored_route(&self, from: u32, to: u32) -> Option<&[u16]> {
        self.stored.as_ref().map(|table| table.between(from as usize, to as usize))
    }

    #[inline(always)]
    fn place(&self, node: u32) -> (u32, u32) {
        let place = self.places.get(node as usize);
        *place.expect("a message must go from and to a node of the torus")
    }
}

impl RouteTable {
    fn of(grid: &Grid) -> Self {
        let nodes = grid.places.len();
        let (mut ends, mut channels) = (Vec::with_capacity(nodes * nodes), Vec::new());
        for from in 0..nodes as u32 {
            for to in 0..nodes as u32 {
                if from != to {
                    channels.extend(grid.route(from, to).channels().map(|channel| channel as u16));
                }
                ends.push(channels.len() as u32);
            }
        }
        Self { nodes, ends: ends.into(), channels: channels.into() }
    }

    #[inline(always)]
    fn between(&self, from: usize, to: usize) -> &[u16] {
        assert!(to < self.nodes, "a message must go to a node of the torus");
        let pair = from * self.nodes + to;
        let start = if pair == 0 { 0 } else { self.ends[pair - 1] };
        &self.channels[start as usize..self.ends[pair] as usize]
    }
}

/// The part of a route along one ring.
#[derive(Clone, Copy, Debug, Default)]
struct Leg {
    /// First link of the ring, in the direction of travel.
    ring: u32,
    /// Position on the ring at which the leg begins, in links, and number of its links.
    at: u32,
    hops: u32,
    /// Number of links of the ring.
    around: u32,
}

impl Leg {
    /// Creates the leg between two places of a ring. `forward` and `backward` are the first links
    /// of the two directions.
    #[inline(always)]
    fn new(from: u32, to: u32, around: u32, (forward, backward): (u32, u32)) -> Self {
        let ahead = if to >= from { to - from } else { to + around - from };
        if ahead <= around - ahead {
            Self { ring: forward, at: from, hops: ahead, around }
        } else {
            Self { ring: backward, at: around - 1 - from, hops: around - ahead, around }
        }
    }

    /// Returns the adjacent links from hop number `hop` on that the leg passes in the same channel.
    ///
    /// A packet starts each leg in virtual channel 0 and uses channel 1 from the link on that
    /// closes the ring, its last (Dally and Seitz, IEEE Transactions on Computers C-36(5), 1987).
    /// So packets that hold channels while they wait cannot deadlock.
    #[inline(always)]
    fn stretch(self, hop: u32) -> Stretch {
        let Self { ring, at, hops, around } = self;
        let (at, left, last) = (at + hop, hops - hop, around - 1);
        if at < last {
            return Stretch {
                link: ring + at,
                links: left.min(last - at),
                channel: 0,
                has_hop: true,
            };
        }
        if at == last {
            return Stretch { link: ring + at, links: 1, channel: 1, has_hop: true };
        }
        Stretch { link: ring + at - around, links: left, channel: 1, has_hop: true }
    }
}

/// Adjacent links that a route passes, in channels of the same number.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    /// First link of the stretch.
    pub(super) link: u32,
    pub(super) links: u32,
    pub(super) channel: u32,
    /// True for links from router to router.
    pub(super) has_hop: bool,
}

impl Stretch {
    /// Returns the channel of its first link. Channel `c` of a link has the number `link *
    /// CHANNELS_PER_LINK + c`.
    #[inline(always)]
    fn first_channel(&self) -> u32 {
        self.link * CHANNELS_PER_LINK + self.channel
    }

    /// Returns its first links, at most `links` of them.
    #[inline(always)]
    pub(super) fn first(self, links: u32) -> Self {
        Self { links: self.links.min(links), ..self }
    }
}

/// The route between two different nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Route {
    out: u32,
    along_x: Leg,
    along_y: Leg,
    into: u32,
}

impl Route {
    /// Number of links between routers.
    #[cfg(test)]
    pub(super) fn hops(&self) -> u32 {
        self.along_x.hops + self.along_y.hops
    }

    /// Place of its last channel, the one into a node; the first has place 0.
    #[inline(always)]
    pub(super) fn last(&self) -> u32 {
        self.along_x.hops + self.along_y.hops + 1
    }

    /// Returns the adjacent links from `place` on that the route passes in the same channel.
    #[inline(always)]
    pub(super) fn stretch(&self, place: u32) -> Stretch {
        let Self { out, along_x, along_y, into } = self;
        let (hops_x, hops_y) = (along_x.hops, along_y.hops);
        let end = |link| Stretch { link, links: 1, channel: 0, has_hop: false };
        match place {
            0 => end(*out),
            _ if place <= hops_x => along_x.stretch(place - 1),
            _ if place <= hops_x + hops_y => along_y.stretch(place - 1 - hops_x),
            _ => end(*into),
        }
    }

    /// Returns the channel at a place.
    #[inline]
    pub(super) fn channel(&self, place: u32) -> u32 {
        self.stretch(place).first_channel()
    }

    /// Returns all channels in order.
    pub(super) fn channels(self) -> impl Iterator<Item = u32> {
        (0..=self.last()).map(move |place| self.channel(place))
    }

    /// Returns the channels from `place` on in order, and then the last one repeatedly.
    #[inline(always)]
    pub(super) fn channels_from(&self, place: u32) -> ChannelsFrom<'_> {
        ChannelsFrom { route: self, place, channel: 0, until: place }
    }
}

/// Iterator over the channels of a route from one of them on.
pub(super) struct ChannelsFrom<'a> {
    route: &'a Route,
    place: u32,
    channel: u32,
    /// Place at which the present stretch ends.
    until: u32,
}

impl ChannelsFrom<'_> {
    #[inline(always)]
    pub(super) fn next(&mut self) -> u32 {
        if self.place == self.until {
            let stretch = self.route.stretch(self.place);
            (self.channel, self.until) = (stretch.first_channel(), self.place + stretch.links);
        } else {
            self.channel += CHANNELS_PER_LINK;
        }
        self.place += 1;
        self.channel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that any number of nodes gets the smallest, nearly square torus.
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

    /// Proves that channels belong to the links of the route, each with a number of its own, and
    /// that a route uses channel 1 of a leg from the link on that crosses the edge of the torus,
    /// and nowhere else.
    #[test]
    fn a_route_changes_its_channel_where_it_crosses_the_edge() {
        let (width, height) = (6, 5);
        let grid = Grid::new(TorusSize { width, height });
        // Ends of each link. Links into and out of a node lead from the node to itself.
        let mut ends_of = vec![None; grid.links() as usize];
        for from in 0..width * height {
            for to in (0..width * height).filter(|&to| to != from) {
                let channels: Vec<u32> = grid.route(from, to).channels().collect();
                let route = grid.route(from, to);
                let mut in_order = route.channels_from(0);
                assert!(
                    channels.iter().all(|&channel| in_order.next() == channel),
                    "{from} to {to}"
                );
                let kept = grid.stored_route(from, to).expect("a small torus has it");
                assert!(kept.iter().copied().map(u32::from).eq(channels.iter().copied()));

                let ends = nodes_between(width, height, from, to);
                assert_eq!(channels.len(), ends.len(), "{from} to {to}");
                let (mut along_y_before, mut channel_expected) = (false, 0);
                for (&number, &(start, end)) in channels.iter().zip(&ends) {
                    let (link, channel) = (number / CHANNELS_PER_LINK, number % CHANNELS_PER_LINK);
                    assert_eq!(link < grid.links_with_hop(), start != end, "{from} to {to}");
                    let is_out = start == end && number == channels[0];
                    let known = *ends_of[link as usize].get_or_insert((start, end, is_out));
                    assert_eq!(known, (start, end, is_out), "a link's number is its own");
                    let along_y = start % width == end % width && start != end;
                    if along_y != along_y_before || start == end {
                        (along_y_before, channel_expected) = (along_y, 0);
                    }
                    let (start_x, end_x) = (start % width, end % width);
                    let (start_y, end_y) = (start / width, end / width);
                    let is_over_edge = start_x.abs_diff(end_x) > 1 || start_y.abs_diff(end_y) > 1;
                    channel_expected |= u32::from(is_over_edge);
                    assert_eq!(channel, channel_expected, "{from} to {to} at {start}");
                }
            }
        }
        let mut links: Vec<_> = ends_of.into_iter().flatten().collect();
        links.sort_unstable();
        links.dedup();
        assert_eq!(links.len(), 6 * 30, "each link has one number");
    }

    /// Computes the route of a message node by node, independently of `Grid`: out of the source,
    /// along x, along y, into the destination.
    fn nodes_between(width: u32, height: u32, from: u32, to: u32) -> Vec<(u32, u32)> {
        let mut ends = vec![(from, from)];
        let mut at = from;
        let mut go_to = |node| {
            ends.push((at, node));
            at = node;
        };
        let (mut x, mut y) = (from % width, from / width);
        let right = (to % width + width - x) % width;
        for _ in 0..right.min(width - right) {
            x = (x + if right <= width / 2 { 1 } else { width - 1 }) % width;
            go_to(y * width + x);
        }
        let down = (to / width + height - y) % height;
        for _ in 0..down.min(height - down) {
            y = (y + if down <= height / 2 { 1 } else { height - 1 }) % height;
            go_to(y * width + x);
        }
        ends.push((to, to));
        ends
    }
}
