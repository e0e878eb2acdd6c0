//! Measurement of a rank's transfers in a bench: each has bytes of its own, is timed, and is
//! compared byte by byte after it.
//!
//! All calls block the thread of the rank. Only the transfer itself is timed.

use super::case::{FileLife, parse_pattern};
use super::source::Source;
use super::spec::CaseOrder;
use crate::span::{Span, now_ns};
use crate::thread_times::ThreadTimes;
use client::{CollectiveOptions, File, Group};
use filesystem::collective::Strategy;
use interface::{ExitCode, Failure, UserError, access_of};
use policy::{Access, Direction, OwnPart};
use program::{Meeting, Transfer};
use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use units::ClientId;

/// Content of a reader's memory before a read, so that missing bytes are noticed.
const UNREAD: u8 = 0xa5;

/// Measurement of one case.
pub(super) struct Checks {
    group: Group,
    access: Access,
    direction: Direction,
    file_bytes: u64,
    /// True when the file has its data already.
    is_written: bool,
    source: RefCell<Source>,
    dump: Option<PathBuf>,
    /// Processes whose processor time is counted, with their times before the present transfer.
    counted: RefCell<Vec<(u32, ThreadTimes)>>,
    file: OnceCell<File>,
    memory: RefCell<Vec<u8>>,
    repetitions: Cell<u32>,
    results: RefCell<Results>,
}

/// Results of the transfers so far.
#[derive(Default)]
pub(super) struct Results {
    /// Each transfer.
    pub(super) spans: Vec<Span>,
    /// Processor time of the counted processes in all transfers, in nanoseconds.
    pub(super) counted_ns: u64,
    /// The first byte that was wrong.
    pub(super) wrong: Option<String>,
}

impl Checks {
    /// Prepares to measure a case, whose transfers go in one direction.
    pub(super) fn new(
        group: &Group,
        order: &CaseOrder,
        (direction, access): (Direction, Access),
    ) -> Result<Self, UserError> {
        let source = Source::open(&order.source).map_err(|error| {
            let help = "name a file that you may read";
            UserError::usage("cannot open the input", error.to_string(), help)
        })?;
        Ok(Self {
            group: group.clone(),
            access,
            direction,
            file_bytes: order.case.file_bytes,
            is_written: matches!(order.life, FileLife::Existing | FileLife::Lasting),
            source: RefCell::new(source),
            dump: order.dump.clone(),
            counted: RefCell::new(
                order.counted.iter().map(|pid| (*pid, ThreadTimes::default())).collect(),
            ),
            file: OnceCell::new(),
            memory: RefCell::default(),
            repetitions: Cell::default(),
            results: RefCell::default(),
        })
    }

    /// Group of all ranks.
    pub(super) fn group(&self) -> &Group {
        &self.group
    }

    /// The file of the case, once all is prepared, and its group.
    pub(super) fn opened(&self) -> Option<(File, Group)> {
        Some((self.file.get()?.clone(), self.group.clone()))
    }

    /// Prepares all that comes before the clock starts.
    pub(super) fn prepare(&self, file: &File, options: CollectiveOptions) -> Result<(), UserError> {
        if self.direction == Direction::Read && !self.is_written {
            self.write_for_reading(file, options)?;
        }
        *self.memory.borrow_mut() = self.memory_of(&self.access);
        // Members connect to one another, if the strategy needs that, by a read of no bytes.
        if options.strategy != Strategy::DiskDirected {
            self.group.read_as(options, file, &OwnPart::NOTHING, &mut [])?;
        }
        self.file.get_or_init(|| file.clone());
        Ok(())
    }

    /// Gives the memory the bytes of one repetition, and waits for the other members.
    pub(super) fn meet_all(&self, meeting: Meeting) -> Result<(), UserError> {
        if meeting != Meeting::Barrier {
            return Ok(());
        }
        let repetition = self.repetitions.replace(self.repetitions.get() + 1);
        let memory = &mut *self.memory.borrow_mut();
        match self.direction {
            Direction::Write => {
                self.source.borrow_mut().vary(repetition);
                self.fill(&self.access, memory)?;
            }
            Direction::Read => memory.fill(UNREAD),
        }
        for (pid, before) in &mut *self.counted.borrow_mut() {
            *before = ThreadTimes::of(*pid)?;
        }
        self.group.barrier()
    }

    /// Times a transfer, and compares: what was written is read back.
    pub(super) fn transfer(
        &self,
        options: CollectiveOptions,
        transfer: &Transfer,
    ) -> Result<(), UserError> {
        let Transfer { direction, part, .. } = transfer;
        let Some(file) = self.file.get() else { return Ok(()) };
        let memory = &mut *self.memory.borrow_mut();
        let start_ns = now_ns();
        let moved = match direction {
            Direction::Write => self.group.write_as(options, file, part, memory),
            Direction::Read => self.group.read_as(options, file, part, memory),
        };
        let span = Span::since(start_ns);
        // Whoever compares now would take the processor from those that are still in the call.
        self.together(moved)?;
        let counted_ns = self.counted_ns()?;
        let found = match direction {
            Direction::Read => self.compare(&self.access, memory),
            Direction::Write => self.read_back(file, options),
        };
        let found = self.together(found)?;
        let results = &mut *self.results.borrow_mut();
        results.spans.push(span);
        results.counted_ns += counted_ns;
        results.wrong = results.wrong.take().or(found);
        Ok(())
    }

    /// Takes the results. Leaves the memory after the last read in a file, if the order wants it.
    ///
    /// # Errors
    /// Fails when that file cannot be written.
    pub(super) fn take_results(&self) -> Result<Results, UserError> {
        if let (Some(path), Direction::Read) = (&self.dump, self.direction) {
            let dumped = std::fs::write(path, &*self.memory.borrow());
            dumped.map_err(|error| input_failed(&error))?;
        }
        Ok(self.results.take())
    }

    /// Returns the processor time of the counted processes since all met before the transfer.
    fn counted_ns(&self) -> Result<u64, UserError> {
        let counted = self.counted.borrow();
        let used = |(pid, before): &(u32, ThreadTimes)| {
            ThreadTimes::of(*pid).map(|after| after.all_since(before))
        };
        counted.iter().map(used).sum()
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
        let filled = source.fill(access, self.rank(), self.file_bytes, memory);
        filled.map_err(|error| input_failed(&error))
    }

    /// Describes the first byte that differs from the expected result of a read, if any.
    fn compare(&self, access: &Access, memory: &[u8]) -> Result<Option<String>, UserError> {
        let (rank, file_bytes) = (self.rank(), self.file_bytes);
        let source = self.source.borrow();
        let difference = source.first_difference(access, rank, file_bytes, memory);
        let difference = difference.map_err(|error| input_failed(&error))?;
        Ok(difference.map(|at| format!("byte {at} of the memory of {rank} is wrong")))
    }

    /// Writes the file by disk-directed transfer in a contiguous distribution, untimed.
    fn write_for_reading(&self, file: &File, options: CollectiveOptions) -> Result<(), UserError> {
        let access = contiguous(self.group.size(), self.file_bytes)?;
        let mut memory = self.memory_of(&access);
        self.fill(&access, &mut memory)?;
        let options = CollectiveOptions { strategy: Strategy::DiskDirected, ..options };
        let part = access.own_part(self.rank());
        self.group.write_as(options, file, &part, &memory).map(|_| ())
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
    fn read_back(
        &self,
        file: &File,
        options: CollectiveOptions,
    ) -> Result<Option<String>, UserError> {
        let access = contiguous(self.group.size(), self.file_bytes)?;
        let mut memory = self.memory_of(&access);
        let part = access.own_part(self.rank());
        let options = CollectiveOptions { strategy: Strategy::DiskDirected, ..options };
        self.group.read_as(options, file, &part, &mut memory)?;
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
