//! Task that reads one connection.
//!
//! Invariants:
//!
//! - A protocol error ends its own connection only.
//! - A body is read directly into its destination ([`ReadAhead`]).
//! - Requests of the transport (exposures, framed transfers) are answered here, without the
//!   program.
//! - A node with limits reads a frame only when its answers to earlier ones are written, but for
//!   [`ANSWERS_UNWRITTEN_MAX`], and takes room for it from the [pool](super::receive_pool).

use super::borrowed::{Borrower, PeerArena};
use super::connection::Connection;
use super::frame::{
    CAUSE_BYTES_MAX, Exposure, FRAME_BYTES, Frame, Kind, TRANSFER_BYTES_MAX, decode_pieces,
    decode_runs,
};
use super::peers::Peers;
use super::read_ahead::{End, ReadAhead};
use super::receive_buffer::BUFFER_BYTES;
use super::receive_pool::Room;
use super::record::Opener;
use super::transfer::TURN_BYTES;
use crate::arena::Sharing;
use crate::memory::{RealMemory, RealPayload, runs_bytes};
use smallvec::SmallVec;
use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use units::{RegionId, Run};
use world::{Header, Incoming, Memory};

/// Bytes queued for sending above which a peer that requests more data counts as not reading.
const ANSWERS_BYTES_MAX: u64 = 256 << 20;

/// Number of answers of a reader that may wait for being written. They are small on a node with
/// limits, which exposes no memory.
const ANSWERS_UNWRITTEN_MAX: usize = 1024;

/// Time that the other end of an ended TCP connection has to close its side.
const LINGER: Duration = Duration::from_secs(5);

/// Reads `connection` until either side ends it. `opener` checks the records of a protected one.
pub(super) async fn read(peers: Rc<Peers>, connection: Rc<Connection>, opener: Option<Opener>) {
    let mut reader = Reader::new(Rc::clone(&peers), Rc::clone(&connection), opener);
    let cause = tokio::select! {
        biased;
        () = connection.ended.notified() => None,
        cause = reader.frames() => Some(cause),
    };
    drop(reader);
    if let Some(cause) = &cause {
        peers.end(&connection, &cause.text);
    }
    if !cause.is_some_and(|cause| cause.stream_ended) {
        drain(&connection).await;
    }
    connection.peer_quiesced();
    peers.forget(&connection);
}

/// Reads and discards data until the other end has closed its side too.
async fn drain(connection: &Connection) {
    let closed = async {
        let mut dropped = vec![0; BUFFER_BYTES];
        while connection.socket.read_some(&mut dropped).await.is_ok_and(|count| count > 0) {}
    };
    if connection.local {
        closed.await;
    } else {
        // Nothing depends on the other end any more, so the wait is bounded.
        let _ = tokio::time::timeout(LINGER, closed).await;
    }
}

struct Reader {
    peers: Rc<Peers>,
    connection: Rc<Connection>,
    stream: ReadAhead,
    /// Number of own answers since the last time that all were written, and the end of the last.
    answers: Cell<(usize, u64)>,
}

impl Reader {
    fn new(peers: Rc<Peers>, connection: Rc<Connection>, opener: Option<Opener>) -> Self {
        let stream = ReadAhead::new(Rc::clone(&connection), opener);
        Self { peers, connection, stream, answers: Cell::default() }
    }

    async fn frames(&mut self) -> End {
        loop {
            if let Err(end) = self.frame().await {
                return end;
            }
        }
    }

    async fn frame(&mut self) -> Result<(), End> {
        self.connection.backlog.room().await;
        if self.peers.limits.is_some() {
            self.until_peer_reads().await?;
        }
        let mut bytes = [0; FRAME_BYTES];
        self.stream.fill(&mut bytes).await?;
        let frame = Frame::decode(&bytes)?;
        // Held while the frame is read.
        let room = self.room(frame).await?;
        match frame.kind {
            Kind::Message => self.message(frame, room).await,
            Kind::Expose => {
                let header = self.header(frame).await?;
                let exposure = Exposure::decode(&header)?;
                self.connection.add_exposure(RegionId(frame.region), exposure)?;
                self.done(frame, None);
                Ok(())
            }
            Kind::Withdraw => {
                self.connection.remove_exposure(RegionId(frame.region));
                self.done(frame, None);
                Ok(())
            }
            Kind::Put => self.put(frame).await,
            Kind::PutLent => self.put_lent(frame).await,
            Kind::Get => self.get(frame).await,
            Kind::Done | Kind::Refused => self.answer(frame).await,
            Kind::Share => self.share(frame).await,
            Kind::Lent => {
                let header = self.header(frame).await?;
                let body = self.connection.borrowed(frame)?;
                self.deliver(header, Some(body), 0, room);
                Ok(())
            }
            Kind::Return => Ok(self.connection.take_back(frame.number)?),
        }
    }

    /// Waits while the peer does not read what is sent to it.
    async fn until_peer_reads(&self) -> Result<(), End> {
        let closed = |_| "this node ended the connection".to_owned();
        self.connection.outbox.room().await.map_err(closed)?;
        let (answers, end) = self.answers.get();
        if answers >= ANSWERS_UNWRITTEN_MAX {
            self.connection.outbox.written(end).await.map_err(closed)?;
            self.answers.take();
        }
        Ok(())
    }

    /// Takes room for the bytes of a frame that this node will keep.
    async fn room(&self, frame: Frame) -> Result<Option<Room>, End> {
        let Some((limits, pool)) = &self.peers.limits else { return Ok(None) };
        let body_bytes = match frame.kind {
            // The body does not follow.
            Kind::Lent | Kind::PutLent => 0,
            Kind::Message if frame.placed => 0,
            Kind::Message if frame.body_bytes > limits.body_bytes_max => {
                let (bytes, bytes_max) = (frame.body_bytes, limits.body_bytes_max);
                let cause =
                    format!("a body of {bytes} bytes is over this node's limit {bytes_max}");
                return Err(cause.into());
            }
            _ => frame.body_bytes,
        };
        let bytes = frame.header_bytes as u64 + body_bytes;
        let disconnect = |stalled: &Rc<Connection>| {
            self.peers.end(stalled, "it stalled in a message while others waited for its buffer");
        };
        Ok(pool.take(&self.connection, bytes, disconnect).await)
    }

    /// Maps the memory that the peer shares, if that is possible.
    async fn share(&mut self, frame: Frame) -> Result<(), End> {
        let sharing = Sharing::decode(&self.header(frame).await?)?;
        let process = self.connection.process().filter(|_| self.peers.borrows);
        let process = process.ok_or("its memory cannot be read by this process".to_owned());
        match process.and_then(|process| PeerArena::map(&process, sharing)) {
            Ok(arena) => {
                let (borrower, returned) = Borrower::new(arena);
                self.connection.borrow_with(borrower);
                self.peers.run(give_back(Rc::downgrade(&self.connection), returned));
                self.done(frame, None);
            }
            // Lent data will be copied instead.
            Err(_) => self.refuse(frame),
        }
        Ok(())
    }

    async fn message(&mut self, frame: Frame, room: Option<Room>) -> Result<(), End> {
        let header = self.header(frame).await?;
        let mut body = None;
        if frame.placed && frame.with_body {
            let region = RegionId(frame.region);
            let run = Run::contiguous(frame.number, frame.body_bytes);
            let memory = self.peers.regions.memory(region, self.connection.peer);
            let memory = memory.filter(|memory| inside(memory, &[run]));
            let memory = memory.ok_or_else(|| format!("a message was placed outside {region}"))?;
            let (offset, length) = (frame.number as usize, frame.body_bytes as usize);
            self.stream.fill_memory(&memory, offset, length).await?;
        } else if frame.with_body {
            body = Some(self.fresh(frame).await?.freeze());
        }
        let body_bytes = if body.is_some() { frame.body_bytes } else { 0 };
        self.deliver(header, body, body_bytes, room);
        Ok(())
    }

    /// Delivers a message to the program; its body occupies `body_bytes` of this node's memory.
    fn deliver(
        &self,
        header: Header,
        body: Option<RealPayload>,
        body_bytes: u64,
        room: Option<Room>,
    ) {
        if let Some(room) = &room {
            room.has_arrived();
        }
        let bytes = header.len() as u64 + body_bytes;
        let from = self.connection.peer;
        let incoming = Incoming::Message { from, header, body };
        self.peers.inbox.push(&self.connection, incoming, bytes, room);
    }

    async fn put(&mut self, frame: Frame) -> Result<(), End> {
        let runs = decode_runs(&self.header(frame).await?)?;
        let memory = self.peers.regions.memory(RegionId(frame.region), self.connection.peer);
        let memory = memory.filter(|memory| {
            let bytes = runs_bytes(runs.iter().copied(), memory.length() as usize);
            bytes.is_some_and(|bytes| bytes as u64 == frame.body_bytes)
        });
        match (memory, &runs[..]) {
            (None, _) => {
                drop(self.fresh(frame).await?);
                self.refuse(frame);
            }
            (Some(memory), [run]) if run.is_contiguous() => {
                let (offset, length) = (run.offset as usize, frame.body_bytes as usize);
                self.stream.fill_memory(&memory, offset, length).await?;
                self.done(frame, None);
            }
            (Some(memory), _) => {
                let packed = self.fresh(frame).await?.freeze();
                if memory.is_revoked() {
                    self.refuse(frame);
                } else {
                    memory.scatter(&runs, &packed);
                    self.done(frame, None);
                }
            }
        }
        Ok(())
    }

    /// Copies pieces of the peer's shared memory into a region.
    async fn put_lent(&mut self, frame: Frame) -> Result<(), End> {
        let pieces = decode_pieces(&self.header(frame).await?)?;
        let memory = self.peers.regions.memory(RegionId(frame.region), self.connection.peer);
        let far = pieces.iter().map(|piece| piece.memory_side());
        let memory = memory.filter(|memory| {
            let bytes = runs_bytes(far, memory.length() as usize);
            bytes.is_some_and(|bytes| bytes as u64 == frame.body_bytes)
        });
        let Some(memory) = memory else {
            self.refuse(frame);
            return Ok(());
        };
        self.connection.copy_from_arena(&pieces, &memory)?;
        self.done(frame, None);
        if frame.body_bytes >= TURN_BYTES {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn get(&mut self, frame: Frame) -> Result<(), End> {
        let runs = decode_runs(&self.header(frame).await?)?;
        if self.connection.outbox.queued_bytes() > ANSWERS_BYTES_MAX {
            return Err("the peer requests data and does not read it".to_owned().into());
        }
        let memory = self.peers.regions.memory(RegionId(frame.region), self.connection.peer);
        let memory = memory.filter(|memory| {
            let bytes = runs_bytes(runs.iter().copied(), memory.length() as usize);
            bytes.is_some_and(|bytes| bytes as u64 <= TRANSFER_BYTES_MAX)
        });
        match memory {
            Some(memory) => self.done(frame, Some(&memory.gather(&runs))),
            None => self.refuse(frame),
        }
        Ok(())
    }

    async fn answer(&mut self, frame: Frame) -> Result<(), End> {
        if !self.connection.awaits(frame.number) {
            return Err(format!("answer {} belongs to no request", frame.number).into());
        }
        let header = self.header(frame).await?;
        let answer = if frame.kind == Kind::Refused {
            Err(String::from_utf8_lossy(&header).into_owned())
        } else if frame.with_body {
            Ok(Some(self.fresh(frame).await?.freeze()))
        } else {
            Ok(None)
        };
        self.connection.answer(frame.number, answer);
        Ok(())
    }

    fn done(&self, request: Frame, body: Option<&RealPayload>) {
        self.answer_with(Frame::new(Kind::Done, 0, request.number), &[], body);
    }

    fn answer_with(&self, frame: Frame, header: &[u8], body: Option<&RealPayload>) {
        let end = self.connection.push(frame, header, body);
        self.answers.set((self.answers.get().0 + 1, end));
    }

    fn refuse(&self, request: Frame) {
        let cause = "the owner has not exposed these bytes";
        const { assert!("the owner has not exposed these bytes".len() <= CAUSE_BYTES_MAX) };
        let frame = Frame::new(Kind::Refused, request.region, request.number);
        self.answer_with(frame, cause.as_bytes(), None);
    }

    async fn header(&mut self, frame: Frame) -> Result<Header, End> {
        let mut header: Header = SmallVec::from_elem(0, frame.header_bytes);
        self.stream.fill(&mut header).await?;
        Ok(header)
    }

    /// Reads the body of `frame` into a memory of its own.
    async fn fresh(&mut self, frame: Frame) -> Result<RealMemory, End> {
        let memory = RealMemory::new(frame.body_bytes as usize);
        self.stream.fill_memory(&memory, 0, frame.body_bytes as usize).await?;
        Ok(memory)
    }
}

/// Returns ended loans to the peer, until the connection ends.
async fn give_back(connection: Weak<Connection>, mut returned: UnboundedReceiver<u64>) {
    while let Some(number) = returned.recv().await {
        let Some(connection) = connection.upgrade() else { return };
        connection.push(Frame::new(Kind::Return, 0, number), &[], None);
    }
}

fn inside(memory: &RealMemory, runs: &[Run]) -> bool {
    runs_bytes(runs.iter().copied(), memory.length() as usize).is_some()
}
