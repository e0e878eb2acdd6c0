//! Sets of grid coordinates, one for each dimension, and the clients at their product.
//!
//! Invariant: listing clients takes time for the clients listed, not for those of the whole grid.

use units::ClientId;

/// Largest number of spans: a wrapped interval is two, and a range has an end and a start.
const SPANS_MAX: usize = 4;

/// Coordinates along one dimension, as a union of a few closed spans.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct CoordinateSet {
    spans: [(u32, u32); SPANS_MAX],
    spans_count: usize,
}

impl CoordinateSet {
    /// Adds the coordinates `first ..= last`.
    pub(crate) fn add(&mut self, first: u32, last: u32) {
        assert!(self.spans_count < SPANS_MAX, "a coordinate set must not be given a fifth span");
        self.spans[self.spans_count] = (first, last);
        self.spans_count += 1;
    }

    /// Smallest coordinate in the set that is `from` or more.
    fn at_or_after(&self, from: u32) -> Option<u32> {
        let spans = &self.spans[..self.spans_count];
        spans.iter().filter(|span| span.1 >= from).map(|span| span.0.max(from)).min()
    }
}

/// Clients at the product of coordinate sets, ascending.
#[derive(Clone, Debug)]
pub(crate) struct ClientsIn {
    /// Dimensions, the slowest first.
    wheels: Vec<Wheel>,
    finished: bool,
}

/// Position of the walk in one dimension.
#[derive(Clone, Copy, Debug)]
struct Wheel {
    set: CoordinateSet,
    clients: u32,
    coordinate: u32,
}

impl ClientsIn {
    /// No client.
    pub(crate) fn none() -> Self {
        Self { wheels: Vec::new(), finished: true }
    }

    /// Empty product with room for `dimensions` dimensions, which [`ClientsIn::push`] adds.
    pub(crate) fn with_dimensions(dimensions: usize) -> Self {
        Self { wheels: Vec::with_capacity(dimensions), finished: false }
    }

    /// Adds a faster dimension with `clients` clients along it.
    pub(crate) fn push(&mut self, clients: u32, set: CoordinateSet) {
        match set.at_or_after(0) {
            Some(coordinate) => self.wheels.push(Wheel { set, clients, coordinate }),
            None => self.finished = true,
        }
    }

    /// Goes to the next coordinates, the last dimension fastest.
    fn turn(&mut self) {
        for wheel in self.wheels.iter_mut().rev() {
            if let Some(coordinate) = wheel.set.at_or_after(wheel.coordinate + 1) {
                wheel.coordinate = coordinate;
                return;
            }
            wheel.coordinate = wheel.set.at_or_after(0).unwrap_or(0);
        }
        self.finished = true;
    }
}

impl Iterator for ClientsIn {
    type Item = ClientId;

    fn next(&mut self) -> Option<ClientId> {
        if self.finished {
            return None;
        }
        let client =
            self.wheels.iter().fold(0, |client, wheel| client * wheel.clients + wheel.coordinate);
        self.turn();
        Some(ClientId(client))
    }
}
