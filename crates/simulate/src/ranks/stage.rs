//! The machine of a scenario with its servers, and the run of all ranks on it.

use super::{config, servers};
use crate::scenario::Scenario;
use filesystem::Fault;
use interface::UserError;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};
use world::payload::Kind;
use world::{Address, Tasks};
use world_simulated::{Engine, Machine, SimulatedWorld, TaskHandle};

/// Machine of a scenario, on whose first nodes the servers run.
pub(crate) struct Stage<P: Kind> {
    pub(crate) engine: Engine,
    pub(crate) machine: Rc<Machine<P>>,
    servers: u32,
    tasks: RefCell<Vec<TaskHandle>>,
}

/// Reason why ranks did not come to their end.
pub(crate) enum Ended {
    /// A call of one failed.
    Failed(Fault),
    /// All wait for one another.
    Never(String),
}

/// Builds the machine of a scenario, starts its servers, and gives it to `act`. Whatever runs on it
/// ends with the return.
///
/// # Errors
/// Those of `act`; fails when the machine cannot be built.
pub(crate) fn on_stage<P: Kind, T>(
    scenario: &Scenario,
    seed: u64,
    engine: Engine,
    act: impl FnOnce(&Stage<P>) -> Result<T, UserError>,
) -> Result<T, UserError> {
    let config = config::config(scenario, seed)?;
    let machine = Machine::<P>::new(engine.clone(), &config).map_err(|error| {
        UserError::usage(
            "this machine cannot be simulated",
            error.to_string(),
            "choose a block size that fits the disks, and a network that can be built",
        )
    })?;
    let tasks = RefCell::new(servers::start(scenario, &machine));
    let stage = Stage { engine, machine, servers: scenario.servers, tasks };
    let ended = act(&stage);
    stage.machine.switch_off();
    stage.tasks.borrow_mut().clear();
    stage.engine.shut_down();
    ended
}

impl<P: Kind> Stage<P> {
    /// Addresses of the servers, by number.
    pub(crate) fn server_addresses(&self) -> Rc<[Address]> {
        (0..self.servers).map(address).collect()
    }

    /// Addresses of `count` ranks.
    pub(crate) fn rank_addresses(&self, count: u32) -> Rc<[Address]> {
        (self.servers..self.servers + count).map(address).collect()
    }

    /// World of a rank: ranks follow the servers.
    pub(crate) fn rank_world(&self, rank: u32) -> SimulatedWorld<P> {
        self.machine.world(self.servers + rank)
    }

    /// Loses all that a server has, and starts it again without. With `refills`, it is filled.
    pub(crate) fn lose_server(&self, scenario: &Scenario, id: u32, refills: bool) {
        self.machine.kill(id);
        let task = servers::start_without_data(scenario, &self.machine, id, refills);
        self.tasks.borrow_mut().push(task);
    }

    /// Runs what each rank does on its node, until all have ended or one has failed. Returns the
    /// results by rank. What comes beside a result, such as connections, stays open: closing it
    /// costs time of the other nodes, with thousands of ranks more than a transfer.
    pub(crate) fn run_ranks<T: 'static, Stays: 'static, F>(
        &self,
        ranks: impl IntoIterator<Item = F>,
    ) -> Result<Vec<T>, Ended>
    where
        F: Future<Output = Result<(T, Stays), Fault>> + 'static,
    {
        let ranks: Vec<F> = ranks.into_iter().collect();
        let progress = Rc::new(Progress::new(ranks.len()));
        for (number, rank) in (0..).zip(ranks) {
            let progress = Rc::clone(&progress);
            let task = self.rank_world(number).spawn(async move {
                let _stays = match rank.await {
                    Ok((result, stays)) => {
                        progress.ended(number as usize, result);
                        Some(stays)
                    }
                    Err(fault) => {
                        progress.failed(fault);
                        None
                    }
                };
                std::future::pending::<()>().await;
            });
            self.tasks.borrow_mut().push(task);
        }
        let watched = Rc::clone(&progress);
        let ran = self.engine.run(async move { watched.until_all_ended().await });
        if let Some(fault) = progress.fault.borrow_mut().take() {
            return Err(Ended::Failed(fault));
        }
        ran.map_err(|deadlock| Ended::Never(deadlock.to_string()))?;
        Ok(progress.results.take().into_iter().flatten().collect())
    }
}

fn address(node: u32) -> Address {
    Address(format!("node:{node}"))
}

/// Progress of all ranks.
struct Progress<T> {
    results: RefCell<Vec<Option<T>>>,
    running: std::cell::Cell<usize>,
    fault: RefCell<Option<Fault>>,
    waiting: RefCell<Option<Waker>>,
}

impl<T> Progress<T> {
    fn new(ranks: usize) -> Self {
        Self {
            results: RefCell::new((0..ranks).map(|_| None).collect()),
            running: std::cell::Cell::new(ranks),
            fault: RefCell::default(),
            waiting: RefCell::default(),
        }
    }

    fn ended(&self, rank: usize, result: T) {
        self.results.borrow_mut()[rank] = Some(result);
        self.running.set(self.running.get() - 1);
        self.wake();
    }

    /// Keeps the first fault: others may wait for that rank for ever.
    fn failed(&self, fault: Fault) {
        self.fault.borrow_mut().get_or_insert(fault);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waiting.borrow_mut().take() {
            waker.wake();
        }
    }

    async fn until_all_ended(&self) {
        poll_fn(|context| {
            if self.running.get() == 0 || self.fault.borrow().is_some() {
                return Poll::Ready(());
            }
            *self.waiting.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
