//! The machine under one rank of a bench: its process and the client library. It times each
//! transfer and checks every byte after it.
//!
//! Its calls block, so that no future of it is ever pending.

use super::source::Source;
use super::spec::{CaseOrder, CaseSpec, ClientSpec, FileLife, parse_pattern};
use client::{CollectiveOptions, File, Group};
use filesystem::collective::Strategy;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use interface::{ExitCode, Failure, UserError, access_of};
use policy::{Access, Buffering, Direction, DiskOrder, OwnPart};
use program::{Meeting, OpenedFile, Rank, Stream, Transfer};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::time;
use units::{ClientId, Duration, Instant};

/// Content of a reader's memory before a read, so that missing bytes are noticed.
const UNREAD: u8 = 0xa5;

/// One rank of one case.
pub(super) struct BenchRank<'a> {
    spec: &'a ClientSpec,
    order: &'a CaseOrder,
    begun: time::Instant,
    case: Rc<Case>,
    repetitions: Cell<u32>,
}

/// All that a transfer of the rank needs.
struct Case {
    group: Rc<Group>,
    case: CaseSpec,
    clients: u32,
    access: Access,
    direction: Direction,
    strategy: Strategy,
    source: RefCell<Source>,
    file: OnceCell<File>,
    memory: RefCell<Vec<u8>>,
    results: RefCell<Results>,
}

/// Results of the transfers so far.
#[derive(Default)]
pub(super) struct Results {
    /// Seconds of each transfer.
    pub(super) seconds: Vec<f64>,
    /// The first byte that was wrong.
    pub(super) wrong: Option<String>,
}

impl<'a> BenchRank<'a> {
    pub(super) fn new(
        group: &Rc<Group>,
        spec: &'a ClientSpec,
        order: &'a CaseOrder,
        access: Access,
    ) -> Result<Self, UserError> {
        let (strategy, pattern) = order.case.parse()?;
        let source = Source::open(&order.source).map_err(|error| {
            let help = "name a file that you may read";
            UserError::usage("cannot open the input", error.to_string(), help)
        })?;
        let case = Case {
            group: Rc::clone(group),
            case: order.case.clone(),
            clients: spec.clients,
            access,
            direction: pattern.direction,
            strategy,
            source: RefCell::new(source),
            file: OnceCell::new(),
            memory: RefCell::default(),
            results: RefCell::default(),
        };
        let (begun, repetitions) = (time::Instant::now(), Cell::default());
        Ok(Self { spec, order, begun, case: Rc::new(case), repetitions })
    }

    /// Number of the rank.
    pub(super) fn number(&self) -> u32 {
        self.spec.rank
    }

    /// True if it has opened the file of the case.
    pub(super) fn has_opened(&self) -> bool {
        self.case.file.get().is_some()
    }

    /// Leaves the memory after the last read in a file, if the order wants it.
    pub(super) fn dump(&self) -> Result<(), UserError> {
        if let (Some(path), Direction::Read) = (&self.order.dump, self.case.direction) {
            let dumped = std::fs::write(path, &*self.case.memory.borrow());
            dumped.map_err(|error| input_failed(&error))?;
        }
        Ok(())
    }

    /// Closes the file, and returns the results.
    pub(super) fn close(self) -> (Results, Result<(), UserError>) {
        let file = Rc::into_inner(self.case).map(|case| (case.results.take(), case.file));
        let (results, file) = file.unwrap_or_default();
        (results, file.into_inner().map_or(Ok(()), File::close))
    }

    /// Opens the file at all clients; client 0 makes it first if it is to be new.
    fn open_file(&self) -> Result<File, UserError> {
        let (order, group) = (self.order, &self.case.group);
        let connection = group.connection();
        let made = match group.rank() {
            0 if order.life != FileLife::Existing => {
                let (bytes, block) = (order.case.file_bytes, self.spec.block_bytes);
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

    /// Prepares all that comes before the clock starts.
    fn prepare(&self) -> Result<(), UserError> {
        let case = &self.case;
        let file = self.open_file()?;
        if case.direction == Direction::Read && self.order.life != FileLife::Existing {
            case.write_for_reading(&file)?;
        }
        *case.memory.borrow_mut() = case.memory_of(&case.access);
        case.connect_peers(&file)?;
        case.file.get_or_init(|| file);
        Ok(())
    }
}

impl Case {
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
    fn memory_of(&self, access: &Access) -> Vec<u8> {
        vec![UNREAD; access.memory_bytes(self.rank()) as usize]
    }

    fn fill(&self, access: &Access, memory: &mut [u8]) -> Result<(), UserError> {
        let source = self.source.borrow();
        let filled = source.fill(access, self.rank(), self.case.file_bytes, memory);
        filled.map_err(|error| input_failed(&error))
    }

    /// Describes the first byte that differs from the expected result of a read, if any.
    fn compare(&self, access: &Access, memory: &[u8]) -> Result<Option<String>, UserError> {
        let (rank, file_bytes) = (self.rank(), self.case.file_bytes);
        let source = self.source.borrow();
        let difference = source.first_difference(access, rank, file_bytes, memory);
        let difference = difference.map_err(|error| input_failed(&error))?;
        Ok(difference.map(|at| format!("byte {at} of the memory of {rank} is wrong")))
    }

    /// Writes the file by disk-directed transfer in a contiguous distribution, untimed.
    fn write_for_reading(&self, file: &File) -> Result<(), UserError> {
        let access = contiguous(self.clients, self.case.file_bytes)?;
        let mut memory = self.memory_of(&access);
        self.fill(&access, &mut memory)?;
        let options = self.options(Strategy::DiskDirected);
        let part = access.own_part(self.rank());
        self.group.write_as(options, file, &part, &memory).map(|_| ())
    }

    /// Connects the members to one another, if the strategy needs that: with a read of no bytes.
    fn connect_peers(&self, file: &File) -> Result<(), UserError> {
        if self.strategy == Strategy::DiskDirected {
            return Ok(());
        }
        let options = self.options(self.strategy);
        self.group.read_as(options, file, &OwnPart::NOTHING, &mut []).map(|_| ())
    }

    /// Gives the memory the bytes of one repetition, and waits for the other members.
    fn begin(&self, repetition: u32) -> Result<(), UserError> {
        let memory = &mut *self.memory.borrow_mut();
        match self.direction {
            Direction::Write => {
                self.source.borrow_mut().vary(repetition);
                self.fill(&self.access, memory)?;
            }
            Direction::Read => memory.fill(UNREAD),
        }
        self.group.barrier()
    }

    /// Times a transfer, and compares: what was written is read back.
    fn transfer(&self, direction: Direction, part: &OwnPart) -> Result<(), UserError> {
        let Some(file) = self.file.get() else { return Ok(()) };
        let options = self.options(self.strategy);
        let memory = &mut *self.memory.borrow_mut();
        let start = time::Instant::now();
        let moved = match direction {
            Direction::Write => self.group.write_as(options, file, part, memory),
            Direction::Read => self.group.read_as(options, file, part, memory),
        };
        let seconds = start.elapsed().as_secs_f64();
        // Whoever compares now would take the processor from those that are still in the call.
        self.together(moved)?;
        let found = match direction {
            Direction::Read => self.compare(&self.access, memory),
            Direction::Write => self.read_back(file),
        };
        let found = self.together(found)?;
        let results = &mut *self.results.borrow_mut();
        results.seconds.push(seconds);
        results.wrong = results.wrong.take().or(found);
        Ok(())
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

    /// Reads a written file in another distribution, untimed, and compares.
    fn read_back(&self, file: &File) -> Result<Option<String>, UserError> {
        let access = contiguous(self.clients, self.case.file_bytes)?;
        let mut memory = self.memory_of(&access);
        let part = access.own_part(self.rank());
        let options = self.options(Strategy::DiskDirected);
        self.group.read_as(options, file, &part, &mut memory)?;
        self.compare(&access, &memory)
    }
}

impl Rank for BenchRank<'_> {
    /// The case has the file.
    type File = ();
    type Error = UserError;
    type Call = LocalBoxFuture<'static, Result<(), UserError>>;

    fn now(&self) -> Instant {
        Instant::from_ns(self.begun.elapsed().as_nanos() as u64)
    }

    async fn compute(&self, time: Duration) {
        self.block(time).await;
    }

    async fn block(&self, time: Duration) {
        std::thread::sleep(time::Duration::from_nanos(time.as_ns()));
    }

    fn send(&self, to: u32, _stream: Stream, _bytes: u64) -> Self::Call {
        no_messages(to)
    }

    fn receive(&self, from: u32, _stream: Stream) -> Self::Call {
        no_messages(from)
    }

    fn meet_all(&self, meeting: Meeting) -> Option<Self::Call> {
        let (case, repetition) = (Rc::clone(&self.case), self.repetitions.get());
        Some(match meeting {
            Meeting::Barrier => {
                self.repetitions.set(repetition + 1);
                async move { case.begin(repetition) }.boxed_local()
            }
            Meeting::Begin | Meeting::End => std::future::ready(Ok(())).boxed_local(),
        })
    }

    /// A program that is carried out again finds its file open.
    async fn open(&self, _opened: OpenedFile) -> Result<(), UserError> {
        match self.case.file.get() {
            Some(_) => Ok(()),
            None => self.prepare(),
        }
    }

    async fn close(&self, _file: ()) -> Result<(), UserError> {
        Ok(())
    }

    fn transfer(&self, _file: &(), transfer: Transfer) -> Self::Call {
        let case = Rc::clone(&self.case);
        async move { case.transfer(transfer.direction, &transfer.part) }.boxed_local()
    }

    async fn sync(&self, _file: &()) -> Result<(), UserError> {
        self.case.file.get().map_or(Ok(()), |file| file.flush(true))
    }

    async fn set_size(&self, _file: &(), bytes: u64, _grows: bool) -> Result<(), UserError> {
        self.case.file.get().map_or(Ok(()), |file| file.set_size(bytes))
    }

    async fn get_size(&self, _file: &()) -> Result<(), UserError> {
        self.case.file.get().map_or(Ok(()), |file| file.size().map(|_| ()))
    }

    async fn delete(&self, name: &str) -> Result<(), UserError> {
        self.case.group.connection().remove(name)
    }
}

/// Returns the failure of a message: the members of a bench meet at the servers.
fn no_messages(other: u32) -> LocalBoxFuture<'static, Result<(), UserError>> {
    let error = UserError::new(
        ExitCode::Failed,
        format!("cannot exchange a message with rank {other}"),
        "the clients of a bench have no connections for messages",
        "this is a defect of unisono; please report it with the command line",
    );
    std::future::ready(Err(error)).boxed_local()
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
