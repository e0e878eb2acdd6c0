//! The writer of a stream.
//!
//! *Invariant:* after an error every call returns it again and writes nothing.

use super::codes as code;
use super::output::Output;
use super::parts::{Found, PartTable};
use super::state::{Place, State};
use super::varint::{put, put_signed};
use crate::event::{
    Communicator, Event, FileNumber, Message, Operation, PartNumber, RequestNumber,
};
use crate::limits::{
    COMMUNICATORS_MAX, EVENTS_MAX, FILES_MAX, MEMBERS_MAX, PARTS_MAX, RANKS_MAX, STREAM_BYTES_MAX,
    TEXT_BYTES_MAX, WAITED_MAX,
};
use crate::paths::stream_path;
use interface::{ErrorKind, UserError, is_no_space};
use policy::{BYTES_MAX, Direction, OwnPart};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// Part that the stream has a number for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Number of the part.
    pub part: PartNumber,
    /// Bytes by which its file offsets are increased.
    pub shift: u64,
}

/// Writes the stream of one rank.
///
/// An event is in the file when [`Writer::write`] returns; it stays readable when the process is
/// killed. Dropping a writer leaves a stream that was not closed.
pub struct Writer {
    path: PathBuf,
    /// File; `None` after [`Writer::close`].
    output: Option<Output>,
    failed: Option<UserError>,
    ranks: u32,
    state: State,
    parts: PartTable,
    communicators: usize,
    members: usize,
    events: usize,
    bytes: u64,
    /// Receives that have begun, by request.
    receives: HashMap<u32, Message>,
    /// Bytes of the record that is made.
    record: Vec<u8>,
}

impl Writer {
    /// Begins the stream of a rank in a directory, which exists. Communicator 0 is MPI_COMM_WORLD
    /// with all ranks.
    ///
    /// # Errors
    /// Refuses ranks that make no sense and texts that are too long; fails when the file cannot be
    /// made.
    pub fn create(
        directory: &Path,
        (rank, ranks): (u32, u32),
        host: &str,
        mpi: &str,
    ) -> Result<Self, UserError> {
        let path = stream_path(directory, rank);
        if ranks == 0 || ranks > RANKS_MAX || rank >= ranks {
            let cause = format!("rank {rank} of {ranks} is not possible, with {RANKS_MAX} at most");
            return Err(refused(&path, cause));
        }
        let output = Output::create(&path).map_err(|error| cannot_write(&path, &error))?;
        let mut writer = Self {
            path,
            output: Some(output),
            failed: None,
            ranks,
            state: State::new(),
            parts: PartTable::default(),
            communicators: 1,
            members: 0,
            events: 0,
            bytes: 0,
            receives: HashMap::new(),
            record: Vec::new(),
        };
        writer.guarded(|writer| {
            writer.record.push(code::START);
            put(&mut writer.record, rank.into());
            put(&mut writer.record, ranks.into());
            writer.text(host)?;
            writer.text(mpi)?;
            writer.commit()
        })?;
        Ok(writer)
    }

    /// Introduces a communicator with these ranks of MPI_COMM_WORLD, in the order of their ranks in
    /// the communicator. Each call gives a new number, also for members that another one has: the
    /// k-th communicator of these members is that of the other members' k-th call.
    ///
    /// # Errors
    /// Refuses members that are no ranks, and more communicators than a trace may have.
    pub fn communicator(&mut self, members: &[u32]) -> Result<Communicator, UserError> {
        self.guarded(|writer| {
            let number = next_number(writer.communicators, COMMUNICATORS_MAX, "communicators")?;
            let all = writer.members.saturating_add(members.len());
            at_most(all, MEMBERS_MAX, "members of communicators")?;
            at_most(members.len(), writer.ranks as usize, "members of a communicator")?;
            if let Some(member) = members.iter().find(|member| **member >= writer.ranks) {
                return Err(format!("a communicator has rank {member}, which does not exist"));
            }
            writer.record.push(code::COMMUNICATOR);
            put(&mut writer.record, members.len() as u64);
            let mut expected = 0;
            for run in members.chunk_by(|member, next| member + 1 == *next) {
                put_signed(&mut writer.record, i64::from(run[0]) - expected);
                put(&mut writer.record, run.len() as u64);
                expected = i64::from(run[0]) + run.len() as i64;
            }
            writer.commit()?;
            (writer.communicators, writer.members) = (writer.communicators + 1, all);
            Ok(Communicator(number))
        })
    }

    /// Introduces a file that is opened.
    ///
    /// # Errors
    /// Refuses a name that is too long, and more files than a trace may have.
    pub fn file(&mut self, name: &str) -> Result<FileNumber, UserError> {
        self.guarded(|writer| {
            let number = next_number(writer.state.files(), FILES_MAX, "files")?;
            writer.record.push(code::FILE);
            writer.text(name)?;
            writer.commit()?;
            writer.state.add_file();
            Ok(FileNumber(number))
        })
    }

    /// Introduces a part, unless an equal one at any place has a number already. Returns `None` for
    /// a part without bytes.
    ///
    /// # Errors
    /// Refuses a part that is not valid, and more parts than a trace may have.
    pub fn part(&mut self, part: &OwnPart) -> Result<Option<Placed>, UserError> {
        self.guarded(|writer| {
            let next = next_number(writer.state.ends.len(), PARTS_MAX, "parts")?;
            let found = writer.parts.find(part, next).map_err(|cause| format!("a part {cause}"))?;
            let Some((found, shift)) = found else { return Ok(None) };
            let (encoded, end) = match found {
                Found::Known(number) => {
                    return Ok(Some(Placed { part: PartNumber(number), shift }));
                }
                Found::New(encoded, end) => (encoded, end),
            };
            writer.record.push(code::PART);
            put(&mut writer.record, encoded.len() as u64);
            writer.record.extend_from_slice(encoded);
            writer.commit()?;
            writer.state.ends.push(end);
            Ok(Some(Placed { part: PartNumber(next), shift }))
        })
    }

    /// Writes an event. A receive that only begins may have the peer [`Message::UNKNOWN_PEER`].
    ///
    /// # Errors
    /// Refuses numbers that were not introduced.
    pub fn write(&mut self, event: &Event) -> Result<(), UserError> {
        self.guarded(|writer| {
            at_most(writer.events + 1, EVENTS_MAX, "events")?;
            writer.about(event);
            writer.operation(event)?;
            writer.commit()?;
            writer.events += 1;
            Ok(())
        })
    }

    /// Tells the message of a receive that has begun: `peer` and `tag` of the one that came, and
    /// its bytes. It comes before the event that waits for the request.
    ///
    /// # Errors
    /// Refuses a request that no receive has.
    pub fn received(
        &mut self,
        request: RequestNumber,
        peer: u32,
        tag: i32,
        bytes: u64,
    ) -> Result<(), UserError> {
        self.guarded(|writer| {
            let begun = writer.receives.get(&request.0);
            let begun = *begun
                .ok_or_else(|| format!("no receive has begun with the request {}", request.0))?;
            let message = Message { communicator: begun.communicator, peer, tag, bytes };
            if message == begun {
                return Ok(());
            }
            writer.record.push(code::RECEIVED);
            put(&mut writer.record, request.0.into());
            writer.message(0, message)?;
            writer.commit()?;
            writer.receives.insert(request.0, message);
            Ok(())
        })
    }

    /// Notes that an event is lost, for this reason. Returns the error that every later call
    /// returns, too.
    pub fn refuse(&mut self, cause: &str) -> UserError {
        match self.guarded(|_| Err::<(), _>(cause.to_owned())) {
            Err(error) => error,
            Ok(()) => refused(&self.path, cause.to_owned()),
        }
    }

    /// Bytes of the records so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Closes the stream. After an error it stays readable up to the last whole event.
    ///
    /// # Errors
    /// Returns the first error of the stream.
    pub fn close(mut self) -> Result<(), UserError> {
        let had_error = self.failed.is_some();
        let closed = self.output.take().map_or(Ok(()), |output| output.close(had_error));
        match self.failed.take() {
            Some(error) => Err(error),
            None => closed.map_err(|error| cannot_write(&self.path, &error)),
        }
    }

    /// Does something that may fail, unless something has failed before.
    #[inline]
    fn guarded<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, UserError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.record.clear();
        match work(self) {
            Ok(done) => Ok(done),
            Err(cause) => {
                // A file that cannot be written has left its error already.
                let error = self.failed.get_or_insert_with(|| refused(&self.path, cause));
                Err(error.clone())
            }
        }
    }

    /// Puts the record into the file.
    #[inline]
    fn commit(&mut self) -> Result<(), String> {
        let Some(output) = &mut self.output else { return Err("the stream is closed".to_owned()) };
        self.bytes += self.record.len() as u64;
        if self.bytes > STREAM_BYTES_MAX {
            return Err(format!("a stream has {STREAM_BYTES_MAX} bytes at most"));
        }
        output.append(&self.record).map_err(|error| {
            let error = cannot_write(&self.path, &error);
            let cause = error.cause.clone();
            self.failed = Some(error);
            cause
        })
    }

    /// Says what precedes an event.
    #[inline]
    fn about(&mut self, event: &Event) {
        let blocked = if event.blocked_ns > 0 { code::SECOND } else { 0 };
        let timing = if event.depends_on_timing { code::FIRST } else { 0 };
        if blocked | timing != 0 {
            self.record.push(code::ABOUT_NEXT | blocked | timing);
            if blocked != 0 {
                put(&mut self.record, event.blocked_ns);
            }
        }
    }

    /// Writes a code and the times behind it.
    #[inline]
    fn code(&mut self, code: u8, event: &Event) {
        self.record.push(code);
        put(&mut self.record, event.computed_ns);
        put(&mut self.record, event.took_ns);
    }

    #[inline]
    fn operation(&mut self, event: &Event) -> Result<(), String> {
        match &event.operation {
            Operation::Begin => self.code(code::BEGIN, event),
            Operation::End => self.code(code::END, event),
            Operation::Send { message, is_synchronous, request } => {
                let kind = if *is_synchronous { code::SEND_SYNCHRONOUS } else { code::SEND };
                self.with_message(kind, event, *message, *request)?;
            }
            Operation::Receive { message, request } => self.receive(event, *message, *request)?,
            Operation::Wait { requests } => self.wait(event, requests)?,
            Operation::Collective { .. } => self.collective(event)?,
            Operation::Transfer { .. } => self.transfer(event)?,
            Operation::Open { file, communicator, creates, is_fresh, bytes } => {
                let creates = if *creates { code::FIRST } else { 0 };
                let fresh = if *is_fresh { code::SECOND } else { 0 };
                self.code(code::OPEN | creates | fresh, event);
                self.known_file(*file)?;
                self.known_communicator(*communicator)?;
                self.size(*bytes)?;
            }
            Operation::Close { file } => self.of_file(code::CLOSE, event, *file)?,
            Operation::Sync { file } => self.of_file(code::SYNC, event, *file)?,
            Operation::GetSize { file } => self.of_file(code::GET_SIZE, event, *file)?,
            Operation::SetSize { file, bytes, only_grows } => {
                let grows = if *only_grows { code::FIRST } else { 0 };
                self.of_file(code::SET_SIZE | grows, event, *file)?;
                self.size(*bytes)?;
            }
            Operation::Delete { name } => {
                self.code(code::DELETE, event);
                self.text(name)?;
            }
        }
        Ok(())
    }

    fn of_file(&mut self, code: u8, event: &Event, file: FileNumber) -> Result<(), String> {
        self.code(code, event);
        self.known_file(file)
    }

    #[inline]
    fn with_message(
        &mut self,
        kind: u8,
        event: &Event,
        message: Message,
        request: Option<RequestNumber>,
    ) -> Result<(), String> {
        let place = self.record.len();
        self.code(kind | if request.is_some() { code::SECOND } else { 0 }, event);
        self.message(place, message)?;
        if let Some(request) = request {
            put(&mut self.record, request.0.into());
        }
        Ok(())
    }

    fn receive(
        &mut self,
        event: &Event,
        message: Message,
        request: Option<RequestNumber>,
    ) -> Result<(), String> {
        match request {
            Some(request) if message.peer == Message::UNKNOWN_PEER => {
                self.code(code::RECEIVE_UNKNOWN, event);
                self.known_communicator(message.communicator)?;
                put(&mut self.record, request.0.into());
            }
            _ => self.with_message(code::RECEIVE, event, message, request)?,
        }
        if let Some(request) = request {
            self.receives.insert(request.0, message);
        }
        Ok(())
    }

    fn wait(&mut self, event: &Event, requests: &[RequestNumber]) -> Result<(), String> {
        at_most(requests.len(), WAITED_MAX, "requests of one call")?;
        let one = if requests.len() == 1 { code::FIRST } else { 0 };
        self.code(code::WAIT | one, event);
        if one == 0 {
            put(&mut self.record, requests.len() as u64);
        }
        let mut expected = 0;
        for request in requests {
            put_signed(&mut self.record, i64::from(request.0) - expected);
            expected = i64::from(request.0) + 1;
            self.receives.remove(&request.0);
        }
        Ok(())
    }

    #[inline]
    fn collective(&mut self, event: &Event) -> Result<(), String> {
        let Operation::Collective { kind, communicator, root, bytes, request } = event.operation
        else {
            return Err("the event is no collective operation".to_owned());
        };
        if root >= self.ranks {
            return Err(format!("the root {root} does not exist"));
        }
        if communicator.0 as usize >= self.communicators {
            return Err(unknown("communicator", communicator.0));
        }
        let numbers = [kind as u64, communicator.0.into(), root.into(), bytes];
        let flags = if request.is_some() { code::SECOND } else { 0 };
        match self.state.collectives.find_or_put(numbers) {
            Some(slot) => {
                self.code(code::COLLECTIVE | code::FIRST | flags, event);
                self.record.push(slot);
            }
            None => {
                self.code(code::COLLECTIVE | flags, event);
                numbers.into_iter().for_each(|number| put(&mut self.record, number));
            }
        }
        if let Some(request) = request {
            put(&mut self.record, request.0.into());
        }
        Ok(())
    }

    /// Writes a message, and says with the first flag of the code at `place` if it is a recent one.
    #[inline]
    fn message(&mut self, place: usize, message: Message) -> Result<(), String> {
        let Message { communicator, peer, tag, bytes } = message;
        if peer >= self.ranks {
            return Err(format!("a message of rank {peer}, which does not exist"));
        }
        if communicator.0 as usize >= self.communicators {
            return Err(unknown("communicator", communicator.0));
        }
        let numbers = [communicator.0.into(), peer.into(), u64::from(tag as u32), bytes];
        match self.state.messages.find_or_put(numbers) {
            Some(slot) => {
                self.record[place] |= code::FIRST;
                self.record.push(slot);
            }
            None => {
                put(&mut self.record, numbers[0]);
                put(&mut self.record, numbers[1]);
                put_signed(&mut self.record, tag.into());
                put(&mut self.record, bytes);
            }
        }
        Ok(())
    }

    #[inline]
    fn transfer(&mut self, event: &Event) -> Result<(), String> {
        let Operation::Transfer { file, direction, is_collective, part, shift, request } =
            event.operation
        else {
            return Err("the event is no transfer".to_owned());
        };
        if file.0 as usize >= self.state.files() {
            return Err(unknown("file", file.0));
        }
        let mut flags = code::TRANSFER;
        flags |= if direction == Direction::Write { code::WRITES } else { 0 };
        flags |= if is_collective { code::IS_COLLECTIVE } else { 0 };
        flags |= if request.is_some() { code::HAS_REQUEST } else { 0 };
        flags |= if file.0 == self.state.last_file { code::SAME_FILE } else { 0 };
        let place = match part {
            None => None,
            Some(PartNumber(part)) => {
                let end = self.state.ends.get(part as usize).copied();
                let end = end.ok_or_else(|| unknown("part", part))?;
                if shift.checked_add(end).is_none_or(|end| end > BYTES_MAX) {
                    return Err(format!("a transfer at byte {shift} does not fit in a file"));
                }
                let course = self.state.course(file.0, direction);
                let (place, is_same) = (course.place(shift, end), course.part == part);
                course.note(part, shift, end);
                flags |= if is_same { code::SAME_PART } else { 0 };
                Some((part, is_same, place))
            }
        };
        flags |= match place {
            None => code::NOWHERE,
            Some((_, _, Place::End)) => code::AT_END,
            Some((_, _, Place::Stride)) => code::AT_STRIDE,
            Some((_, _, Place::Distance(_))) => code::AT_DISTANCE,
        };
        self.code(flags, event);
        if flags & code::SAME_FILE == 0 {
            put(&mut self.record, file.0.into());
        }
        self.state.last_file = file.0;
        if let Some((part, is_same, place)) = place {
            if !is_same {
                put(&mut self.record, part.into());
            }
            if let Place::Distance(distance) = place {
                put(&mut self.record, distance);
            }
        }
        if let Some(request) = request {
            put(&mut self.record, request.0.into());
        }
        Ok(())
    }

    fn known_file(&mut self, file: FileNumber) -> Result<(), String> {
        if file.0 as usize >= self.state.files() {
            return Err(unknown("file", file.0));
        }
        put(&mut self.record, file.0.into());
        Ok(())
    }

    fn known_communicator(&mut self, communicator: Communicator) -> Result<(), String> {
        if communicator.0 as usize >= self.communicators {
            return Err(unknown("communicator", communicator.0));
        }
        put(&mut self.record, communicator.0.into());
        Ok(())
    }

    fn size(&mut self, bytes: u64) -> Result<(), String> {
        if bytes > BYTES_MAX {
            return Err(format!("a file of {bytes} bytes is not possible"));
        }
        put(&mut self.record, bytes);
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        at_most(text.len(), TEXT_BYTES_MAX, "bytes of a text")?;
        put(&mut self.record, text.len() as u64);
        self.record.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Number of the next thing after `there` of them.
fn next_number(there: usize, limit: usize, things: &str) -> Result<u32, String> {
    at_most(there + 1, limit, things)?;
    u32::try_from(there).map_err(|_| format!("there are {there} {things}"))
}

fn at_most(count: usize, limit: usize, things: &str) -> Result<(), String> {
    if count <= limit { Ok(()) } else { Err(format!("{count} {things} are more than {limit}")) }
}

fn unknown(what: &str, number: u32) -> String {
    format!("the {what} {number} was not introduced")
}

fn refused(path: &Path, cause: String) -> UserError {
    let error = format!("cannot record in {}", path.display());
    UserError::usage(error, cause, "report it: the recorder made a call that makes no sense")
}

fn cannot_write(path: &Path, error: &io::Error) -> UserError {
    let what = format!("cannot write {}", path.display());
    match is_no_space(error) {
        true => UserError::of_kind(
            ErrorKind::NoSpace,
            what,
            error.to_string(),
            "record to a disk with more space; the trace is readable up to here",
        ),
        false => UserError::of_kind(
            ErrorKind::LocalFile,
            what,
            error.to_string(),
            "name a directory that exists and that you may write to",
        ),
    }
}
