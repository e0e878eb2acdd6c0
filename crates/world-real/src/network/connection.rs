//! One connection to a peer: what is known about it, and what waits for it.
//!
//! Invariants: a connection ends once, with one cause; then everything that waits for an answer
//! over it is told. A region that this node exposed over it is held until the peer has said that it
//! no longer uses it, or can no longer do so ([`Connection::quiet`]).

use super::borrowed::Borrower;
use super::frame::{Exposure, Frame, Kind, encode_pieces};
use super::inbox::Backlog;
use super::outbox::Outbox;
use super::process::PeerProcess;
use super::socket::Socket;
use crate::arena;
use crate::memory::{RealMemory, RealPayload};
use crate::tasks::Task;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::sync::{Notify, Semaphore, oneshot};
use units::{PeerId, PieceRun, RegionId};
use world::Loan;

/// What no region is called.
pub(crate) const NO_REGION: u64 = 0;

/// The most regions that a peer may expose at a time; one more ends the connection.
pub(crate) const REGIONS_MAX: usize = 64 << 10;

/// The most parts of framed transfers under way at a time; further ones wait.
const FRAMED_PARTS_MAX: usize = 64;

/// Answer to a request: data if it asked for some, or the reason of a refusal.
pub(crate) type Answer = Result<Option<RealPayload>, String>;

/// One connection.
pub(crate) struct Connection {
    /// The other end.
    pub(crate) peer: PeerId,
    /// The stream.
    pub(crate) socket: Socket,
    /// True for a Unix socket, whose peer may be able to reach this node's memory by itself.
    pub(crate) local: bool,
    /// What waits to be written.
    pub(crate) outbox: Outbox,
    /// How much of it waits in the inbox.
    pub(crate) backlog: Backlog,
    /// One permit for each part of a framed transfer under way.
    pub(crate) transfers: Semaphore,
    /// Told once, when the connection ends.
    pub(crate) ended: Notify,
    /// The tasks that read and write the stream.
    pub(crate) tasks: RefCell<Vec<Task>>,
    process: RefCell<Option<Rc<PeerProcess>>>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    departed: Option<String>,
    quiet: bool,
    /// What the peer exposed to this node.
    exposures: BTreeMap<RegionId, Exposure>,
    answers: BTreeMap<u64, oneshot::Sender<Answer>>,
    withdrawals: BTreeMap<u64, Rc<Withdrawal>>,
    requests: u64,
    /// Whether the peer sees this node's shared memory.
    lends: bool,
    /// What this node lent to the peer.
    loans: BTreeMap<u64, (RealPayload, Loan)>,
    /// What the peer can lend to this node.
    borrower: Option<Borrower>,
}

/// A region that is being withdrawn: its memory is held until every peer has answered.
pub(crate) struct Withdrawal {
    memory: RefCell<Option<RealMemory>>,
    remaining: Cell<usize>,
    finished: Notify,
}

impl Withdrawal {
    /// Of a region that `peers` peers know.
    pub(crate) fn new(memory: RealMemory, peers: usize) -> Rc<Self> {
        let memory = RefCell::new(Some(memory));
        Rc::new(Self { memory, remaining: Cell::new(peers), finished: Notify::new() })
    }

    /// One peer no longer uses the region.
    pub(crate) fn peer_done(&self) {
        self.remaining.set(self.remaining.get() - 1);
        if self.remaining.get() == 0 {
            drop(self.memory.borrow_mut().take());
            self.finished.notify_one();
        }
    }

    /// Waits until no peer uses the region. One caller may wait.
    pub(crate) async fn finished(&self) {
        if self.remaining.get() > 0 {
            self.finished.notified().await;
        }
    }
}

impl Connection {
    /// A connection over `socket`, after the handshake.
    pub(crate) fn new(
        peer: PeerId,
        socket: Socket,
        local: bool,
        process: Option<PeerProcess>,
    ) -> Rc<Self> {
        Rc::new(Self {
            peer,
            socket,
            local,
            outbox: Outbox::default(),
            backlog: Backlog::default(),
            transfers: Semaphore::new(FRAMED_PARTS_MAX),
            ended: Notify::new(),
            tasks: RefCell::default(),
            process: RefCell::new(process.map(Rc::new)),
            state: RefCell::default(),
        })
    }

    /// Why it ended, if it has.
    pub(crate) fn departed(&self) -> Option<String> {
        self.state.borrow().departed.clone()
    }

    /// Ends it, unless it has ended already; returns whether this call did it.
    pub(crate) fn end(&self, cause: &str) -> bool {
        let mut state = self.state.borrow_mut();
        if state.departed.is_some() {
            return false;
        }
        state.departed = Some(cause.to_owned());
        state.exposures.clear();
        let answers = std::mem::take(&mut state.answers);
        drop(state);
        // Whoever waits finds the channel closed and looks at `departed`.
        drop(answers);
        self.process.borrow_mut().take();
        self.transfers.close();
        self.outbox.close();
        self.socket.finish();
        self.ended.notify_one();
        if !self.local {
            self.quiet();
        }
        true
    }

    /// The peer can no longer touch this node's memory. Over TCP that is when the connection
    /// ends; over a Unix socket when the peer has closed its side: a peer copies in one system
    /// call, so once it looks at its socket no copy is under way.
    pub(crate) fn quiet(&self) {
        let mut state = self.state.borrow_mut();
        state.quiet = true;
        let withdrawals = std::mem::take(&mut state.withdrawals);
        let loans = std::mem::take(&mut state.loans);
        drop(state);
        drop(loans);
        withdrawals.values().for_each(|withdrawal| withdrawal.peer_done());
    }

    /// What the peer exposed as `region`.
    pub(crate) fn exposure(&self, region: RegionId) -> Option<Exposure> {
        self.state.borrow().exposures.get(&region).copied()
    }

    /// Waits, if `region` is not known, until what the peer exposed before it said that name is: it
    /// told this node first, but somebody else may have brought the name.
    ///
    /// # Errors
    /// Why the connection has ended.
    pub(crate) async fn hear_of(&self, region: RegionId) -> Result<(), String> {
        if self.exposure(region).is_some() {
            return Ok(());
        }
        // The end of no region is answered after all that the peer has said before.
        let answer = self.request(Frame::new(Kind::Withdraw, NO_REGION, 0), &[], None);
        answer.await.map(|_| ()).map_err(|_| self.departed().unwrap_or_default())
    }

    /// The peer exposes something; the error says why that is refused.
    pub(crate) fn add_exposure(&self, region: RegionId, exposure: Exposure) -> Result<(), String> {
        let exposures = &mut self.state.borrow_mut().exposures;
        if exposures.len() >= REGIONS_MAX {
            return Err(format!("the peer exposes more than {REGIONS_MAX} regions"));
        }
        exposures.insert(region, exposure);
        Ok(())
    }

    /// The peer withdraws something.
    pub(crate) fn remove_exposure(&self, region: RegionId) {
        self.state.borrow_mut().exposures.remove(&region);
    }

    /// The peer sees this node's shared memory.
    pub(crate) fn begin_lending(&self) {
        self.state.borrow_mut().lends = true;
    }

    /// Lends `body` to the peer, if it can see it: the number of the loan, and where it lies.
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

    /// A loan is over; the error says why it cannot be.
    pub(crate) fn take_back(&self, number: u64) -> Result<(), String> {
        let loan = self.state.borrow_mut().loans.remove(&number);
        loan.map(drop).ok_or_else(|| format!("the peer gives back {number}, which it never had"))
    }

    /// Nothing that is lent is ever used for anything else.
    pub(crate) fn leak_loans(&self) {
        let loans = std::mem::take(&mut self.state.borrow_mut().loans);
        loans.into_values().for_each(|(body, _)| std::mem::forget(body));
    }

    /// From now on the peer can lend something to this node.
    pub(crate) fn borrow_with(&self, borrower: Borrower) {
        self.state.borrow_mut().borrower = Some(borrower);
    }

    /// What the peer lends; the error says why it cannot be seen.
    pub(crate) fn borrowed(&self, frame: Frame) -> Result<RealPayload, String> {
        let state = self.state.borrow();
        let borrower = state.borrower.as_ref().ok_or("the peer lends what was not shared")?;
        let borrowed = borrower.borrow(frame.region, frame.number, frame.body_bytes);
        let (loan, first) = borrowed.ok_or("the peer lends what is not in its shared memory")?;
        Ok(RealPayload::borrowed(loan, first, frame.body_bytes as usize))
    }

    /// Copies `pieces` of the peer's shared memory, where their file sides are, into `memory`; the
    /// error says why they cannot be seen. The caller has checked their memory sides.
    pub(crate) fn copy_from_arena(
        &self,
        pieces: &[PieceRun],
        memory: &RealMemory,
    ) -> Result<(), String> {
        let state = self.state.borrow();
        let borrower = state.borrower.as_ref().ok_or("the peer lends what was not shared")?;
        borrower.copy(pieces, memory).ok_or("the peer lends what is not in its shared memory")?;
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

    /// The peer's process, while its memory can be reached.
    pub(crate) fn process(&self) -> Option<Rc<PeerProcess>> {
        self.process.borrow().clone()
    }

    /// From now on transfers with the peer are framed.
    pub(crate) fn forget_process(&self) {
        self.process.borrow_mut().take();
    }

    /// Sends a request that is answered with [`Answer`]. When the connection ends first, the
    /// channel closes without one.
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

    /// Asks the peer to stop using `region`.
    pub(crate) fn withdraw(&self, region: RegionId, withdrawal: &Rc<Withdrawal>) {
        let mut state = self.state.borrow_mut();
        if state.quiet {
            drop(state);
            return withdrawal.peer_done();
        }
        let number = state.next_request();
        state.withdrawals.insert(number, Rc::clone(withdrawal));
        drop(state);
        self.push(Frame::new(Kind::Withdraw, region.0, number), &[], None);
    }

    /// Queues a frame; its lengths are filled in here.
    pub(crate) fn push(&self, mut frame: Frame, header: &[u8], body: Option<&RealPayload>) -> u64 {
        frame.header_bytes = header.len();
        frame.with_body = body.is_some();
        // The body of a lent message stays where it is.
        if !matches!(frame.kind, Kind::Lent | Kind::PutLent) {
            frame.body_bytes = body.map_or(0, world::Payload::length);
        }
        self.outbox.push(&frame, header, body)
    }

    /// Whether an answer with that number is awaited.
    pub(crate) fn awaits(&self, number: u64) -> bool {
        let state = self.state.borrow();
        state.answers.contains_key(&number) || state.withdrawals.contains_key(&number)
    }

    /// Hands an answer to whoever awaits it.
    pub(crate) fn answer(&self, number: u64, answer: Answer) {
        let mut state = self.state.borrow_mut();
        let waiting = state.answers.remove(&number);
        let withdrawal = state.withdrawals.remove(&number);
        // What was lent for this request only.
        let loan = state.loans.remove(&number);
        drop(state);
        drop(loan);
        if let Some(waiting) = waiting {
            // Whoever asked may have stopped waiting.
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
