//! Programs of clients that read and write by themselves, through caches, instead of one transfer.

use interface::Strategy;
use policy::{Level, Nested};
use units::ByteRange;

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

/// Step of one client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum WorkloadStep {
    /// It reads by itself.
    Read(ByteRange),
    /// It writes by itself.
    Write(ByteRange),
    /// All clients read the same bytes by one collective transfer.
    ReadTogether(Nested),
}

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
    pub(crate) fn step_bytes_max(&self, block_bytes: u64) -> u64 {
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

    /// Calls `step` for each step of one client until it fails, and `warmed_up` before the first
    /// measured one. `random` returns a number below its argument.
    pub(crate) async fn steps<E>(
        &self,
        (client, clients): (u32, u32),
        (block_bytes, file_bytes): (u64, u64),
        mut random: impl FnMut(u64) -> u64,
        warmed_up: impl AsyncFnOnce() -> Result<(), E>,
        mut step: impl AsyncFnMut(WorkloadStep) -> Result<(), E>,
    ) -> Result<(), E> {
        // The first clients have the rest of a division.
        let share = |all: u32| (all + clients - 1 - client) / clients;
        match *self {
            Self::Random { warm_up, measured, blocks_max, read_percent } => {
                let blocks = file_bytes / block_bytes;
                let mut next = || {
                    let count = 1 + random(u64::from(blocks_max).min(blocks));
                    let first = random(blocks - count + 1);
                    let is_read = random(100) < u64::from(read_percent);
                    let range = ByteRange::at(first * block_bytes, count * block_bytes);
                    if is_read { WorkloadStep::Read(range) } else { WorkloadStep::Write(range) }
                };
                for _ in 0..share(warm_up) {
                    step(next()).await?;
                }
                warmed_up().await?;
                for _ in 0..share(measured) {
                    step(next()).await?;
                }
            }
            Self::MatrixProduct { order, columns } => {
                warmed_up().await?;
                Product { order, columns }.steps((client, clients), step).await?;
            }
        }
        Ok(())
    }
}

/// Product of two matrices.
#[derive(Clone, Copy)]
struct Product {
    order: u32,
    columns: ColumnReads,
}

impl Product {
    /// Calls `step` for each step of one client until it fails.
    async fn steps<E>(
        self,
        (client, clients): (u32, u32),
        mut step: impl AsyncFnMut(WorkloadStep) -> Result<(), E>,
    ) -> Result<(), E> {
        let order = self.order;
        let begin = match self.columns {
            ColumnReads::Staggered => client * order / clients,
            ColumnReads::Aligned | ColumnReads::Collective(_) => 0,
        };
        // In one turn each client has one row. In the last one, some may have none.
        for turn in 0..order.div_ceil(clients) {
            let row = Some(turn * clients + client).filter(|row| *row < order);
            if let Some(row) = row {
                step(WorkloadStep::Read(self.row(0, row))).await?;
            }
            for column in (begin..order).chain(0..begin) {
                match self.columns {
                    ColumnReads::Collective(_) => {
                        step(WorkloadStep::ReadTogether(self.column(column))).await?;
                    }
                    ColumnReads::Staggered | ColumnReads::Aligned if row.is_some() => {
                        for element in 0..order {
                            let start = self.row(1, element).start;
                            let start = start + u64::from(column) * ELEMENT_BYTES;
                            let range = ByteRange::at(start, ELEMENT_BYTES);
                            step(WorkloadStep::Read(range)).await?;
                        }
                    }
                    ColumnReads::Staggered | ColumnReads::Aligned => {}
                }
            }
            if let Some(row) = row {
                step(WorkloadStep::Write(self.row(2, row))).await?;
            }
        }
        Ok(())
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
