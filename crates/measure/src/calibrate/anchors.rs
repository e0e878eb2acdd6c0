//! Operations on one real server, with the processor time of each thread that takes part.

use super::busy::BUSY;
use crate::thread_times::ThreadTimes;
use client::{Buffer, CollectiveOptions, Connection, File, Group, Instance};
use filesystem::collective::Strategy;
use interface::{ExitCode, UserError};
use policy::{
    Buffering, Comparison, Condition, Constant, Direction, Expression, FieldAt, Level, Nested,
    Node, Number, NumberKind, Operator, OwnPart, RecordGrid, Reduction,
};
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::time::Instant;
use units::{KIB, MIB};

/// Nanoseconds of one operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// From begin to end.
    pub(super) elapsed: f64,
    /// Processor time of the thread that calls.
    pub(super) caller: f64,
    /// Of the library's I/O thread.
    pub(super) io: f64,
    /// Of the server's thread that serves.
    pub(super) server: f64,
    /// Of the server's threads of disks.
    pub(super) disk: f64,
}

impl Used {
    /// Processor time of all threads.
    pub(super) fn processors(&self) -> f64 {
        self.caller + self.io + self.server + self.disk
    }
}

/// One kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    /// A request whose answer the server knows.
    Nothing,
    /// Reads of a cached block by the I/O thread: 512 bytes and 7.5 KiB.
    SmallRead(usize),
    /// Reads of 512 bytes of a cached block, [`BURST`] at the same time.
    Burst,
    /// Writes to a cached block by the I/O thread: 4 KiB and 64 KiB.
    SmallWrite(usize),
    /// A collective call of one member with 8 bytes.
    Tiny(Direction),
    /// Collective calls of one member, for each block of 1 MiB, and for each block of 64 KiB.
    Blocks(Direction, usize),
    /// The same with blocks of 1 MiB of which a quarter is read in pieces of 8 bytes.
    ReadPieces,
    /// The same with blocks of 1 MiB whose pieces come from four places of memory in turn: pieces
    /// of 8 bytes, and of 1 KiB.
    WritePieces(usize),
    /// A read by two-phase I/O of one member, for each block of 1 MiB.
    TwoPhaseRead,
    /// Writes that the client gathers, one after the other, and their way to the server: a message
    /// for each 512 KiB, which takes less than a tenth of the time.
    Gathered(usize),
    /// Reads from pages that the client keeps, one after the other.
    Kept(usize),
    /// A count of records that match a condition, for each block of 1 MiB.
    Look,
    /// The same with the condition in a module.
    LookByModule,
}

impl Operation {
    /// All operations.
    const ALL: [Self; 22] = {
        use Direction::{Read, Write};
        [
            Self::Nothing,
            Self::SmallRead(0),
            Self::SmallRead(1),
            Self::Burst,
            Self::SmallWrite(0),
            Self::SmallWrite(1),
            Self::Tiny(Read),
            Self::Tiny(Write),
            Self::Blocks(Read, 0),
            Self::Blocks(Read, 1),
            Self::Blocks(Write, 0),
            Self::Blocks(Write, 1),
            Self::ReadPieces,
            Self::WritePieces(0),
            Self::WritePieces(1),
            Self::TwoPhaseRead,
            Self::Gathered(0),
            Self::Gathered(1),
            Self::Kept(0),
            Self::Kept(1),
            Self::Look,
            Self::LookByModule,
        ]
    };

    /// Times that it is made in a round.
    fn calls(self) -> u32 {
        match self {
            Self::Nothing | Self::SmallRead(_) | Self::SmallWrite(_) | Self::Tiny(_) => CALLS,
            Self::Burst => CALLS / BURST,
            Self::Blocks(..) | Self::ReadPieces | Self::WritePieces(_) | Self::TwoPhaseRead => {
                TRANSFERS
            }
            Self::Look | Self::LookByModule => TRANSFERS,
            Self::Gathered(_) | Self::Kept(_) => BATCHES,
        }
    }

    /// Parts of it: what it uses is that of one.
    fn parts(self) -> f64 {
        let blocks = |bytes: u64| (FILE_BYTES / bytes) as f64;
        match self {
            Self::Nothing | Self::SmallRead(_) | Self::SmallWrite(_) | Self::Tiny(_) => 1.0,
            Self::Burst => f64::from(BURST),
            Self::Blocks(_, size) => blocks(BLOCK_BYTES[size]),
            Self::ReadPieces | Self::WritePieces(_) | Self::TwoPhaseRead => blocks(BLOCK_BYTES[0]),
            Self::Look | Self::LookByModule => blocks(BLOCK_BYTES[0]),
            Self::Gathered(_) | Self::Kept(_) => BATCH as f64,
        }
    }
}

/// Times that the operations use: the lower quartile of the rounds, of each time by itself. What
/// else happens on a machine only adds to processor time.
#[derive(Clone, Debug)]
pub(super) struct Anchors {
    operations: Vec<(Operation, Used)>,
    /// Nanoseconds that the program took to connect, which it had not done before.
    pub(super) connect: f64,
}

impl Anchors {
    /// Returns what an operation uses.
    pub(super) fn of(&self, operation: Operation) -> Used {
        self.of_any(operation).unwrap_or_default()
    }

    /// Returns what an operation uses that servers may refuse.
    pub(super) fn of_any(&self, operation: Operation) -> Option<Used> {
        let found = self.operations.iter().find(|(other, _)| *other == operation);
        found.map(|(_, used)| *used)
    }

    /// Returns what a pair of operations uses.
    pub(super) fn pair(&self, operation: fn(usize) -> Operation) -> [Used; 2] {
        [self.of(operation(0)), self.of(operation(1))]
    }
}

/// Bytes of the small reads: such data travels with messages.
pub(super) const READ_BYTES: [u64; 2] = [512, 15 * KIB / 2];

/// Bytes of the small writes, likewise.
pub(super) const SMALL_BYTES: [u64; 2] = [4 * KIB, 64 * KIB];

/// Bytes of the small calls without messages.
pub(super) const GATHERED_BYTES: [u64; 2] = [40, 4 * KIB];

/// Small calls without messages that follow one another, and times that they are made in a round.
const BATCH: u64 = 2_048;
const BATCHES: u32 = 16;

/// Bytes that are read from kept pages: two pages, of which a client keeps four.
const KEPT_BYTES: u64 = 2 * MIB;

/// Bytes of the blocks.
pub(super) const BLOCK_BYTES: [u64; 2] = [MIB, 64 * KIB];

/// Pieces of a block that [`Operation::ReadPieces`] reads, and their bytes.
pub(super) const READ_PIECES: u64 = MIB / 32;
pub(super) const READ_PIECE_BYTES: u64 = READ_PIECES * 8;

/// Bytes of the pieces of [`Operation::WritePieces`].
pub(super) const WRITTEN_PIECE_BYTES: [u64; 2] = [8, KIB];

/// Bytes of a collective transfer: more than the server's cache holds.
const FILE_BYTES: u64 = 64 * MIB;

/// Requests of a burst.
const BURST: u32 = 32;

/// Times that each operation is made in a round.
const CALLS: u32 = 200;
const TRANSFERS: u32 = 3;

/// Rounds: each makes all operations, so that what else happens on the machine meets all of them.
const ROUNDS: usize = 9;

/// Places in memory whose pieces alternate in the file.
const PLACES: u64 = 4;

/// Places of small calls in memory: far apart, so that each has its own.
fn own_bytes(number: u64, bytes: u64) -> Range<usize> {
    let start = (number * (FILE_BYTES / BATCH)) as usize;
    start..start + bytes as usize
}

/// Bytes of the records that are looked at.
const RECORD_BYTES: u32 = 64;

/// A condition that an f8 in each record is above a number, which none is.
fn condition(operation: Operation) -> Condition {
    if operation == Operation::LookByModule {
        let operator = Some(Operator::Module(MODULE.to_vec()));
        return Condition { predicate: Expression::always(), operator };
    }
    let number = Number { kind: NumberKind::F64, is_big_endian: false };
    let (how, with) = (Comparison::Greater, Constant::Float(f64::MAX));
    let field = Node::Field(FieldAt { offset: 4, number });
    let nodes = vec![field, Node::CompareConstant { of: 0, how, with }];
    Condition { predicate: Expression { nodes }, operator: None }
}

/// The module of docs/modules.md, which compares an f8 at the same place.
const MODULE: &[u8] = include_bytes!("../../../../docs/modules/above.wasm");

/// The whole file in pieces, which come from [`PLACES`] places of memory in turn.
fn dealt(piece_bytes: u64) -> OwnPart {
    let place = |number: u64| Nested {
        file_offset: number * piece_bytes,
        memory_offset: number * (FILE_BYTES / PLACES),
        length: piece_bytes,
        levels: vec![Level {
            count: FILE_BYTES / PLACES / piece_bytes,
            file_stride: PLACES * piece_bytes,
            memory_stride: piece_bytes,
        }],
    };
    OwnPart::Nested((0..PLACES).map(place).collect())
}

/// A quarter of the file in pieces of 8 bytes.
fn quarter() -> OwnPart {
    let levels = vec![Level { count: FILE_BYTES / 32, file_stride: 32, memory_stride: 8 }];
    OwnPart::Nested(vec![Nested { file_offset: 0, memory_offset: 0, length: 8, levels }])
}

/// Files and memory of the operations.
struct Stage {
    /// Files with blocks of [`BLOCK_BYTES`].
    files: [File; 2],
    memory: Vec<u8>,
    /// Memory of each request of a burst.
    buffers: Vec<Buffer>,
}

/// The one server and its client.
pub(super) struct Bench {
    connection: Connection,
    group: Group,
    server: u32,
    /// Nanoseconds that it took to connect.
    connect: f64,
}

impl Bench {
    /// Connects to an instance of one server of this machine.
    ///
    /// # Errors
    /// Fails when the server cannot be reached.
    pub(super) fn new(instance: &Instance) -> Result<Self, UserError> {
        let server = instance.read()?.servers.first().map(|server| server.pid);
        let server = server.ok_or_else(|| {
            UserError::new(
                ExitCode::Failed,
                "cannot calibrate",
                "the instance has no server",
                "report this as a defect",
            )
        })?;
        let begun = Instant::now();
        let connection = Connection::open(instance)?;
        let connect = begun.elapsed().as_nanos() as f64;
        let group = Group::alone(&connection)?;
        Ok(Self { connection, group, server, connect })
    }

    /// Makes all operations.
    ///
    /// # Errors
    /// Faults of the server.
    pub(super) fn anchors(&self) -> Result<Anchors, UserError> {
        let files = [self.file(BLOCK_BYTES[0])?, self.file(BLOCK_BYTES[1])?];
        let buffers = (0..BURST).map(|_| self.connection.buffer(READ_BYTES[0]));
        let buffers = buffers.collect::<Result<_, _>>()?;
        let mut stage = Stage { files, memory: vec![0x5a; FILE_BYTES as usize], buffers };
        let mut operations = Operation::ALL.to_vec();
        // Servers of a build without modules refuse them.
        let has_modules = self.make(Operation::LookByModule, &mut stage).is_ok();
        operations.retain(|operation| has_modules || *operation != Operation::LookByModule);
        let mut rounds = vec![Vec::new(); operations.len()];
        for _ in 0..ROUNDS {
            for (operation, used) in operations.iter().zip(&mut rounds) {
                used.push(self.measure(*operation, &mut stage)?);
            }
        }
        stage.files.into_iter().try_for_each(File::close)?;
        let operations = operations.into_iter().zip(&rounds);
        let operations = operations.map(|(operation, used)| (operation, low(used))).collect();
        Ok(Anchors { operations, connect: self.connect })
    }

    /// Makes an operation once.
    fn make(&self, operation: Operation, stage: &mut Stage) -> Result<(), UserError> {
        use Direction::{Read, Write};
        use Strategy::{DiskDirected, TwoPhase};
        let all = || OwnPart::contiguous(0, FILE_BYTES);
        let [large, small] = &stage.files;
        let (strategy, direction, file, part) = match operation {
            Operation::Nothing => return large.size().map(|_| ()),
            Operation::SmallRead(size) => {
                let place = &mut stage.memory[..READ_BYTES[size] as usize];
                let place = &mut [IoSliceMut::new(place)];
                return large.read_vectored_at(place, 0).map(|_| ());
            }
            Operation::Burst => {
                let buffers = std::mem::take(&mut stage.buffers).into_iter();
                let begun: Vec<_> = buffers.map(|buffer| large.start_read(buffer, 0)).collect();
                let ended: Result<_, _> = begun.into_iter().map(|begun| begun.wait()).collect();
                stage.buffers = ended?;
                return Ok(());
            }
            Operation::SmallWrite(size) => {
                let place = &stage.memory[..SMALL_BYTES[size] as usize];
                return large.write_vectored_at(&[IoSlice::new(place)], 0);
            }
            Operation::Tiny(direction) => {
                (DiskDirected, direction, large, OwnPart::contiguous(0, 8))
            }
            Operation::Blocks(direction, 0) => (DiskDirected, direction, large, all()),
            Operation::Blocks(direction, _) => (DiskDirected, direction, small, all()),
            Operation::ReadPieces => (DiskDirected, Read, large, quarter()),
            Operation::WritePieces(size) => {
                (DiskDirected, Write, large, dealt(WRITTEN_PIECE_BYTES[size]))
            }
            Operation::TwoPhaseRead => (TwoPhase, Read, large, all()),
            Operation::Gathered(size) => {
                let bytes = GATHERED_BYTES[size];
                // Bytes that no cache of a processor has, as those of a program that goes on.
                let from = |number: u64| &stage.memory[own_bytes(number, bytes)];
                let mut write = |number| large.write_at(from(number), 2 * number * bytes);
                (0..BATCH).try_for_each(&mut write)?;
                // The server asks for what is gathered.
                return large.size().map(|_| ());
            }
            Operation::Kept(size) => {
                let bytes = GATHERED_BYTES[size];
                let mut read = |number: u64| {
                    let into = &mut stage.memory[own_bytes(number, bytes)];
                    large.read_at(into, number * bytes % KEPT_BYTES).map(|_| ())
                };
                return (0..BATCH).try_for_each(&mut read);
            }
            Operation::Look | Operation::LookByModule => {
                let count = FILE_BYTES / u64::from(RECORD_BYTES);
                let records = RecordGrid { start: 0, record_bytes: RECORD_BYTES, count };
                let condition = condition(operation);
                return large
                    .reduce_records(None, records, condition, Reduction::Count)
                    .map(|_| ());
            }
        };
        let options = CollectiveOptions { strategy, ..CollectiveOptions::default() };
        let memory = &mut stage.memory;
        match direction {
            Read => self.group.read_as(options, file, &part, memory).map(|_| ()),
            Write => self.group.write_as(options, file, &part, memory).map(|_| ()),
        }
    }

    /// Makes a file with data, and opens it.
    fn file(&self, block_bytes: u64) -> Result<File, UserError> {
        let name = format!("calibrate-{block_bytes}");
        let file = self.connection.create(&name, 0, block_bytes, Buffering::default())?;
        let data = vec![0x5a; FILE_BYTES as usize];
        let part = OwnPart::contiguous(0, FILE_BYTES);
        self.group.write_as(CollectiveOptions::default(), &file, &part, &data)?;
        Ok(file)
    }

    /// Measures an operation in one round.
    fn measure(&self, operation: Operation, stage: &mut Stage) -> Result<Used, UserError> {
        // The first one finds things as another operation left them.
        self.make(operation, stage)?;
        let own = ThreadTimes::of(std::process::id())?;
        let server = ThreadTimes::of(self.server)?;
        let begun = Instant::now();
        for _ in 0..operation.calls() {
            self.make(operation, stage)?;
        }
        let elapsed = begun.elapsed().as_nanos() as f64;
        let own_after = ThreadTimes::of(std::process::id())?;
        let server_after = ThreadTimes::of(self.server)?;
        let each = |time: f64| time / f64::from(operation.calls()) / operation.parts();
        let io = own_after.since(&own, "unisono-io") as f64;
        let busy = own_after.since(&own, BUSY) as f64;
        let disk = server_after.since(&server, "disk") as f64;
        Ok(Used {
            elapsed: each(elapsed),
            caller: each(own_after.all_since(&own) as f64 - io - busy),
            io: each(io),
            server: each(server_after.all_since(&server) as f64 - disk),
            disk: each(disk),
        })
    }
}

/// Returns the lower quartile of rounds.
fn low(rounds: &[Used]) -> Used {
    let low = |time: fn(&Used) -> f64| {
        let mut times: Vec<f64> = rounds.iter().map(time).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 4).copied().unwrap_or_default()
    };
    Used {
        elapsed: low(|used| used.elapsed),
        caller: low(|used| used.caller),
        io: low(|used| used.io),
        server: low(|used| used.server),
        disk: low(|used| used.disk),
    }
}
