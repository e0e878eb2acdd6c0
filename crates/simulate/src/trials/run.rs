//! One trial: starts servers and clients on a fresh machine, transfers once, and reads the clock.

use super::availability::{Period, availability_of};
use super::verify::{Verify, verify};
use super::{config, servers};
use crate::scenario::{CONNECTED_AT_ONCE_MAX, Scenario};
use filesystem::collective::{Strategy, Transfer};
use filesystem::{Client, Fault, NewFile, PeerMesh};
use interface::Availability;
use interface::{ExitCode, UserError};
use policy::{Access, Pool};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use units::{ClientId, Duration, Instant};
use wire::Made;
use world::{Address, Clock, Tasks};
use world_simulated::{Engine, Machine, SimulatedWorld, Slice, TaskHandle, Track, What};

/// Result of one trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Simulated seconds of the transfer.
    pub(crate) seconds: f64,
    /// Events of the engine, from start to end.
    pub(crate) events: u64,
    /// Digest of the whole simulation.
    pub(crate) digest: u64,
    /// True when every byte was traced to its place.
    pub(crate) verified: bool,
    /// Processor time left on the servers, if the scenario asks for it.
    pub(crate) availability: Option<Availability>,
}

/// Progress of all clients.
struct Progress<P: Verify> {
    first_start: Cell<Option<Instant>>,
    last_end: Cell<Option<Instant>>,
    memories: RefCell<Vec<Option<P::Memory>>>,
    fault: RefCell<Option<Fault>>,
    running: Cell<u32>,
    waiting: RefCell<Option<Waker>>,
}

/// Inputs of the clients, shared by all of them.
#[derive(Clone)]
struct Start {
    scenario: Rc<Scenario>,
    access: Rc<Access>,
    /// Addresses of the servers by number, and of the group's members by rank.
    servers: Rc<[Address]>,
    members: Rc<[Address]>,
}

/// The name of the one file of a trial.
const FILE: &str = "matrix";

/// Timeout of members that wait for one another. They start together, so any value will do.
const JOIN_TIMEOUT: Duration = Duration::from_ms(60_000);

/// Runs one trial to its end, on an engine that has not run yet.
pub(crate) fn run_trial<P: Verify>(
    scenario: &Scenario,
    access: &Access,
    seed: u64,
    engine: Engine,
) -> Result<Outcome, UserError> {
    let config = config::config(scenario, seed)?;
    let machine = Machine::<P>::new(engine.clone(), &config).map_err(|error| {
        UserError::usage(
            "this machine cannot be simulated",
            error.to_string(),
            "choose a block size that fits the disks, and a network that can be built",
        )
    })?;
    let mut tasks = Vec::new();
    let ended = run_on(scenario, access, &engine, &machine, &mut tasks);
    machine.switch_off();
    drop(tasks);
    engine.shut_down();
    ended
}

fn run_on<P: Verify>(
    scenario: &Scenario,
    access: &Access,
    engine: &Engine,
    machine: &Rc<Machine<P>>,
    tasks: &mut Vec<TaskHandle>,
) -> Result<Outcome, UserError> {
    tasks.extend(servers::start(scenario, machine));
    let progress = Rc::new(Progress::<P> {
        first_start: Cell::default(),
        last_end: Cell::default(),
        memories: RefCell::new(vec![None; scenario.clients as usize]),
        fault: RefCell::default(),
        running: Cell::new(scenario.clients),
        waiting: RefCell::default(),
    });
    let node = |number: u32| Address(format!("node:{number}"));
    let start = Start {
        servers: (0..scenario.servers).map(node).collect(),
        members: (scenario.servers..scenario.servers + scenario.clients).map(node).collect(),
        scenario: Rc::new(scenario.clone()),
        access: Rc::new(access.clone()),
    };
    tasks.extend((0..scenario.clients).map(|rank| {
        let world = machine.world(scenario.servers + rank);
        let (start, progress) = (start.clone(), Rc::clone(&progress));
        world.clone().spawn(async move {
            let (ended, _stays) = match client(world, start, ClientId(rank), &progress).await {
                Ok(stays) => (Ok(()), Some(stays)),
                Err(fault) => (Err(fault), None),
            };
            progress.client_ended(ended);
            // The connections stay open. Closing them costs time of the other nodes: with thousands
            // of clients, more than the transfer.
            std::future::pending::<()>().await;
        })
    }));
    let watched = Rc::clone(&progress);
    let ended = engine.run(async move { watched.all_ended().await });
    ended.map_err(|deadlock| defect(scenario, &deadlock.to_string()))?;
    if let Some(fault) = progress.fault.borrow().as_ref() {
        return Err(UserError::of_fault("the simulated transfer failed", fault));
    }
    let (events, digest) = (engine.events(), engine.digest());
    let times = progress.first_start.get().zip(progress.last_end.get());
    let (start, end) = times.ok_or_else(|| defect(scenario, "no client recorded a time"))?;
    let availability = scenario.availability.then(|| {
        let traces = (0..scenario.servers).map(|server| machine.processor_trace(server));
        availability_of(&traces.collect::<Vec<_>>(), Period { start, end })
    });
    engine.record(|| {
        let (track, what) = (Track::Transfer, What::Transfer);
        Slice { track, from: start, until: end, what, phases: &[] }
    });
    machine.stop_recording();
    let memories: Vec<P::Memory> = progress.memories.borrow_mut().drain(..).flatten().collect();
    let verified = verify::<P>(scenario, access, engine, machine, memories)?;
    let seconds = end.since(start).as_seconds();
    Ok(Outcome { seconds, events, digest, verified, availability })
}

fn defect(scenario: &Scenario, cause: &str) -> UserError {
    UserError::new(
        ExitCode::Failed,
        format!("the simulation of {} by {} did not end", scenario.pattern, scenario.strategy),
        cause,
        "this is a defect of unisono; please report it with the command line",
    )
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

/// One client: joins the group, opens the file, shares its memory, and transfers once. Returns its
/// open handles; dropping them closes its connections.
async fn client<P: Verify>(
    world: SimulatedWorld<P>,
    start: Start,
    rank: ClientId,
    progress: &Progress<P>,
) -> Result<impl Sized + use<P>, Fault> {
    let Start { scenario, access, servers, members } = start;
    let costs = scenario.machine.costs;
    let connects_when_needed = scenario.servers > CONNECTED_AT_ONCE_MAX;
    let client = match connects_when_needed {
        true => Client::connecting_when_needed(world.clone(), servers, costs),
        false => Client::connect(world.clone(), &servers, costs).await?,
    };
    let group = PeerMesh::join(client.clone(), 0, rank, members, JOIN_TIMEOUT).await?;
    let file = match rank {
        ClientId(0) => client.create_as(new_file(&scenario)).await.map(Some),
        _ => Ok(None),
    };
    group.agree(file.as_ref().map(|_| ()).map_err(Clone::clone)).await?;
    let file = match file? {
        Some(created) => created,
        None if connects_when_needed => client.open_beside(client.stat_file(FILE).await?),
        None => client.open(FILE).await?,
    };
    let transfer = Transfer {
        direction: scenario.pattern.direction,
        file,
        access: (*access).clone(),
        strategy: scenario.strategy,
        order: scenario.order,
        outstanding_per_disk: scenario.machine.outstanding_per_disk,
        node_group_size: scenario.node_group_size,
        sync: config::waits_for_medium(&scenario),
    };
    let memory = P::client_memory(rank, access.memory_bytes(rank));
    let shared = group.share(memory).await?;
    if connects_when_needed || scenario.strategy == Strategy::DiskDirected {
        group.agree(group.reach(&transfer).await).await?;
    }
    if scenario.strategy == Strategy::TwoPhase {
        // Members share memory before the clock starts, with every strategy.
        group.share_among_members(&shared).await?;
    }
    if scenario.uses_client_caches() {
        client.enable_cache(&scenario.client_cache, scenario.block_bytes).await?;
    }
    group.barrier().await?;
    progress.client_starts(world.now());
    group.transfer(&transfer, &shared).await?;
    progress.last_end.set(Some(world.now()));
    progress.memories.borrow_mut()[rank.0 as usize] = Some(shared.memory().clone());
    Ok((client, group, shared))
}

impl<P: Verify> Progress<P> {
    fn client_starts(&self, now: Instant) {
        let first = self.first_start.get().map_or(now, |first| first.min(now));
        self.first_start.set(Some(first));
    }

    fn client_ended(&self, ended: Result<(), Fault>) {
        if let Err(fault) = ended {
            self.fault.borrow_mut().get_or_insert(fault);
        }
        self.running.set(self.running.get() - 1);
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
