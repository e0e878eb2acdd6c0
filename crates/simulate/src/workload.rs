//! Programs of clients that read and write by themselves, through caches, instead of one transfer.

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
    /// matrix. For each row, a client reads all columns of the second one, element by element, and
    /// writes a row of the product. Arithmetic takes no time.
    MatrixProduct {
        /// Number of rows and columns.
        order: u32,
        /// True if each client begins with another column, false if all begin with the first.
        is_staggered: bool,
    },
}

/// Bytes of an element of a matrix.
const ELEMENT_BYTES: u64 = 8;

/// Read or write of one client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WorkloadStep {
    pub(crate) is_read: bool,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
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
                    let (offset, bytes) = (first * block_bytes, count * block_bytes);
                    WorkloadStep { is_read, offset, bytes }
                };
                for _ in 0..share(warm_up) {
                    step(next()).await?;
                }
                warmed_up().await?;
                for _ in 0..share(measured) {
                    step(next()).await?;
                }
            }
            Self::MatrixProduct { order, is_staggered } => {
                warmed_up().await?;
                let (row_bytes, second) = (u64::from(order) * ELEMENT_BYTES, matrix_bytes(order));
                let begin = if is_staggered { client * order / clients } else { 0 };
                for row in (client..order).step_by(clients as usize) {
                    let at = u64::from(row) * row_bytes;
                    step(WorkloadStep { is_read: true, offset: at, bytes: row_bytes }).await?;
                    for column in (begin..order).chain(0..begin) {
                        for element in 0..order {
                            let at = u64::from(element) * row_bytes;
                            let offset = second + at + u64::from(column) * ELEMENT_BYTES;
                            let bytes = ELEMENT_BYTES;
                            step(WorkloadStep { is_read: true, offset, bytes }).await?;
                        }
                    }
                    let offset = 2 * second + at;
                    step(WorkloadStep { is_read: false, offset, bytes: row_bytes }).await?;
                }
            }
        }
        Ok(())
    }
}

fn matrix_bytes(order: u32) -> u64 {
    u64::from(order) * u64::from(order) * ELEMENT_BYTES
}
