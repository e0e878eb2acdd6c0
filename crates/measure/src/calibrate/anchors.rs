//! Operations on one real server, with the processor time of each thread that takes part.

use super::busy::BUSY;
use super::threads::ThreadTimes;
use client::{CollectiveOptions, Connection, File, Group, Instance};
use interface::{ExitCode, UserError};
use policy::{Buffering, Direction, Level, Nested, OwnPart};
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

/// Times that the operations use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anchors {
    /// A request whose answer the server knows.
    pub(super) nothing: Used,
    /// Reads and writes of a cached block: 4 KiB and 64 KiB.
    pub(super) small_reads: [Used; 2],
    pub(super) small_writes: [Used; 2],
    /// Collective calls of one member with 8 bytes.
    pub(super) tiny_read: Used,
    pub(super) tiny_write: Used,
    /// Collective calls of one member, for each block of 1 MiB, and for each block of 64 KiB.
    pub(super) block_reads: [Used; 2],
    pub(super) block_writes: [Used; 2],
    /// The same with blocks of 1 MiB of which a quarter is read in pieces of 8 bytes.
    pub(super) piece_reads: Used,
    /// The same with memory of pieces of 8 bytes.
    pub(super) piece_writes: Used,
}

/// Bytes of the small operations.
pub(super) const SMALL_BYTES: [u64; 2] = [4 * KIB, 64 * KIB];

/// Bytes of the blocks.
pub(super) const BLOCK_BYTES: [u64; 2] = [MIB, 64 * KIB];

/// Pieces of a block that [`Anchors::piece_reads`] reads, and their bytes.
pub(super) const READ_PIECES: u64 = MIB / 32;
pub(super) const READ_PIECE_BYTES: u64 = READ_PIECES * 8;

/// Pieces of a block that [`Anchors::piece_writes`] writes.
pub(super) const WRITTEN_PIECES: u64 = MIB / 8;

/// Bytes of a collective transfer: more than the server's cache holds.
const FILE_BYTES: u64 = 64 * MIB;

/// Times that each operation is made; the median of several rounds counts.
const CALLS: u32 = 400;
const TRANSFERS: u32 = 4;
const ROUNDS: usize = 5;

/// The one server and its client.
pub(super) struct Bench {
    connection: Connection,
    group: Group,
    server: u32,
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
        let connection = Connection::open(instance)?;
        let group = Group::alone(&connection)?;
        Ok(Self { connection, group, server })
    }

    /// Makes all operations.
    ///
    /// # Errors
    /// Faults of the server.
    pub(super) fn anchors(&self) -> Result<Anchors, UserError> {
        let files = BLOCK_BYTES.map(|block| self.file(block));
        let [large, small] = files;
        let (large, small) = (large?, small?);
        let mut page = vec![0x5a; SMALL_BYTES[1] as usize];
        let mut memory = vec![0x5a; 2 * FILE_BYTES as usize];
        let nothing = self.measure(CALLS, 1.0, || large.size().map(|_| ()))?;
        let mut small_reads = [Used::default(); 2];
        let mut small_writes = [Used::default(); 2];
        for (index, bytes) in SMALL_BYTES.into_iter().enumerate() {
            let length = bytes as usize;
            small_reads[index] =
                self.measure(CALLS, 1.0, || large.read_at(&mut page[..length], 0).map(|_| ()))?;
            small_writes[index] =
                self.measure(CALLS, 1.0, || large.write_at(&page[..length], 0))?;
        }
        large.flush(false)?;
        let tiny = OwnPart::contiguous(0, 8);
        let all = OwnPart::contiguous(0, FILE_BYTES);
        let nested = |length: u64, count: u64, file_stride: u64, memory_stride: u64| {
            let levels = vec![Level { count, file_stride, memory_stride }];
            OwnPart::Nested(vec![Nested { file_offset: 0, memory_offset: 0, length, levels }])
        };
        let quarter = nested(8, FILE_BYTES / 32, 32, 8);
        let strided = nested(8, FILE_BYTES / 8, 8, 16);
        let mut transfer = |file: &File, direction: Direction, part: &OwnPart, blocks: u64| {
            let options = CollectiveOptions::default();
            let calls = if part.bytes() < MIB { CALLS } else { TRANSFERS };
            self.measure(calls, blocks as f64, || match direction {
                Direction::Read => self.group.read_as(options, file, part, &mut memory).map(|_| ()),
                Direction::Write => self.group.write_as(options, file, part, &memory).map(|_| ()),
            })
        };
        use Direction::{Read, Write};
        let blocks = BLOCK_BYTES.map(|bytes| FILE_BYTES / bytes);
        let anchors = Anchors {
            nothing,
            small_reads,
            small_writes,
            tiny_read: transfer(&large, Read, &tiny, 1)?,
            tiny_write: transfer(&large, Write, &tiny, 1)?,
            block_reads: [
                transfer(&large, Read, &all, blocks[0])?,
                transfer(&small, Read, &all, blocks[1])?,
            ],
            block_writes: [
                transfer(&large, Write, &all, blocks[0])?,
                transfer(&small, Write, &all, blocks[1])?,
            ],
            piece_reads: transfer(&large, Read, &quarter, blocks[0])?,
            piece_writes: transfer(&large, Write, &strided, blocks[0])?,
        };
        large.close()?;
        small.close()?;
        Ok(anchors)
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

    /// Measures `operation`, made `calls` times; the result is that of one of its `parts`. Medians
    /// of several rounds are taken of each time by itself.
    fn measure(
        &self,
        calls: u32,
        parts: f64,
        mut operation: impl FnMut() -> Result<(), UserError>,
    ) -> Result<Used, UserError> {
        operation()?;
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let own = ThreadTimes::of(std::process::id())?;
            let server = ThreadTimes::of(self.server)?;
            let begun = Instant::now();
            for _ in 0..calls {
                operation()?;
            }
            let elapsed = begun.elapsed().as_nanos() as f64;
            let own_after = ThreadTimes::of(std::process::id())?;
            let server_after = ThreadTimes::of(self.server)?;
            let each = |time: f64| time / f64::from(calls) / parts;
            let io = own_after.since(&own, "unisono-io") as f64;
            let busy = own_after.since(&own, BUSY) as f64;
            let disk = server_after.since(&server, "disk") as f64;
            rounds.push(Used {
                elapsed: each(elapsed),
                caller: each(own_after.all_since(&own) as f64 - io - busy),
                io: each(io),
                server: each(server_after.all_since(&server) as f64 - disk),
                disk: each(disk),
            });
        }
        let median = |time: fn(&Used) -> f64| {
            let mut times: Vec<f64> = rounds.iter().map(time).collect();
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        Ok(Used {
            elapsed: median(|used| used.elapsed),
            caller: median(|used| used.caller),
            io: median(|used| used.io),
            server: median(|used| used.server),
            disk: median(|used| used.disk),
        })
    }
}
