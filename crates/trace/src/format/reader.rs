//! The reader of the records of a stream.
//!
//! *Invariants:*
//! - No bytes make it panic, and its memory is proportional to the stream.
//! - Each event names only communicators, files and parts that stand before it.

use super::codes as code;
use super::parts::end_of_normal;
use super::state::{Place, State};
use super::varint::{self, Unread, signed, take};
use crate::event::{
    Collective, Communicator, Event, FileNumber, Message, Operation, PartNumber, RankTrace,
    RequestNumber,
};
use crate::limits::{
    COMMUNICATORS_MAX, EVENTS_MAX, FILES_MAX, MEMBERS_MAX, PARTS_MAX, RANKS_MAX, TEXT_BYTES_MAX,
    WAITED_MAX,
};
use policy::{BYTES_MAX, Direction, OwnPart};
use std::collections::HashMap;

/// First record of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Start {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) host: String,
    pub(crate) mpi: String,
}

/// Reason that no more records could be read.
#[derive(Debug)]
pub(super) enum Stop {
    /// The bytes end inside a record.
    Ended,
    /// The record makes no sense.
    Damaged(String),
}

impl From<Unread> for Stop {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::Ended => Self::Ended,
            Unread::Malformed => Self::Damaged("a number has too many bytes".to_owned()),
        }
    }
}

fn damaged<T>(cause: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Damaged(cause.into()))
}

/// Trace without events.
pub(super) fn empty(ranks: u32) -> RankTrace {
    RankTrace { communicators: vec![(0..ranks).collect()], ..RankTrace::default() }
}

/// Said of the next event by a record of its own.
#[derive(Clone, Copy, Default)]
struct About {
    depends_on_timing: bool,
    blocked_ns: u64,
}

/// Reader of records.
pub(super) struct Reader<'a> {
    all: &'a [u8],
    rest: &'a [u8],
    /// Bytes left at the begin of the record that is read.
    left: usize,
    ranks: u32,
    pub(super) start: Option<Start>,
    pub(super) trace: RankTrace,
    state: State,
    members: usize,
    about: Option<About>,
    /// Receives that have begun, by request: the numbers of their events.
    receives: HashMap<u32, usize>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(records: &'a [u8], ranks: u32) -> Self {
        Self {
            all: records,
            rest: records,
            left: records.len(),
            ranks,
            start: None,
            trace: RankTrace::default(),
            state: State::new(),
            members: 0,
            about: None,
            receives: HashMap::new(),
        }
    }

    /// Place of the record that is read.
    pub(super) fn at(&self) -> usize {
        self.all.len() - self.left
    }

    /// True when there are only zeros from this record on.
    pub(super) fn is_at_zeros(&self) -> bool {
        self.all[self.at()..].iter().all(|byte| *byte == 0)
    }

    pub(super) fn read_all(&mut self) -> Result<(), Stop> {
        self.trace = empty(self.ranks);
        if self.rest.is_empty() {
            // Killed before the first record.
            return Ok(());
        }
        let start = self.start()?;
        if start.ranks != self.ranks {
            let (said, other) = (start.ranks, self.ranks);
            return damaged(format!("it is of {said} ranks, but trace.json says {other}"));
        }
        self.start = Some(start);
        loop {
            if self.about.is_none() {
                self.left = self.rest.len();
            }
            let Some((first, rest)) = self.rest.split_first() else { break };
            self.rest = rest;
            self.record(*first)?;
        }
        // The record about the next event is nothing without that event.
        if self.about.is_some() { Err(Stop::Ended) } else { Ok(()) }
    }

    /// Reads the first record.
    pub(super) fn start(&mut self) -> Result<Start, Stop> {
        match self.byte()? {
            code::START => {}
            other => return damaged(format!("it begins with code {other} in place of the rank")),
        }
        let (rank, ranks) = (self.number()?, self.number()?);
        if ranks == 0 || ranks > RANKS_MAX || rank >= ranks {
            return damaged(format!("it is that of rank {rank} of {ranks}"));
        }
        let (host, mpi) = (self.text()?, self.text()?);
        Ok(Start { rank, ranks, host, mpi })
    }

    fn record(&mut self, first: u8) -> Result<(), Stop> {
        let (kind, flags) = (first & code::CODE, first & (code::FIRST | code::SECOND));
        if first & code::TRANSFER == 0 {
            match code::flags_of(kind) {
                None => return damaged(format!("its code {kind} is unknown")),
                Some(known) if flags & !known != 0 => {
                    return damaged(format!("its code {kind} has flags that it cannot have"));
                }
                Some(_) => {}
            }
            let is_event = kind >= code::BEGIN;
            if !is_event {
                if self.about.is_some() {
                    return damaged("an event must follow what is said of it");
                }
                return self.table(kind, flags);
            }
        }
        let (computed_ns, took_ns) = (self.take()?, self.take()?);
        let operation = match first & code::TRANSFER {
            0 => self.operation(kind, flags)?,
            _ => self.transfer(first)?,
        };
        if self.trace.events.len() == EVENTS_MAX {
            return damaged(format!("it has more than {EVENTS_MAX} events"));
        }
        let About { depends_on_timing, blocked_ns } = self.about.take().unwrap_or_default();
        self.trace.events.push(Event {
            computed_ns,
            blocked_ns,
            took_ns,
            depends_on_timing,
            operation,
        });
        Ok(())
    }

    /// Reads a record that is no event.
    fn table(&mut self, kind: u8, flags: u8) -> Result<(), Stop> {
        match kind {
            code::START => damaged("it says a second time which rank it is of"),
            code::COMMUNICATOR => self.add_communicator(),
            code::FILE => {
                let name = self.text()?;
                if self.trace.files.len() == FILES_MAX {
                    return damaged(format!("it has more than {FILES_MAX} files"));
                }
                self.state.add_file();
                self.trace.files.push(name);
                Ok(())
            }
            code::PART => self.add_part(),
            code::RECEIVED => self.received(flags),
            _ => {
                let depends_on_timing = flags & code::FIRST != 0;
                let blocked_ns = if flags & code::SECOND != 0 { self.take()? } else { 0 };
                self.about = Some(About { depends_on_timing, blocked_ns });
                Ok(())
            }
        }
    }

    fn add_communicator(&mut self) -> Result<(), Stop> {
        let count = self.take()?;
        let all = u64::try_from(self.members).unwrap_or(u64::MAX).saturating_add(count);
        if count > self.ranks.into() || all > MEMBERS_MAX as u64 {
            return damaged(format!("a communicator of {count} members is not possible"));
        }
        if self.trace.communicators.len() == COMMUNICATORS_MAX {
            return damaged(format!("it has more than {COMMUNICATORS_MAX} communicators"));
        }
        let count = count as usize;
        let mut members = Vec::new();
        let mut expected = 0_i64;
        while members.len() < count {
            let first = expected.checked_add(signed(self.take()?));
            let first = first.and_then(|first| u32::try_from(first).ok());
            let length = self.number()?;
            let end = first.and_then(|first| first.checked_add(length));
            let (Some(first), Some(end)) = (first, end) else {
                return damaged("a communicator has members that are no ranks");
            };
            if length == 0 || length as usize > count - members.len() || end > self.ranks {
                return damaged("a communicator has members that are no ranks");
            }
            members.extend(first..end);
            expected = end.into();
        }
        self.members += count;
        self.trace.communicators.push(members);
        Ok(())
    }

    fn add_part(&mut self) -> Result<(), Stop> {
        let encoded = self.bytes(u64::MAX)?;
        if self.trace.parts.len() == PARTS_MAX {
            return damaged(format!("it has more than {PARTS_MAX} parts"));
        }
        match postcard::take_from_bytes::<OwnPart>(encoded) {
            Ok((part, [])) => {
                let end = end_of_normal(&part);
                let end = end.map_err(|cause| Stop::Damaged(format!("the part {cause}")))?;
                self.state.ends.push(end);
                self.trace.parts.push(part);
                Ok(())
            }
            Ok(_) => damaged("the part has bytes that mean nothing"),
            Err(error) => damaged(format!("the part cannot be decoded: {error}")),
        }
    }

    fn received(&mut self, flags: u8) -> Result<(), Stop> {
        let request = self.number()?;
        let message = self.message(flags)?;
        let event = self.receives.get(&request).and_then(|event| self.trace.events.get_mut(*event));
        match event.map(|event| &mut event.operation) {
            Some(Operation::Receive { message: begun, .. })
                if begun.communicator == message.communicator =>
            {
                *begun = message;
                Ok(())
            }
            _ => damaged(format!("no receive of this communicator has the request {request}")),
        }
    }

    fn operation(&mut self, kind: u8, flags: u8) -> Result<Operation, Stop> {
        let (first, second) = (flags & code::FIRST != 0, flags & code::SECOND != 0);
        Ok(match kind {
            code::BEGIN => Operation::Begin,
            code::END => Operation::End,
            code::SEND | code::SEND_SYNCHRONOUS => Operation::Send {
                message: self.message(flags)?,
                is_synchronous: kind == code::SEND_SYNCHRONOUS,
                request: self.request(second)?,
            },
            code::RECEIVE | code::RECEIVE_UNKNOWN => self.receive(kind, flags)?,
            code::WAIT => Operation::Wait { requests: self.requests(first)? },
            code::COLLECTIVE => self.collective(flags)?,
            code::OPEN => Operation::Open {
                file: self.file()?,
                communicator: self.communicator()?,
                creates: first,
                is_fresh: second,
                bytes: self.size()?,
            },
            code::CLOSE => Operation::Close { file: self.file()? },
            code::DELETE => Operation::Delete { name: self.text()? },
            code::SYNC => Operation::Sync { file: self.file()? },
            code::SET_SIZE => {
                Operation::SetSize { file: self.file()?, bytes: self.size()?, only_grows: first }
            }
            code::GET_SIZE => Operation::GetSize { file: self.file()? },
            other => return damaged(format!("its code {other} is unknown")),
        })
    }

    fn receive(&mut self, kind: u8, flags: u8) -> Result<Operation, Stop> {
        let (message, request) = if kind == code::RECEIVE_UNKNOWN {
            let communicator = self.communicator()?;
            let (peer, tag) = (Message::UNKNOWN_PEER, Message::UNKNOWN_TAG);
            (Message { communicator, peer, tag, bytes: 0 }, self.request(true)?)
        } else {
            (self.message(flags)?, self.request(flags & code::SECOND != 0)?)
        };
        if let Some(RequestNumber(request)) = request {
            self.receives.insert(request, self.trace.events.len());
        }
        Ok(Operation::Receive { message, request })
    }

    fn requests(&mut self, is_one: bool) -> Result<Vec<RequestNumber>, Stop> {
        let count = if is_one { 1 } else { self.take()? };
        if count > WAITED_MAX as u64 || (!is_one && count == 1) {
            return damaged(format!("it waits for {count} requests"));
        }
        let mut requests = Vec::with_capacity((count as usize).min(self.rest.len()));
        let mut expected = 0_i64;
        for _ in 0..count {
            let number = expected.checked_add(signed(self.take()?));
            let Some(number) = number.and_then(|number| u32::try_from(number).ok()) else {
                return damaged("it waits for a request that has no number");
            };
            expected = i64::from(number) + 1;
            self.receives.remove(&number);
            requests.push(RequestNumber(number));
        }
        Ok(requests)
    }

    fn collective(&mut self, flags: u8) -> Result<Operation, Stop> {
        let numbers = if flags & code::FIRST != 0 {
            let slot = self.byte()?;
            self.state.collectives.at(slot)
        } else {
            let numbers = [self.take()?, self.take()?, self.take()?, self.take()?];
            if self.state.collectives.find_or_put(numbers).is_some() {
                return damaged("it says in full what was there");
            }
            numbers
        };
        let [kind, communicator, root, bytes] = numbers;
        let kind = usize::try_from(kind).ok().and_then(|kind| Collective::ALL.get(kind).copied());
        let Some(kind) = kind else { return damaged("its collective operation is unknown") };
        let communicator = self.known_communicator(communicator)?;
        let root = self.rank(root)?;
        let request = self.request(flags & code::SECOND != 0)?;
        Ok(Operation::Collective { kind, communicator, root, bytes, request })
    }

    fn transfer(&mut self, flags: u8) -> Result<Operation, Stop> {
        let direction = if flags & code::WRITES != 0 { Direction::Write } else { Direction::Read };
        let file = match flags & code::SAME_FILE {
            0 => {
                let file = self.file()?;
                if file.0 == self.state.last_file {
                    return damaged("it says in full what was there");
                }
                file
            }
            _ => self.known_file(self.state.last_file.into())?,
        };
        self.state.last_file = file.0;
        let place = match flags & code::PLACE {
            code::NOWHERE if flags & code::SAME_PART != 0 => {
                return damaged("a transfer of nothing has a part");
            }
            code::NOWHERE => None,
            place => Some(self.place(flags, place, file, direction)?),
        };
        let request = self.request(flags & code::HAS_REQUEST != 0)?;
        Ok(Operation::Transfer {
            file,
            direction,
            is_collective: flags & code::IS_COLLECTIVE != 0,
            part: place.map(|(part, _)| part),
            shift: place.map_or(0, |(_, shift)| shift),
            request,
        })
    }

    /// Reads part and shift of a transfer.
    fn place(
        &mut self,
        flags: u8,
        place: u8,
        file: FileNumber,
        direction: Direction,
    ) -> Result<(PartNumber, u64), Stop> {
        let before = *self.state.course(file.0, direction);
        let part = match flags & code::SAME_PART {
            0 => self.number()?,
            _ => before.part,
        };
        if flags & code::SAME_PART == 0 && part == before.part {
            return damaged("it says in full what was there");
        }
        let Some(end) = self.state.ends.get(part as usize).copied() else {
            return damaged(format!("it names the part {part}, which is not there"));
        };
        let place = match place {
            code::AT_END => Place::End,
            code::AT_STRIDE => Place::Stride,
            _ => Place::Distance(self.take()?),
        };
        let shift = before
            .shift(place, end)
            .filter(|shift| shift.checked_add(end).is_some_and(|end| end <= BYTES_MAX));
        let Some(shift) = shift else {
            return damaged("it moves bytes that do not fit in a file");
        };
        if before.place(shift, end) != place {
            return damaged("it says in full what could be predicted");
        }
        self.state.course(file.0, direction).note(part, shift, end);
        Ok((PartNumber(part), shift))
    }

    fn message(&mut self, flags: u8) -> Result<Message, Stop> {
        let numbers = if flags & code::FIRST != 0 {
            let slot = self.byte()?;
            self.state.messages.at(slot)
        } else {
            let (communicator, peer) = (self.take()?, self.take()?);
            let Ok(tag) = i32::try_from(signed(self.take()?)) else {
                return damaged("its tag is not an integer of 32 bits");
            };
            let numbers = [communicator, peer, u64::from(tag as u32), self.take()?];
            if self.state.messages.find_or_put(numbers).is_some() {
                return damaged("it says in full what was there");
            }
            numbers
        };
        let [communicator, peer, tag, bytes] = numbers;
        let communicator = self.known_communicator(communicator)?;
        Ok(Message { communicator, peer: self.rank(peer)?, tag: tag as u32 as i32, bytes })
    }

    fn take(&mut self) -> Result<u64, Stop> {
        Ok(take(&mut self.rest)?)
    }

    fn number(&mut self) -> Result<u32, Stop> {
        let number = self.take()?;
        u32::try_from(number).or_else(|_| damaged(format!("the number {number} is too large")))
    }

    fn byte(&mut self) -> Result<u8, Stop> {
        let (byte, rest) = self.rest.split_first().ok_or(Stop::Ended)?;
        self.rest = rest;
        Ok(*byte)
    }

    /// Takes as many bytes as a number says, at most `most`.
    fn bytes(&mut self, most: u64) -> Result<&'a [u8], Stop> {
        let length = varint::take(&mut self.rest)?;
        if length > most {
            return damaged(format!("a text of {length} bytes is longer than {most}"));
        }
        let length = usize::try_from(length).map_err(|_| Stop::Ended)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Stop::Ended)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<String, Stop> {
        let bytes = self.bytes(TEXT_BYTES_MAX as u64)?;
        let text = std::str::from_utf8(bytes);
        text.map(str::to_owned).or_else(|_| damaged("a text is not UTF-8"))
    }

    fn request(&mut self, is_there: bool) -> Result<Option<RequestNumber>, Stop> {
        is_there.then(|| self.number().map(RequestNumber)).transpose()
    }

    fn rank(&self, rank: u64) -> Result<u32, Stop> {
        match u32::try_from(rank) {
            Ok(number) if number < self.ranks => Ok(number),
            _ => damaged(format!("the rank {rank} does not exist")),
        }
    }

    fn communicator(&mut self) -> Result<Communicator, Stop> {
        let number = self.take()?;
        self.known_communicator(number)
    }

    fn known_communicator(&self, number: u64) -> Result<Communicator, Stop> {
        match u32::try_from(number) {
            Ok(known) if (known as usize) < self.trace.communicators.len() => {
                Ok(Communicator(known))
            }
            _ => damaged(format!("it names the communicator {number}, which is not there")),
        }
    }

    fn file(&mut self) -> Result<FileNumber, Stop> {
        let number = self.take()?;
        self.known_file(number)
    }

    fn known_file(&self, number: u64) -> Result<FileNumber, Stop> {
        match u32::try_from(number) {
            Ok(known) if (known as usize) < self.trace.files.len() => Ok(FileNumber(known)),
            _ => damaged(format!("it names the file {number}, which is not there")),
        }
    }

    fn size(&mut self) -> Result<u64, Stop> {
        match self.take()? {
            bytes if bytes <= BYTES_MAX => Ok(bytes),
            bytes => damaged(format!("a file of {bytes} bytes is not possible")),
        }
    }
}
