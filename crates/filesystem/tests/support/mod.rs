//! A simulated machine with servers and clients, for tests. It runs a program for each client,
//! kills nodes at chosen times, and limits the simulated time of every wait.

// Each test file is a crate of its own and uses a part of this.
#![allow(dead_code)]

use filesystem::collective::{Strategy, Transfer};
use filesystem::{
    Client, Costs, Fault, NewFile, OtherServer, PeerMesh, ServerConfig, SharedMemory,
    serve_among_others,
};
use policy::{
    Access, Buffering, Direction, DiskOrder, Extensions, Location, PageMap, Pool, Protection,
    ReplacementPolicies, Rows, Stripe, copy_object,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use units::{ClientId, DiskId, Duration, FileId, Instant, ServerId, SplitMix64};
use wire::{FileRecord, Made, ServerStatus};
use world::payload::{Bytes, Kind};
use world::{
    Address, Clock, Disk, Disks, Memory, Network, Payloads, Randomness, RecordTable, Tasks,
};
use world_simulated::models::ideal::IdealSpec;
use world_simulated::{
    DiskConfig, DiskKind, Engine, FaultPlan, LayoutKind, Machine, MachineConfig, MessageCosts,
    NetworkKind, NetworkSpec, NodeConfig, Pieces, PutCopier, QueueKind, SimulatedWorld, StartAngle,
    TaskHandle,
};

/// Parameters of a machine. Nodes are numbered: servers first, then clients.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) servers: u32,
    pub(crate) disks_per_server: u32,
    pub(crate) clients: u32,
    pub(crate) block_bytes: u64,
    /// Servers of the blocks of a file, if not all in turn.
    pub(crate) map: Option<PageMap>,
    /// Capacity of each server's cache, in blocks.
    pub(crate) cache_blocks: u64,
    /// Dirty high-water mark, percent of the cache.
    pub(crate) dirty_percent: u32,
    /// Number of bytes of buffers that each server has for transfers.
    pub(crate) buffer_bytes: u64,
    /// True if clients may use caches.
    pub(crate) client_caches: bool,
    /// True if the other servers have copies of the catalogue.
    pub(crate) copies: bool,
    /// Protection of the files that [`create`] makes on several servers. `UNISONO_PROTECTION` sets
    /// it for all tests.
    pub(crate) protection: Protection,
    /// Maximum number of bytes that each server refills in a second.
    pub(crate) refill_rate: Option<u64>,
    /// Replacement policies of the servers.
    pub(crate) policies: ReplacementPolicies,
    /// Processor costs of servers and clients.
    pub(crate) costs: Costs,
    pub(crate) mechanism: DiskKind,
    pub(crate) layout: LayoutKind,
    pub(crate) network: NetworkKind,
    pub(crate) seed: u64,
    /// Maximum simulated time of a program. A longer one hangs.
    pub(crate) bound: Duration,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            servers: 2,
            disks_per_server: 1,
            clients: 4,
            block_bytes: 64,
            map: None,
            cache_blocks: 16,
            dirty_percent: 100,
            buffer_bytes: u64::MAX,
            client_caches: true,
            copies: false,
            protection: environment("UNISONO_PROTECTION").unwrap_or_default(),
            refill_rate: None,
            policies: ReplacementPolicies::default(),
            costs: Costs::FREE,
            mechanism: fast_disk(),
            layout: LayoutKind::CONTIGUOUS,
            network: NetworkKind::default(),
            seed: 1,
            bound: Duration::from_ms(600_000),
        }
    }
}

impl Shape {
    pub(crate) fn stripe(&self) -> Stripe {
        let map = self.map.clone();
        Stripe {
            placement: map.into(),
            ..Stripe::round_robin(self.block_bytes, self.servers, self.disks_per_server)
        }
    }

    /// Node number of client `client`.
    pub(crate) fn node_of(&self, client: u32) -> u32 {
        self.servers + client
    }
}

/// A disk that takes little time, but enough for operations to overlap.
pub(crate) fn fast_disk() -> DiskKind {
    let latency = Duration::from_us(200);
    DiskKind::of(IdealSpec { latency, bytes_per_second: 100 << 20 })
}

/// Time that members wait for one another to join.
pub(crate) const JOIN_TIMEOUT: Duration = Duration::from_ms(1_000);

thread_local! {
    /// Protection of new files in the cluster that this thread made last.
    static PROTECTION: Cell<Protection> = const { Cell::new(Protection::None) };
}

/// A machine with running servers.
pub(crate) struct Cluster<P: Kind = Bytes> {
    pub(crate) shape: Shape,
    pub(crate) engine: Engine,
    pub(crate) machine: Rc<Machine<P>>,
    _servers: Vec<TaskHandle>,
}

impl<P: Kind> Drop for Cluster<P> {
    fn drop(&mut self) {
        self.engine.shut_down();
    }
}

/// A cluster whose disks and records can fail. A change of records takes `record_change`.
pub(crate) fn cluster_with_faults(shape: Shape, record_change: Duration) -> Rc<Cluster> {
    let seed = shape.seed;
    let cluster = Cluster::<Bytes>::new(shape);
    cluster.machine.plan(&FaultPlan { seed, record_change, faults: Vec::new() }, |_| {});
    Rc::new(cluster)
}

/// The program of a client, as the cluster runs it.
pub(crate) type Program<R> = std::pin::Pin<Box<dyn Future<Output = R>>>;

impl<P: Kind> Cluster<P> {
    pub(crate) fn new(shape: Shape) -> Self {
        Self::on(Engine::new(), shape)
    }

    /// As [`Cluster::new`], on an engine that may have a recorder.
    pub(crate) fn on(engine: Engine, shape: Shape) -> Self {
        PROTECTION.set(shape.protection);
        let machine = Machine::new(engine.clone(), &machine_config(&shape)).unwrap();
        let servers = (0..shape.servers).map(|id| start_server(&machine, &shape, id)).collect();
        Self { shape, engine, machine, _servers: servers }
    }

    pub(crate) fn servers(&self) -> Vec<Address> {
        (0..self.shape.servers).map(address).collect()
    }

    pub(crate) fn world(&self, client: u32) -> SimulatedWorld<P> {
        self.machine.world(self.shape.node_of(client))
    }

    /// Runs a program on each of these nodes until all on live nodes have ended, and kills a node
    /// at its time. Panics when they deadlock or exceed the bound.
    pub(crate) fn run_on<R: 'static>(
        &self,
        programs: Vec<(u32, Program<R>)>,
        kill: Option<Kill>,
    ) -> Vec<Option<R>> {
        let victim = kill.as_ref().map(|kill| kill.node);
        let nodes: Vec<u32> = programs.iter().map(|(node, _)| *node).collect();
        let progress = Rc::new(Progress::new(nodes.len()));
        let _tasks: Vec<TaskHandle> = programs
            .into_iter()
            .enumerate()
            .map(|(index, (node, program))| {
                let progress = Rc::clone(&progress);
                self.machine.world(node).spawn(async move {
                    let result = program.await;
                    progress.ended(index, result);
                })
            })
            .collect();
        let _killer = kill.map(|kill| {
            let (engine, machine) = (self.engine.clone(), Rc::clone(&self.machine));
            let progress = Rc::clone(&progress);
            self.engine.spawn(u32::MAX, async move {
                while kill.ready.get() < kill.ready_min {
                    engine.sleep(Duration::from_us(10)).await;
                }
                engine.sleep(kill.after).await;
                kill.at.set(engine.now());
                machine.kill(kill.node);
                progress.killed();
            })
        });
        let (engine, watched) = (self.engine.clone(), Rc::clone(&progress));
        let bound = self.shape.bound;
        let all = async move {
            let waits = |index: usize| victim == Some(nodes[index]);
            let ended = std::pin::pin!(watched.all(waits, victim.is_some()));
            let bound = std::pin::pin!(engine.sleep(bound));
            let ended = futures_util::future::select(ended, bound).await;
            matches!(ended, futures_util::future::Either::Left(_))
        };
        let in_time = self.engine.run(all).unwrap_or_else(|deadlock| panic!("{deadlock}"));
        assert!(in_time, "the programs must end within {bound} of simulated time");
        progress.results.take()
    }

    /// Runs a program for each of `clients`, as a group. Returns the results, by rank.
    pub(crate) fn run<R: 'static, F: Future<Output = R> + 'static>(
        &self,
        clients: std::ops::Range<u32>,
        program: impl Fn(Start<P>) -> F,
    ) -> Vec<R> {
        let programs = self.programs(&clients.collect::<Vec<_>>(), program);
        self.run_on(programs, None).into_iter().map(|result| result.unwrap()).collect()
    }

    pub(crate) fn programs<R: 'static, F: Future<Output = R> + 'static>(
        &self,
        clients: &[u32],
        program: impl Fn(Start<P>) -> F,
    ) -> Vec<(u32, Program<R>)> {
        let nodes: Vec<u32> = clients.iter().map(|client| self.shape.node_of(*client)).collect();
        let members: Rc<[Address]> = nodes.iter().map(|node| address(*node)).collect();
        let start = |rank: usize| Start {
            members: Rc::clone(&members),
            rank: ClientId(rank as u32),
            ..self.start(clients[rank])
        };
        let boxed = |rank: usize| (nodes[rank], Box::pin(program(start(rank))) as Program<R>);
        (0..nodes.len()).map(boxed).collect()
    }

    /// Arguments of the program of a client that is a group alone.
    pub(crate) fn start(&self, client: u32) -> Start<P> {
        Start {
            world: self.world(client),
            shape: self.shape.clone(),
            servers: self.servers(),
            members: [address(self.shape.node_of(client))].into(),
            rank: ClientId(0),
        }
    }

    /// Runs one program on one client.
    pub(crate) fn run_alone<R: 'static, F: Future<Output = R> + 'static>(
        &self,
        client: u32,
        program: impl Fn(Start<P>) -> F,
    ) -> R {
        self.run(client..client + 1, program).remove(0)
    }

    /// Returns the status of every server, asked by client `client`.
    pub(crate) fn status(&self, client: u32) -> Vec<Result<ServerStatus, Fault>> {
        self.run_alone(client, |start| async move {
            let client = start.connect().await.unwrap();
            client.status().await
        })
    }
}

/// Starts the program of server `id`, for the first time or after a crash.
pub(crate) fn start_server<P: Kind>(
    machine: &Rc<Machine<P>>,
    shape: &Shape,
    id: u32,
) -> TaskHandle {
    start_replaced(machine, shape, id, 0)
}

/// Starts the program of server `id`. `replacement` is the number of its disks, which took the
/// place of others; 0 for its first ones.
pub(crate) fn start_replaced<P: Kind>(
    machine: &Rc<Machine<P>>,
    shape: &Shape,
    id: u32,
    replacement: u64,
) -> TaskHandle {
    let world = machine.world(id);
    let config = ServerConfig {
        id: ServerId(id),
        servers: shape.servers,
        cache_bytes: shape.cache_blocks * shape.block_bytes,
        dirty_percent: shape.dirty_percent,
        buffers_per_disk: 2,
        buffer_bytes: shape.buffer_bytes,
        client_caches: shape.client_caches,
        caches_ends: true,
        replacements: vec![replacement; shape.disks_per_server as usize],
        refill_rate: shape.refill_rate,
        read_only: false,
        copies_catalogue: shape.copies,
        costs: shape.costs,
        extensions: Extensions {
            modules: Some(Arc::new(sandbox::Modules::default())),
            ..shape.policies.clone().into()
        },
    };
    let others = (0..shape.servers).filter(|other| *other != id);
    let holder = |other| OtherServer { server: ServerId(other), address: address(other) };
    let holders: Vec<OtherServer> = others.map(holder).collect();
    world.clone().spawn(async move {
        serve_among_others(world, config, || holders, std::future::pending()).await.unwrap();
    })
}

/// Replaces the disks of server `id`, which is down, by empty ones, and starts it again. The
/// catalogue of server 0 was made again.
pub(crate) fn replace_server<P: Kind>(
    machine: &Rc<Machine<P>>,
    shape: &Shape,
    id: u32,
    replacement: u64,
) -> TaskHandle {
    machine.replace_disks(id, &[RecordTable::Catalogue]);
    machine.restart(id);
    start_replaced(machine, shape, id, replacement)
}

/// A random map of a file to servers, some of which may hold nothing; often none.
pub(crate) fn some_map(numbers: &mut Numbers, servers: u32) -> Option<PageMap> {
    let turns = numbers.below(8).checked_sub(2)?;
    let map = (0..=turns).map(|_| numbers.below(u64::from(servers)) as u32);
    PageMap::try_from(map.collect::<Vec<_>>()).ok()
}

pub(crate) fn address(node: u32) -> Address {
    Address(format!("node:{node}"))
}

/// A planned death of a node.
pub(crate) struct Kill {
    pub(crate) node: u32,
    /// Delay of the death after …
    pub(crate) after: Duration,
    /// … this counter …
    pub(crate) ready: Rc<Cell<u32>>,
    /// … has reached this value.
    pub(crate) ready_min: u32,
    /// Instant of the death.
    pub(crate) at: Rc<Cell<Instant>>,
}

/// Runs `check` for each of `count` seeds, or for as many as `UNISONO_SEEDS` says, or for the one
/// that `UNISONO_SEED` names. Prints the command that repeats a failed seed.
pub(crate) fn for_each_seed(file: &str, test: &str, count: u64, check: impl Fn(u64)) {
    let count = environment("UNISONO_SEEDS").unwrap_or(count);
    let seeds = only_seed().map_or(0..count, |seed| seed..seed + 1);
    for seed in seeds {
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(seed)));
        if let Err(panic) = checked {
            eprintln!(
                "repeat it with: UNISONO_SEED={seed} cargo test -p filesystem {file}::{test}"
            );
            std::panic::resume_unwind(panic);
        }
    }
}

/// Returns the seed to repeat, if there is one.
pub(crate) fn only_seed() -> Option<u64> {
    environment("UNISONO_SEED")
}

#[allow(clippy::disallowed_methods, reason = "the command line of a test is its environment")]
fn environment<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

fn machine_config(shape: &Shape) -> MachineConfig {
    let us = Duration::from_us;
    let server = NodeConfig {
        disks: shape.disks_per_server,
        speed: 1,
        reference_speed: 1,
        variation_percent: 0,
        traced: false,
    };
    let servers = std::iter::repeat_n(server, shape.servers as usize);
    let clients = std::iter::repeat_n(NodeConfig { disks: 0, ..server }, shape.clients as usize);
    MachineConfig {
        nodes: servers.chain(clients).collect(),
        hosts: Vec::new(),
        messages: MessageCosts {
            send: us(5),
            message_ps_per_byte: 0,
            receive: us(5),
            wake: Duration::ZERO,
            receive_ps_per_byte: 0,
            one_sided: us(5),
            get_answer: us(0),
            per_50_words: us(1),
            pieces: Pieces::Batched { gather_ps: 0 },
            put_copier: PutCopier::Requester,
            direct: None,
        },
        network: NetworkSpec { kind: shape.network.clone(), ..NetworkSpec::default() },
        disk: DiskConfig {
            kind: shape.mechanism.clone(),
            layout: shape.layout,
            slot_bytes: shape.block_bytes,
            start: StartAngle::Zero,
            queue: QueueKind::Fcfs,
            prefetch_commands: 0,
        },
        seed: shape.seed,
    }
}

/// Programs that have ended, with their results.
struct Progress<R> {
    results: RefCell<Vec<Option<R>>>,
    kill_done: RefCell<bool>,
    waiting: RefCell<Option<Waker>>,
}

impl<R> Progress<R> {
    fn new(programs: usize) -> Self {
        let results = RefCell::new((0..programs).map(|_| None).collect());
        Self { results, kill_done: RefCell::new(false), waiting: RefCell::default() }
    }

    fn ended(&self, index: usize, result: R) {
        self.results.borrow_mut()[index] = Some(result);
        self.wake();
    }

    fn killed(&self) {
        *self.kill_done.borrow_mut() = true;
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waiting.borrow_mut().take() {
            waker.wake();
        }
    }

    async fn all(&self, is_victim: impl Fn(usize) -> bool, kills: bool) {
        poll_fn(|context| {
            let results = self.results.borrow();
            let mut numbered = results.iter().enumerate();
            let ended = numbered.all(|(index, result)| result.is_some() || is_victim(index));
            if ended && (!kills || *self.kill_done.borrow()) {
                return Poll::Ready(());
            }
            *self.waiting.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Arguments of a client's program.
#[derive(Clone)]
pub(crate) struct Start<P: Kind = Bytes> {
    pub(crate) world: SimulatedWorld<P>,
    pub(crate) shape: Shape,
    pub(crate) servers: Vec<Address>,
    pub(crate) members: Rc<[Address]>,
    pub(crate) rank: ClientId,
}

impl<P: Kind> Start<P> {
    /// A client that is connected to all servers or, for every second client of one half of all
    /// seeds, connects on demand.
    pub(crate) async fn connect(&self) -> Result<Client<SimulatedWorld<P>>, Fault> {
        if (self.shape.seed % 4) < 2 && (u64::from(self.rank.0) + self.shape.seed) % 2 == 1 {
            return Ok(self.connecting_when_needed());
        }
        Client::connect(self.world.clone(), &self.servers, self.shape.costs).await
    }

    pub(crate) fn connecting_when_needed(&self) -> Client<SimulatedWorld<P>> {
        let servers = self.servers.as_slice();
        Client::connecting_when_needed(self.world.clone(), servers, self.shape.costs)
    }

    /// Connects, and joins group number `group`.
    pub(crate) async fn join(&self, group: u64) -> Result<PeerMesh<SimulatedWorld<P>>, Fault> {
        let client = self.connect().await?;
        PeerMesh::join(client, group, self.rank, Rc::clone(&self.members), JOIN_TIMEOUT).await
    }

    pub(crate) fn now(&self) -> Instant {
        self.world.now()
    }
}

/// Makes a file with the protection of the shape, from server 0 on, and opens it.
pub(crate) async fn create_alone<P: Kind>(
    client: &Client<SimulatedWorld<P>>,
    shape: &Shape,
    name: &str,
    bytes: u64,
) -> Result<FileRecord, Fault> {
    let (stripe, pool) = (shape.stripe(), Pool::all(shape.servers));
    let (name, made, buffering) = (name.to_owned(), Made::default(), Buffering::default());
    let protection = shape.protection;
    let new = NewFile { name, bytes, stripe, pool, buffering, protection, made };
    client.create_as(new).await
}

/// Content of an object of a file, on a disk of one of its servers.
pub(crate) async fn object_of(
    cluster: &Cluster,
    file: &FileRecord,
    (place, disk): (ServerId, DiskId),
    object: FileId,
) -> Vec<u8> {
    let world = cluster.machine.world(file.pool.server(place).0);
    let disk = &world.disks()[disk.0 as usize];
    let length = disk.metadata(object).await.unwrap().map_or(0, |it| it.length);
    disk.read(object, 0, length).await.unwrap().to_vec()
}

/// Panics unless the parity of each row of a file is that of its blocks, and there is no other.
async fn expect_parity_equal(cluster: &Cluster, file: &FileRecord, rows: &Rows) {
    let (block, mut objects) = (file.stripe.block_bytes as usize, BTreeMap::new());
    for place in (0..file.stripe.servers).map(ServerId) {
        for disk in (0..file.stripe.disks_per_server).map(DiskId) {
            for (kind, object) in [file.file, copy_object(file.file)].into_iter().enumerate() {
                let content = object_of(cluster, file, (place, disk), object).await;
                objects.insert((kind, place, disk), content);
            }
        }
    }
    let block_at = |kind, at: Location| -> Vec<u8> {
        let content: &Vec<u8> = &objects[&(kind, at.server, at.disk)];
        let start = at.slot as usize * block;
        (start..start + block).map(|byte| content.get(byte).copied().unwrap_or(0)).collect()
    };
    let longest = objects.values().map(Vec::len).max().unwrap_or(0) as u64;
    let blocks = longest.div_ceil(file.stripe.block_bytes) * file.stripe.disks();
    for row in 0..=rows.row_of(blocks) + u64::from(file.stripe.servers) {
        let mut sum = block_at(1, rows.parity(row));
        for at in rows.data(row) {
            sum.iter_mut().zip(block_at(0, at)).for_each(|(sum, byte)| *sum ^= byte);
        }
        let differs = sum.iter().any(|byte| *byte != 0);
        assert!(!differs, "the parity of row {row} of {} differs: {sum:?}", file.file);
    }
}

/// Panics unless each copy of a protected file has what the server has of whose part it is a copy,
/// or all parity is that of its rows.
pub(crate) async fn expect_copies_equal(cluster: &Cluster, file: &FileRecord) {
    if let Some(rows) = file.protection.rows(&file.stripe) {
        return expect_parity_equal(cluster, file, &rows).await;
    }
    for place in (0..file.stripe.servers).map(ServerId) {
        let copy = file.protection.copy_of(place, file.stripe.servers).unwrap();
        for disk in (0..file.stripe.disks_per_server).map(DiskId) {
            let own = object_of(cluster, file, (place, disk), file.file).await;
            let copied = object_of(cluster, file, (copy, disk), copy_object(file.file)).await;
            let what = format!("the copy of {disk} of {place} of {}", file.file);
            assert!(own == copied, "{what} differs: {own:?} {copied:?}");
        }
    }
}

/// A file that rank 0 creates and all members open. Files begin at different servers.
pub(crate) async fn create<P: Kind>(
    group: &PeerMesh<SimulatedWorld<P>>,
    name: &str,
    bytes: u64,
    stripe: Stripe,
) -> Result<FileRecord, Fault> {
    let made = match group.rank() {
        ClientId(0) => {
            let (of, buffering) = (group.client().servers(), Buffering::default());
            let pool = Pool::Consecutive { first: (bytes % u64::from(of)) as u32, of };
            let (name, made) = (name.to_owned(), Made::default());
            let protection = match of {
                1 => Protection::None,
                _ => PROTECTION.get(),
            };
            let new = NewFile { name, bytes, stripe, pool, buffering, protection, made };
            group.client().create_as(new).await.map(Some)
        }
        _ => Ok(None),
    };
    group.agree(made.as_ref().map(|_| ()).map_err(Clone::clone)).await?;
    match made? {
        Some(own) => Ok(own),
        None => group.client().open(name).await,
    }
}

/// A transfer with the usual choices.
pub(crate) fn transfer(
    direction: Direction,
    file: &FileRecord,
    access: &Access,
    how: Strategy,
) -> Transfer {
    Transfer {
        direction,
        file: file.clone(),
        access: access.clone(),
        strategy: how,
        order: DiskOrder::Sorted,
        outstanding_per_disk: 1,
        node_group_size: 0,
        sync: false,
    }
}

/// Shares a memory that starts as `bytes`.
pub(crate) async fn share(
    group: &PeerMesh<SimulatedWorld<Bytes>>,
    bytes: Vec<u8>,
) -> Result<SharedMemory<SimulatedWorld<Bytes>>, Fault> {
    let memory = group.client().world().thaw(bytes.into());
    group.share(memory).await
}

/// Writes a client's part of `image`, the content of the whole file.
pub(crate) async fn write_image(
    group: &PeerMesh<SimulatedWorld<Bytes>>,
    transfer: &Transfer,
    image: &[u8],
) -> Result<(), Fault> {
    let memory = share(group, memory_of(&transfer.access, group.rank(), image)).await?;
    let moved = group.transfer(transfer, &memory).await;
    group.unshare(memory).await;
    moved
}

/// Reads a client's part of the file; bytes of memory that are not part of it are 0xee.
pub(crate) async fn read_back(
    group: &PeerMesh<SimulatedWorld<Bytes>>,
    transfer: &Transfer,
) -> Result<Vec<u8>, Fault> {
    let length = transfer.access.memory_bytes(group.rank());
    let memory = share(group, vec![0xee; length as usize]).await?;
    let moved = group.transfer(transfer, &memory).await;
    let bytes = group.unshare(memory).await.freeze().to_vec();
    moved.map(|()| bytes)
}

/// Expected memory of a client after it has read a file with the content `image`.
pub(crate) fn memory_of(access: &Access, client: ClientId, image: &[u8]) -> Vec<u8> {
    let mut memory = vec![0xee; access.memory_bytes(client) as usize];
    for chunk in access.chunks(client) {
        let (from, to) = (chunk.file_offset as usize, chunk.memory_offset as usize);
        let length = chunk.length as usize;
        memory[to..to + length].copy_from_slice(&image[from..from + length]);
    }
    memory
}

/// Content of a file with the content `image` after every client wrote its part of `written`.
pub(crate) fn overlay(access: &Access, image: &[u8], written: &[u8]) -> Vec<u8> {
    let mut file = image.to_vec();
    for client in (0..access.clients()).map(ClientId) {
        for chunk in access.chunks(client) {
            let bytes = chunk.file_offset as usize..(chunk.file_offset + chunk.length) as usize;
            file[bytes.clone()].copy_from_slice(&written[bytes]);
        }
    }
    file
}

/// Bytes that differ between seeds and between places, none of them 0 or 0xee.
pub(crate) fn image(seed: u64, bytes: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(seed);
    (0..bytes).map(|_| 1 + (numbers.below(237)) as u8).collect()
}

/// A reproducible sequence of numbers.
pub(crate) struct Numbers(SplitMix64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

/// Panics unless two pieces of data are equal, with the place of the first difference.
pub(crate) fn expect_equal(got: &[u8], expected: &[u8], what: &str) {
    assert_eq!(got.len(), expected.len(), "length of {what}");
    if let Some(at) = (0..got.len()).find(|&at| got[at] != expected[at]) {
        panic!("byte {at} of {what} must be {:#x}, not {:#x}", expected[at], got[at]);
    }
}

impl Start<Bytes> {
    /// Writes to one block by a bare request, without a flush.
    pub(crate) async fn write_raw(&self, file: &FileRecord, block: u64, offset: u64, bytes: &[u8]) {
        let peer = self.world.connect(&self.servers[0]).await.unwrap();
        let key = wire::ClientKey(self.world.random());
        let hello = wire::Message::Hello { version: wire::PROTOCOL_VERSION, key };
        self.world.send(peer, world::Message::new(wire::encode(&hello))).await.unwrap();
        let open = wire::FileRequest::Open(file.clone());
        let write = wire::WriteRequest { file: file.file, block, offset };
        let requests = [(open.into(), None), (write.into(), Some(bytes.to_vec().into()))];
        for (id, (request, body)) in (0..).zip(requests) {
            let request = wire::Message::Request { id: wire::RequestId(id), request };
            let message =
                world::Message { header: wire::encode(&request), body, place: None, loan: None };
            self.world.send(peer, message).await.unwrap();
        }
        self.world.sleep(Duration::from_ms(10)).await;
    }
}
