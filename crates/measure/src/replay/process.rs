//! The process of one rank: takes orders on standard input, one a line, and answers each on
//! standard output.

use super::messages::Messages;
use super::rank::RealRank;
use super::spec::{Answer, Order, RankSpec};
use crate::orders::ChildSide;
use client::{Connection, Instance};
use filesystem::collective::Strategy;
use interface::UserError;
use program::Program;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use trace::Trace;

const CHILD: ChildSide = ChildSide {
    error: "a rank of a replay cannot read its orders",
    help: "start replays with: unisono replay",
};

/// Runs the process of one rank of a replay until standard input ends. If it ends in the middle of
/// an order, the parent was killed, and the process ends at once.
///
/// # Errors
/// Fails when its orders cannot be read. Failures of orders are answered.
pub fn replay_rank() -> Result<(), UserError> {
    let is_busy = Arc::new(AtomicBool::new(true));
    let lines = listen(Arc::clone(&is_busy));
    let Ok(line) = lines.recv() else { return Ok(()) };
    let mut process = match CHILD.parse(&line).and_then(Process::start) {
        Ok(process) => process,
        // The parent reports it.
        Err(error) => return CHILD.answer(&Answer::Failed(error.into())),
    };
    CHILD.answer(&Answer::Done)?;
    is_busy.store(false, Ordering::Release);
    while let Ok(line) = lines.recv() {
        is_busy.store(true, Ordering::Release);
        match CHILD.parse(&line).and_then(|order| process.carry_out(order)) {
            Ok(done) => CHILD.answer(&done)?,
            // Its end makes those fail that wait for it.
            Err(error) => return CHILD.answer(&Answer::Failed(error.into())),
        }
        is_busy.store(false, Ordering::Release);
    }
    Ok(())
}

fn listen(is_busy: Arc<AtomicBool>) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                return;
            }
        }
        if is_busy.load(Ordering::Acquire) {
            std::process::exit(1);
        }
    });
    lines
}

/// Time without any event, beyond computations of other ranks, after which ranks are taken to wait
/// for one another for ever.
const IDLE_MAX: Duration = Duration::from_secs(60);

struct Process {
    spec: RankSpec,
    program: Program,
    strategy: Strategy,
    connection: Connection,
    messages: Rc<Messages>,
    /// Memories of transfers, for all runs. The first one holds the largest transfer, so that no
    /// page of it is fresh when a run begins.
    memories: Rc<RefCell<Vec<Vec<u8>>>>,
}

impl Process {
    fn start(spec: RankSpec) -> Result<Self, UserError> {
        let strategy = spec.strategy.parse().map_err(|cause: String| {
            UserError::usage("cannot replay the trace", cause, "choose one of these strategies")
        })?;
        let mut program = Program::new(Trace::open(&spec.trace)?.ranks)?;
        // Another rank may compute for so long before it answers.
        let patience = IDLE_MAX + Duration::from_nanos(program.longest_ns()) * 2;
        let largest = usize::try_from(program.memory_bytes(spec.rank)).unwrap_or(usize::MAX);
        let memories = Rc::new(RefCell::new(vec![vec![0x5a; largest]]));
        program.keep_only(spec.rank);
        let connection = Connection::open(&Instance::at(&spec.instance))?;
        let messages = Rc::new(Messages::listen(&spec.sockets, spec.rank)?);
        messages.set_patience(patience);
        Ok(Self { spec, program, strategy, connection, messages, memories })
    }

    fn carry_out(&mut self, order: Order) -> Result<Answer, UserError> {
        match order {
            Order::Connect => {
                self.messages.connect(self.program.ranks())?;
                Ok(Answer::Done)
            }
            Order::Run { names, run } => {
                let rank = RealRank {
                    spec: self.spec.clone(),
                    strategy: self.strategy,
                    connection: self.connection.clone(),
                    messages: Rc::clone(&self.messages),
                    names,
                    run,
                    begun: Instant::now(),
                    memories: Rc::clone(&self.memories),
                };
                let running = self.program.run_rank(self.spec.rank, &rank);
                self.messages.block_on(running)?.map(Answer::Ended)
            }
        }
    }
}
