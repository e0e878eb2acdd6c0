//! A client of the papers: all clients know the access, and client 0 joins each call for all.
//!
//! The clients share their memory when they open the file, before the clock starts. The measured
//! part of a program begins after its barrier.

use super::file_calls::{KnownFile, delete, new_file};
use super::node::{Call, Mailboxes, Node};
use super::stage::Stage;
use crate::ranks::config;
use crate::scenario::{CONNECTED_AT_ONCE_MAX, Scenario};
use crate::trials::Verify;
use filesystem::collective::{Strategy, Transfer};
use filesystem::{CacheCounts, Client, Fault, PeerMesh, SharedMemory};
use futures_util::FutureExt;
use policy::{Access, Direction};
use program::{Meeting, OpenedFile, Program, Rank, Stream};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use units::{ByteRange, ClientId, Duration, Instant};
use wire::FileRecord;
use world::{Address, Clock};
use world_simulated::SimulatedWorld;

/// Timeout of members that wait for one another. They wait for the slowest one.
const JOIN_TIMEOUT: Duration = Duration::from_ms(60_000);

/// Preparation of clients before the clock starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Preparation {
    /// One collective transfer by the strategy of the scenario.
    Transfer { direction: Direction, access: Arc<Access> },
    /// Reads and writes through caches, and collective transfers by this strategy. What the caches
    /// and disks do in the measured part is counted.
    Caches { collective: Option<Strategy> },
}

/// Result of one client in the measured part of a program.
pub(crate) struct Measured<P: Verify> {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    pub(crate) memory: P::Memory,
    pub(crate) counts: CacheUse,
}

impl<P: Verify> Measured<P> {
    /// Instants at which the first client began and the last one ended.
    pub(crate) fn period(all: &[Self]) -> Option<(Instant, Instant)> {
        let start = all.iter().map(|client| client.start).min()?;
        let end = all.iter().map(|client| client.end).max()?;
        Some((start, end))
    }
}

/// Use of caches and disks.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct CacheUse {
    pub(crate) caches: CacheCounts,
    /// Blocks that all servers have read from their disks, at client 0; others do not count them.
    pub(crate) disk_reads: u64,
}

/// One client.
pub(crate) struct PresetRank<P: Verify> {
    node: Node<P>,
    scenario: Rc<Scenario>,
    preparation: Preparation,
    client: Client<SimulatedWorld<P>>,
    mesh: Rc<PeerMesh<SimulatedWorld<P>>>,
    memory: P::Memory,
    /// Memory that others reach, once the file is open.
    shared: OnceCell<Rc<SharedMemory<SimulatedWorld<P>>>>,
    /// File that is open.
    file: RefCell<Option<FileRecord>>,
    /// Begin and end of the measured part, and the use of caches before it and in it.
    start: Rc<Cell<Instant>>,
    end: Cell<Instant>,
    counts: Rc<Cell<CacheUse>>,
}

/// File that a client has opened.
pub(crate) struct PresetFile {
    opened: OpenedFile,
    record: Rc<RefCell<FileRecord>>,
}

/// Knowledge that all clients share.
#[derive(Clone)]
pub(crate) struct Clients {
    scenario: Rc<Scenario>,
    program: Arc<Program>,
    preparation: Preparation,
    servers: Rc<[Address]>,
    members: Rc<[Address]>,
    mailboxes: Mailboxes,
}

impl Clients {
    pub(crate) fn new<P: Verify>(
        stage: &Stage<P>,
        scenario: &Scenario,
        program: Program,
        preparation: Preparation,
    ) -> Self {
        Self {
            servers: stage.server_addresses(),
            members: stage.rank_addresses(scenario.clients),
            mailboxes: Mailboxes::of(scenario.clients),
            scenario: Rc::new(scenario.clone()),
            program: Arc::new(program),
            preparation,
        }
    }

    /// Carries the program out as one client. Its handles must stay until all have ended.
    pub(crate) async fn run<P: Verify>(
        self,
        number: u32,
        world: SimulatedWorld<P>,
    ) -> Result<(Measured<P>, PresetRank<P>), Fault> {
        let program = Arc::clone(&self.program);
        let rank = PresetRank::connect(self, number, world).await?;
        program.run_rank(number, &rank).await?;
        let (start, end) = (rank.start.get(), rank.end.get());
        let (memory, counts) = (rank.memory.clone(), rank.counts.get());
        Ok((Measured { start, end, memory, counts }, rank))
    }
}

impl<P: Verify> PresetRank<P> {
    async fn connect(
        clients: Clients,
        number: u32,
        world: SimulatedWorld<P>,
    ) -> Result<Self, Fault> {
        let Clients { scenario, program, preparation, servers, members, mailboxes } = clients;
        let costs = scenario.machine.costs;
        let client = match connects_when_needed(&scenario) {
            true => Client::connecting_when_needed(world.clone(), servers, costs),
            false => Client::connect(world.clone(), &servers, costs).await?,
        };
        let rank = ClientId(number);
        let mesh = PeerMesh::join(client.clone(), 0, rank, members, JOIN_TIMEOUT).await?;
        let start = world.now();
        Ok(Self {
            node: Node::new((number, scenario.servers), world, mailboxes),
            memory: P::client_memory(rank, program.memory_bytes(number)),
            scenario,
            preparation,
            client,
            mesh: Rc::new(mesh),
            shared: OnceCell::new(),
            file: RefCell::default(),
            start: Rc::new(Cell::new(start)),
            end: Cell::new(start),
            counts: Rc::default(),
        })
    }

    /// Makes the file at client 0, and opens it at all others then.
    async fn open_file(&self, opened: &OpenedFile) -> Result<FileRecord, Fault> {
        let made = match opened.place {
            0 => {
                let Scenario { file_bytes, .. } = *self.scenario;
                let file = new_file(&self.scenario, &opened.name, file_bytes);
                self.client.create_as(file).await.map(Some)
            }
            _ => Ok(None),
        };
        self.mesh.agree(made.as_ref().map(|_| ()).map_err(Clone::clone)).await?;
        match made? {
            Some(made) if matches!(self.preparation, Preparation::Transfer { .. }) => Ok(made),
            _ if connects_when_needed(&self.scenario) => {
                Ok(self.client.open_beside(self.client.stat_file(&opened.name).await?))
            }
            _ => self.client.open(&opened.name).await,
        }
    }

    async fn share(&self) -> Result<Rc<SharedMemory<SimulatedWorld<P>>>, Fault> {
        let shared = Rc::new(self.mesh.share(self.memory.clone()).await?);
        Ok(Rc::clone(self.shared.get_or_init(|| shared)))
    }

    async fn enable_cache(&self) -> Result<(), Fault> {
        let Scenario { client_cache, block_bytes, .. } = &*self.scenario;
        self.client.enable_cache(client_cache, *block_bytes).await
    }

    fn transfer_of(
        &self,
        direction: Direction,
        file: FileRecord,
        access: &Access,
        strategy: Strategy,
    ) -> Transfer {
        let scenario = &self.scenario;
        Transfer {
            direction,
            file,
            access: access.clone(),
            strategy,
            order: scenario.order,
            outstanding_per_disk: scenario.machine.outstanding_per_disk,
            node_group_size: scenario.node_group_size,
            sync: config::waits_for_medium(scenario),
        }
    }

    /// Prepares all that comes before the clock starts.
    async fn prepare(&self, file: &FileRecord) -> Result<(), Fault> {
        let mesh = &self.mesh;
        match &self.preparation {
            Preparation::Transfer { direction, access } => {
                let strategy = self.scenario.strategy;
                let transfer = self.transfer_of(*direction, file.clone(), access, strategy);
                let shared = self.share().await?;
                let connects_now = connects_when_needed(&self.scenario);
                if connects_now || strategy == Strategy::DiskDirected {
                    mesh.agree(mesh.reach(&transfer).await).await?;
                }
                if strategy == Strategy::TwoPhase {
                    mesh.share_among_members(&shared).await?;
                }
                if self.scenario.uses_client_caches() {
                    self.enable_cache().await?;
                }
            }
            Preparation::Caches { collective } => {
                self.enable_cache().await?;
                mesh.barrier().await?;
                if let Some(strategy) = collective {
                    let shared = self.share().await?;
                    if *strategy == Strategy::TwoPhase {
                        mesh.share_among_members(&shared).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Begins the measured part.
    fn begin_measured(&self) -> Call {
        let (mesh, clock) = (Rc::clone(&self.mesh), self.node.world.clone());
        let counting = self.counting();
        let (start, counts) = (Rc::clone(&self.start), Rc::clone(&self.counts));
        async move {
            mesh.barrier().await?;
            if let Some(counting) = counting {
                counts.set(counting.await?);
                mesh.barrier().await?;
            }
            start.set(clock.now());
            Ok(())
        }
        .boxed_local()
    }

    /// Ends the measured part.
    fn end_measured(&self) -> Call {
        self.end.set(self.node.world.now());
        let (mesh, counting) = (Rc::clone(&self.mesh), self.counting());
        let counts = Rc::clone(&self.counts);
        async move {
            if let Some(counting) = counting {
                mesh.barrier().await?;
                counts.set(counting.await?.since(counts.get()));
            }
            Ok(())
        }
        .boxed_local()
    }

    /// Counts the use of caches and disks so far, if the program is about that.
    fn counting(&self) -> Option<impl Future<Output = Result<CacheUse, Fault>> + use<P>> {
        let file = match &self.preparation {
            Preparation::Caches { .. } => self.file.borrow().clone()?,
            Preparation::Transfer { .. } => return None,
        };
        let (client, rank) = (self.client.clone(), self.mesh.rank());
        Some(async move {
            let caches = client.cache_counts().unwrap_or_default();
            let disk_reads = match rank {
                ClientId(0) => disk_reads(&client, &file).await?,
                _ => 0,
            };
            Ok(CacheUse { caches, disk_reads })
        })
    }
}

impl CacheUse {
    /// Use since an earlier count.
    fn since(self, before: Self) -> Self {
        Self {
            caches: CacheCounts {
                hits: self.caches.hits - before.caches.hits,
                from_servers: self.caches.from_servers - before.caches.from_servers,
                from_clients: self.caches.from_clients - before.caches.from_clients,
                ..CacheCounts::default()
            },
            disk_reads: self.disk_reads - before.disk_reads,
        }
    }
}

/// Returns the number of blocks that all servers have read from their disks.
async fn disk_reads<P: Verify>(
    client: &Client<SimulatedWorld<P>>,
    file: &FileRecord,
) -> Result<u64, Fault> {
    let statistics = client.buffers(file).await?;
    Ok(statistics.iter().map(|of_server| of_server.misses + of_server.prefetched).sum())
}

fn connects_when_needed(scenario: &Scenario) -> bool {
    scenario.servers > CONNECTED_AT_ONCE_MAX
}

impl<P: Verify> Rank for PresetRank<P> {
    type File = PresetFile;
    type Error = Fault;
    type Call = Call;

    fn now(&self) -> Instant {
        self.node.world.now()
    }

    async fn compute(&self, time: Duration) {
        self.node.compute(time).await;
    }

    async fn block(&self, time: Duration) {
        self.node.block(time).await;
    }

    fn send(&self, to: u32, stream: Stream, bytes: u64) -> Call {
        self.node.send(to, stream, bytes)
    }

    fn receive(&self, from: u32, stream: Stream) -> Call {
        self.node.receive(from, stream)
    }

    fn meet_all(&self, meeting: Meeting) -> Option<Call> {
        Some(match meeting {
            // They have joined a mesh as they connected.
            Meeting::Begin => std::future::ready(Ok(())).boxed_local(),
            Meeting::Barrier => self.begin_measured(),
            Meeting::End => self.end_measured(),
        })
    }

    async fn open(&self, opened: OpenedFile) -> Result<PresetFile, Fault> {
        let record = self.open_file(&opened).await?;
        self.prepare(&record).await?;
        *self.file.borrow_mut() = Some(record.clone());
        Ok(PresetFile { opened, record: Rc::new(RefCell::new(record)) })
    }

    /// The file stays open to the end: closing it would cost time of the servers.
    async fn close(&self, _file: PresetFile) -> Result<(), Fault> {
        Ok(())
    }

    fn transfer(&self, file: &PresetFile, transfer: program::Transfer) -> Call {
        let program::Transfer { direction, is_collective, part, rule, .. } = transfer;
        let record = file.record.borrow().clone();
        let strategy = match &self.preparation {
            Preparation::Transfer { .. } => Some(self.scenario.strategy),
            Preparation::Caches { collective } => *collective,
        };
        if let (true, Some(access), Some(strategy), Some(shared)) =
            (is_collective, rule, strategy, self.shared.get())
        {
            let transfer = self.transfer_of(direction, record, &access, strategy);
            let (mesh, shared) = (Rc::clone(&self.mesh), Rc::clone(shared));
            return async move { mesh.transfer(&transfer, &shared).await }.boxed_local();
        }
        if is_collective {
            let cause = "the program has no rule for a collective transfer".to_owned();
            return std::future::ready(Err(Fault::BadAccess { cause })).boxed_local();
        }
        let (client, memory) = (self.client.clone(), self.memory.clone());
        async move {
            for chunk in Access::Parts(vec![part]).chunks(ClientId(0)) {
                let range = ByteRange::at(chunk.file_offset, chunk.length);
                let at = chunk.memory_offset;
                match direction {
                    Direction::Read => client.read_cached(&record, range, &memory, at).await?,
                    Direction::Write => client.write_cached(&record, range, &memory, at).await?,
                }
            }
            Ok(())
        }
        .boxed_local()
    }

    async fn sync(&self, file: &PresetFile) -> Result<(), Fault> {
        self.known(file).sync(self).await
    }

    async fn set_size(&self, file: &PresetFile, bytes: u64, grows: bool) -> Result<(), Fault> {
        self.known(file).set_size(self, bytes, grows).await
    }

    async fn get_size(&self, file: &PresetFile) -> Result<(), Fault> {
        self.known(file).get_size().await
    }

    async fn delete(&self, name: &str) -> Result<(), Fault> {
        delete(&self.client, name).await
    }
}

impl<P: Verify> PresetRank<P> {
    fn known<'a>(&'a self, file: &'a PresetFile) -> KnownFile<'a, P> {
        KnownFile { client: &self.client, opened: &file.opened, record: &file.record }
    }
}
