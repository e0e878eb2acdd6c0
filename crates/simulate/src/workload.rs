//! Programs of clients that read and write by themselves, through caches, instead of one transfer.

use interface::Strategy;
use policy::{Access, Direction, Level, Nested, OwnPart};
use program::{MadeRank, Program};
use std::sync::Arc;
use units::{ByteRange, SplitMix64};

/// Program that all clients of a scenario run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// Requests at random places, of 1 to `blocks_max` blocks (PIOSIM, SC'97). The clients share
    /// the requests equally, and each makes one after the other.
    Random {
        /// Requests before the measured ones, of all clients together.
        warm_up: u32,
        /// Measured requests, of all clients together.
        measured: u32,
        /// Largest number of blocks of a request.
        blocks_max: u32,
        /// Share of reads, in percent; the others are writes.
        read_percent: u32,
    },
    /// Product of two matrices of `order` by `order` elements, which lie in the file in row-major
    /// order, the product behind them (PIOSIM, SC'97). The clients share the rows of the first
    /// matrix. For each row, a client reads all columns of the second one and writes a row of the
    /// product. Arithmetic takes no time.
    MatrixProduct {
        /// Number of rows and columns.
        order: u32,
        /// Order and way of reading the columns.
        columns: ColumnReads,
    },
}

/// Order and way in which the clients of a product read the columns of the second matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnReads {
    /// Each client by itself, element by element, beginning with another column than the others.
    Staggered,
    /// Each client by itself, element by element, beginning with the first column.
    Aligned,
    /// All clients together: each column is one collective transfer, of which each client gets all
    /// elements. A client that has no row left takes part to the end.
    Collective(Strategy),
}

/// Bytes of an element of a matrix.
const ELEMENT_BYTES: u64 = 8;

/// Result of a workload on one machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkloadTrial {
    /// Simulated seconds of the measured part, from the first client's start to the last one's end.
    pub seconds: f64,
    /// Blocks that the servers read from their disks in the measured part.
    pub disk_reads: u64,
    /// Blocks of their own caches that clients read in the measured part.
    pub hits: u64,
    /// Blocks that servers sent, from their caches or disks.
    pub from_servers: u64,
    /// Blocks that other clients sent.
    pub from_clients: u64,
    /// Events of the engine.
    pub events: u64,
    /// Digest that is equal for equal simulations.
    pub digest: u64,
}

impl Workload {
    /// Size of the file in bytes, if the workload needs a certain one.
    pub fn file_bytes(&self) -> Option<u64> {
        match *self {
            Self::Random { .. } => None,
            Self::MatrixProduct { order, .. } => Some(3 * matrix_bytes(order)),
        }
    }

    /// Largest number of bytes of one read or write.
    pub(crate) fn request_bytes_max(&self, block_bytes: u64) -> u64 {
        match *self {
            Self::Random { blocks_max, .. } => u64::from(blocks_max) * block_bytes,
            Self::MatrixProduct { order, .. } => u64::from(order) * ELEMENT_BYTES,
        }
    }

    /// Strategy of the collective transfers, if the workload has any.
    pub(crate) fn collective(&self) -> Option<Strategy> {
        match *self {
            Self::MatrixProduct { columns: ColumnReads::Collective(strategy), .. } => {
                Some(strategy)
            }
            Self::MatrixProduct { .. } | Self::Random { .. } => None,
        }
    }

    /// Returns what all clients do. The measured part begins after the barrier. `seed` determines
    /// random places.
    pub(crate) fn program(
        &self,
        clients: u32,
        (block_bytes, file_bytes): (u64, u64),
        seed: u64,
    ) -> Program {
        let made = (0..clients).map(|client| {
            let mut made = MadeRank::opening(file_bytes);
            match *self {
                Self::Random { .. } => {
                    let of_client = seed.wrapping_mul(1 << 16).wrapping_add(client.into());
                    let numbers = SplitMix64::new(of_client);
                    self.random((client, clients), (block_bytes, file_bytes), numbers, &mut made);
                }
                Self::MatrixProduct { order, columns } => {
                    made.barrier();
                    Product { order, columns }.steps((client, clients), &mut made);
                }
            }
            made
        });
        let rules = match *self {
            Self::MatrixProduct { order, columns: columns @ ColumnReads::Collective(_) } => {
                Product { order, columns }.rules(clients)
            }
            Self::MatrixProduct { .. } | Self::Random { .. } => Vec::new(),
        };
        Program::made(made, rules)
    }

    fn random(
        &self,
        (client, clients): (u32, u32),
        (block_bytes, file_bytes): (u64, u64),
        mut numbers: SplitMix64,
        made: &mut MadeRank,
    ) {
        let Self::Random { warm_up, measured, blocks_max, read_percent } = *self else { return };
        // The first clients have the rest of a division.
        let share = |all: u32| (all + clients - 1 - client) / clients;
        let blocks = file_bytes / block_bytes;
        let mut next = |made: &mut MadeRank| {
            let count = 1 + numbers.below(u64::from(blocks_max).min(blocks));
            let first = numbers.below(blocks - count + 1);
            let reads = numbers.below(100) < u64::from(read_percent);
            let direction = if reads { Direction::Read } else { Direction::Write };
            made.transfer_alone(direction, ByteRange::at(first * block_bytes, count * block_bytes));
        };
        (0..share(warm_up)).for_each(|_| next(made));
        made.barrier();
        (0..share(measured)).for_each(|_| next(made));
    }
}

/// Product of two matrices.
#[derive(Clone, Copy)]
struct Product {
    order: u32,
    columns: ColumnReads,
}

impl Product {
    /// Adds the steps of one client.
    fn steps(self, (client, clients): (u32, u32), made: &mut MadeRank) {
        let order = self.order;
        let begin = match self.columns {
            ColumnReads::Staggered => client * order / clients,
            ColumnReads::Aligned | ColumnReads::Collective(_) => 0,
        };
        // In one turn each client has one row. In the last one, some may have none.
        for turn in 0..order.div_ceil(clients) {
            let row = Some(turn * clients + client).filter(|row| *row < order);
            if let Some(row) = row {
                made.transfer_alone(Direction::Read, self.row(0, row));
            }
            for column in (begin..order).chain(0..begin) {
                match self.columns {
                    ColumnReads::Collective(_) => {
                        let part = OwnPart::Nested(vec![self.column(column)]);
                        made.transfer_together(Direction::Read, part);
                    }
                    ColumnReads::Staggered | ColumnReads::Aligned if row.is_some() => {
                        for element in 0..order {
                            let start = self.row(1, element).start;
                            let start = start + u64::from(column) * ELEMENT_BYTES;
                            let range = ByteRange::at(start, ELEMENT_BYTES);
                            made.transfer_alone(Direction::Read, range);
                        }
                    }
                    ColumnReads::Staggered | ColumnReads::Aligned => {}
                }
            }
            if let Some(row) = row {
                made.transfer_alone(Direction::Write, self.row(2, row));
            }
        }
    }

    /// Returns the accesses of the collective transfers: in each turn all columns, of which each
    /// client gets all elements.
    fn rules(self, clients: u32) -> Vec<Arc<Access>> {
        let rule = |column| Access::nested(vec![self.column(column); clients as usize]);
        let columns: Vec<Arc<Access>> = (0..self.order).map(|one| Arc::new(rule(one))).collect();
        let turns = self.order.div_ceil(clients) as usize;
        std::iter::repeat_n(columns, turns).flatten().collect()
    }

    /// Place of a row of matrix 0, 1 or 2 in the file.
    fn row(self, matrix: u64, row: u32) -> ByteRange {
        let bytes = u64::from(self.order) * ELEMENT_BYTES;
        ByteRange::at(matrix * matrix_bytes(self.order) + u64::from(row) * bytes, bytes)
    }

    /// Places of the elements of a column of matrix 1.
    fn column(self, column: u32) -> Nested {
        let first = self.row(1, 0);
        let (file_stride, memory_stride) = (first.length(), ELEMENT_BYTES);
        Nested {
            file_offset: first.start + u64::from(column) * ELEMENT_BYTES,
            memory_offset: 0,
            length: ELEMENT_BYTES,
            levels: vec![Level { count: self.order.into(), file_stride, memory_stride }],
        }
    }
}

fn matrix_bytes(order: u32) -> u64 {
    u64::from(order) * u64::from(order) * ELEMENT_BYTES
}
