//! One client process of a bench: takes orders on standard input, one a line, and answers each on
//! standard output. It uses the client library as any program does.

use super::limits::peak_bytes;
use super::source::Source;
use super::spec::{
    CaseOrder, CaseResult, CaseSpec, ClientReady, ClientSpec, FileLife, parse_pattern,
};
use crate::orders::ChildSide;
use client::{CollectiveOptions, Connection, ConnectionOptions, File, Group, Instance};
use filesystem::collective::Strategy;
use interface::{ExitCode, Failure, UserError, access_of};
use policy::{Access, Buffering, Direction, DiskOrder, OwnPart};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Instant;
use units::{ClientId, MIB};

const CHILD: ChildSide = ChildSide {
    error: "a bench client cannot read its orders",
    help: "start clients with: unisono bench",
};

/// Content of a reader's memory before a read, so that missing bytes are noticed.
const UNREAD: u8 = 0xa5;

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
        let joined = Group::form(&connection, &name, spec.rank, spec.clients);
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

/// State of one case at this client.
struct Case<'a> {
    group: &'a Group,
    case: &'a CaseSpec,
    source: Source,
    access: Access,
    direction: Direction,
    strategy: Strategy,
    file: File,
}

fn measure(group: &Group, spec: &ClientSpec, order: &CaseOrder) -> Result<CaseResult, UserError> {
    let (strategy, pattern) = order.case.parse()?;
    let access = order.case.access(spec.clients)?;
    let source = Source::open(&order.source).map_err(|error| {
        UserError::usage(
            "cannot open the input",
            error.to_string(),
            "name a file that you may \
                                                                      read",
        )
    })?;
    let file = open(group, spec, order)?;
    let direction = pattern.direction;
    let mut case = Case { group, case: &order.case, source, access, direction, strategy, file };
    if direction == Direction::Read && order.life != FileLife::Existing {
        case.write_for_reading(spec.clients)?;
    }
    let measured = case.run(spec.clients, order);
    let closed = case.file.close();
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

/// Opens the file of the order at all clients; client 0 makes it first if it is to be new.
fn open(group: &Group, spec: &ClientSpec, order: &CaseOrder) -> Result<File, UserError> {
    let connection = group.connection();
    let made = match group.rank() {
        0 if order.life != FileLife::Existing => {
            let (bytes, block) = (order.case.file_bytes, spec.block_bytes);
            connection.create(&order.file, bytes, block, Buffering::default()).map(Some)
        }
        _ => Ok(None),
    };
    // The other clients open the file once it exists, or learn that it does not.
    group.barrier()?;
    match made? {
        Some(file) => Ok(file),
        None => connection.open_file(&order.file),
    }
}

impl Case<'_> {
    fn options(&self, strategy: Strategy) -> CollectiveOptions {
        CollectiveOptions {
            strategy,
            order: DiskOrder::Sorted,
            outstanding_per_disk: self.case.outstanding_per_disk,
            node_group_size: self.case.node_group_size,
            sync: self.case.sync,
        }
    }

    fn rank(&self) -> ClientId {
        ClientId(self.group.rank())
    }

    /// Allocates memory for the part that this client owns under `access`.
    fn memory(&self, access: &Access) -> Vec<u8> {
        vec![UNREAD; access.memory_bytes(self.rank()) as usize]
    }

    fn fill(&self, access: &Access, memory: &mut [u8]) -> Result<(), UserError> {
        let filled = self.source.fill(access, self.rank(), self.case.file_bytes, memory);
        filled.map_err(|error| input_failed(&error))
    }

    /// Describes the first byte that differs from the expected result of a read, if any.
    fn compare(&self, access: &Access, memory: &[u8]) -> Result<Option<String>, UserError> {
        let (rank, file_bytes) = (self.rank(), self.case.file_bytes);
        let difference = self.source.first_difference(access, rank, file_bytes, memory);
        let difference = difference.map_err(|error| input_failed(&error))?;
        Ok(difference.map(|at| format!("byte {at} of the memory of {rank} is wrong")))
    }

    /// Writes the file by disk-directed transfer in a contiguous distribution, untimed.
    fn write_for_reading(&self, clients: u32) -> Result<(), UserError> {
        let access = contiguous(clients, self.case.file_bytes)?;
        let mut memory = self.memory(&access);
        self.fill(&access, &mut memory)?;
        let options = self.options(Strategy::DiskDirected);
        let part = access.own_part(self.rank());
        self.group.write_as(options, &self.file, &part, &memory).map(|_| ())
    }

    /// Times as many transfers as the case asks for. Each write has bytes of its own, and is read
    /// back.
    fn run(&mut self, clients: u32, order: &CaseOrder) -> Result<CaseResult, UserError> {
        let part = self.access.own_part(self.rank());
        let options = self.options(self.strategy);
        let mut memory = self.memory(&self.access);
        let mut seconds = Vec::new();
        let mut wrong = None;
        self.connect_peers(&part)?;
        for repetition in 0..self.case.repeat {
            match self.direction {
                Direction::Write => {
                    self.source.vary(repetition);
                    self.fill(&self.access, &mut memory)?;
                }
                Direction::Read => memory.fill(UNREAD),
            }
            self.group.barrier()?;
            let start = Instant::now();
            let moved = match self.direction {
                Direction::Write => self.group.write_as(options, &self.file, &part, &memory),
                Direction::Read => self.group.read_as(options, &self.file, &part, &mut memory),
            };
            seconds.push(start.elapsed().as_secs_f64());
            // Whoever compares now would take the processor from those that are still in the call.
            self.together(moved)?;
            let found = match self.direction {
                Direction::Read => self.compare(&self.access, &memory),
                Direction::Write => self.read_back(clients),
            };
            wrong = wrong.or(self.together(found)?);
        }
        if let (Some(path), Direction::Read) = (&order.dump, self.direction) {
            let dumped = std::fs::write(path, &memory);
            dumped.map_err(|error| input_failed(&error))?;
        }
        let moved_bytes = part.bytes();
        let peak_bytes = peak_bytes(std::process::id());
        Ok(CaseResult::Measured { seconds, moved_bytes, wrong, peak_bytes })
    }

    /// Waits for the other members, and fails if any of them failed: a server that ends may let one
    /// complete a transfer and another not.
    fn together<T>(&self, own: Result<T, UserError>) -> Result<T, UserError> {
        // Another client is gone, and so the others cannot all meet.
        if own.as_ref().is_err_and(|error| error.code == ExitCode::Collective) {
            return own;
        }
        let failure = own.as_ref().err().map(|error| Failure::from(error.clone()));
        let told = failure.and_then(|failure| serde_json::to_vec(&failure).ok());
        let told = self.group.all_gather(&told.unwrap_or_default());
        let failures = told.iter().flatten().filter_map(|one| serde_json::from_slice(one).ok());
        let failures = failures.map(|failure: Failure| UserError::from(failure));
        // Those of members that only met the failure of another one count least.
        if let Some(first) = failures.min_by_key(|one| one.code == ExitCode::Collective) {
            return Err(first);
        }
        own.and_then(|own| told.map(|_| own))
    }

    /// Connects the members to one another before the clock starts, if the strategy needs that:
    /// with a read of no bytes.
    fn connect_peers(&self, part: &OwnPart) -> Result<(), UserError> {
        if self.strategy == Strategy::DiskDirected || part.bytes() == 0 && self.case.repeat == 0 {
            return Ok(());
        }
        let options = self.options(self.strategy);
        self.group.read_as(options, &self.file, &OwnPart::NOTHING, &mut []).map(|_| ())
    }

    /// Reads a written file in another distribution, untimed, and compares.
    fn read_back(&self, clients: u32) -> Result<Option<String>, UserError> {
        let access = contiguous(clients, self.case.file_bytes)?;
        let mut memory = self.memory(&access);
        let part = access.own_part(self.rank());
        let options = self.options(Strategy::DiskDirected);
        self.group.read_as(options, &self.file, &part, &mut memory)?;
        self.compare(&access, &memory)
    }
}

/// Returns an access in which every client has one contiguous part of the file.
fn contiguous(clients: u32, file_bytes: u64) -> Result<Access, UserError> {
    access_of(&parse_pattern("rb")?, clients, 1, file_bytes)
}

fn input_failed(error: &std::io::Error) -> UserError {
    UserError::new(
        ExitCode::Failed,
        "a client could not read its input or write its result",
        error.to_string(),
        "check the input file and the space in the instance directory",
    )
}
