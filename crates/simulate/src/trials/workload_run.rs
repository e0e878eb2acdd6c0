//! One trial of a workload: the clients run their programs, and the servers count their disk reads.

use super::config;
use super::servers;
use super::verify::Verify;
use crate::memory;
use crate::scenario::Scenario;
use crate::workload::{Workload, WorkloadStep, WorkloadTrial};
use filesystem::collective::{Strategy, Transfer};
use filesystem::{CacheCounts, Client, Fault, NewFile, PeerMesh, SharedMemory};
use interface::{ExitCode, UserError};
use policy::{Access, Direction, Nested, Pool};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use units::{ClientId, Duration, Instant, SplitMix64};
use wire::{FileRecord, Made};
use world::payload::{Phantom, PhantomMemory};
use world::{Address, Clock, Tasks};
use world_simulated::{Engine, Machine, SimulatedWorld};

/// Name of the one file of a trial.
const FILE: &str = "matrix";

/// Timeout of members that wait for one another. They wait for the slowest one.
const JOIN_TIMEOUT: Duration = Duration::from_ms(60_000);

/// State that all clients share.
struct Shared {
    scenario: Scenario,
    workload: Workload,
    seed: u64,
    servers: Rc<[Address]>,
    members: Rc<[Address]>,
    first_start: Cell<Option<Instant>>,
    last_end: Cell<Option<Instant>>,
    sums: RefCell<WorkloadTrial>,
    fault: RefCell<Option<Fault>>,
    running: Cell<u32>,
    waiting: RefCell<Option<Waker>>,
}

/// Runs trial `number` of a workload on the machine of a scenario, whose pattern, record size and
/// strategy do not matter. The clients use caches, which the scenario must give them.
///
/// # Errors
/// Fails when the scenario makes no sense or has no caches at clients, the file is too small, or
/// the file system reports a fault.
pub fn simulate_workload(
    scenario: &Scenario,
    workload: Workload,
    number: u32,
) -> Result<WorkloadTrial, UserError> {
    // Any file is a whole number of such records.
    let mut scenario = Scenario { record_bytes: 1, ..scenario.clone() };
    scenario.strategy = Strategy::Caching;
    if let Some(bytes) = workload.file_bytes() {
        scenario.file_bytes = bytes;
    }
    scenario.check()?;
    memory::check(&scenario)?;
    let refused = |cause: String, help: &str| {
        Err(UserError::usage("this workload cannot be simulated", cause, help))
    };
    if !scenario.has_client_caches() {
        return refused("its clients have no caches".to_owned(), "set client-cache");
    }
    if workload.step_bytes_max(scenario.block_bytes) > scenario.file_bytes {
        let cause = format!("the file has {} bytes", scenario.file_bytes);
        return refused(cause, "choose a larger file or smaller requests");
    }
    let seed = scenario.seed.wrapping_add(u64::from(number));
    let engine = Engine::new();
    let config = config::config(&scenario, seed)?;
    let machine = Machine::<Phantom>::new(engine.clone(), &config).map_err(|error| {
        let help = "choose a block size that fits the disks, and a network that can be built";
        UserError::usage("this machine cannot be simulated", error.to_string(), help)
    })?;
    let ended = run_on(&scenario, workload, seed, &engine, &machine);
    machine.switch_off();
    engine.shut_down();
    ended
}

fn run_on(
    scenario: &Scenario,
    workload: Workload,
    seed: u64,
    engine: &Engine,
    machine: &Rc<Machine<Phantom>>,
) -> Result<WorkloadTrial, UserError> {
    let mut tasks = servers::start(scenario, machine);
    let node = |number: u32| Address(format!("node:{number}"));
    let sums = WorkloadTrial {
        seconds: 0.0,
        disk_reads: 0,
        hits: 0,
        from_servers: 0,
        from_clients: 0,
        events: 0,
        digest: 0,
    };
    let shared = Rc::new(Shared {
        scenario: scenario.clone(),
        workload,
        seed,
        servers: (0..scenario.servers).map(node).collect(),
        members: (scenario.servers..scenario.servers + scenario.clients).map(node).collect(),
        first_start: Cell::default(),
        last_end: Cell::default(),
        sums: RefCell::new(sums),
        fault: RefCell::default(),
        running: Cell::new(scenario.clients),
        waiting: RefCell::default(),
    });
    tasks.extend((0..scenario.clients).map(|rank| {
        let world = machine.world(scenario.servers + rank);
        let shared = Rc::clone(&shared);
        world.clone().spawn(async move {
            let ended = client(world, &shared, ClientId(rank)).await;
            shared.client_ended(ended.as_ref().err());
            // Its connections stay open: others may still want lines of it.
            let _open = ended;
            std::future::pending::<()>().await;
        })
    }));
    let watched = Rc::clone(&shared);
    let ended = engine.run(async move { watched.all_ended().await });
    let (events, digest) = (engine.events(), engine.digest());
    drop(tasks);
    if let Some(fault) = shared.fault.borrow().as_ref() {
        return Err(UserError::of_fault("the simulated workload failed", fault));
    }
    let defect = |cause: String| {
        let help = "this is a defect of unisono; please report it with the command line";
        UserError::new(ExitCode::Failed, "the simulated workload did not end", cause, help)
    };
    ended.map_err(|deadlock| defect(deadlock.to_string()))?;
    let times = shared.first_start.get().zip(shared.last_end.get());
    let (start, end) = times.ok_or_else(|| defect("no client recorded a time".to_owned()))?;
    let seconds = end.since(start).as_seconds();
    Ok(WorkloadTrial { seconds, events, digest, ..*shared.sums.borrow() })
}

/// One client: opens the file, warms up, and runs its part of the workload. Returns its open
/// handles.
async fn client(
    world: SimulatedWorld<Phantom>,
    shared: &Shared,
    rank: ClientId,
) -> Result<impl Sized + use<>, Fault> {
    let Shared { scenario, workload, servers, members, .. } = shared;
    let client = Client::connect(world.clone(), servers, scenario.machine.costs).await?;
    let members = Rc::clone(members);
    let group = PeerMesh::join(client.clone(), 0, rank, members, JOIN_TIMEOUT).await?;
    let made = match rank {
        ClientId(0) => client.create_as(new_file(scenario)).await.map(|_| ()),
        _ => Ok(()),
    };
    group.agree(made).await?;
    let file = &client.open(FILE).await?;
    client.enable_cache(&scenario.client_cache, scenario.block_bytes).await?;
    group.barrier().await?;
    let memory = Phantom::client_memory(rank, workload.step_bytes_max(scenario.block_bytes));
    let shared_memory = match workload.collective() {
        Some(strategy) => Some(share(&group, memory, strategy).await?),
        None => None,
    };
    let mut numbers =
        SplitMix64::new(shared.seed.wrapping_mul(1 << 16).wrapping_add(rank.0.into()));
    let before = Cell::new((CacheCounts::default(), 0));
    let warmed_up = async || {
        group.barrier().await?;
        let counts = client.cache_counts().unwrap_or_default();
        before.set((counts, disk_reads(&client, file, rank).await?));
        group.barrier().await?;
        shared.client_starts(world.now());
        Ok(())
    };
    let step = async |step: WorkloadStep| match step {
        WorkloadStep::Read(range) => client.read_cached(file, range, &memory, 0).await,
        WorkloadStep::Write(range) => client.write_cached(file, range, &memory, 0).await,
        WorkloadStep::ReadTogether(nested) => {
            let pair = workload.collective().zip(shared_memory.as_ref());
            let (strategy, memory) = pair.expect("a workload with collective steps has a strategy");
            group.transfer(&collective_read(scenario, file, strategy, nested), memory).await
        }
    };
    let place = (rank.0, scenario.clients);
    let sizes = (scenario.block_bytes, scenario.file_bytes);
    workload.steps(place, sizes, |limit| numbers.below(limit), warmed_up, step).await?;
    shared.last_end.set(Some(world.now()));
    group.barrier().await?;
    let (counts, reads) = before.get();
    let after = client.cache_counts().unwrap_or_default();
    let reads = disk_reads(&client, file, rank).await? - reads;
    let sums = &mut *shared.sums.borrow_mut();
    sums.disk_reads += reads;
    sums.hits += after.hits - counts.hits;
    sums.from_servers += after.from_servers - counts.from_servers;
    sums.from_clients += after.from_clients - counts.from_clients;
    Ok((client, group, shared_memory))
}

/// Shares the memory of a client for collective transfers, before the clock starts.
async fn share(
    group: &PeerMesh<SimulatedWorld<Phantom>>,
    memory: PhantomMemory,
    strategy: Strategy,
) -> Result<SharedMemory<SimulatedWorld<Phantom>>, Fault> {
    let shared = group.share(memory).await?;
    if strategy == Strategy::TwoPhase {
        group.share_among_members(&shared).await?;
    }
    Ok(shared)
}

/// Collective read of the same bytes by all clients.
fn collective_read(
    scenario: &Scenario,
    file: &FileRecord,
    strategy: Strategy,
    nested: Nested,
) -> Transfer {
    Transfer {
        direction: Direction::Read,
        file: file.clone(),
        access: Access::Nested(vec![nested; scenario.clients as usize]),
        strategy,
        order: scenario.order,
        outstanding_per_disk: scenario.machine.outstanding_per_disk,
        node_group_size: scenario.node_group_size,
        sync: false,
    }
}

/// Returns the number of blocks that all servers have read from their disks, at client 0; others
/// return none.
async fn disk_reads(
    client: &Client<SimulatedWorld<Phantom>>,
    file: &FileRecord,
    rank: ClientId,
) -> Result<u64, Fault> {
    if rank != ClientId(0) {
        return Ok(0);
    }
    let statistics = client.buffers(file).await?;
    Ok(statistics.iter().map(|of_server| of_server.misses + of_server.prefetched).sum())
}

fn new_file(scenario: &Scenario) -> NewFile {
    NewFile {
        name: FILE.to_owned(),
        bytes: scenario.file_bytes,
        stripe: scenario.stripe(),
        pool: Pool::all(scenario.servers),
        buffering: scenario.buffering(),
        made: Made::default(),
    }
}

impl Shared {
    fn client_starts(&self, now: Instant) {
        let first = self.first_start.get().map_or(now, |first| first.min(now));
        self.first_start.set(Some(first));
    }

    fn client_ended(&self, fault: Option<&Fault>) {
        if let Some(fault) = fault {
            self.fault.borrow_mut().get_or_insert(fault.clone());
        }
        // After a fault, others may wait for this client for ever.
        let left = if fault.is_some() { 0 } else { self.running.get().saturating_sub(1) };
        self.running.set(left);
        if let Some(waker) = self.waiting.borrow_mut().take() {
            waker.wake();
        }
    }

    async fn all_ended(&self) {
        poll_fn(|context| {
            if self.running.get() == 0 {
                return Poll::Ready(());
            }
            *self.waiting.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
