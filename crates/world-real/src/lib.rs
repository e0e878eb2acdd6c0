//! Real world: the `World` traits on Linux, with files, sockets and one-sided copies between
//! processes.
//!
//! [`RealWorld`] is one node: give it to the programs of `filesystem`. A node lives on one thread,
//! inside [`run`]; only disks, records and long computations have threads of their own.
//!
//! Invariant: an idle node uses no processor time.

mod arena;
mod coalesce_free;
mod computations;
mod config;
mod copy;
mod disk;
mod file_size_limit;
mod host_clock;
mod huge;
mod memory;
mod memory_disk;
mod network;
mod pool;
mod processor;
mod records;
mod tasks;
mod timers;
mod wire_protection;
mod worker;

pub use config::{DiskConfig, DiskOptions, NodeConfig, OpenError, ReceiveLimits};
pub use disk::{
    Generation, Generations, LogSummary, OBJECTS_DIRECTORY, RealDisk, STORED_LOG, begin_generation,
    complete_generation, read_log, reserve_generation,
};
pub use host_clock::host_time_ns;
pub use memory::{Bytes, BytesMut, RealMemory, RealPayload, digest};
pub use memory_disk::{ReserveError, holds_objects, memory_in_use, reserve_memory, use_memory};
pub use network::BlockingConnection;
pub use records::RECORDS_FILE;
pub use tasks::{EventLoop, Task, detach, run};
pub use wire_protection::WireProtection;

use computations::Computations;
use disk::objects_open_max;
use network::Node;
use records::RecordStore;
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use timers::Timers;
use units::{Duration, Instant, PeerId, PieceRun, RegionId, Timestamp};
use world::{
    Address, Clock, Disks, Incoming, JobFailed, Message, Network, NetworkError, OneSided, Payloads,
    Processor, ProcessorTime, Randomness, RecordChange, RecordTable, Records, RecordsError, Tasks,
    TransferError,
};

/// One node. Clones are handles to the same node, which closes with the last of them.
#[derive(Clone)]
pub struct RealWorld {
    shared: Rc<Shared>,
}

struct Shared {
    timers: Rc<Timers>,
    random: RefCell<fastrand::Rng>,
    disks: Vec<RealDisk>,
    /// Record stores, indexed by `RecordTable`.
    records: [Option<RecordStore>; RecordTable::ALL.len()],
    node: Rc<Node>,
    computations: Computations,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.node.close();
    }
}

impl RealWorld {
    /// Opens a node. Call it inside [`run`].
    pub fn open(config: NodeConfig) -> Result<Self, OpenError> {
        Self::open_with(&config, true)
    }

    /// Opens a node that never accesses the memory of another process: all its transfers are
    /// framed, as over TCP. For tests and measurements.
    pub fn open_framed(config: NodeConfig) -> Result<Self, OpenError> {
        Self::open_with(&config, false)
    }

    fn open_with(config: &NodeConfig, one_sided: bool) -> Result<Self, OpenError> {
        let refused = |error: std::io::Error| OpenError::System { cause: error.to_string() };
        // A client keeps no files, and its process belongs to a program.
        if !(config.disks.is_empty() && config.records.is_empty()) {
            file_size_limit::report_as_error().map_err(refused)?;
        }
        let mut seed = [0; 8];
        fill_random(&mut seed);
        let open_max = objects_open_max(config.disks.len());
        let open = |disk: &DiskConfig| RealDisk::open(disk, open_max, config.hang_limit);
        let disks = config.disks.iter().map(open);
        let disks = disks.collect::<Result<_, _>>()?;
        let mut records = [const { None }; RecordTable::ALL.len()];
        for (table, directory) in &config.records {
            records[*table as usize] = Some(RecordStore::open(directory, config.hang_limit)?);
        }
        let timers = Timers::new().map_err(refused)?;
        let shared = Shared {
            timers,
            random: RefCell::new(fastrand::Rng::with_seed(u64::from_le_bytes(seed))),
            disks,
            records,
            node: Node::open(config, one_sided)?,
            computations: Computations::default(),
        };
        Ok(Self { shared: Rc::new(shared) })
    }

    /// Protection of the connection with `peer`; `None` if there is none, or if it needs none
    /// because it stays in this machine.
    pub fn wire_protection(&self, peer: PeerId) -> Option<WireProtection> {
        self.shared.node.peers.protection(peer)
    }

    /// Connects to another node for one thread that waits for each answer. Its waits ask after each
    /// `pause` whether they go on. The caller says hello.
    ///
    /// # Errors
    /// As [`Network::connect`].
    pub async fn connect_blocking(
        &self,
        to: &Address,
        pause: std::time::Duration,
    ) -> Result<BlockingConnection, NetworkError> {
        self.shared.node.connect_blocking(to, pause).await
    }
}

/// Fills `bytes` from the random number generator of the system.
fn fill_random(bytes: &mut [u8]) {
    let mut filled = 0;
    while filled < bytes.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        // Interrupted calls are repeated; Linux returns no other error for requests this short.
        filled += rustix::rand::getrandom(&mut bytes[filled..], flags).unwrap_or(0);
    }
}

impl Clock for RealWorld {
    fn now(&self) -> Instant {
        timers::now()
    }

    fn clock(&self) -> u64 {
        host_clock::number()
    }

    fn timestamp(&self) -> Timestamp {
        timers::timestamp()
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + 'static {
        self.shared.timers.sleep_until(deadline)
    }
}

impl Tasks for RealWorld {
    type Task = Task;

    fn spawn(&self, future: impl Future<Output = ()> + 'static) -> Task {
        tasks::spawn(future)
    }
}

impl Processor for RealWorld {
    fn compute(&self, _cost: Duration) -> impl Future<Output = ()> + 'static {
        std::future::ready(())
    }

    fn used(&self) -> ProcessorTime {
        processor::used()
    }

    fn compute_apart<R: Send + 'static>(
        &self,
        _cost: Duration,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = Result<R, JobFailed>> + 'static {
        let shared = Rc::clone(&self.shared);
        async move { shared.computations.execute(job).await }
    }
}

impl Randomness for RealWorld {
    fn random(&self) -> u64 {
        self.shared.random.borrow_mut().u64(..)
    }
}

impl Payloads for RealWorld {
    type Payload = RealPayload;
    type Memory = RealMemory;

    fn memory(&self, length: u64) -> RealMemory {
        RealMemory::new(usize::try_from(length).expect("a memory must fit in the address space"))
    }

    fn thaw(&self, payload: RealPayload) -> RealMemory {
        memory::thaw(payload)
    }
}

impl Disks for RealWorld {
    type Disk = RealDisk;

    fn disks(&self) -> &[RealDisk] {
        &self.shared.disks
    }
}

impl Records for RealWorld {
    async fn records(&self, table: RecordTable) -> Result<Vec<(u64, Vec<u8>)>, RecordsError> {
        match &self.shared.records[table as usize] {
            None => Ok(Vec::new()),
            Some(store) => store.all().await,
        }
    }

    async fn record_change(
        &self,
        table: RecordTable,
        changes: Vec<RecordChange>,
    ) -> Result<(), RecordsError> {
        let store = self.shared.records[table as usize].as_ref();
        let none = || RecordsError::Failed {
            operation: "change records".into(),
            cause: format!("this node has no table {table:?}"),
        };
        store.ok_or_else(none)?.change(changes).await
    }
}

impl Network for RealWorld {
    fn address(&self) -> Address {
        self.shared.node.address()
    }

    async fn connect(&self, to: &Address) -> Result<PeerId, NetworkError> {
        self.shared.node.connect(to).await
    }

    async fn send(&self, to: PeerId, message: Message<RealPayload>) -> Result<(), NetworkError> {
        self.shared.node.send(to, message).await
    }

    fn send_after(
        &self,
        _cost: Duration,
        to: PeerId,
        message: Message<RealPayload>,
    ) -> impl Future<Output = Result<(), NetworkError>> {
        self.send(to, message)
    }

    async fn receive(&self) -> Incoming<RealPayload> {
        self.shared.node.peers.inbox.next().await
    }

    fn disconnect(&self, peer: PeerId) {
        self.shared.node.peers.disconnect(peer);
    }

    async fn ping(&self, peer: PeerId) -> Result<(), NetworkError> {
        let pinged = self.shared.node.peers.ping(peer).await;
        pinged.map_err(|cause| NetworkError::Departed { peer, cause })
    }

    fn moved_bytes(&self, peer: PeerId) -> u64 {
        self.shared.node.peers.moved_bytes(peer)
    }

    fn received_bytes(&self, peer: PeerId) -> u64 {
        self.shared.node.peers.received_bytes(peer)
    }

    fn awaited_peers(&self) -> Vec<PeerId> {
        self.shared.node.peers.awaited()
    }
}

impl OneSided for RealWorld {
    async fn expose(
        &self,
        memory: &RealMemory,
        peers: &[PeerId],
    ) -> Result<RegionId, NetworkError> {
        self.shared.node.peers.expose(memory, peers).await
    }

    async fn expose_to_all(&self, memory: &RealMemory) -> RegionId {
        self.shared.node.peers.expose_to_all(memory)
    }

    fn withdraw(&self, region: RegionId) -> impl Future<Output = ()> {
        self.shared.node.peers.withdraw(region)
    }

    async fn put(
        &self,
        peer: PeerId,
        region: RegionId,
        pieces: &[PieceRun],
        source: &RealPayload,
    ) -> Result<(), TransferError> {
        self.shared.node.peers.put(peer, region, pieces, source).await
    }

    async fn get(
        &self,
        peer: PeerId,
        region: RegionId,
        pieces: &[PieceRun],
        target: &RealMemory,
    ) -> Result<(), TransferError> {
        self.shared.node.peers.get(peer, region, pieces, target).await
    }
}
