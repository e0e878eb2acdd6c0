//! State of one connection to a peer.
//!
//! Invariants:
//!
//! - A connection ends once, with one cause. All requests without an answer fail then.
//! - A region that this node exposed over the connection is held until the peer has said that it no
//!   longer uses it, or can no longer do so ([`Connection::peer_quiesced`]).

use super::backlog::Backlog;
use super::borrowed::Borrower;
use super::frame::{Exposure, Frame, Kind, encode_pieces};
use super::outbox::Outbox;
use super::process::PeerProcess;
use super::socket::Socket;
use crate::arena;
use crate::memory::{RealMemory, RealPayload};
use crate::tasks::Task;
use crate::wire_protection::WireProtection;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tokio::sync::{Notify, Semaphore, oneshot};
use units::{PeerId, PieceRun, RegionId};
use world::{Loan, Memory};

/// Reserved region id that names no region.
pub(crate) const NO_REGION: u64 = 0;

/// Maximum number of regions that a peer may expose at a time; one more ends the connection.
pub(crate) const REGIONS_MAX: usize = 64 << 10;

/// Maximum number of parts of framed transfers in flight; further ones wait.
const FRAMED_PARTS_MAX: usize = 64;

/// Answer to a request: data if it asked for some, or the reason of a refusal.
pub(crate) type Answer = Result<Option<RealPayload>, String>;

/// One connection.
pub(crate) struct Connection {
    /// Other end of the connection.
    pub(crate) peer: PeerId,
    /// Stream socket.
    pub(crate) socket: Socket,
    /// True for a Unix socket, whose peer may be able to access this node's memory directly.
    pub(crate) local: bool,
    /// Protection of a TCP connection; [`WireProtection::Plain`] for a Unix socket.
    pub(crate) protection: WireProtection,
    /// Send queue.
    pub(crate) outbox: Outbox,
    /// Number of this connection's messages in the inbox.
    pub(crate) backlog: Backlog,
    /// One permit for each part of a framed transfer in flight.
    pub(crate) transfers: Semaphore,
    /// Notified once, when the connection ends.
    pub(crate) ended: Notify,
    /// Tasks that read and write the stream.
    pub(crate) tasks: RefCell<Vec<Task>>,
    /// Number of bytes that have come from the peer.
    pub(crate) received_bytes: Cell<u64>,
    process: RefCell<Option<Rc<PeerProcess>>>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    departed: Option<String>,
    quiesced: bool,
    /// Regions that the peer exposed to this node.
    exposures: BTreeMap<RegionId, Exposure>,
    answers: BTreeMap<u64, oneshot::Sender<Answer>>,
    /// Requests among `answers` that only ask for a sign of life.
    pings: BTreeSet<u64>,
    withdrawals: BTreeMap<u64, Rc<Withdrawal>>,
    requests: u64,
    /// True if the peer has mapped this node's shared memory.
    lends: bool,
    /// Payloads lent to the peer, by loan number.
    loans: BTreeMap<u64, (RealPayload, Loan)>,
    /// Borrower of the peer's shared memory.
    borrower: Option<Borrower>,
}

/// Region that is being withdrawn. Its memory is held until no peer can use it. The withdrawal is
/// finished when every peer has answered or left: a stopped process never answers.
pub(crate) struct Withdrawal {
    memory: RefCell<Option<RealMemory>>,
    /// Number of peers that may use the memory.
    users: Cell<usize>,
    /// Number of peers whose answer is awaited.
    awaited: Cell<usize>,
    finished: Notify,
}

impl Withdrawal {
    /// Returns the withdrawal of a region that `peers` peers know.
    pub(crate) fn new(memory: RealMemory, peers: usize) -> Rc<Self> {
        let (users, awaited) = (Cell::new(peers), Cell::new(peers));
        let memory = RefCell::new(Some(memory));
        Rc::new(Self { memory, users, awaited, finished: Notify::new() })
    }

    /// Counts a connected peer that no longer uses the region.
    pub(crate) fn peer_done(&self) {
        self.peer_left();
        self.peer_quiesced();
    }

    /// Counts a peer that has left and may still use the memory.
    fn peer_left(&self) {
        self.awaited.update(|peers| peers - 1);
        if self.awaited.get() == 0 {
            self.finished.notify_one();
        }
    }

    /// Counts a peer that can no longer use the memory.
    fn peer_quiesced(&self) {
        self.users.update(|peers| peers - 1);
        if self.users.get() == 0 {
            drop(self.memory.borrow_mut().take());
        }
    }

    /// Waits until every peer has answered or left. One caller may wait.
    pub(crate) async fn finished(&self) {
        if self.awaited.get() > 0 {
            self.finished.notified().await;
        }
    }
}

impl Connection {
    /// Returns a connection over `socket`, after the handshake.
    pub(crate) fn new(
        peer: PeerId,
        socket: Socket,
        local: bool,
        protection: WireProtection,
        process: Option<PeerProcess>,
    ) -> Rc<Self> {
        Rc::new(Self {
            peer,
            socket,
            local,
            protection,
            outbox: Outbox::default(),
            backlog: Backlog::default(),
            transfers: Semaphore::new(FRAMED_PARTS_MAX),
            ended: Notify::new(),
            tasks: RefCell::default(),
            received_bytes: Cell::new(0),
            process: RefCell::new(process.map(Rc::new)),
            state: RefCell::default(),
        })
    }

    /// Returns the cause of the end, if the connection has ended.
    pub(crate) fn departed(&self) -> Option<String> {
        self.state.borrow().departed.clone()
    }

    /// Ends the connection, unless it has ended already; returns true if this call did it.
    pub(crate) fn end(&self, cause: &str) -> bool {
        let mut state = self.state.borrow_mut();
        if state.departed.is_some() {
            return false;
        }
        state.departed = Some(cause.to_owned());
        state.exposures.clear();
        let answers = std::mem::take(&mut state.answers);
        let withdrawals: Vec<_> = state.withdrawals.values().cloned().collect();
        drop(state);
        // Callers find their channel closed and read `departed`.
        drop(answers);
        withdrawals.iter().for_each(|withdrawal| withdrawal.peer_left());
        self.process.borrow_mut().take();
        self.transfers.close();
        self.outbox.close();
        self.socket.finish();
        self.ended.notify_one();
        if !self.local {
            self.peer_quiesced();
        }
        true
    }

    /// Marks that the peer can no longer access this node's memory. Over TCP that is when the
    /// connection ends. Over a Unix socket it is when the peer has closed its side: a peer copies
    /// in one system call, so no copy is in flight once it closes its socket.
    pub(crate) fn peer_quiesced(&self) {
        let mut state = self.state.borrow_mut();
        state.quiesced = true;
        let withdrawals = std::mem::take(&mut state.withdrawals);
        let loans = std::mem::take(&mut state.loans);
        drop(state);
        drop(loans);
        withdrawals.values().for_each(|withdrawal| withdrawal.peer_quiesced());
    }

    /// Returns the peer's exposure of `region`.
    pub(crate) fn exposure(&self, region: RegionId) -> Option<Exposure> {
        self.state.borrow().exposures.get(&region).copied()
    }

    /// Waits, if `region` is not known, until all earlier exposures of the peer have arrived. The
    /// peer announced the region to this node first, but another node may have brought its id
    /// sooner.
    ///
    /// # Errors
    /// The cause of the end of the connection.
    pub(crate) async fn await_exposure(&self, region: RegionId) -> Result<(), String> {
        if self.exposure(region).is_some() {
            return Ok(());
        }
        // A withdrawal of no region is answered after everything that the peer sent before.
        let answer = self.request(Frame::new(Kind::Withdraw, NO_REGION, 0), &[], None);
        answer.await.map(|_| ()).map_err(|_| self.departed().unwrap_or_default())
    }

    /// Adds an exposure of the peer; the error says why it is refused.
    pub(crate) fn add_exposure(&self, region: RegionId, exposure: Exposure) -> Result<(), String> {
        let exposures = &mut self.state.borrow_mut().exposures;
        if exposures.len() >= REGIONS_MAX {
            return Err(format!("the peer exposes more than {REGIONS_MAX} regions"));
        }
        exposures.insert(region, exposure);
        Ok(())
    }

    /// Removes an exposure of the peer.
    pub(crate) fn remove_exposure(&self, region: RegionId) {
        self.state.borrow_mut().exposures.remove(&region);
    }

    /// Begins zero-copy lending: the peer has mapped this node's shared memory.
    pub(crate) fn begin_lending(&self) {
        self.state.borrow_mut().lends = true;
    }

    /// Lends `body` to the peer, if it can map it; returns the loan number and the offset in the
    /// arena.
    pub(crate) fn lend(&self, body: &RealPayload, loan: &Loan) -> Option<(u64, u64)> {
        let state = &mut *self.state.borrow_mut();
        if !state.lends || state.departed.is_some() {
            return None;
        }
        let offset = arena::offset_of(body.pointer())?;
        let number = state.next_request();
        state.loans.insert(number, (body.clone(), Rc::clone(loan)));
        Some((number, offset))
    }

    /// Ends a loan; the error says why it cannot end.
    pub(crate) fn take_back(&self, number: u64) -> Result<(), String> {
        let loan = self.state.borrow_mut().loans.remove(&number);
        loan.map(drop).ok_or_else(|| {
            format!(
                "the peer returned loan {number}, which it does not \
                                              have"
            )
        })
    }

    /// Leaks the memory of all loans, so that it is never reused.
    pub(crate) fn leak_loans(&self) {
        let loans = std::mem::take(&mut self.state.borrow_mut().loans);
        loans.into_values().for_each(|(body, _)| std::mem::forget(body));
    }

    /// Enables borrowing from the peer.
    pub(crate) fn borrow_with(&self, borrower: Borrower) {
        self.state.borrow_mut().borrower = Some(borrower);
    }

    /// Returns data that the peer lends; the error says why it cannot be mapped.
    pub(crate) fn borrowed(&self, frame: Frame) -> Result<RealPayload, String> {
        let state = self.state.borrow();
        let borrower = state.borrower.as_ref().ok_or(
            "the peer lends bytes of memory that it has \
                                                      not shared",
        )?;
        let borrowed = borrower.borrow(frame.region, frame.number, frame.body_bytes);
        let (loan, first) = borrowed.ok_or("the peer lends bytes outside its shared memory")?;
        Ok(RealPayload::borrowed(Box::new(loan), first, frame.body_bytes as usize))
    }

    /// Copies `pieces` of the peer's shared memory, where their file sides are, into `memory`; the
    /// error says why they cannot be seen. The caller has checked their memory sides.
    pub(crate) fn copy_from_arena(
        &self,
        pieces: &[PieceRun],
        memory: &RealMemory,
    ) -> Result<(), String> {
        let state = self.state.borrow();
        let borrower = state.borrower.as_ref().ok_or(
            "the peer lends bytes of memory that it has \
                                                      not shared",
        )?;
        borrower.copy(pieces, memory).ok_or("the peer lends bytes outside its shared memory")?;
        Ok(())
    }

    /// Asks the peer to take `pieces` of `source` to a region, from this node's shared memory,
    /// which keeps them there until the peer has answered. `None` when the peer cannot see them.
    pub(crate) fn put_lent(
        &self,
        region: RegionId,
        pieces: &[PieceRun],
        source: &RealPayload,
    ) -> Option<oneshot::Receiver<Answer>> {
        let offset = arena::offset_of(source.pointer())?;
        let state = &mut *self.state.borrow_mut();
        if !state.lends || state.departed.is_some() {
            return None;
        }
        let (sender, answer) = oneshot::channel();
        let number = state.next_request();
        state.answers.insert(number, sender);
        state.loans.insert(number, (source.clone(), Rc::new(())));
        let there = pieces.iter().map(|piece| PieceRun { offset: piece.offset + offset, ..*piece });
        let mut frame = Frame::new(Kind::PutLent, region.0, number);
        frame.body_bytes = pieces.iter().map(|piece| piece.bytes()).sum();
        let header = encode_pieces(there);
        self.push(frame, &header, None);
        Some(answer)
    }

    /// Returns the peer's process, while its memory can be accessed.
    pub(crate) fn process(&self) -> Option<Rc<PeerProcess>> {
        self.process.borrow().clone()
    }

    /// Disables one-sided copies: later transfers with the peer are framed.
    pub(crate) fn forget_process(&self) {
        self.process.borrow_mut().take();
    }

    /// Sends a request that is answered with [`Answer`]. When the connection ends first, the
    /// channel closes without an answer.
    pub(crate) fn request(
        &self,
        mut frame: Frame,
        header: &[u8],
        body: Option<&RealPayload>,
    ) -> oneshot::Receiver<Answer> {
        let (sender, answer) = oneshot::channel();
        let mut state = self.state.borrow_mut();
        if state.departed.is_none() {
            frame.number = state.next_request();
            state.answers.insert(frame.number, sender);
            drop(state);
            self.push(frame, header, body);
        }
        answer
    }

    /// Asks the peer's transport for a sign of life. It answers after everything that it sent
    /// before; the channel closes when the connection ends first.
    pub(crate) fn ping(&self) -> oneshot::Receiver<Answer> {
        let number = self.state.borrow().requests + 1;
        // A withdrawal of no region changes nothing.
        let answer = self.request(Frame::new(Kind::Withdraw, NO_REGION, 0), &[], None);
        let mut state = self.state.borrow_mut();
        if state.answers.contains_key(&number) {
            state.pings.insert(number);
        }
        answer
    }

    /// Number of bytes that have moved over the connection in either direction.
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.received_bytes.get() + self.outbox.moved_bytes()
    }

    /// True if this node waits for the peer: for an answer other than a sign of life, for the end
    /// of a withdrawal, or for room in the stream.
    pub(crate) fn is_awaited(&self) -> bool {
        let state = self.state.borrow();
        let owes_answers = state.answers.len() > state.pings.len() || !state.withdrawals.is_empty();
        state.departed.is_none() && (owes_answers || self.outbox.queued_bytes() > 0)
    }

    /// Sends the exposure of `memory` as `region`; the peer answers when it knows the region.
    pub(super) fn expose(
        &self,
        region: RegionId,
        memory: &RealMemory,
    ) -> oneshot::Receiver<Answer> {
        let may_be_written = !memory.is_foreign();
        let (address, length) = (memory.pointer() as u64, memory.length());
        let exposure = Exposure { address, length, may_be_written };
        self.request(Frame::new(Kind::Expose, region.0, 0), &exposure.encode(), None)
    }

    /// Asks the peer to stop using `region`.
    pub(crate) fn withdraw(&self, region: RegionId, withdrawal: &Rc<Withdrawal>) {
        let mut state = self.state.borrow_mut();
        if state.quiesced {
            drop(state);
            return withdrawal.peer_done();
        }
        let number = state.next_request();
        state.withdrawals.insert(number, Rc::clone(withdrawal));
        let has_left = state.departed.is_some();
        drop(state);
        if has_left {
            return withdrawal.peer_left();
        }
        self.push(Frame::new(Kind::Withdraw, region.0, number), &[], None);
    }

    /// Queues a frame and fills in its lengths; returns its end position in the outbox.
    pub(crate) fn push(&self, mut frame: Frame, header: &[u8], body: Option<&RealPayload>) -> u64 {
        frame.header_bytes = header.len();
        frame.with_body = body.is_some();
        // The body of a lent message stays in place.
        if !matches!(frame.kind, Kind::Lent | Kind::PutLent) {
            frame.body_bytes = body.map_or(0, world::Payload::length);
        }
        self.outbox.push(&frame, header, body)
    }

    /// True if an answer with this number is awaited.
    pub(crate) fn awaits(&self, number: u64) -> bool {
        let state = self.state.borrow();
        state.answers.contains_key(&number) || state.withdrawals.contains_key(&number)
    }

    /// Delivers an answer to the caller that awaits it.
    pub(crate) fn answer(&self, number: u64, answer: Answer) {
        let mut state = self.state.borrow_mut();
        let waiting = state.answers.remove(&number);
        state.pings.remove(&number);
        let withdrawal = state.withdrawals.remove(&number);
        // What was lent for this request only.
        let loan = state.loans.remove(&number);
        drop(state);
        drop(loan);
        if let Some(waiting) = waiting {
            // The caller may have stopped waiting.
            let _ = waiting.send(answer);
        }
        if let Some(withdrawal) = withdrawal {
            withdrawal.peer_done();
        }
    }
}

impl State {
    fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }
}
