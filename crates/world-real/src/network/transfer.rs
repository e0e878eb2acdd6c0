//! One-sided transfers: memput and memget.
//!
//! Each call takes one of three ways. *Direct*: one system call copies up to 1024 intervals between
//! the memories of the two processes, and the peer takes no part. *Lent* (memput only): the peer's
//! transport copies the pieces from this node's shared memory to their places. *Framed*: the packed
//! pieces travel on the connection, and the peer's transport scatters them. A call is direct if the
//! peer's memory can be accessed, unless its pieces there are so small that the system call spends
//! its time on intervals instead of bytes. Memory that belongs to the peer's program is never
//! written directly, since a direct copy cannot be stopped.
//!
//! Invariant: a piece is checked against the exposed region before any byte moves, here for all
//! ways and again by the owner for the lent and the framed one.
#![allow(unsafe_code)]

use super::connection::{Answer, Connection};
use super::frame::{Exposure, Frame, Kind, RUNS_MAX, TRANSFER_BYTES_MAX, encode_runs};
use super::peers::Peers;
use super::process::{Direction, interval};
use crate::memory::{RealMemory, RealPayload, runs_bytes};
use libc::iovec;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::rc::Rc;
use tokio::sync::{SemaphorePermit, oneshot};
use units::{PeerId, PieceRun, RegionId, Run};
use world::{Memory, Payload, Place, TransferError};

/// Minimum length of a piece in the peer's memory that is worth an interval of its own.
/// `examples/two_processes.rs` measures 400 to 700 ns for each interval, and 2 to 5 GB/s for the
/// framed way.
const FAR_PIECE_BYTES_MIN: u64 = 2 << 10;

/// Minimum length of a piece in this node's memory that is not packed first. Estimated, not
/// measured.
const NEAR_PIECE_BYTES_MIN: u64 = 1024;

/// Maximum ratio of a span of the peer's memory to the pieces in it at which the whole span is
/// read.
const SPAN_RATIO_MAX: u64 = 8;

/// Minimum size of a body that is placed directly. A smaller one travels with its message: one
/// system call instead of two. Estimated, not measured.
const PLACED_BYTES_MIN: u64 = 8 << 10;

/// Minimum size of a body that the peer copies from shared memory to its place. A smaller one
/// travels with its message, because an answer of the peer, which the lent way waits for, costs
/// more: caching with requests of 8 KiB has 1.6 times the throughput.
const PLACED_LENT_BYTES_MIN: u64 = 64 << 10;

/// Bytes copied by this processor after which other tasks run.
pub(crate) const TURN_BYTES: u64 = 64 << 10;

/// One call, after its checks.
struct Transfer<'a> {
    connection: &'a Rc<Connection>,
    region: RegionId,
    exposure: Exposure,
    pieces: &'a [PieceRun],
    bytes: u64,
}

/// One part of a framed transfer in flight.
struct Requested<'a> {
    part: Vec<PieceRun>,
    answer: oneshot::Receiver<Answer>,
    _permit: SemaphorePermit<'a>,
}

/// Outcome of a direct transfer.
enum Direct {
    Done,
    /// The transfer must be framed instead.
    NotPossible,
}

impl Peers {
    /// Performs a memput: see [`world::OneSided::put`].
    pub(crate) async fn put(
        &self,
        peer: PeerId,
        region: RegionId,
        pieces: &[PieceRun],
        source: &RealPayload,
    ) -> Result<(), TransferError> {
        let departed = |cause| TransferError::Departed { peer, cause };
        let connection = self.connection(peer).map_err(departed)?;
        connection.await_exposure(region).await.map_err(departed)?;
        let transfer = Transfer::check(&connection, region, pieces)?;
        let near = runs_bytes(pieces.iter().map(|piece| piece.file_side()), source.bytes().len());
        assert!(near.is_some(), "the pieces of a put must lie in its source");
        match self.put_direct(&transfer, source)? {
            Direct::Done => transfer.yield_if_long().await,
            Direct::NotPossible if transfer.put_lent(source).await? => {}
            Direct::NotPossible => transfer.put_framed(source).await?,
        }
        Ok(())
    }

    /// Performs a memget: see [`world::OneSided::get`].
    pub(crate) async fn get(
        &self,
        peer: PeerId,
        region: RegionId,
        pieces: &[PieceRun],
        target: &RealMemory,
    ) -> Result<(), TransferError> {
        let departed = |cause| TransferError::Departed { peer, cause };
        let connection = self.connection(peer).map_err(departed)?;
        connection.await_exposure(region).await.map_err(departed)?;
        let transfer = Transfer::check(&connection, region, pieces)?;
        let length = target.length() as usize;
        let near = runs_bytes(pieces.iter().map(|piece| piece.file_side()), length);
        assert!(near.is_some(), "the pieces of a get must lie in its target");
        match self.get_direct(&transfer, target)? {
            Direct::Done => transfer.yield_if_long().await,
            Direct::NotPossible => transfer.get_framed(target).await?,
        }
        Ok(())
    }

    /// Puts the body of a message into its place, if the direct or the lent way is possible and
    /// worth it; returns false if the body must travel with the message.
    pub(crate) async fn place(
        &self,
        connection: &Rc<Connection>,
        place: Place,
        body: &RealPayload,
    ) -> Result<bool, TransferError> {
        let length = body.length();
        let piece = PieceRun {
            offset: 0,
            stride: length,
            memory_offset: place.offset,
            memory_stride: length,
            length,
            count: 1,
        };
        let pieces = [piece];
        let transfer = Transfer::check(connection, place.region, &pieces)?;
        if length < PLACED_BYTES_MIN {
            return Ok(false);
        }
        match self.put_direct(&transfer, body)? {
            Direct::Done => transfer.yield_if_long().await,
            // The peer copies the body from shared memory, or gets it with the message.
            Direct::NotPossible if length < PLACED_LENT_BYTES_MIN => return Ok(false),
            Direct::NotPossible => return transfer.put_lent(body).await,
        }
        Ok(true)
    }

    fn put_direct(
        &self,
        transfer: &Transfer<'_>,
        source: &RealPayload,
    ) -> Result<Direct, TransferError> {
        let far = transfer.far_intervals().filter(|_| transfer.exposure.may_be_written);
        let Some(mut far) = far else {
            return Ok(Direct::NotPossible);
        };
        let near = transfer.pieces.iter().map(|piece| piece.file_side());
        let base = source.pointer() as usize;
        if let Some(mut near) = intervals(base, near, NEAR_PIECE_BYTES_MIN) {
            return self.copy(transfer, Direction::Write, &mut near, &mut far);
        }
        let packed = source.gather_pieces(transfer.pieces);
        let mut near = [interval(packed.pointer() as usize, transfer.bytes as usize)];
        self.copy(transfer, Direction::Write, &mut near, &mut far)
    }

    fn get_direct(
        &self,
        transfer: &Transfer<'_>,
        target: &RealMemory,
    ) -> Result<Direct, TransferError> {
        target.assert_writable();
        let near = || transfer.pieces.iter().map(|piece| piece.file_side());
        let Some(mut far) = transfer.far_intervals() else {
            return self.get_span(transfer, target);
        };
        let base = target.pointer() as usize;
        if let Some(mut near) = intervals(base, near(), NEAR_PIECE_BYTES_MIN) {
            return self.copy(transfer, Direction::Read, &mut near, &mut far);
        }
        let packed = RealMemory::new(transfer.bytes as usize);
        let mut whole = [interval(packed.pointer() as usize, transfer.bytes as usize)];
        let outcome = self.copy(transfer, Direction::Read, &mut whole, &mut far)?;
        if matches!(outcome, Direct::Done) {
            target.scatter(&near().collect::<Vec<_>>(), &packed.freeze());
        }
        Ok(outcome)
    }

    /// Reads the whole span of small pieces, if it is not mostly gaps.
    fn get_span(
        &self,
        transfer: &Transfer<'_>,
        target: &RealMemory,
    ) -> Result<Direct, TransferError> {
        let sides = || transfer.pieces.iter().filter(|piece| piece.bytes() > 0);
        let start = sides().map(|piece| piece.memory_offset).min().unwrap_or(0);
        let end = sides().filter_map(|piece| piece.memory_side().checked_end()).max();
        let length = end.unwrap_or(start) - start;
        if transfer.connection.process().is_none() || length > SPAN_RATIO_MAX * transfer.bytes {
            return Ok(Direct::NotPossible);
        }
        let span = RealMemory::new(length as usize);
        let mut near = [interval(span.pointer() as usize, length as usize)];
        let far_start = transfer.exposure.address + start;
        let mut far = [interval(far_start as usize, length as usize)];
        let outcome = self.copy(transfer, Direction::Read, &mut near, &mut far)?;
        if matches!(outcome, Direct::Done) {
            target.scatter_span(transfer.pieces, &span.freeze(), start);
        }
        Ok(outcome)
    }

    fn copy(
        &self,
        transfer: &Transfer<'_>,
        direction: Direction,
        near: &mut [iovec],
        far: &mut [iovec],
    ) -> Result<Direct, TransferError> {
        let Some(process) = transfer.connection.process() else {
            return Ok(Direct::NotPossible);
        };
        // SAFETY: the near intervals lie in the payload or memory that the callers hold, checked in
        // `put` and `get`; the target of a read is a memory that nobody views.
        match unsafe { process.copy(direction, near, far) } {
            Ok(()) => Ok(Direct::Done),
            Err(Errno::FAULT) => Err(transfer.out_of_region("it is not mapped".into())),
            Err(Errno::SRCH) => {
                self.end(transfer.connection, "its process has ended");
                Err(transfer.departed())
            }
            // The system has withdrawn the permission (EPERM), or another error: use the socket.
            Err(_) => {
                transfer.connection.forget_process();
                Ok(Direct::NotPossible)
            }
        }
    }
}

impl<'a> Transfer<'a> {
    fn check(
        connection: &'a Rc<Connection>,
        region: RegionId,
        pieces: &'a [PieceRun],
    ) -> Result<Self, TransferError> {
        let none = Exposure { address: 0, length: 0, may_be_written: false };
        let exposure = connection.exposure(region);
        let transfer =
            Self { connection, region, exposure: exposure.unwrap_or(none), pieces, bytes: 0 };
        if exposure.is_none() {
            return Err(transfer.out_of_region("it is not exposed".into()));
        }
        let length = transfer.exposure.length;
        let far = pieces.iter().map(|piece| piece.memory_side());
        match runs_bytes(far, length as usize) {
            Some(bytes) => Ok(Self { bytes: bytes as u64, ..transfer }),
            None => Err(transfer.out_of_region(format!("it has {length} bytes"))),
        }
    }

    /// Returns the pieces in the peer's address space, if it can be accessed and they are worth it.
    fn far_intervals(&self) -> Option<Vec<iovec>> {
        self.connection.process()?;
        let far = self.pieces.iter().map(|piece| piece.memory_side());
        intervals(self.exposure.address as usize, far, FAR_PIECE_BYTES_MIN)
    }

    /// Yields to other tasks after a long copy.
    async fn yield_if_long(&self) {
        if self.bytes >= TURN_BYTES {
            tokio::task::yield_now().await;
        }
    }

    /// Requests that the peer copies the pieces from this node's shared memory; returns false when
    /// the peer has not mapped it. This way copies least: once, from the block to the places of the
    /// pieces.
    async fn put_lent(&self, source: &RealPayload) -> Result<bool, TransferError> {
        if self.bytes < PLACED_BYTES_MIN {
            return Ok(false);
        }
        let mut answers = Vec::new();
        for part in parts(self.pieces) {
            match self.connection.put_lent(self.region, &part, source) {
                Some(answer) => answers.push(answer),
                // It was seen a moment ago: the connection has just ended.
                None if answers.is_empty() => return Ok(false),
                None => return Err(self.departed()),
            }
        }
        for answer in answers {
            self.answered(answer.await)?;
        }
        Ok(true)
    }

    async fn put_framed(&self, source: &RealPayload) -> Result<(), TransferError> {
        self.framed(Kind::Put, |part| Some(source.gather_pieces(part)), |_, _| Ok(())).await
    }

    async fn get_framed(&self, target: &RealMemory) -> Result<(), TransferError> {
        let land = |part: &[PieceRun], data: Option<RealPayload>| {
            let runs: Vec<Run> = part.iter().map(|piece| piece.file_side()).collect();
            let wanted: u64 = runs.iter().map(|run| run.bytes()).sum();
            match data.filter(|data| data.length() == wanted) {
                Some(data) => target.scatter(&runs, &data),
                None => {
                    let cause = "its answer has the wrong number of bytes".into();
                    return Err(TransferError::Departed { peer: self.connection.peer, cause });
                }
            }
            Ok(())
        };
        self.framed(Kind::Get, |_| None, land).await
    }

    /// Requests the parts in order, with the data that `body` returns for each, and passes each
    /// answer to `land`.
    ///
    /// Waits for a permit only while holding none: when none is free it finishes its oldest part
    /// instead. So transfers of any size can share the permits of a connection without deadlock.
    async fn framed(
        &self,
        kind: Kind,
        body: impl Fn(&[PieceRun]) -> Option<RealPayload>,
        land: impl Fn(&[PieceRun], Option<RealPayload>) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        let finish = async |requested: Requested<'a>| {
            let data = self.answered(requested.answer.await)?;
            land(&requested.part, data)
        };
        let permits = &self.connection.transfers;
        let mut under_way = VecDeque::new();
        for part in parts(self.pieces) {
            let permit = loop {
                if let Ok(permit) = permits.try_acquire() {
                    break permit;
                }
                match under_way.pop_front() {
                    Some(oldest) => finish(oldest).await?,
                    None => break permits.acquire().await.map_err(|_| self.departed())?,
                }
            };
            self.connection.outbox.room().await.map_err(|_| self.departed())?;
            let answer = self.request(kind, &part, body(&part).as_ref());
            under_way.push_back(Requested { part, answer, _permit: permit });
        }
        for requested in under_way {
            finish(requested).await?;
        }
        Ok(())
    }

    fn request(
        &self,
        kind: Kind,
        part: &[PieceRun],
        body: Option<&RealPayload>,
    ) -> oneshot::Receiver<Answer> {
        let header = encode_runs(part.iter().map(|piece| piece.memory_side()));
        let frame = Frame::new(kind, self.region.0, 0);
        self.connection.request(frame, &header, body)
    }

    fn answered(
        &self,
        answer: Result<Answer, oneshot::error::RecvError>,
    ) -> Result<Option<RealPayload>, TransferError> {
        match answer {
            Ok(Ok(data)) => Ok(data),
            Ok(Err(cause)) => Err(self.out_of_region(cause)),
            Err(_) => Err(self.departed()),
        }
    }

    fn departed(&self) -> TransferError {
        let cause = self.connection.departed().unwrap_or_default();
        TransferError::Departed { peer: self.connection.peer, cause }
    }

    fn out_of_region(&self, cause: String) -> TransferError {
        TransferError::OutOfRegion { peer: self.connection.peer, region: self.region, cause }
    }
}

/// Converts `runs` of an area at `base` to intervals and joins adjacent ones; `None` when some
/// pieces are shorter than `piece_bytes_min` and not adjacent.
fn intervals(
    base: usize,
    runs: impl Iterator<Item = Run>,
    piece_bytes_min: u64,
) -> Option<Vec<iovec>> {
    let mut joined: Vec<iovec> = Vec::new();
    let mut add = |offset: u64, length: u64| {
        let (start, length) = (base + offset as usize, length as usize);
        match joined.last_mut() {
            Some(last) if last.iov_base as usize + last.iov_len == start => last.iov_len += length,
            _ => joined.push(interval(start, length)),
        }
    };
    for run in runs.filter(|run| run.bytes() > 0) {
        if run.is_contiguous() {
            add(run.offset, run.bytes());
        } else if run.length >= piece_bytes_min {
            run.offsets().for_each(|offset| add(offset, run.length));
        } else {
            return None;
        }
    }
    Some(joined)
}

/// Cuts `pieces` into parts of at most [`TRANSFER_BYTES_MAX`] bytes and [`RUNS_MAX`] runs, in
/// order.
fn parts(pieces: &[PieceRun]) -> Vec<Vec<PieceRun>> {
    let mut parts = vec![Vec::new()];
    let mut room = TRANSFER_BYTES_MAX;
    for piece in pieces.iter().filter(|piece| piece.bytes() > 0) {
        for mut rest in split_long(*piece) {
            while rest.count > 0 {
                let full = parts.last().is_none_or(|part| part.len() == RUNS_MAX);
                if full || room < rest.length {
                    parts.push(Vec::new());
                    room = TRANSFER_BYTES_MAX;
                }
                let count = rest.count.min(room / rest.length);
                room -= count * rest.length;
                if let Some(part) = parts.last_mut() {
                    part.push(PieceRun { count, ..rest });
                }
                rest.offset += count * rest.stride;
                rest.memory_offset += count * rest.memory_stride;
                rest.count -= count;
            }
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Splits pieces longer than [`TRANSFER_BYTES_MAX`].
fn split_long(run: PieceRun) -> Vec<PieceRun> {
    if run.length <= TRANSFER_BYTES_MAX {
        return vec![run];
    }
    let mut cut = Vec::new();
    for index in 0..run.count {
        let mut done = 0;
        while done < run.length {
            let length = TRANSFER_BYTES_MAX.min(run.length - done);
            cut.push(PieceRun {
                offset: run.offset + index * run.stride + done,
                stride: length,
                memory_offset: run.memory_offset + index * run.memory_stride + done,
                memory_stride: length,
                length,
                count: 1,
            });
            done += length;
        }
    }
    cut
}
