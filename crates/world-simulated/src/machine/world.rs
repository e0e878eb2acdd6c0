//! The world of one node: the view that its program has of the machine.

use super::assembly::Machine;
use super::computation::{Computing, Polling};
use super::connection::{ConnectionEnd, check_header, departed};
use super::flights::Kept;
use super::message_costs::PutCopier;
use super::node::{Node, Work};
use super::stops::UntilEnded;
use crate::device::SimulatedDisk;
use crate::engine::{Sleep, TaskHandle};
use crate::random::next_random;
use crate::timeline::{Cause, Link as Because, What};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use units::{Duration, Instant, PeerId, PieceRun, RegionId, Run, Timestamp};
use world::payload::Kind;
use world::{
    Address, Clock, Disks, Incoming, JobFailed, Memory, Message, Network, NetworkError, OneSided,
    Payloads, Processor, ProcessorTime, Randomness, RecordChange, RecordTable, Records,
    RecordsError, Tasks, TransferError,
};

impl<P: Kind> Machine<P> {
    /// Returns the world of node number `node`.
    ///
    /// # Panics
    /// Panics when there is no such node.
    pub fn world(self: &Rc<Self>, node: u32) -> SimulatedWorld<P> {
        SimulatedWorld { machine: Rc::clone(self), node: Rc::clone(&self.nodes[node as usize]) }
    }
}

/// World of one simulated node; clones are handles to the same node.
pub struct SimulatedWorld<P: Kind> {
    machine: Rc<Machine<P>>,
    node: Rc<Node<P>>,
}

impl<P: Kind> Clone for SimulatedWorld<P> {
    fn clone(&self) -> Self {
        Self { machine: Rc::clone(&self.machine), node: Rc::clone(&self.node) }
    }
}

impl<P: Kind> SimulatedWorld<P> {
    /// Number of this node.
    pub fn node(&self) -> u32 {
        self.node.index
    }

    /// Computes for the program of this node, which costs the reference processor `cost`. Messages
    /// and one-sided transfers of the node interrupt the computation, and it shares the cores of
    /// the node's host. Dropping the future ends it.
    pub fn compute_as_program(&self, cost: Duration) -> impl Future<Output = ()> + 'static {
        let length = self.node.length_of(cost);
        Computing::new(self.machine.engine.clone(), Rc::clone(&self.node), length)
    }

    /// Uses a core of the node's host until the result is dropped, for a program that polls.
    pub fn poll_as_program(&self) -> Polling {
        Polling::new(self.machine.engine.clone(), &self.node)
    }

    /// Sends a message of `bytes` bytes to node `to` for the program of this node: occupies the
    /// processor, which copies the data. The network carries it afterwards
    /// ([`Self::carry_as_program`]).
    pub fn send_as_program(&self, to: u32, bytes: u64) -> impl Future<Output = ()> + 'static {
        let what = || What::Send { to, bytes };
        self.until_done(&self.occupy(self.machine.costs.send_data(bytes), what))
    }

    /// Carries a message of the program of this node to another node, which may be this one. Ends
    /// when the last byte has arrived.
    pub async fn carry_as_program(&self, to: u32, bytes: u64) {
        let bytes = bytes + ONE_SIDED_HEADER_BYTES;
        self.machine.network.carry(self.node.index, to, bytes).await;
    }

    /// Receives a message that has arrived, for the program of this node: occupies the processor.
    pub fn receive_as_program(&self, bytes: u64) -> impl Future<Output = ()> + 'static {
        let what = || What::Receive { bytes };
        self.until_done(&self.occupy(self.machine.costs.receive_bytes(bytes), what))
    }

    fn occupy(&self, cost: Duration, what: impl FnOnce() -> What) -> Work {
        self.node.occupy(&self.machine.engine, cost, what)
    }

    fn until_done(&self, work: &Work) -> Sleep {
        self.machine.engine.sleep_until(work.until)
    }

    /// Returns the other end of a connection that has not ended, as far as this side can know.
    fn link(&self, peer: PeerId) -> Result<(ConnectionEnd, &Rc<Node<P>>), NetworkError> {
        let found = self.node.link(peer).and_then(|link| {
            let node = self.machine.node(link.node)?;
            // The end of a node does not get through a cut connection.
            let is_there = self.machine.is_alive(link.node)
                || self.machine.silence.swallows(self.node.index, peer);
            is_there.then_some((link, node))
        });
        found.ok_or_else(|| departed(peer))
    }

    /// Waits, if the peer is silent, for the end of the connection, and fails then.
    async fn until_heard(&self, peer: PeerId) -> Result<(), NetworkError> {
        if !self.machine.is_silent(&self.node, peer) {
            return Ok(());
        }
        UntilEnded::new(&self.machine, &self.node, peer).await;
        Err(departed(peer))
    }

    /// [`Self::until_heard`] in a transfer.
    async fn until_answered(&self, peer: PeerId) -> Result<(), TransferError> {
        let heard = self.until_heard(peer).await;
        heard.map_err(|_| TransferError::Departed { peer, cause: "it is not connected".to_owned() })
    }

    /// Calls `act` with the peer's node and its exposed memory, after checking that the pieces lie
    /// in it.
    fn with_region<R>(
        &self,
        peer: PeerId,
        region: RegionId,
        pieces: &[PieceRun],
        act: impl FnOnce(u32, &P::Memory) -> R,
    ) -> Result<R, TransferError> {
        let gone = |_| TransferError::Departed { peer, cause: "it is not connected".to_owned() };
        let (link, node) = self.link(peer).map_err(gone)?;
        node.link(link.theirs).ok_or(departed(peer)).map_err(gone)?;
        let outside =
            |cause: &str| TransferError::OutOfRegion { peer, region, cause: cause.to_owned() };
        let regions = node.regions.borrow();
        let exposed = regions.exposed(region, link.theirs);
        let memory = exposed.ok_or_else(|| outside("this region is not exposed"))?;
        let inside = |piece: &PieceRun| {
            piece.memory_side().checked_end().is_some_and(|end| end <= memory.length())
        };
        if !pieces.iter().all(inside) {
            return Err(outside("the pieces go past the end of the region"));
        }
        Ok(act(link.node, memory))
    }
}

/// Future of sending a message. (A hand-written state machine, because an `async fn` would store
/// the message twice and move it. The message stays in its place until it is received.)
struct Sending<'a, P: Kind> {
    world: &'a SimulatedWorld<P>,
    to: PeerId,
    has_begun: bool,
    message: Kept,
    /// Cost of the work that comes first.
    cost: Duration,
}

impl<P: Kind> Sending<'_, P> {
    /// Leaves the message to the processor. The sender does not wait for the end of the sending.
    fn begin(&mut self) -> Result<(), NetworkError> {
        assert!(!self.has_begun, "a future that has ended must not be polled");
        check_header(self.message.header_bytes)?;
        let (ConnectionEnd { node, .. }, _) = self.world.link(self.to)?;
        let Kept { place, has_place, bytes, .. } = self.message;
        let machine = &self.world.machine;
        if self.cost > Duration::ZERO {
            self.world.occupy(self.cost, || What::Compute);
        }
        let cost = machine.costs.send_bytes(has_place, bytes);
        let work = self.world.occupy(cost, || What::Send { to: node, bytes });
        let timeline = machine.engine.timeline();
        if timeline.is_recorded() {
            let Cause { request, command } = timeline.cause();
            timeline.arrow(Because::Answer, command, work.mark);
            timeline.set_cause(Cause { request, command: None });
            machine.flights.borrow_mut().get(place).mark = work.mark;
        }
        self.has_begun = true;
        machine.launch_at(work.until, self.world.node.index, place);
        Ok(())
    }
}

impl<P: Kind> Future for Sending<'_, P> {
    type Output = Result<(), NetworkError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(self.get_mut().begin())
    }
}

impl<P: Kind> Drop for Sending<'_, P> {
    fn drop(&mut self) {
        if !self.has_begun {
            self.world.machine.forget(self.message.place);
        }
    }
}

/// Bytes on the network of the header or acknowledgement of a one-sided transfer.
const ONE_SIDED_HEADER_BYTES: u64 = 16;

/// Returns number and total bytes of pieces.
fn size_of(pieces: &[PieceRun]) -> (u64, u64) {
    pieces.iter().fold((0, 0), |(count, bytes), run| (count + run.count, bytes + run.bytes()))
}

impl<P: Kind> Clock for SimulatedWorld<P> {
    fn now(&self) -> Instant {
        self.machine.engine.now()
    }

    fn clock(&self) -> u64 {
        0
    }

    fn timestamp(&self) -> Timestamp {
        self.machine.engine.timestamp()
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + 'static {
        self.machine.engine.sleep_until(deadline)
    }
}

impl<P: Kind> Tasks for SimulatedWorld<P> {
    type Task = TaskHandle;

    #[inline]
    fn spawn(&self, future: impl Future<Output = ()> + 'static) -> TaskHandle {
        self.machine.engine.spawn(self.node.index, future)
    }

    #[inline]
    fn spawn_built<F>(&self, build: impl FnOnce() -> F) -> TaskHandle
    where
        F: Future<Output = ()> + 'static,
    {
        self.machine.engine.spawn_built(self.node.index, build)
    }
}

impl<P: Kind> Processor for SimulatedWorld<P> {
    fn compute(&self, cost: Duration) -> impl Future<Output = ()> + 'static {
        self.until_done(&self.occupy(cost, || What::Compute))
    }

    fn used(&self) -> ProcessorTime {
        ProcessorTime { all: self.node.processor.borrow().busy(), system: Duration::ZERO }
    }

    /// The job occupies the processor of the node, as all its work does, and is executed when that
    /// time is over.
    fn compute_apart<R: Send + 'static>(
        &self,
        cost: Duration,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = Result<R, JobFailed>> + 'static {
        let world = self.clone();
        async move {
            world.compute(cost).await;
            let done = catch_unwind(AssertUnwindSafe(job));
            done.map_err(|_| JobFailed { cause: "it has panicked".to_owned() })
        }
    }
}

impl<P: Kind> Randomness for SimulatedWorld<P> {
    fn random(&self) -> u64 {
        next_random(&self.node.random)
    }
}

impl<P: Kind> Payloads for SimulatedWorld<P> {
    type Payload = P;
    type Memory = P::Memory;

    fn memory(&self, length: u64) -> P::Memory {
        P::memory(length)
    }

    fn thaw(&self, payload: P) -> P::Memory {
        payload.thaw()
    }
}

impl<P: Kind> Disks for SimulatedWorld<P> {
    type Disk = SimulatedDisk<P>;

    fn disks(&self) -> &[SimulatedDisk<P>] {
        &self.node.disks
    }
}

impl<P: Kind> Records for SimulatedWorld<P> {
    async fn records(&self, table: RecordTable) -> Result<Vec<(u64, Vec<u8>)>, RecordsError> {
        Ok(self.node.records.all(table))
    }

    async fn record_change(
        &self,
        table: RecordTable,
        changes: Vec<RecordChange>,
    ) -> Result<(), RecordsError> {
        if let Some(change) = self.node.records.begin_change(table, changes) {
            self.machine.engine.sleep(change.takes).await;
            self.node.records.end_change(&change);
        }
        Ok(())
    }
}

impl<P: Kind> Network for SimulatedWorld<P> {
    fn address(&self) -> Address {
        Address(format!("node:{}", self.node.index))
    }

    async fn connect(&self, to: &Address) -> Result<PeerId, NetworkError> {
        let number = to.0.strip_prefix("node:").and_then(|number| number.parse().ok());
        let number = number.filter(|number| *number != self.node.index);
        let node = number.and_then(|number| self.machine.node(number));
        let machine = &self.machine;
        let answers = |node: &&Rc<Node<P>>| {
            machine.is_alive(node.index) && !machine.silence.is_stopped(node.index)
        };
        let Some(node) = node.filter(answers) else {
            let cause = "there is no such node".to_owned();
            return Err(NetworkError::Unreachable { address: to.clone(), cause });
        };
        Ok(self.node.connect(node).0)
    }

    fn send(
        &self,
        to: PeerId,
        message: Message<P>,
    ) -> impl Future<Output = Result<(), NetworkError>> {
        self.send_after(Duration::ZERO, to, message)
    }

    fn send_after(
        &self,
        cost: Duration,
        to: PeerId,
        message: Message<P>,
    ) -> impl Future<Output = Result<(), NetworkError>> {
        let message = self.machine.keep(&self.node, to, message);
        Sending { world: self, to, has_begun: false, message, cost }
    }

    fn receive(&self) -> impl Future<Output = Incoming<P>> {
        poll_fn(|context| match self.machine.take(&self.node, context.waker()) {
            Some(incoming) => Poll::Ready(incoming),
            None => Poll::Pending,
        })
    }

    fn disconnect(&self, peer: PeerId) {
        self.machine.hang_up(&self.node, peer);
    }

    async fn ping(&self, peer: PeerId) -> Result<(), NetworkError> {
        let (own, network) = (self.node.index, &self.machine.network);
        let (ConnectionEnd { node: other, .. }, _) = self.link(peer)?;
        self.until_heard(peer).await?;
        network.carry(own, other, ONE_SIDED_HEADER_BYTES).await;
        self.until_heard(peer).await?;
        network.carry(other, own, ONE_SIDED_HEADER_BYTES).await;
        self.until_heard(peer).await?;
        self.link(peer).map(|_| ())
    }

    /// Pings do not wait behind data, so that nothing needs to be counted.
    fn moved_bytes(&self, _: PeerId) -> u64 {
        0
    }

    fn received_bytes(&self, _: PeerId) -> u64 {
        0
    }

    fn awaited_peers(&self) -> Vec<PeerId> {
        self.machine.silence.awaited_by(self.node.index)
    }
}

impl<P: Kind> OneSided for SimulatedWorld<P> {
    async fn expose(&self, memory: &P::Memory, peers: &[PeerId]) -> Result<RegionId, NetworkError> {
        for &peer in peers {
            self.link(peer)?;
        }
        Ok(self.node.regions.borrow_mut().expose(memory.clone(), peers))
    }

    async fn expose_to_all(&self, memory: &P::Memory) -> RegionId {
        self.node.regions.borrow_mut().expose_to_all(memory.clone())
    }

    fn withdraw(&self, region: RegionId) -> impl Future<Output = ()> {
        self.node.regions.borrow_mut().withdraw(region);
        std::future::ready(())
    }

    async fn put(
        &self,
        peer: PeerId,
        region: RegionId,
        pieces: &[PieceRun],
        source: &P,
    ) -> Result<(), TransferError> {
        self.until_answered(peer).await?;
        let other = self.with_region(peer, region, pieces, |node, _| node)?;
        let costs = &self.machine.costs;
        let (count, bytes) = size_of(pieces);
        let what = || What::Put { to: other, pieces: count, bytes };
        let lends = !self.node.disks.is_empty();
        self.until_done(&self.occupy(costs.put(lends, count, bytes), what)).await;
        let (own, network) = (self.node.index, &self.machine.network);
        let headers = costs.headers(count) * ONE_SIDED_HEADER_BYTES;
        match costs.put_copier {
            PutCopier::Requester => {
                network.carry(own, other, bytes + headers).await;
                if let Some(owner) = self.machine.node(other).filter(|_| costs.streams()) {
                    let cost = costs.streamed_put_for_owner(count, bytes);
                    let copied =
                        owner.occupy(&self.machine.engine, cost, || What::Receive { bytes });
                    self.until_done(&copied).await;
                }
            }
            PutCopier::Owner => {
                let is_message = !lends && costs.direct.is_none();
                let carried = if is_message { bytes + headers } else { headers };
                network.carry(own, other, carried).await;
                let cost = costs.put_for_owner(lends, count, bytes);
                if let Some(owner) = self.machine.node(other).filter(|_| cost > Duration::ZERO) {
                    let cost = cost + owner.wake(self.machine.engine.now(), costs.wake);
                    let what = || What::GetAnswer { to: own, bytes };
                    let copied = owner.occupy(&self.machine.engine, cost, what);
                    self.until_done(&copied).await;
                }
            }
        }
        let file_side: Vec<Run> = pieces.iter().map(|piece| piece.file_side()).collect();
        let memory_side: Vec<Run> = pieces.iter().map(|piece| piece.memory_side()).collect();
        let gathered = source.gather(&file_side);
        self.until_answered(peer).await?;
        self.with_region(peer, region, pieces, |_, memory| {
            memory.scatter(&memory_side, &gathered)
        })?;
        network.carry(other, own, ONE_SIDED_HEADER_BYTES).await;
        Ok(())
    }

    async fn get(
        &self,
        peer: PeerId,
        region: RegionId,
        pieces: &[PieceRun],
        target: &P::Memory,
    ) -> Result<(), TransferError> {
        self.until_answered(peer).await?;
        let other = self.with_region(peer, region, pieces, |node, _| node)?;
        let costs = &self.machine.costs;
        let (count, bytes) = size_of(pieces);
        let what = || What::Get { from: other, pieces: count, bytes };
        let asked = self.occupy(costs.get(count, bytes), what);
        self.until_done(&asked).await;
        let (own, engine) = (self.node.index, &self.machine.engine);
        let headers = costs.headers(count) * ONE_SIDED_HEADER_BYTES;
        let is_direct = costs.direct.is_some();
        if !is_direct {
            self.machine.network.carry(own, other, headers).await;
        }
        if let Some(owner) = self.machine.node(other).filter(|_| !is_direct) {
            let what = || What::GetAnswer { to: own, bytes };
            let answered = owner.occupy(engine, costs.get_for_owner(count, bytes), what);
            engine.timeline().arrow(Because::Get, asked.mark, answered.mark);
            engine.sleep_until(answered.until).await;
        }
        let file_side: Vec<Run> = pieces.iter().map(|piece| piece.file_side()).collect();
        let memory_side: Vec<Run> = pieces.iter().map(|piece| piece.memory_side()).collect();
        self.until_answered(peer).await?;
        let gathered =
            self.with_region(peer, region, pieces, |_, memory| memory.gather(&memory_side))?;
        if !is_direct {
            self.machine.network.carry(other, own, bytes + headers).await;
        }
        if !is_direct && costs.streams() {
            let cost = costs.streamed_get(count, bytes);
            self.until_done(&self.occupy(cost, || What::Receive { bytes })).await;
        }
        target.scatter(&file_side, &gathered);
        Ok(())
    }
}
