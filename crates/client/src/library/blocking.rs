//! Small reads and writes that the calling thread carries out by itself.
//!
//! A call by way of the I/O thread wakes that thread, the server, that thread again, and the
//! caller. A thread that waits for its call anyway uses a connection of its own kind to the server
//! ([`BlockingConnection`]): it wakes the server, and the server wakes it.
//!
//! Invariants:
//! - A call that fails is made again by the I/O thread, which reports its errors, unless a server
//!   may still carry it out: then it is an error. A server that closes a connection, or refuses a
//!   call, does not carry it out any more.
//! - A waiting call checks its server as often as the watch of the client does.
//! - No call succeeds at a server that has left for the client.

use super::blocking_slots::Slot;
use super::cached_record::CachedRecord;
use super::connection::Connection;
use filesystem::Fault;
use futures_util::future::{Either, select};
use interface::UserError;
use std::io;
use std::pin::pin;
use units::{ByteRange, Duration, Run, ServerId};
use wire::{FileRecord, Frequent, ReadRequest, RequestId, WriteRequest};
use world::{Address, Clock};
use world_real::BlockingConnection;

/// Largest blocking read or write that the calling thread makes by itself, in bytes.
pub const BLOCKING_BYTES_MAX: u64 = BlockingConnection::BODY_BYTES_MAX as u64;

/// Number of calls to a server after which a connection for them is made.
const CALLS_BEFORE_CONNECTION: u32 = 4;

/// Number of failures after which no further connection to a server is made.
const FAILURES_MAX: u32 = 4;

/// Number of checks of a server in a time-out.
const CHECKS: u32 = 8;

/// Longest wait for a new connection.
const CONNECT_TIMEOUT: Duration = Duration::from_ms(500);

/// Memory of a call.
enum Bytes<'a> {
    Read(&'a mut [u8]),
    Write(&'a [u8]),
}

impl Connection {
    /// Reads bytes that the file of `record` has. False if the I/O thread must make the call.
    ///
    /// # Errors
    /// A server that has stopped.
    pub(super) fn read_blocking(
        &self,
        record: &FileRecord,
        into: &mut [u8],
        offset: u64,
    ) -> Result<bool, UserError> {
        self.transfer_blocking(record, Bytes::Read(into), offset)
    }

    /// Writes bytes that a file has. False if the I/O thread must make the call.
    ///
    /// # Errors
    /// A server that has stopped.
    pub(super) fn write_blocking(
        &self,
        known: &CachedRecord,
        from: &[u8],
        offset: u64,
    ) -> Result<bool, UserError> {
        let record = known.get();
        let losses = self.losses(&record);
        let written = self.transfer_blocking(&record, Bytes::Write(from), offset);
        if matches!(written, Ok(true)) {
            known.unsynced().add(|| losses);
        }
        written
    }

    /// Number of times that the servers of a file were lost.
    pub(super) fn losses(&self, record: &FileRecord) -> u64 {
        self.0.blocking.losses(record.servers())
    }

    fn transfer_blocking(
        &self,
        record: &FileRecord,
        mut bytes: Bytes<'_>,
        offset: u64,
    ) -> Result<bool, UserError> {
        let range = ByteRange::checked_at(offset, bytes.length() as u64);
        let is_small = (1..=BlockingConnection::BODY_BYTES_MAX).contains(&bytes.length());
        let Some(range) = range.filter(|range| is_small && range.end <= record.bytes) else {
            return Ok(false);
        };
        let blocks = record.stripe.blocks_in(range);
        // A forked child must not touch what other threads of its parent may have locked.
        if blocks.end - blocks.start != 1 || !self.0.thread.is_of_this_process() {
            return Ok(false);
        }
        let server = record.server_of(blocks.start);
        let slots = &self.0.blocking;
        let Some((address, mut slot)) = slots.try_lock(server).filter(|_| !slots.has_left(server))
        else {
            return Ok(false);
        };
        let Some(mut connection) = self.take_connection(&mut slot, (server, address)) else {
            return Ok(false);
        };
        let id = RequestId(slot.calls);
        slot.calls += 1;
        let in_block = range.start - record.stripe.block_range(blocks.start, record.bytes).start;
        let place = Run::contiguous(in_block, range.length());
        let request = bytes.request(id, record, blocks.start, place, &connection);
        let mut given_up = None;
        let (verb, name) = (bytes.verb(), &record.name);
        let what = || format!("cannot {verb} {} bytes at {offset} of {name:?}", range.length());
        let mut goes_on = || {
            given_up = self.check_server(server, what()).err();
            given_up.is_none()
        };
        let mut room = [0; wire::FREQUENT_BYTES_MAX];
        let header = request.encode(&mut room);
        let sent = connection.send(header, bytes.body(), &mut goes_on);
        let received =
            sent.and_then(|()| connection.receive(&mut slot.header, bytes.room(), &mut goes_on));
        match (received, given_up) {
            (Err(_), Some(error)) => Err(error),
            (Err(error), None) => {
                slot.failures += 1;
                if !bytes.is_write() || is_closed(&error) {
                    return Ok(false);
                }
                let fault = Fault::ServerLeft { server, cause: error.to_string() };
                Err(UserError::of_fault(&what(), &fault))
            }
            (Ok(_), _) if slots.has_left(server) => Ok(false),
            (Ok(length), _) => {
                slot.connection = Some(connection);
                let is_done = Frequent::decode(&slot.header) == Some(Frequent::Done(id));
                Ok(is_done && length.unwrap_or(0) == bytes.expected())
            }
        }
    }

    /// Takes the connection to a server out of its slot; makes one once there were some calls.
    fn take_connection(
        &self,
        slot: &mut Slot,
        (server, address): (ServerId, &Address),
    ) -> Option<BlockingConnection> {
        if slot.connection.is_some() {
            return slot.connection.take();
        }
        slot.calls_without_connection = slot.calls_without_connection.saturating_add(1);
        if slot.calls_without_connection <= CALLS_BEFORE_CONNECTION || slot.failures >= FAILURES_MAX
        {
            return None;
        }
        slot.calls_without_connection = 0;
        let connected = match self.0.blocking.may_make() {
            true => self.connect_blocking(server, address.clone()),
            false => None,
        };
        slot.failures += u32::from(connected.is_none());
        connected
    }

    fn connect_blocking(&self, server: ServerId, address: Address) -> Option<BlockingConnection> {
        let pause = self.options().timeout / CHECKS;
        let connected = self.run(String::new, async move |shared| {
            let world = shared.client.world();
            let connecting = pin!(world.connect_blocking(&address, pause));
            match select(connecting, pin!(world.sleep(CONNECT_TIMEOUT))).await {
                Either::Left((Ok(connection), _)) => {
                    let hello: Vec<u8> = wire::encode(&shared.client.hello_again(server));
                    Ok(Some((connection, hello)))
                }
                Either::Left((Err(_), _)) | Either::Right(_) => Ok(None),
            }
        });
        let (mut connection, hello) = connected.ok().flatten()?;
        connection.send(&hello, None, &mut || false).ok()?;
        Some(connection)
    }

    /// Finds out if a server lives whose answer is awaited.
    fn check_server(&self, server: ServerId, what: String) -> Result<(), UserError> {
        let timeout = self.options().timeout();
        self.run(
            move || what,
            async move |shared| shared.client.check_server(server, timeout).await,
        )
    }
}

impl Bytes<'_> {
    fn length(&self) -> usize {
        match self {
            Self::Read(into) => into.len(),
            Self::Write(from) => from.len(),
        }
    }

    fn is_write(&self) -> bool {
        matches!(self, Self::Write(_))
    }

    fn verb(&self) -> &'static str {
        match self {
            Self::Read(_) => "read",
            Self::Write(_) => "write",
        }
    }

    fn request(
        &self,
        id: RequestId,
        record: &FileRecord,
        block: u64,
        place: Run,
        connection: &BlockingConnection,
    ) -> Frequent {
        let (file, Run { offset, length, .. }) = (record.file, place);
        match self {
            Self::Read(_) => {
                let (region, region_offset) = (connection.region(), 0);
                let read = ReadRequest { file, block, offset, length, region, region_offset };
                Frequent::Read(id, read)
            }
            Self::Write(_) => Frequent::Write(id, WriteRequest { file, block, offset }),
        }
    }

    /// Data that goes with the request.
    fn body(&self) -> Option<&[u8]> {
        match self {
            Self::Read(_) => None,
            Self::Write(from) => Some(from),
        }
    }

    /// Memory for the data of the answer.
    fn room(&mut self) -> &mut [u8] {
        match self {
            Self::Read(into) => into,
            Self::Write(_) => &mut [],
        }
    }

    /// Number of bytes of the answer.
    fn expected(&self) -> usize {
        match self {
            Self::Read(into) => into.len(),
            Self::Write(_) => 0,
        }
    }
}

/// True when the peer has closed a connection.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
}
