//! Memory of a server for data between its clients and its disks or its cache.
//!
//! Invariant: all of it is limited by the size of the buffers that the server is started with. A
//! client that stalls while others wait for memory is disconnected, which frees what it holds.

use super::answer_pools::AnswerPools;
use super::buffer_pool::TransferBufferPool;
use super::request_budget::{HeldRequest, RequestBudget};
use super::transfer_watchdog::TransferWatchdog;
use super::write_budget::{WriteBudget, WritePermit};
use crate::server::config::ServerConfig;
use std::rc::Rc;
use units::{DiskId, MIB, PeerId};

/// Bytes that all active requests may have, however small the buffers are.
const REQUEST_BYTES_MIN: u64 = 256 * MIB;

/// Memory of the transfers of one server.
pub(crate) struct TransferMemory {
    /// Buffers of active transfers, by disk.
    buffer_pools: Box<[TransferBufferPool]>,
    /// Data of answers, from before it is read until the client has it.
    answers: AnswerPools,
    /// Budget of the bytes of large requests.
    requests: Rc<RequestBudget>,
    /// Budget of data that goes with requests: of writes, and of small parts of collectives.
    writes: Rc<WriteBudget>,
    /// Budget of gathered writes. Other data may wait for these writes, so they have their own.
    gathered: Rc<WriteBudget>,
    /// Watchdog of transfers between all this memory, or the cache, and clients.
    watchdog: Rc<TransferWatchdog>,
}

impl TransferMemory {
    /// Makes the memory of a server with `disks` disks.
    pub(crate) fn new(config: &ServerConfig, disks: usize) -> Self {
        let watchdog = Rc::new(TransferWatchdog::new(config.buffer_bytes < u64::MAX));
        let bytes_max = config.buffer_bytes / (disks as u64).max(1);
        let buffers = u64::from(config.buffers_per_disk);
        let pool = |disk| TransferBufferPool::new(disk, bytes_max, buffers, Rc::clone(&watchdog));
        Self {
            buffer_pools: (0..disks as u32).map(DiskId).map(pool).collect(),
            answers: AnswerPools::new(disks, config.buffer_bytes, &watchdog),
            requests: RequestBudget::new(config.buffer_bytes.max(REQUEST_BYTES_MIN)),
            writes: Rc::new(WriteBudget::new(config.buffer_bytes)),
            gathered: Rc::new(WriteBudget::new(config.buffer_bytes)),
            watchdog,
        }
    }

    /// The buffers of a disk.
    pub(crate) fn buffers(&self, disk: DiskId) -> &TransferBufferPool {
        &self.buffer_pools[disk.0 as usize]
    }

    /// Number of bytes of all buffers of disks that are in use.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.buffer_pools.iter().map(TransferBufferPool::held_bytes).sum()
    }

    /// The memory of answers.
    pub(crate) fn answers(&self) -> &AnswerPools {
        &self.answers
    }

    /// The watchdog of transfers.
    pub(crate) fn watchdog(&self) -> &Rc<TransferWatchdog> {
        &self.watchdog
    }

    /// Counts a request of `bytes` bytes while it is active. `None` for a small one, which is not
    /// counted.
    pub(crate) fn hold_request(&self, client: PeerId, bytes: u64) -> Option<HeldRequest> {
        self.requests.hold(client, bytes)
    }

    /// Disconnects the client with most bytes of requests if all requests have too many.
    pub(crate) fn bound_requests(&self) {
        if let Some(client) = self.requests.exceeded_by() {
            self.watchdog.disconnect(client);
        }
    }

    /// Keeps `bytes` bytes that go with a request, if there is room for them.
    pub(crate) fn keep_written(&self, bytes: u64) -> Option<WritePermit> {
        self.writes.keep(bytes)
    }

    /// Keeps `bytes` bytes of gathered writes, if there is room for them.
    pub(crate) fn keep_gathered(&self, bytes: u64) -> Option<WritePermit> {
        self.gathered.keep(bytes)
    }
}
