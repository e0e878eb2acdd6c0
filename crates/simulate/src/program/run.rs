//! The run of a program: servers and ranks on a fresh machine.

use super::mailbox::Mailbox;
use super::rank::SimulatedRank;
use crate::memory;
use crate::scenario::Scenario;
use crate::trials::{config, servers};
use filesystem::{BufferPool, Client, Fault};
use interface::{ExitCode, UserError};
use program::{Program, RankReport};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use units::{Duration, MIB};
use world::payload::{Kind, Phantom};
use world::{Address, Scope, Tasks};
use world_simulated::{Engine, Machine, SharedRecorder, SimulatedWorld, TaskHandle};

/// Result of a simulated program.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgramOutcome {
    /// Simulated time from the begin of the first rank to the end of the last.
    pub seconds: f64,
    /// Times of each rank.
    pub ranks: Vec<RankReport>,
    /// Processor time of the servers together, from the begin of the first rank on.
    pub server_processor_seconds: f64,
    /// Processor time of the ranks together.
    pub rank_processor_seconds: f64,
    /// Requests that the servers answered, those that connect ranks and make files included.
    pub server_requests: u64,
    /// Events of the engine.
    pub events: u64,
    /// Digest of the whole simulation: equal on every host.
    pub digest: u64,
}

/// Bytes of the buffers that servers of small requests reach, as in the library.
const POOL_BYTES: u64 = 64 * MIB;

/// Carries a program out on the machine of a scenario, with a client for each rank. Its pattern,
/// size and record size are not used. `seed` is of the disk layout and everything else that varies.
///
/// # Errors
/// Fails when the scenario makes no sense, and when a call of the program fails.
pub fn simulate_program(
    scenario: &Scenario,
    program: &Arc<Program>,
    seed: u64,
) -> Result<ProgramOutcome, UserError> {
    run(scenario, program, seed, Engine::new())
}

/// [`simulate_program`] with a recorder.
pub(crate) fn simulate_program_recorded(
    scenario: &Scenario,
    program: &Arc<Program>,
    recorder: SharedRecorder,
) -> Result<ProgramOutcome, UserError> {
    run(scenario, program, scenario.seed, Engine::recorded(recorder))
}

fn run(
    scenario: &Scenario,
    program: &Arc<Program>,
    seed: u64,
    engine: Engine,
) -> Result<ProgramOutcome, UserError> {
    let scenario = of_program(scenario, program);
    check_program(&scenario, program)?;
    let config = config::config(&scenario, seed)?;
    let machine = Machine::<Phantom>::new(engine.clone(), &config).map_err(|error| {
        UserError::usage(
            "this machine cannot be simulated",
            error.to_string(),
            "choose a block size that fits the disks, and a network that can be built",
        )
    })?;
    let mut tasks = Vec::new();
    let ended = run_on(&scenario, program, &engine, &machine, &mut tasks);
    machine.switch_off();
    drop(tasks);
    engine.shut_down();
    ended
}

/// Scenario with a client for each rank of a program.
fn of_program(scenario: &Scenario, program: &Program) -> Scenario {
    Scenario { clients: program.ranks(), ..scenario.clone() }
}

/// Refuses a scenario that makes no sense, or on which the program may take too much memory.
///
/// # Errors
/// Names the keys to change.
pub(crate) fn check_program(scenario: &Scenario, program: &Program) -> Result<(), UserError> {
    let scenario = of_program(scenario, program);
    scenario.check()?;
    memory::check_program(&scenario, program.moved_extent_bytes())
}

/// State that all ranks share.
struct Ranks {
    scenario: Rc<Scenario>,
    engine: Engine,
    program: Arc<Program>,
    names: Rc<BTreeMap<String, String>>,
    servers: Rc<[Address]>,
    mailboxes: Rc<[Mailbox]>,
    ended: RefCell<Vec<(u32, RankReport)>>,
    fault: RefCell<Option<Fault>>,
    waiting: RefCell<Option<Waker>>,
}

impl Ranks {
    fn has_ended(&self, number: u32, ended: Result<RankReport, Fault>) {
        match ended {
            Ok(report) => self.ended.borrow_mut().push((number, report)),
            Err(fault) => drop(self.fault.borrow_mut().get_or_insert(fault)),
        }
        if let Some(waker) = self.waiting.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Waits until all ranks have ended, or one has failed.
    async fn all_ended(&self) {
        poll_fn(|context| {
            let all = self.ended.borrow().len() == self.mailboxes.len();
            if all || self.fault.borrow().is_some() {
                return Poll::Ready(());
            }
            *self.waiting.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

fn run_on(
    scenario: &Scenario,
    program: &Arc<Program>,
    engine: &Engine,
    machine: &Rc<Machine<Phantom>>,
    tasks: &mut Vec<TaskHandle>,
) -> Result<ProgramOutcome, UserError> {
    tasks.extend(servers::start(scenario, machine));
    let all = Rc::new(Ranks {
        scenario: Rc::new(scenario.clone()),
        engine: engine.clone(),
        program: Arc::clone(program),
        names: Rc::new(program.names("file")),
        servers: (0..scenario.servers).map(|node| Address(format!("node:{node}"))).collect(),
        mailboxes: (0..program.ranks()).map(|_| Mailbox::default()).collect(),
        ended: RefCell::default(),
        fault: RefCell::default(),
        waiting: RefCell::default(),
    });
    let worlds = (0..program.ranks()).map(|rank| machine.world(scenario.servers + rank));
    let starting = start(Rc::clone(&all), worlds.collect());
    let ranks = engine.run(starting).map_err(|deadlock| never_ends(&deadlock.to_string()))?;
    let ranks = ranks.map_err(failed)?;
    let nodes = [0..scenario.servers, scenario.servers..scenario.servers + program.ranks()];
    let used = || {
        let busy = |node: u32| machine.processor_busy(node).as_seconds();
        nodes.clone().map(|nodes| nodes.map(busy).sum::<f64>())
    };
    let before = used();
    let asking = ranks.first().map(|rank| rank.client.clone());
    tasks.extend(ranks.into_iter().map(|rank| {
        let all = Rc::clone(&all);
        rank.world.clone().spawn(async move {
            let ended = all.program.run_rank(rank.number, &rank).await;
            all.has_ended(rank.number, ended);
            // Its connections stay open.
            std::future::pending::<()>().await;
        })
    }));
    let watched = Rc::clone(&all);
    let ran = engine.run(async move { watched.all_ended().await });
    if let Some(fault) = all.fault.borrow_mut().take() {
        return Err(failed(fault));
    }
    ran.map_err(|deadlock| never_ends(&deadlock.to_string()))?;
    machine.stop_recording();
    let mut ended = all.ended.take();
    ended.sort_by_key(|(number, _)| *number);
    let ranks: Vec<RankReport> = ended.into_iter().map(|(_, report)| report).collect();
    let longest = ranks.iter().map(|report| report.elapsed).max().unwrap_or(Duration::ZERO);
    let after = used();
    let (events, digest) = (engine.events(), engine.digest());
    // After the digest, which is of the program alone.
    let server_requests = asking.map_or(Ok(0), |client| requests(engine, client))?;
    Ok(ProgramOutcome {
        seconds: longest.as_seconds(),
        ranks,
        server_processor_seconds: after[0] - before[0],
        rank_processor_seconds: after[1] - before[1],
        server_requests,
        events,
        digest,
    })
}

fn failed(fault: Fault) -> UserError {
    UserError::of_fault("the simulated program failed", &fault)
}

/// Returns the number of requests that all servers have answered.
fn requests(engine: &Engine, client: Client<SimulatedWorld<Phantom>>) -> Result<u64, UserError> {
    let asked = engine.run(async move { client.status().await });
    let all = asked.map_err(|deadlock| never_ends(&deadlock.to_string()))?;
    all.into_iter().try_fold(0, |sum, status| Ok(sum + status?.requests)).map_err(failed)
}

/// Connects the ranks, and makes the files that they expect.
async fn start(
    all: Rc<Ranks>,
    worlds: Vec<SimulatedWorld<Phantom>>,
) -> Result<Vec<SimulatedRank<Phantom>>, Fault> {
    let mut ranks = Vec::new();
    for (number, world) in (0..).zip(worlds) {
        ranks.push(connect(&all, number, world).await?);
    }
    for rank in &ranks {
        rank.enable_cache().await?;
    }
    if let Some(rank) = ranks.first() {
        for (name, bytes) in all.program.existing_files() {
            rank.make_file(&name, bytes).await?;
            if all.program.has_warm_files() {
                rank.fill_file(&name, bytes).await?;
            }
        }
    }
    Ok(ranks)
}

async fn connect<P: Kind>(
    all: &Ranks,
    number: u32,
    world: SimulatedWorld<P>,
) -> Result<SimulatedRank<P>, Fault> {
    let costs = all.scenario.machine.costs;
    let client = Client::connect(world.clone(), &all.servers, costs).await?;
    let pool = BufferPool::new(&client, POOL_BYTES).await?;
    Ok(SimulatedRank {
        number,
        engine: all.engine.clone(),
        travelling: Rc::new(Scope::new(world.clone())),
        world,
        client,
        pool,
        mailboxes: Rc::clone(&all.mailboxes),
        scenario: Rc::clone(&all.scenario),
        names: Rc::clone(&all.names),
    })
}

fn never_ends(cause: &str) -> UserError {
    UserError::new(
        ExitCode::Failed,
        "the simulated program does not end",
        cause,
        "check the trace: unisono trace info TRACE; if it is whole, report this as a defect",
    )
}
