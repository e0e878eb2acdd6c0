//! One client process of a bench: takes orders on standard input, one a line, and answers each on
//! standard output. It uses the client library as any program does.

use super::limits::peak_bytes;
use super::rank::{BenchRank, Results};
use super::spec::{CaseOrder, CaseResult, CaseSpec, ClientReady, ClientSpec, FileLife};
use crate::orders::ChildSide;
use client::{Connection, ConnectionOptions, Group, Instance};
use futures_util::FutureExt;
use interface::UserError;
use program::Program;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use units::{ClientId, MIB};

const CHILD: ChildSide = ChildSide {
    error: "a bench client cannot read its orders",
    help: "start clients with: unisono bench",
};

/// Orders that wait to be carried out; a parent sends one at a time.
const ORDERS_MAX: usize = 16;

/// Events of a client.
enum Event {
    /// A line of standard input.
    Line(std::io::Result<String>),
    /// Standard input has ended: the parent is done, or was killed.
    ParentLeft,
    /// The last order was carried out and answered.
    Answered(Result<(), UserError>),
}

/// Runs one client of a bench until standard input ends. If it ends in the middle of an order, the
/// parent was killed, and the result is not needed.
///
/// # Errors
/// Fails when the client cannot join the group, or its orders cannot be read.
pub fn bench_client() -> Result<(), UserError> {
    let (happens, events) = channel();
    listen(happens.clone());
    let spec: ClientSpec = match events.recv() {
        Ok(Event::Line(line)) => parse(line)?,
        _ => return Ok(()),
    };
    let connected = connect(&spec);
    let (orders, worker) = match connected {
        Ok(connection) => start(connection, spec, happens),
        // The parent reports the failure.
        Err(error) => return CHILD.answer(&ClientReady::Failed(error.into())),
    };
    CHILD.answer(&ClientReady::Connected)?;
    if forward(&events, &orders)? == Work::Abandoned {
        return Ok(());
    }
    drop(orders);
    // The client leaves its group in peace.
    worker.join().map_err(|_| CHILD.lost("its worker thread panicked"))
}

/// State of the worker when standard input has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Every order is answered.
    Done,
    /// An order is under way; it ends with the process.
    Abandoned,
}

/// Passes lines to the worker until standard input ends. If that is in the middle of an order,
/// returns at once.
fn forward(events: &Receiver<Event>, orders: &SyncSender<CaseOrder>) -> Result<Work, UserError> {
    let mut is_busy = false;
    while let Ok(event) = events.recv() {
        match event {
            Event::Line(line) => {
                is_busy = true;
                orders.send(parse(line)?).map_err(|_| CHILD.lost("its worker thread has ended"))?;
            }
            Event::Answered(answered) => {
                is_busy = false;
                answered?;
            }
            Event::ParentLeft if is_busy => return Ok(Work::Abandoned),
            Event::ParentLeft => break,
        }
    }
    Ok(Work::Done)
}

/// Reads standard input on a thread of its own.
fn listen(happens: Sender<Event>) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if happens.send(Event::Line(line)).is_err() {
                return;
            }
        }
        let _ = happens.send(Event::ParentLeft);
    });
}

/// Carries out orders on a thread of its own. The group is formed with the first order.
fn start(
    connection: Connection,
    spec: ClientSpec,
    happens: Sender<Event>,
) -> (SyncSender<CaseOrder>, std::thread::JoinHandle<()>) {
    let (orders, received) = sync_channel::<CaseOrder>(ORDERS_MAX);
    let worker = std::thread::spawn(move || {
        let name = format!("bench {:x}", spec.group);
        let joined = Group::form(&connection, &name, spec.rank, spec.clients).map(Rc::new);
        for order in received {
            let measured = match &joined {
                Ok(group) => measure(group, &spec, &order).map_err(|error| {
                    let CaseSpec { pattern, file_bytes, strategy, .. } = &order.case;
                    error.doing(format!("{pattern} of {file_bytes} bytes by {strategy} failed"))
                }),
                Err(error) => Err(error.clone()),
            };
            let answer = measured.unwrap_or_else(|error| CaseResult::Failed(error.into()));
            if happens.send(Event::Answered(CHILD.answer(&answer))).is_err() {
                return;
            }
        }
    });
    (orders, worker)
}

fn connect(spec: &ClientSpec) -> Result<Connection, UserError> {
    let options = ConnectionOptions {
        pool_bytes: MIB,
        peer_host: spec.host.clone(),
        ..ConnectionOptions::from_environment()?
    };
    Connection::open_with(&Instance::at(&spec.instance), options)
}

fn parse<T: serde::de::DeserializeOwned>(line: std::io::Result<String>) -> Result<T, UserError> {
    CHILD.parse(&line.map_err(|error| CHILD.lost(&error.to_string()))?)
}

fn measure(
    group: &Rc<Group>,
    spec: &ClientSpec,
    order: &CaseOrder,
) -> Result<CaseResult, UserError> {
    let (_, pattern) = order.case.parse()?;
    let access = Arc::new(order.case.access(spec.clients)?);
    let program = Program::of_access(pattern.direction, &access, order.case.file_bytes);
    let rank = BenchRank::new(group, spec, order, (*access).clone())?;
    let measured = carry_out(&program, &rank, order.case.repeat);
    let measured = measured.and_then(|()| rank.dump());
    let (Results { seconds, wrong }, closed) = match rank.has_opened() {
        true => rank.close(),
        // Its file is not of this case, or does not exist.
        false => return measured.and_then(|()| Err(CHILD.lost("the case has no transfer"))),
    };
    let peak_bytes = peak_bytes(std::process::id());
    let moved_bytes = access.own_part(ClientId(spec.rank)).bytes();
    let measured =
        measured.map(|()| CaseResult::Measured { seconds, moved_bytes, wrong, peak_bytes });
    if order.life != FileLife::Kept {
        // No client has the file open any more. After a failure it goes all the same: another
        // client may have stopped.
        let together = if measured.is_ok() { group.barrier() } else { Ok(()) };
        let removed = match group.rank() {
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

/// Carries the program out as often as the case asks for. Each write has bytes of its own.
fn carry_out(program: &Program, rank: &BenchRank<'_>, repeat: u32) -> Result<(), UserError> {
    let number = rank.number();
    for _ in 0..repeat {
        let ended = program.run_rank(number, rank).now_or_never();
        ended.ok_or_else(|| CHILD.lost("a call of its worker did not end"))??;
    }
    Ok(())
}
