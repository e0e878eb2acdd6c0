//! Send queue of one connection.
//!
//! Invariants:
//!
//! - Frames leave whole and in the order in which they were added.
//! - On a protected connection they leave in records, of which none has data of two chunks: so a
//!   large body begins with a record of its own and can be opened where it belongs.
//! - Small frames that are added in one pass of the event loop leave with one system call.
//! - Senders wait while more than [`OUTBOX_BYTES_MAX`] bytes are queued; answers of the transport
//!   itself do not.

use super::frame::Frame;
use super::record::{Edges, RECORD_BYTES_MAX, Sealer};
use super::socket::{PARTS_MAX, Socket};
use crate::memory::RealPayload;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, Waker};
use world::Payload;

/// Queue size above which senders wait, in bytes.
pub(crate) const OUTBOX_BYTES_MAX: u64 = 8 << 20;

/// Maximum size of a body that is copied behind its header instead of becoming an element of a
/// vectored write. Estimated, not measured.
pub(super) const COPIED_BYTES_MAX: u64 = 2 << 10;

/// Size at which a buffer of small frames is closed.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Number of records that are made before they are written. Few stay in a processor's cache.
const RECORDS_MAX: usize = 4;

thread_local! {
    /// Buffer for records, which the connections of a node use in turns. A connection that waits
    /// for its peer keeps it meanwhile, and the next one makes another.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Send queue of one connection.
#[derive(Default)]
pub(crate) struct Outbox {
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    chunks: VecDeque<Chunk>,
    /// Bytes of the first chunk that are written already.
    first_written: usize,
    /// Bytes ever added, and bytes ever written.
    added: u64,
    written: u64,
    /// Bytes that the socket has taken, those that protect the others included.
    moved: u64,
    /// True if no more can be written.
    closed: bool,
    writer: Option<Waker>,
    /// Wakers of senders, by the end position of their bytes, ascending.
    senders: VecDeque<(u64, Waker)>,
    room: Vec<Waker>,
    /// Empty buffer for reuse.
    spare: Vec<u8>,
}

enum Chunk {
    /// Frames, headers and small bodies.
    Buffer(Vec<u8>),
    /// One large body.
    Body(RealPayload),
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Buffer(bytes) => bytes,
            Self::Body(payload) => payload.bytes(),
        }
    }
}

/// The connection can send nothing any more.
#[derive(Debug)]
pub(crate) struct Closed;

impl Outbox {
    /// Adds a frame without waiting; returns its end position.
    pub(crate) fn push(&self, frame: &Frame, header: &[u8], body: Option<&RealPayload>) -> u64 {
        let mut state = self.state.borrow_mut();
        if state.closed {
            return state.added;
        }
        let before = state.added;
        state.append(&[&frame.encode(), header]);
        match body {
            Some(body) if body.length() > COPIED_BYTES_MAX => {
                state.added += body.length();
                state.chunks.push_back(Chunk::Body(body.clone()));
            }
            Some(body) => state.append(&[body.bytes()]),
            None => {}
        }
        debug_assert!(state.added > before, "a frame is never empty");
        let end = state.added;
        if let Some(waker) = state.writer.take() {
            drop(state);
            waker.wake();
        }
        end
    }

    /// Returns the number of queued bytes.
    pub(crate) fn queued_bytes(&self) -> u64 {
        let state = self.state.borrow();
        state.added - state.written
    }

    /// Returns the number of bytes that the socket has ever taken.
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.state.borrow().moved
    }

    /// Waits until a sender may add more.
    pub(crate) async fn room(&self) -> Result<(), Closed> {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if state.closed {
                return Poll::Ready(Err(Closed));
            }
            if state.added - state.written <= OUTBOX_BYTES_MAX {
                return Poll::Ready(Ok(()));
            }
            state.room.push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Waits until everything up to position `end` is written.
    pub(crate) async fn written(&self, end: u64) -> Result<(), Closed> {
        poll_fn(|context| self.state.borrow_mut().poll_written(end, context)).await
    }

    /// Closes the queue: wakes all waiting senders and drops queued data.
    pub(crate) fn close(&self) {
        let mut state = self.state.borrow_mut();
        state.closed = true;
        let senders = std::mem::take(&mut state.senders);
        let room = std::mem::take(&mut state.room);
        let chunks = std::mem::take(&mut state.chunks);
        drop(state);
        drop(chunks);
        senders.into_iter().for_each(|(_, waker)| waker.wake());
        room.into_iter().for_each(Waker::wake);
    }

    /// Writes queued data to `socket`, until that fails.
    pub(crate) async fn write_all(&self, socket: &Socket) -> io::Error {
        loop {
            self.not_empty().await;
            if let Err(error) = self.write_some(socket).await {
                return error;
            }
        }
    }

    /// Writes queued data to `socket` in records, until that fails.
    pub(crate) async fn write_all_sealed(&self, socket: &Socket, sealer: &mut Sealer) -> io::Error {
        loop {
            self.not_empty().await;
            let taken = self.state.borrow_mut().take();
            let written = if sealer.encrypts() {
                self.write_encrypted(socket, sealer, &taken).await
            } else {
                self.write_authenticated(socket, sealer, &taken).await
            };
            let count = *written.as_ref().unwrap_or(&0);
            self.put_back(taken, count);
            if let Err(error) = written {
                return error;
            }
        }
    }

    /// Copies the first bytes of `taken`, encrypts the copy and writes it. Returns their number.
    async fn write_encrypted(
        &self,
        socket: &Socket,
        sealer: &mut Sealer,
        taken: &Taken,
    ) -> io::Result<usize> {
        let mut sealed = SPARE.take();
        sealed.clear();
        let mut count = 0;
        for data in taken.pieces().take(RECORDS_MAX) {
            sealer.append(data, &mut sealed);
            count += data.len();
        }
        socket.write_parts(&mut [IoSlice::new(&sealed)], |bytes| self.note_moved(bytes)).await?;
        SPARE.set(sealed);
        Ok(count)
    }

    /// Writes the first bytes of `taken` from where they lie, between the edges of their records.
    /// Returns their number.
    async fn write_authenticated(
        &self,
        socket: &Socket,
        sealer: &mut Sealer,
        taken: &Taken,
    ) -> io::Result<usize> {
        let records: SmallVec<[(&[u8], Edges); RECORDS_MAX]> = taken
            .pieces()
            .take(RECORDS_MAX)
            .map(|data| (data, sealer.authenticate(data)))
            .collect();
        let mut parts: SmallVec<[IoSlice<'_>; 3 * RECORDS_MAX]> = SmallVec::new();
        for (data, edges) in &records {
            parts.extend([&edges.length[..], data, &edges.tag].map(IoSlice::new));
        }
        socket.write_parts(&mut parts, |bytes| self.note_moved(bytes)).await?;
        Ok(records.iter().map(|(data, _)| data.len()).sum())
    }

    fn note_moved(&self, bytes: usize) {
        self.state.borrow_mut().moved += bytes as u64;
    }

    async fn not_empty(&self) {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if !state.chunks.is_empty() {
                return Poll::Ready(());
            }
            state.writer = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Performs one system call, unless the socket buffer is full.
    async fn write_some(&self, socket: &Socket) -> io::Result<()> {
        // The chunks are taken out during the call, since others may add more meanwhile.
        let taken = self.state.borrow_mut().take();
        let result = {
            let mut parts: SmallVec<[IoSlice<'_>; 8]> = SmallVec::new();
            let mut skip = taken.first_written;
            for chunk in taken.chunks.iter().take(PARTS_MAX) {
                parts.push(IoSlice::new(&chunk.bytes()[skip..]));
                skip = 0;
            }
            socket.write(&parts).await
        };
        let count = *result.as_ref().unwrap_or(&0);
        self.note_moved(count);
        self.put_back(taken, count);
        result.map(|_| ())
    }

    /// Returns chunks of which `count` bytes were written.
    fn put_back(&self, mut taken: Taken, count: usize) {
        taken.advance(count);
        self.state.borrow_mut().put_back(taken, count);
    }
}

/// Chunks at the front of the queue, while they are being written.
struct Taken {
    chunks: VecDeque<Chunk>,
    first_written: usize,
    spare: Option<Vec<u8>>,
}

impl Taken {
    /// Returns the bytes that are not written, cut for records.
    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let skips = std::iter::once(self.first_written).chain(std::iter::repeat(0));
        let chunks = self.chunks.iter().zip(skips);
        chunks.flat_map(|(chunk, skip)| chunk.bytes()[skip..].chunks(RECORD_BYTES_MAX))
    }

    /// Drops the next `count` bytes.
    fn advance(&mut self, count: usize) {
        self.first_written += count;
        while let Some(first) = self.chunks.front() {
            let length = first.bytes().len();
            if self.first_written < length {
                break;
            }
            self.first_written -= length;
            if let Some(Chunk::Buffer(mut buffer)) = self.chunks.pop_front() {
                buffer.clear();
                self.spare = Some(buffer);
            }
        }
    }
}

impl State {
    fn append(&mut self, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.added += length as u64;
        let open = match self.chunks.back_mut() {
            Some(Chunk::Buffer(buffer)) if buffer.len() + length <= BUFFER_BYTES_MAX => buffer,
            _ => {
                let buffer = std::mem::take(&mut self.spare);
                self.chunks.push_back(Chunk::Buffer(buffer));
                match self.chunks.back_mut() {
                    Some(Chunk::Buffer(buffer)) => buffer,
                    _ => unreachable!("a buffer was just added"),
                }
            }
        };
        parts.iter().for_each(|part| open.extend_from_slice(part));
    }

    fn take(&mut self) -> Taken {
        let first_written = std::mem::take(&mut self.first_written);
        Taken { chunks: std::mem::take(&mut self.chunks), first_written, spare: None }
    }

    fn put_back(&mut self, mut taken: Taken, count: usize) {
        self.written += count as u64;
        if let Some(spare) = taken.spare
            && self.spare.capacity() < spare.capacity()
            && spare.capacity() <= 2 * BUFFER_BYTES_MAX
        {
            self.spare = spare;
        }
        if self.closed {
            return;
        }
        taken.chunks.append(&mut self.chunks);
        self.chunks = taken.chunks;
        self.first_written = taken.first_written;
        while let Some((_, waker)) = self.senders.pop_front_if(|(end, _)| *end <= self.written) {
            waker.wake();
        }
        if self.added - self.written <= OUTBOX_BYTES_MAX {
            self.room.drain(..).for_each(Waker::wake);
        }
    }

    fn poll_written(&mut self, end: u64, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        if self.written >= end {
            return Poll::Ready(Ok(()));
        }
        if self.closed {
            return Poll::Ready(Err(Closed));
        }
        let place = self.senders.partition_point(|(other, _)| *other < end);
        match self.senders.get_mut(place) {
            Some((other, waker)) if *other == end => waker.clone_from(context.waker()),
            _ => self.senders.insert(place, (end, context.waker().clone())),
        }
        Poll::Pending
    }
}
