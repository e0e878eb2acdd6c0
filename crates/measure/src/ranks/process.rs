//! The process of one rank: takes orders on standard input, one a line, and answers each on
//! standard output. It uses the client library as any program does.

use super::case::{CaseSpec, FileLife};
use super::checks::{Checks, Results};
use super::messages::Messages;
use super::rank::{LateConnection, NewFiles, RealRank};
use super::spec::{Answer, CaseOrder, Order, RankSpec, Work};
use crate::orders::ChildSide;
use client::{CollectiveOptions, ConnectionOptions, Group, Instance};
use cluster::pin_thread;
use interface::{ExitCode, UserError};
use policy::DiskOrder;
use program::Program;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use trace::Trace;
use units::{ClientId, MIB};

const CHILD: ChildSide = ChildSide {
    error: "a rank cannot read its orders",
    help: "start ranks with: unisono bench, or: unisono replay",
};

/// Runs the process of one rank until standard input ends. If it ends in the middle of an order,
/// the parent was killed, and the process ends at once.
///
/// # Errors
/// Fails when nobody reads its answers. Failures of orders are answered.
pub fn run_rank() -> Result<(), UserError> {
    let unanswered = Arc::new(AtomicU32::new(0));
    let lines = listen(Arc::clone(&unanswered));
    let Ok(line) = lines.recv() else { return Ok(()) };
    let connected = CHILD.parse(&line).and_then(connect);
    // The stack of a thread that starts now takes the gap before the aligned memory of the
    // connection. A transfer's memory of 2 to 4 MiB would lie there where it has no huge page.
    let worker = std::thread::spawn(move || work(connected, &lines, &unanswered));
    worker.join().map_err(|_| CHILD.lost("its worker thread panicked"))?
}

/// Carries out orders until there are no more.
fn work(
    connected: Result<(RankSpec, LateConnection), UserError>,
    lines: &Receiver<String>,
    unanswered: &AtomicU32,
) -> Result<(), UserError> {
    // The parent reports a failure. The end of this process makes those fail that wait for it.
    let failed = |error: UserError| CHILD.answer(&Answer::Failed(error.into()));
    let mut process = match connected.and_then(Process::start) {
        Ok(process) => process,
        Err(error) => return failed(error),
    };
    let mut answer = Answer::Ready;
    loop {
        unanswered.fetch_sub(1, Ordering::AcqRel);
        CHILD.answer(&answer)?;
        let Ok(line) = lines.recv() else { return Ok(()) };
        answer = match CHILD.parse(&line).and_then(|order| process.carry_out(order)) {
            Ok(answer) => answer,
            Err(error) => return failed(error),
        };
    }
}

/// Reads standard input on a thread of its own, which counts the orders that are not carried out.
fn listen(unanswered: Arc<AtomicU32>) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let Ok(line) = line else { break };
            unanswered.fetch_add(1, Ordering::AcqRel);
            if sender.send(line).is_err() {
                return;
            }
        }
        if unanswered.load(Ordering::Acquire) > 0 {
            std::process::exit(1);
        }
    });
    lines
}

/// Time without any event, beyond computations of other ranks, after which ranks are taken to wait
/// for one another for ever.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Connects to the instance, unless the program of a trace does so when it opens a file.
fn connect(spec: RankSpec) -> Result<(RankSpec, LateConnection), UserError> {
    // Before the threads of the connection start, which take it over.
    spec.cores.as_ref().map_or(Ok(()), pin_thread)?;
    let mut options = ConnectionOptions::from_environment()?;
    if let Work::Cases { host, .. } = &spec.work {
        // Transfers use memory of the rank.
        options.pool_bytes = MIB;
        options.peer_host = host.clone();
    }
    let connection = LateConnection::new(Instance::at(&spec.instance), options);
    if matches!(spec.work, Work::Cases { .. }) {
        connection.get()?;
    }
    Ok((spec, connection))
}

struct Process {
    number: u32,
    rank: RealRank,
    programs: Programs,
}

/// Programs that the rank carries out.
enum Programs {
    /// Program of a trace.
    Replay(Program),
    /// Programs of cases, by a group of this name and size, which is formed with the first case.
    Bench { name: String, clients: u32, group: Option<Group> },
}

impl Process {
    fn start((spec, connection): (RankSpec, LateConnection)) -> Result<Self, UserError> {
        let RankSpec { rank: number, block_bytes, in_place, work, .. } = spec;
        let mut options = CollectiveOptions::default();
        let mut memories = Vec::new();
        let (messages, programs) = match work {
            Work::Trace { trace, sockets, strategy, outstanding_per_disk } => {
                options.strategy = strategy.parse().map_err(|cause: String| {
                    let help = "choose one of these strategies";
                    UserError::usage("cannot replay the trace", cause, help)
                })?;
                options.outstanding_per_disk = outstanding_per_disk;
                let mut program = Program::of_trace(Trace::open(&trace)?)?;
                let messages = Messages::listen(&sockets, number)?;
                // Another rank may compute for so long before it answers.
                messages.set_patience(IDLE_MAX + Duration::from_nanos(program.longest_ns()) * 2);
                messages.set_polling(program.ranks_poll());
                let largest = program.memory_bytes(number);
                memories.push(vec![0x5a; usize::try_from(largest).unwrap_or(usize::MAX)]);
                program.keep_only(number);
                (messages, Programs::Replay(program))
            }
            Work::Cases { group, clients, .. } => {
                let name = format!("bench {group:x}");
                (Messages::alone(number)?, Programs::Bench { name, clients, group: None })
            }
        };
        let rank = RealRank {
            connection: Rc::new(connection),
            messages: Rc::new(messages),
            options,
            names: BTreeMap::new(),
            new_files: NewFiles::Empty,
            block_bytes,
            in_place,
            run: String::new(),
            begun: Instant::now(),
            memories: Rc::new(RefCell::new(memories)),
            checks: None,
        };
        Ok(Self { number, rank, programs })
    }

    fn carry_out(&mut self, order: Order) -> Result<Answer, UserError> {
        let messages = &self.rank.messages;
        match (order, &mut self.programs) {
            (Order::Connect, Programs::Replay(program)) => {
                messages.connect(program.ranks()).map(|()| Answer::Ready)
            }
            (Order::Run { names, run }, Programs::Replay(program)) => {
                // Each run connects, as the program did.
                let connection = Rc::new(self.rank.connection.anew());
                let rank = RealRank { names, run, connection, ..self.rank.clone() };
                messages.block_on(program.run_rank(self.number, &rank))?.map(Answer::Ended)
            }
            (Order::Measure(order), Programs::Bench { name, clients, group }) => {
                let joined = match group {
                    Some(group) => Ok(&*group),
                    None => (self.rank.connection.get())
                        .and_then(|connection| Group::form(connection, name, self.number, *clients))
                        .map(|formed| &*group.insert(formed)),
                };
                let measured = joined.and_then(|group| {
                    let CaseSpec { pattern, file_bytes, strategy, .. } = &order.case;
                    let what = format!("{pattern} of {file_bytes} bytes by {strategy} failed");
                    measure(&self.rank, group, &order).map_err(|error| error.doing(what))
                });
                // The process stays: its end would fail others that have yet to learn the cause.
                Ok(measured.unwrap_or_else(|error| Answer::Failed(error.into())))
            }
            _ => Err(CHILD.lost("it has no program for an order")),
        }
    }
}

/// Measures a case: carries its program out as often as the case asks for.
fn measure(rank: &RealRank, group: &Group, order: &CaseOrder) -> Result<Answer, UserError> {
    let case = &order.case;
    let (strategy, pattern) = case.parse()?;
    let access = Arc::new(case.access(group.size())?);
    let program = Program::of_access(pattern.direction, &access, case.file_bytes);
    let checks = Rc::new(Checks::new(group, order, (pattern.direction, (*access).clone()))?);
    let rank = RealRank {
        options: CollectiveOptions {
            strategy,
            order: DiskOrder::Sorted,
            outstanding_per_disk: case.outstanding_per_disk,
            node_group_size: case.node_group_size,
            sync: case.sync,
            relaxed: false,
        },
        names: program.names("").into_keys().map(|name| (name, order.file.clone())).collect(),
        new_files: match order.life {
            FileLife::Fresh | FileLife::Kept => NewFiles::OfBytes(case.file_bytes),
            FileLife::Existing | FileLife::Lasting => NewFiles::Existing,
        },
        checks: Some(Rc::clone(&checks)),
        ..rank.clone()
    };
    let run = |_| rank.messages.block_on(program.run_rank(group.rank(), &rank))?.map(|_| ());
    let measured = (0..case.repeat).try_for_each(run).and_then(|()| checks.take_results());
    let Some((file, _)) = checks.opened() else {
        // Its file is not of this case, or does not exist.
        return measured.and_then(|_| Err(CHILD.lost("the case has no transfer")));
    };
    let closed = file.close();
    let moved_bytes = access.own_part(ClientId(group.rank())).bytes();
    let peak_bytes = peak_bytes(std::process::id());
    let measured = measured.map(|Results { spans, counted_ns, wrong }| Answer::Measured {
        spans,
        counted_ns,
        moved_bytes,
        wrong,
        peak_bytes,
    });
    if !matches!(order.life, FileLife::Kept | FileLife::Lasting) {
        // No client has the file open any more. After a failure it goes all the same: another
        // client may have stopped.
        let together = if measured.is_ok() { group.barrier() } else { Ok(()) };
        let removed = match group.rank() {
            0 if rank.in_place => remove_in_place(&order.file),
            0 => group.connection().remove(&order.file),
            _ => Ok(()),
        };
        let measured = measured?;
        together.and(removed).and_then(|()| group.barrier())?;
        return closed.map(|()| measured);
    }
    closed?;
    measured
}

/// Removes the ordinary file of a case.
fn remove_in_place(path: &str) -> Result<(), UserError> {
    std::fs::remove_file(path).map_err(|error| {
        let (what, help) = (format!("cannot remove {path}"), "remove it by hand");
        UserError::new(ExitCode::Failed, what, error.to_string(), help)
    })
}

/// Returns the peak memory of a process so far, in bytes; 0 if it is unknown.
pub(crate) fn peak_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
