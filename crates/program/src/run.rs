//! A program and the run of one of its ranks.

use crate::collective::{Step, steps_of};
use crate::rank::{Manner, OpenedFile, Rank, Stream, Transfer};
use crate::requests::Requests;
use crate::streams::{Known, communicators, synchronous_receives};
use futures_util::future::try_join;
use interface::UserError;
use policy::OwnPart;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use trace::{
    Collective, Communicator, Event, FileNumber, Message, Operation, PartNumber, RankTrace,
};
use units::{Duration, Instant};

/// Bytes up to which a message leaves before its receiver is ready; MPI libraries have such a limit
/// between 4 KiB (Open MPI, shared memory) and 64 KiB (MPICH).
const EAGER_BYTES_MAX: u64 = 64 << 10;

/// What the ranks of a trace did, ready to be carried out again.
pub struct Program {
    ranks: Vec<RankTrace>,
    communicators: Vec<Vec<Known>>,
    synchronous: Vec<BTreeSet<usize>>,
    compute_speed: f64,
}

/// Times of one rank in a run, and what it moved. They sum to `elapsed`, but for the work of the
/// replay itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RankReport {
    /// Time from the begin of the first event to the end of the last.
    pub elapsed: Duration,
    /// Time of computations.
    pub computing: Duration,
    /// Time in which the program neither computed nor waited for others.
    pub blocked: Duration,
    /// Time in messages and collective operations of ranks.
    pub messages: Duration,
    /// Time in calls of files.
    pub files: Duration,
    /// Time in calls that only wait for begun operations.
    pub waiting: Duration,
    /// Bytes read from files.
    pub read_bytes: u64,
    /// Bytes written to files.
    pub written_bytes: u64,
    /// Number of transfers.
    pub transfers: u64,
}

impl RankReport {
    /// Seconds in calls of files, including those that wait for begun operations.
    pub fn file_seconds(&self) -> f64 {
        (self.files + self.waiting).as_seconds()
    }

    /// Seconds outside calls.
    pub fn computing_seconds(&self) -> f64 {
        (self.computing + self.blocked).as_seconds()
    }

    /// Seconds in messages and collective operations of ranks.
    pub fn message_seconds(&self) -> f64 {
        self.messages.as_seconds()
    }

    /// Returns the mean of a time over ranks; 0 for none.
    pub fn mean(ranks: &[Self], seconds: impl Fn(&Self) -> f64) -> f64 {
        ranks.iter().map(seconds).sum::<f64>() / ranks.len().max(1) as f64
    }
}

impl Program {
    /// Makes the program of the ranks of a trace.
    ///
    /// # Errors
    /// Refuses a trace that cannot be replayed: [`trace::check`] says why.
    pub fn new(ranks: Vec<RankTrace>) -> Result<Self, UserError> {
        trace::check(&ranks)?;
        let communicators = communicators(&ranks)?;
        let synchronous = synchronous_receives(&ranks, &communicators);
        Ok(Self { ranks, communicators, synchronous, compute_speed: 1.0 })
    }

    /// Makes computations take the time that they took divided by `speed`, which is above 0.
    pub fn with_compute_speed(self, speed: f64) -> Self {
        Self { compute_speed: speed, ..self }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// Returns the files that must exist before the program begins, with their sizes: those that it
    /// opens before it has made them.
    pub fn existing_files(&self) -> BTreeMap<String, u64> {
        let mut existing = BTreeMap::new();
        for trace in &self.ranks {
            let mut own = BTreeSet::new();
            for event in &trace.events {
                let Operation::Open { file, bytes, is_fresh, .. } = &event.operation else {
                    continue;
                };
                let Some(name) = trace.files.get(file.0 as usize) else { continue };
                if own.insert(name) && !is_fresh {
                    let known: &mut u64 = existing.entry(name.clone()).or_default();
                    *known = (*known).max(*bytes);
                }
            }
        }
        existing
    }

    /// Returns the names of all files that the program opens.
    pub fn files(&self) -> BTreeSet<&str> {
        self.ranks.iter().flat_map(|trace| &trace.files).map(String::as_str).collect()
    }

    /// Number of events of all ranks.
    pub fn events(&self) -> u64 {
        self.ranks.iter().map(|trace| trace.events.len() as u64).sum()
    }

    /// Bytes of memory that the largest transfer of a rank needs.
    pub fn memory_bytes(&self, rank: u32) -> u64 {
        let parts = &self.ranks[rank as usize].parts;
        parts.iter().map(OwnPart::memory_bytes).max().unwrap_or_default()
    }

    /// Carries out the events of one rank. All ranks must run at the same time.
    ///
    /// # Errors
    /// The first failure of a call; other ranks may then wait for this one.
    pub async fn run_rank<R: Rank>(&self, number: u32, rank: &R) -> Result<RankReport, R::Error>
    where
        R::Error: 'static,
    {
        let (at, begun) = (number as usize, rank.now());
        let mut run = Run {
            rank,
            trace: &self.ranks[at],
            communicators: &self.communicators[at],
            synchronous: &self.synchronous[at],
            requests: Requests::new(),
            files: BTreeMap::new(),
            operations: vec![0; self.communicators[at].len()],
            opened: vec![0; self.communicators[at].len()],
            report: RankReport::default(),
            compute_speed: self.compute_speed,
        };
        for (index, event) in self.ranks[at].events.iter().enumerate() {
            run.carry_out(index, event).await?;
        }
        run.requests.wait_for_all().await?;
        run.report.elapsed = rank.now().since(begun);
        Ok(run.report)
    }
}

/// The run of one rank.
struct Run<'a, R: Rank> {
    rank: &'a R,
    trace: &'a RankTrace,
    communicators: &'a [Known],
    /// Events that receive messages of synchronous sends.
    synchronous: &'a BTreeSet<usize>,
    requests: Requests<R::Error>,
    files: BTreeMap<FileNumber, R::File>,
    /// Collective operations so far, by communicator.
    operations: Vec<u64>,
    /// Files opened so far, by communicator.
    opened: Vec<u64>,
    report: RankReport,
    compute_speed: f64,
}

/// Kind of time that an operation takes.
enum Spent {
    Messages,
    Files,
    Waiting,
}

impl<R: Rank> Run<'_, R>
where
    R::Error: 'static,
{
    async fn carry_out(&mut self, index: usize, event: &Event) -> Result<(), R::Error> {
        let computing = match self.compute_speed {
            1.0 => Duration::from_ns(event.computed_ns),
            speed => Duration::from_ns((event.computed_ns as f64 / speed).round() as u64),
        };
        let blocked = Duration::from_ns(event.blocked_ns);
        let mut now = self.rank.now();
        if computing > Duration::ZERO {
            self.requests.progressing(self.rank.compute(computing)).await;
            self.report.computing += self.lap(&mut now);
        }
        if blocked > Duration::ZERO {
            self.requests.progressing(self.rank.block(blocked)).await;
            self.report.blocked += self.lap(&mut now);
        }
        let from = now;
        let spent = self.perform(index, &event.operation).await?;
        let took = self.lap(&mut now);
        self.rank.note(&event.operation, from, now);
        let report = &mut self.report;
        let sum = match spent {
            Spent::Messages => &mut report.messages,
            Spent::Files => &mut report.files,
            Spent::Waiting => &mut report.waiting,
        };
        *sum += took;
        Ok(())
    }

    /// Returns the time since `since`, which becomes the present.
    fn lap(&self, since: &mut Instant) -> Duration {
        let before = std::mem::replace(since, self.rank.now());
        since.since(before)
    }

    async fn perform(&mut self, index: usize, operation: &Operation) -> Result<Spent, R::Error> {
        match operation {
            Operation::Begin | Operation::End => {
                let all = Communicator(0);
                self.collective(Collective::Barrier, all, 0, 0, None).await?;
                Ok(Spent::Messages)
            }
            Operation::Send { message, is_synchronous, request } => {
                let asks = *is_synchronous || message.bytes > EAGER_BYTES_MAX;
                let sending = self.sending(message, asks);
                self.begin_or_wait(*request, sending).await?;
                Ok(Spent::Messages)
            }
            Operation::Receive { message, request } => {
                let is_asked = message.bytes > EAGER_BYTES_MAX || self.synchronous.contains(&index);
                let receiving = self.receiving(message, is_asked);
                self.begin_or_wait(*request, receiving).await?;
                Ok(Spent::Messages)
            }
            Operation::Wait { requests } => {
                for request in requests {
                    self.requests.wait(*request).await?;
                }
                Ok(Spent::Waiting)
            }
            Operation::Collective { kind, communicator, root, bytes, request } => {
                self.collective(*kind, *communicator, *root, *bytes, *request).await?;
                Ok(Spent::Messages)
            }
            _ => {
                self.perform_on_file(operation).await?;
                Ok(Spent::Files)
            }
        }
    }

    async fn perform_on_file(&mut self, operation: &Operation) -> Result<(), R::Error> {
        match operation {
            Operation::Open { file, communicator, creates, is_fresh, .. } => {
                let known = &self.communicators[communicator.0 as usize];
                let opened = &mut self.opened[communicator.0 as usize];
                let opening = OpenedFile {
                    name: self.trace.files[file.0 as usize].clone(),
                    members: Arc::clone(&known.members),
                    place: known.place,
                    number: u64::from(known.number) << 32 | *opened,
                    creates: *creates,
                    is_fresh: *is_fresh,
                };
                *opened += 1;
                let opened = self.requests.progressing(self.rank.open(opening)).await?;
                self.files.insert(*file, opened);
            }
            Operation::Close { file } => {
                if let Some(file) = self.files.remove(file) {
                    self.requests.progressing(self.rank.close(file)).await?;
                }
            }
            Operation::Delete { name } => {
                self.requests.progressing(self.rank.delete(name)).await?;
            }
            Operation::Transfer { file, direction, is_collective, part, shift, request } => {
                let part = self.part(*part, *shift);
                let report = &mut self.report;
                let moved = match direction {
                    trace::Direction::Read => &mut report.read_bytes,
                    trace::Direction::Write => &mut report.written_bytes,
                };
                *moved += part.bytes();
                report.transfers += 1;
                let (direction, is_collective) = (*direction, *is_collective);
                let Some(file) = self.files.get(file) else { return Ok(()) };
                let transfer = Transfer { direction, is_collective, part };
                let moving = self.rank.transfer(file, transfer);
                self.begin_or_wait(*request, moving).await?;
            }
            Operation::Sync { file } => {
                let Some(file) = self.files.get(file) else { return Ok(()) };
                self.requests.progressing(self.rank.sync(file)).await?;
            }
            Operation::SetSize { file, bytes, only_grows } => {
                let Some(file) = self.files.get(file) else { return Ok(()) };
                let setting = self.rank.set_size(file, *bytes, *only_grows);
                self.requests.progressing(setting).await?;
            }
            Operation::GetSize { file } => {
                let Some(file) = self.files.get(file) else { return Ok(()) };
                self.requests.progressing(self.rank.get_size(file)).await?;
            }
            Operation::Begin
            | Operation::End
            | Operation::Send { .. }
            | Operation::Receive { .. }
            | Operation::Wait { .. }
            | Operation::Collective { .. } => {}
        }
        Ok(())
    }

    /// Waits for an operation, or only lets it begin when it has a request.
    async fn begin_or_wait(
        &mut self,
        request: Option<trace::RequestNumber>,
        operation: impl Future<Output = Result<(), R::Error>> + 'static,
    ) -> Result<(), R::Error> {
        match request {
            None => self.requests.progressing(operation).await,
            Some(number) => {
                self.requests.add(number, operation).await;
                Ok(())
            }
        }
    }

    fn stream(&self, communicator: Communicator, tag: i64) -> Stream {
        let communicator = self.communicators[communicator.0 as usize].number;
        Stream { communicator, tag, manner: Manner::Data }
    }

    /// Sends a message, after asking the receiver when the message is long or synchronous.
    fn sending(
        &self,
        message: &Message,
        asks: bool,
    ) -> impl Future<Output = Result<(), R::Error>> + 'static + use<R> {
        let stream = self.stream(message.communicator, message.tag.into());
        let asked = asks.then(|| {
            let ask = Stream { manner: Manner::Ask, ..stream };
            let ready = Stream { manner: Manner::Ready, ..stream };
            (self.rank.send(message.peer, ask, 0), self.rank.receive(message.peer, ready))
        });
        let data = self.rank.send(message.peer, stream, message.bytes);
        async move {
            if let Some((ask, ready)) = asked {
                ask.await?;
                ready.await?;
            }
            data.await
        }
    }

    fn receiving(
        &self,
        message: &Message,
        is_asked: bool,
    ) -> impl Future<Output = Result<(), R::Error>> + 'static + use<R> {
        let stream = self.stream(message.communicator, message.tag.into());
        let asked = is_asked.then(|| {
            let ask = Stream { manner: Manner::Ask, ..stream };
            let ready = Stream { manner: Manner::Ready, ..stream };
            (self.rank.receive(message.peer, ask), self.rank.send(message.peer, ready, 0))
        });
        let data = self.rank.receive(message.peer, stream);
        async move {
            if let Some((ask, ready)) = asked {
                ask.await?;
                ready.await?;
            }
            data.await
        }
    }

    async fn collective(
        &mut self,
        kind: Collective,
        communicator: Communicator,
        root: u32,
        bytes: u64,
        request: Option<trace::RequestNumber>,
    ) -> Result<(), R::Error> {
        let known = &self.communicators[communicator.0 as usize];
        let number = &mut self.operations[communicator.0 as usize];
        let tag = -1 - *number as i64;
        *number += 1;
        let root = known.members.iter().position(|member| *member == root).unwrap_or_default();
        let size = known.members.len() as u32;
        let stream = self.stream(communicator, tag);
        let steps = steps_of(kind, known.place, size, root as u32, bytes);
        let messages: Vec<_> = steps
            .into_iter()
            .map(|Step { send, receive }| {
                let member = |place: u32| known.members[place as usize];
                let send = send.map(|(to, bytes)| self.rank.send(member(to), stream, bytes));
                let receive = receive.map(|from| self.rank.receive(member(from), stream));
                (send, receive)
            })
            .collect();
        let operation = async move {
            for (send, receive) in messages {
                try_join(if_any(send), if_any(receive)).await?;
            }
            Ok(())
        };
        self.begin_or_wait(request, operation).await
    }

    fn part(&self, part: Option<PartNumber>, shift: u64) -> OwnPart {
        part.map_or(OwnPart::NOTHING, |number| self.trace.parts[number.0 as usize].shifted(shift))
    }
}

async fn if_any<E>(operation: Option<impl Future<Output = Result<(), E>>>) -> Result<(), E> {
    match operation {
        Some(operation) => operation.await,
        None => Ok(()),
    }
}
