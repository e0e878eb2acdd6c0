//! High-Performance Fortran distributions: an array of records dealt to a grid of clients, with one
//! rule for each dimension.
//!
//! Invariants:
//! - Every record has exactly one owner.
//! - The file has the whole array in row-major order.
//! - Each client has its local part in row-major order, packed. So the bytes that it owns in any
//!   range of the file are one contiguous interval of its memory.
//!
//! Every rule is a case of CYCLIC(k): NONE is CYCLIC(n) over one client, BLOCK is
//! CYCLIC(ceil(n/p)) (High Performance Fortran Language Specification 1.0, section 3.2).

use super::coordinates::{ClientsIn, CoordinateSet};
use super::dimension::Dimension;
use super::error::AccessError;
use super::footprint::{Axis, Footprint};
use super::limits::{CLIENTS_MAX, DIMENSIONS_MAX};
use serde::{Deserialize, Serialize};
use units::{ByteRange, ClientId};

/// Array of records in a file, row-major, distributed over a grid of clients, row-major.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of records along each dimension, the slowest first; each at least 1.
    pub shape: Vec<u64>,
    /// Bytes in a record; at least 1.
    pub record_bytes: u64,
    /// Distribution of each dimension.
    pub dimensions: Vec<Dimension>,
    /// Number of clients along each dimension; 1 for [`Dimension::None`].
    pub grid: Vec<u32>,
    /// Number of clients that take part. Clients beyond the grid own nothing.
    pub clients: u32,
}

/// Distribution of one dimension in numbers, as CYCLIC(chunk).
#[derive(Clone, Copy)]
struct Deal {
    /// Number of indices.
    extent: u64,
    /// Consecutive indices that go to one client.
    chunk: u64,
    /// Clients along the dimension.
    clients: u32,
}

impl Distribution {
    /// Refuses a distribution that has no meaning, exceeds `file_bytes`, or exceeds a limit.
    pub(crate) fn validate(&self, file_bytes: u64) -> Result<(), AccessError> {
        let dimensions = self.dimensions.len();
        if dimensions == 0 || dimensions > DIMENSIONS_MAX {
            return Err(AccessError::Dimensions { dimensions });
        }
        if self.shape.len() != dimensions || self.grid.len() != dimensions {
            let (shape, grid) = (self.shape.len(), self.grid.len());
            return Err(AccessError::Ranks { dimensions, shape, grid });
        }
        if self.record_bytes == 0 {
            return Err(AccessError::EmptyRecord);
        }
        for dimension in 0..dimensions {
            self.validate_dimension(dimension)?;
        }
        let grid =
            self.grid.iter().try_fold(1_u32, |product, clients| product.checked_mul(*clients));
        if self.clients > CLIENTS_MAX || grid.is_none_or(|grid| grid > self.clients) {
            return Err(AccessError::Grid { grid: self.grid.clone(), clients: self.clients });
        }
        let bytes = self
            .shape
            .iter()
            .try_fold(self.record_bytes, |product, extent| product.checked_mul(*extent));
        if bytes.is_none_or(|bytes| bytes > file_bytes) {
            let (shape, record_bytes) = (self.shape.clone(), self.record_bytes);
            return Err(AccessError::ArrayTooLarge { shape, record_bytes, file_bytes });
        }
        Ok(())
    }

    fn validate_dimension(&self, dimension: usize) -> Result<(), AccessError> {
        if self.shape[dimension] == 0 {
            return Err(AccessError::EmptyDimension { dimension });
        }
        let clients = self.grid[dimension];
        let rule = self.dimensions[dimension];
        if clients == 0 || (rule == Dimension::None && clients != 1) {
            return Err(AccessError::GridExtent { dimension, rule, clients });
        }
        if rule == Dimension::Cyclic(0) {
            return Err(AccessError::CyclicZero { dimension });
        }
        Ok(())
    }

    /// Bytes in the whole array.
    pub(crate) fn bytes(&self) -> u64 {
        self.shape.iter().product::<u64>() * self.record_bytes
    }

    /// Footprint of `client`.
    pub(crate) fn footprint(&self, client: ClientId) -> Footprint {
        let mut footprint = Footprint::contiguous(0, 0, self.record_bytes);
        let mut index_bytes = self.record_bytes;
        let mut client = client.0;
        for dimension in (0..self.dimensions.len()).rev() {
            let deal = self.deal(dimension);
            let coordinate = client % deal.clients;
            client /= deal.clients;
            let Some((axis, first)) = deal.axis(coordinate, index_bytes, footprint.bytes()) else {
                return Footprint::nothing();
            };
            footprint.repeat(axis, first * index_bytes);
            index_bytes *= deal.extent;
        }
        // A client beyond the grid has coordinates left over.
        if client == 0 { footprint } else { Footprint::nothing() }
    }

    /// Clients that may own a byte of `range`, ascending. Along each dimension, the coordinate of
    /// such a client owns one of the indices that `range` meets.
    ///
    /// From the slowest dimension on, a range meets one index, as long as both its ends have the
    /// same index. Then it may meet the end of one row and the start of the next. In all faster
    /// dimensions it meets every index.
    pub(crate) fn clients_in(&self, range: ByteRange) -> ClientsIn {
        let range = range.intersect(ByteRange::new(0, self.bytes()));
        if range.is_empty() {
            return ClientsIn::none();
        }
        let mut clients = ClientsIn::with_dimensions(self.dimensions.len());
        let mut first = range.start / self.record_bytes;
        let mut last = (range.end - 1) / self.record_bytes;
        let mut row_records = self.shape.iter().product::<u64>();
        let mut meets = Meets::OneRow;
        for dimension in 0..self.dimensions.len() {
            let deal = self.deal(dimension);
            row_records /= deal.extent;
            let (from, to) = (first / row_records, last / row_records);
            (first, last) = (first % row_records, last % row_records);
            clients.push(deal.clients, meets.coordinates(deal, from, to));
            meets = meets.inside(deal, from, to);
        }
        clients
    }

    fn deal(&self, dimension: usize) -> Deal {
        let extent = self.shape[dimension];
        let clients = self.grid[dimension];
        let chunk = match self.dimensions[dimension] {
            Dimension::None => extent,
            Dimension::Block => extent.div_ceil(u64::from(clients)),
            Dimension::Cyclic(chunk) => chunk.min(extent),
        };
        Deal { extent, chunk, clients }
    }
}

impl Deal {
    /// Indices of the client at `coordinate` and the first of them, or `None` when it has none. An
    /// index takes `file_unit` bytes of the file, of which the client owns `memory_unit`.
    fn axis(self, coordinate: u32, file_unit: u64, memory_unit: u64) -> Option<(Axis, u64)> {
        // Products that overflow lie after the last index. So do the saturated ones.
        let first = self.chunk.saturating_mul(u64::from(coordinate));
        let period = self.chunk.saturating_mul(u64::from(self.clients));
        if first >= self.extent {
            return None;
        }
        let left = self.extent - first;
        let (chunk, last_chunk, chunks) = if self.clients == 1 {
            (left, left, 1)
        } else if left <= period {
            let only = left.min(self.chunk);
            (only, only, 1)
        } else {
            let chunks = left.div_ceil(period);
            (self.chunk, self.chunk.min(left - (chunks - 1) * period), chunks)
        };
        let axis = Axis {
            chunk,
            last_chunk,
            chunks,
            file_unit,
            file_period: if chunks == 1 { 0 } else { period * file_unit },
            memory_unit,
            memory_period: if chunks == 1 { 0 } else { chunk * memory_unit },
            index_bytes: 0,
        };
        Some((axis, first))
    }

    /// Adds the coordinates of the owners of indices `from ..= to`.
    fn owners(self, set: &mut CoordinateSet, from: u64, to: u64) {
        let (from, to) = (from / self.chunk, to / self.chunk);
        let clients = u64::from(self.clients);
        if to - from >= clients - 1 {
            return set.add(0, self.clients - 1);
        }
        let (from, to) = ((from % clients) as u32, (to % clients) as u32);
        if from <= to {
            set.add(from, to);
        } else {
            set.add(0, to);
            set.add(from, self.clients - 1);
        }
    }
}

/// Rows that a range of the file meets, before one dimension.
#[derive(Clone, Copy)]
enum Meets {
    /// A part of one row.
    OneRow,
    /// The end of one row and the start of the next.
    TwoRows,
    /// Whole rows, possibly.
    Rows,
}

impl Meets {
    /// Coordinates along a dimension whose first index in the range is `from` and whose last is
    /// `to`.
    fn coordinates(self, deal: Deal, from: u64, to: u64) -> CoordinateSet {
        let mut set = CoordinateSet::default();
        match self {
            Self::OneRow => deal.owners(&mut set, from, to),
            Self::TwoRows => {
                deal.owners(&mut set, 0, to);
                deal.owners(&mut set, from, deal.extent - 1);
            }
            Self::Rows => deal.owners(&mut set, 0, deal.extent - 1),
        }
        set
    }

    /// Rows that the range meets before the next dimension.
    fn inside(self, deal: Deal, from: u64, to: u64) -> Self {
        match self {
            Self::OneRow if from == to => Self::OneRow,
            Self::OneRow if from + 1 == to => Self::TwoRows,
            Self::TwoRows if from == deal.extent - 1 && to == 0 => Self::TwoRows,
            _ => Self::Rows,
        }
    }
}
