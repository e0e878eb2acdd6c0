//! A program and the run of one of its ranks.

use crate::collective::{Step, steps_of};
use crate::extents::moved_extents;
use crate::limits::check_limits;
use crate::rank::{Manner, Meeting, OpenedFile, Rank, Stream, Transfer};
use crate::report::RankReport;
use crate::requests::Requests;
use crate::streams::{Known, communicators, contributions, synchronous_receives};
use futures_util::future::try_join;
use interface::UserError;
use policy::{Access, OwnPart};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use trace::{
    Collective, Communicator, Event, FileNumber, Message, Operation, PartNumber, RankTrace, Trace,
};
use units::{Duration, Instant};

/// Bytes up to which a message leaves before its receiver is ready; MPI libraries have such a limit
/// between 4 KiB (Open MPI, shared memory) and 64 KiB (MPICH).
const EAGER_BYTES_MAX: u64 = 64 << 10;

/// The program of a trace, ready to be carried out again.
pub struct Program {
    ranks: Vec<RankTrace>,
    communicators: Vec<Vec<Known>>,
    synchronous: Vec<BTreeSet<usize>>,
    /// Largest contribution of a member to each collective operation, by communicator.
    contributions: Vec<Vec<u64>>,
    /// Access of each collective transfer, by its number, of a program that was made of rules.
    rules: Vec<Arc<Access>>,
    compute_speed: f64,
    has_warm_files: bool,
    ranks_poll: bool,
}

impl Program {
    /// Makes the program of a trace.
    ///
    /// # Errors
    /// As [`Program::new`].
    pub fn of_trace(trace: Trace) -> Result<Self, UserError> {
        let ranks_poll = trace.header().ranks_poll();
        Ok(Self { ranks_poll, ..Self::new(trace.ranks)? })
    }

    /// Has ranks use a processor while they wait for messages.
    pub fn with_polling_ranks(self) -> Self {
        Self { ranks_poll: true, ..self }
    }

    /// Makes the program of the ranks of a trace.
    ///
    /// # Errors
    /// Refuses a trace that cannot be replayed: [`trace::check`] says why.
    pub fn new(ranks: Vec<RankTrace>) -> Result<Self, UserError> {
        trace::check(&ranks)?;
        let communicators = communicators(&ranks)?;
        check_limits(&ranks, 1.0)?;
        Ok(Self::of(ranks, communicators, Vec::new()))
    }

    pub(crate) fn of(
        ranks: Vec<RankTrace>,
        communicators: Vec<Vec<Known>>,
        rules: Vec<Arc<Access>>,
    ) -> Self {
        let synchronous = synchronous_receives(&ranks, &communicators);
        let contributions = contributions(&ranks, &communicators);
        let (compute_speed, has_warm_files, ranks_poll) = (1.0, false, false);
        Self {
            ranks,
            communicators,
            synchronous,
            contributions,
            rules,
            compute_speed,
            has_warm_files,
            ranks_poll,
        }
    }

    /// Makes computations take the time that they took divided by `speed`.
    ///
    /// # Errors
    /// Refuses a speed that is not above 0, or that makes computations too long.
    pub fn with_compute_speed(self, speed: f64) -> Result<Self, UserError> {
        if !(speed.is_finite() && speed > 0.0) {
            return Err(UserError::usage(
                format!("computations cannot have the speed {speed}"),
                "they would never end",
                "give a factor above 0, such as 2 for processors of twice the speed",
            ));
        }
        check_limits(&self.ranks, speed)?;
        Ok(Self { compute_speed: speed, ..self })
    }

    /// Has the files that the program expects written just before it begins, so that caches hold
    /// what fits in them.
    pub fn with_warm_files(self) -> Self {
        Self { has_warm_files: true, ..self }
    }

    /// True if ranks use a processor while they wait for messages.
    pub fn ranks_poll(&self) -> bool {
        self.ranks_poll
    }

    /// True if caches hold the files that the program expects.
    pub fn has_warm_files(&self) -> bool {
        self.has_warm_files
    }

    /// Drops the events of all ranks but one, which alone can be run then.
    pub fn keep_only(&mut self, rank: u32) {
        for (other, trace) in (0..).zip(&mut self.ranks) {
            if other != rank {
                trace.events = Vec::new();
            }
        }
    }

    /// Longest time that a rank computes or is blocked, in nanoseconds.
    pub fn longest_ns(&self) -> u64 {
        let of = |trace: &RankTrace| {
            let times = trace.events.iter().map(|event| event.computed_ns + event.blocked_ns);
            times.sum()
        };
        self.ranks.iter().map(of).max().unwrap_or_default()
    }

    /// Returns a name for each file that the program opens or deletes, by its own name: `prefix`
    /// and a number.
    pub fn names(&self, prefix: &str) -> BTreeMap<String, String> {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for trace in &self.ranks {
            names.extend(trace.files.iter().map(String::as_str));
            names.extend(trace.events.iter().filter_map(|event| match &event.operation {
                Operation::Delete { name } => Some(name.as_str()),
                _ => None,
            }));
        }
        let numbered = names.into_iter().enumerate();
        numbered.map(|(number, name)| (name.to_owned(), format!("{prefix}-{number}"))).collect()
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

    /// Upper bound of the bytes of all files that are moved: for each file those from the first to
    /// the last byte that a transfer reaches, or all that it had if caches hold it.
    pub fn moved_extent_bytes(&self) -> u64 {
        let warm = self.existing_files().into_values().filter(|_| self.has_warm_files);
        warm.fold(moved_extents(&self.ranks), u64::saturating_add)
    }

    /// Number of events of all ranks.
    pub fn events(&self) -> u64 {
        self.ranks.iter().map(|trace| trace.events.len() as u64).sum()
    }

    /// Share of the bytes of files that collective calls move; 1 if none are moved.
    pub fn collective_share(&self) -> f64 {
        let (mut collective, mut all) = (0_u64, 0_u64);
        for trace in &self.ranks {
            for event in &trace.events {
                let Operation::Transfer { is_collective, part, .. } = &event.operation else {
                    continue;
                };
                let part = part.and_then(|part| trace.parts.get(part.0 as usize));
                let bytes = part.map_or(0, OwnPart::bytes);
                all = all.saturating_add(bytes);
                if *is_collective {
                    collective = collective.saturating_add(bytes);
                }
            }
        }
        if all == 0 { 1.0 } else { collective as f64 / all as f64 }
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
            contributions: &self.contributions,
            synchronous: &self.synchronous[at],
            requests: Requests::new(),
            exchanges: BTreeSet::new(),
            files: BTreeMap::new(),
            rules: self.rules.iter(),
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
    contributions: &'a [Vec<u64>],
    /// Events that receive messages of synchronous sends.
    synchronous: &'a BTreeSet<usize>,
    requests: Requests<R::Error>,
    /// Requests of messages that the rank has not waited for.
    exchanges: BTreeSet<trace::RequestNumber>,
    files: BTreeMap<FileNumber, R::File>,
    /// Accesses of the collective transfers to come.
    rules: std::slice::Iter<'a, Arc<Access>>,
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

/// Way in which a rank waits for an operation.
#[derive(Clone, Copy)]
enum Wait {
    /// As this library, in which ranks sleep.
    ForFile,
    /// As the program's MPI library.
    ForMessages,
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
            Operation::Begin => self.meet_all(Meeting::Begin).await,
            Operation::End => self.meet_all(Meeting::End).await,
            Operation::Send { message, is_synchronous, request } => {
                let asks = *is_synchronous || message.bytes > EAGER_BYTES_MAX;
                let sending = self.sending(message, asks);
                self.begin_or_wait(*request, Wait::ForMessages, sending).await?;
                Ok(Spent::Messages)
            }
            Operation::Receive { message, request } => {
                let is_asked = message.bytes > EAGER_BYTES_MAX || self.synchronous.contains(&index);
                let receiving = self.receiving(message, is_asked);
                self.begin_or_wait(*request, Wait::ForMessages, receiving).await?;
                Ok(Spent::Messages)
            }
            Operation::Wait { requests } => {
                let rank = self.rank;
                for request in requests {
                    let waiting = self.requests.wait(*request);
                    match self.exchanges.remove(request) {
                        true => rank.wait_for_messages(waiting).await?,
                        false => waiting.await?,
                    }
                }
                Ok(Spent::Waiting)
            }
            Operation::Collective {
                kind: Collective::Barrier,
                communicator: Communicator(0),
                request: None,
                ..
            } => self.meet_all(Meeting::Barrier).await,
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

    async fn meet_all(&mut self, meeting: Meeting) -> Result<Spent, R::Error> {
        match self.rank.meet_all(meeting) {
            Some(meeting) => {
                self.operations[0] += 1;
                self.requests.progressing(meeting).await?;
            }
            None => self.collective(Collective::Barrier, Communicator(0), 0, 0, None).await?,
        }
        Ok(Spent::Messages)
    }

    async fn perform_on_file(&mut self, operation: &Operation) -> Result<(), R::Error> {
        match operation {
            Operation::Open { file, communicator, creates, is_fresh, .. } => {
                let opening = self.opening(*file, *communicator, (*creates, *is_fresh));
                // On the heap: the future of a rank is not as large as that of its rarest call.
                let opened = Box::pin(self.rank.open(opening));
                let opened = self.requests.progressing(opened).await?;
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
                let rule = if is_collective { self.rules.next().cloned() } else { None };
                let Some(file) = self.files.get(file) else { return Ok(()) };
                let is_blocking = request.is_none();
                let transfer = Transfer { direction, is_collective, is_blocking, part, rule };
                let moving = self.rank.transfer(file, transfer);
                self.begin_or_wait(*request, Wait::ForFile, moving).await?;
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

    fn opening(
        &mut self,
        file: FileNumber,
        communicator: Communicator,
        (creates, is_fresh): (bool, bool),
    ) -> OpenedFile {
        let known = &self.communicators[communicator.0 as usize];
        let opened = &mut self.opened[communicator.0 as usize];
        *opened += 1;
        OpenedFile {
            name: self.trace.files[file.0 as usize].clone(),
            members: Arc::clone(&known.members),
            place: known.place,
            number: u64::from(known.number) << 32 | (*opened - 1),
            creates,
            is_fresh,
        }
    }

    /// Waits for an operation, or only lets it begin when it has a request.
    async fn begin_or_wait(
        &mut self,
        request: Option<trace::RequestNumber>,
        wait: Wait,
        operation: impl Future<Output = Result<(), R::Error>> + 'static,
    ) -> Result<(), R::Error> {
        let Some(number) = request else {
            let waiting = self.requests.progressing(operation);
            return match wait {
                Wait::ForFile => waiting.await,
                Wait::ForMessages => self.rank.wait_for_messages(waiting).await,
            };
        };
        match wait {
            Wait::ForFile => self.exchanges.remove(&number),
            Wait::ForMessages => self.exchanges.insert(number),
        };
        self.requests.add(number, operation).await;
        Ok(())
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
        let contributed = &self.contributions[known.number as usize];
        let largest = contributed.get(*number as usize).copied().unwrap_or(bytes);
        *number += 1;
        let root = known.members.iter().position(|member| *member == root).unwrap_or_default();
        let size = known.members.len() as u32;
        let stream = self.stream(communicator, tag);
        let steps = steps_of(kind, (known.place, size), root as u32, (bytes, largest));
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
        let wait = match kind {
            Collective::Agree => Wait::ForFile,
            _ => Wait::ForMessages,
        };
        self.begin_or_wait(request, wait, operation).await
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
