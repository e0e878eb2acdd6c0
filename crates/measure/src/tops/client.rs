//! One client process: takes orders on standard input, one a line, and answers on standard output.

use super::spec::{Answer, ClientSpec, Order, Work};
use crate::orders::ChildSide;
use client::{Buffer, Connection, ConnectionOptions, File, Instance, Operation};
use interface::{ExitCode, UserError};
use policy::{Buffering, Declared, Prefetch};
use std::collections::VecDeque;
use std::io::BufRead;
use std::time::{Duration, Instant};

const CHILD: ChildSide = ChildSide {
    error: "a bench client lost the connection to the process that started it",
    help: "start bench clients with: unisono bench tops",
};

/// Outstanding requests of a client, if it need not wait for each.
pub(super) const UNDER_WAY: usize = 2;

/// Runs one client until standard input ends.
///
/// # Errors
/// Fails when the instance cannot be used, or orders cannot be read.
pub fn tops_client() -> Result<(), UserError> {
    let mut orders = std::io::stdin().lock().lines();
    let mut next = || orders.next().transpose().map_err(|error| CHILD.lost(&error.to_string()));
    let Some(line) = next()? else { return Ok(()) };
    let spec: ClientSpec = CHILD.parse(&line)?;
    let library = Connection::open_with(
        &Instance::at(&spec.instance),
        ConnectionOptions::with_pool(spec.pool_bytes),
    )?;
    while let Some(line) = next()? {
        let order: Order = CHILD.parse(&line)?;
        let opened = library.open_file_as(&order.file, Some(buffering(order.work)));
        let file = match opened {
            Ok(file) => file,
            Err(error) => {
                CHILD.answer(&Answer::Failed(error.into()))?;
                continue;
            }
        };
        CHILD.answer(&Answer::Ready)?;
        if next()?.is_none() {
            return Ok(());
        }
        let worker = Worker { library: &library, file: &file, order: &order, rank: spec.rank };
        let start = Instant::now();
        let done = worker.work().map(|bytes| {
            let seconds = start.elapsed().as_secs_f64();
            Answer::Done { bytes, seconds }
        });
        let answer = done.unwrap_or_else(|error| Answer::Failed(error.into()));
        file.close()?;
        CHILD.answer(&answer)?;
    }
    Ok(())
}

fn buffering(work: Work) -> Buffering {
    let (declared, prefetch) = match work {
        Work::SharePass { read_ahead: true } => (Declared::GlobalSequential, None),
        Work::SharePass { read_ahead: false } => (Declared::Unknown, Some(Prefetch::Nothing)),
        Work::ReadRanges | Work::WriteRanges => (Declared::Random, None),
        Work::CopyPages | Work::Read | Work::Write => (Declared::Unknown, None),
    };
    Buffering { declared, prefetch, ..Buffering::default() }
}

/// A client at work on one point.
struct Worker<'a> {
    library: &'a Connection,
    file: &'a File,
    order: &'a Order,
    rank: u32,
}

impl Worker<'_> {
    /// Carries out the order; returns the number of bytes moved.
    fn work(&self) -> Result<u64, UserError> {
        match self.order.work {
            Work::CopyPages => self.copy_pages(),
            Work::Read => self.keep_going(Self::start_read, Self::check_range),
            Work::Write => self.keep_going(Self::start_write, |_, _, _| Ok(())),
            Work::ReadRanges => {
                let mut random = self.random();
                self.again_and_again(|_| random.u64(0..self.ranges()), Self::read)
            }
            Work::WriteRanges => self.write_ranges(),
            Work::SharePass { .. } => {
                let mut bytes = 0;
                let (rank, step) = (u64::from(self.rank), self.order.clients as usize);
                for range in (rank..self.ranges()).step_by(step) {
                    bytes += self.read(range)?;
                }
                Ok(bytes)
            }
        }
    }

    /// Returns the number of ranges of pages in the file.
    fn ranges(&self) -> u64 {
        (self.file.pages() / self.order.pages).max(1)
    }

    fn range_bytes(&self) -> u64 {
        self.order.pages * self.file.page_bytes()
    }

    /// Returns the range of a turn; clients begin at different places.
    fn cyclic(&self, turn: u64) -> u64 {
        let first = u64::from(self.rank) * self.ranges() / u64::from(self.order.clients);
        (first + turn) % self.ranges()
    }

    fn random(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(u64::from(self.rank) + 1)
    }

    /// Moves range after range until the time is up.
    fn again_and_again(
        &self,
        mut range: impl FnMut(u64) -> u64,
        mut act: impl FnMut(&Self, u64) -> Result<u64, UserError>,
    ) -> Result<u64, UserError> {
        let end = Instant::now() + Duration::from_secs_f64(self.order.seconds);
        let (mut bytes, mut turn) = (0, 0);
        while Instant::now() < end {
            bytes += act(self, range(turn))?;
            turn += 1;
        }
        Ok(bytes)
    }

    /// Reads a range into a buffer, and checks the head of each page.
    fn read(&self, range: u64) -> Result<u64, UserError> {
        let offset = range * self.range_bytes();
        let length = self.range_bytes().min(self.file.bytes() - offset);
        let buffer = self.library.buffer(length)?;
        let buffer = self.file.start_read(buffer, offset).wait()?;
        self.check_range(range, &buffer)?;
        Ok(length)
    }

    /// Starts on range after range, with [`UNDER_WAY`] outstanding requests, and checks the result
    /// of each.
    fn keep_going(
        &self,
        start: impl Fn(&Self, Buffer, u64) -> Operation<Buffer>,
        look: impl Fn(&Self, u64, &Buffer) -> Result<(), UserError>,
    ) -> Result<u64, UserError> {
        let finish = |(range, request): (u64, Operation<Buffer>)| -> Result<_, UserError> {
            let buffer = request.wait()?;
            look(self, range, &buffer)?;
            Ok(buffer)
        };
        let mut under_way: VecDeque<(u64, Operation<Buffer>)> = VecDeque::new();
        let turns = |turn| self.cyclic(turn);
        let bytes = self.again_and_again(turns, |_, range| {
            let first = if under_way.len() < UNDER_WAY { None } else { under_way.pop_front() };
            let buffer = match first {
                Some(first) => finish(first)?,
                None => self.library.buffer(self.range_bytes())?,
            };
            under_way.push_back((range, start(self, buffer, range)));
            Ok(self.range_bytes())
        })?;
        under_way.into_iter().try_for_each(|request| finish(request).map(drop))?;
        Ok(bytes)
    }

    fn start_read(&self, buffer: Buffer, range: u64) -> Operation<Buffer> {
        self.file.start_read(buffer, range * self.range_bytes())
    }

    fn start_write(&self, buffer: Buffer, range: u64) -> Operation<Buffer> {
        self.file.start_write(self.headed(buffer, range), range * self.range_bytes())
    }

    fn copy_pages(&self) -> Result<u64, UserError> {
        let mut own = vec![0_u8; self.range_bytes() as usize];
        let turns = |turn| self.cyclic(turn);
        self.again_and_again(turns, |_, range| {
            let first = range * self.order.pages;
            let pages = self.file.page_range(first..first + self.order.pages)?;
            for ((number, page), own) in (first..).zip(&pages).zip(own.chunks_mut(pages[0].len())) {
                self.check(number, page)?;
                own[..page.len()].copy_from_slice(page);
            }
            std::hint::black_box(&mut own);
            Ok(pages.iter().map(|page| page.len() as u64).sum())
        })
    }

    fn write_ranges(&self) -> Result<u64, UserError> {
        let mut random = self.random();
        let own = self.ranges() / u64::from(self.order.clients);
        let first = own * u64::from(self.rank);
        self.again_and_again(
            |_| first + random.u64(0..own.max(1)),
            |_, range| {
                self.start_write(self.library.buffer(self.range_bytes())?, range).wait()?;
                self.file.flush(true)?;
                Ok(self.range_bytes())
            },
        )
    }

    /// Fills a buffer with the page heads of a range.
    fn headed(&self, mut buffer: Buffer, range: u64) -> Buffer {
        let first = range * self.order.pages;
        write_heads(&mut buffer, self.file.page_bytes(), first);
        buffer
    }

    /// Checks the head of each page of a range.
    fn check_range(&self, range: u64, buffer: &Buffer) -> Result<(), UserError> {
        let first = range * self.order.pages;
        let pages = buffer.chunks(self.file.page_bytes() as usize);
        (first..).zip(pages).try_for_each(|(number, page)| self.check(number, page))
    }

    fn check(&self, number: u64, page: &[u8]) -> Result<(), UserError> {
        if page.get(..8) == Some(&number.to_le_bytes()) {
            return Ok(());
        }
        Err(UserError::new(
            ExitCode::DataCheck,
            format!("page {number} of {:?} is not the requested page", self.order.file),
            format!("the page begins with {:?}", page.get(..8)),
            "this is a defect of unisono or of the disk; please report it with the command line",
        ))
    }
}

/// Writes the number of each page into its first bytes.
pub(super) fn write_heads(bytes: &mut [u8], page_bytes: u64, first: u64) {
    for (number, page) in (first..).zip(bytes.chunks_mut(page_bytes as usize)) {
        page[..8].copy_from_slice(&number.to_le_bytes());
    }
}
