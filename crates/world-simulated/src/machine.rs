//! The machine: nodes with processors and disks, and the network between them.
//!
//! Nodes are numbered from 0 in the order of [`MachineConfig::nodes`]. Each node numbers its own
//! ends of connections from 0 and never uses a number again, so that what an old connection still
//! brings is not taken for a new one's.

use crate::device::{DeviceConfig, SimulatedDisk};
use crate::engine::{Callee, Engine, Expire};
use crate::faults::RecordsUnderWay;
use crate::flights::{Bound, ENVELOPE_BYTES, Flights, Kept, Parcel, Stage, Token, message_bytes};
use crate::message_costs::MessageCosts;
use crate::models::layout::LayoutError;
use crate::models::network::{Network, NetworkSpec, UnfitNetwork};
use crate::models::processor::{Busy, Processor};
use crate::regions::Regions;
use crate::timeline::{Cause, Link as Because, MarkId, Slice, Track, What};
use crate::transport::Transport;
use crate::world::SimulatedWorld;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};
use std::task::Waker;
use units::{Duration, Instant, PeerId, Run, SplitMix64};
use world::payload::Kind;
use world::{Incoming, Memory, Message, NetworkError, Place, RecordChange, Shelf};

/// Everything that can be chosen about a machine.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// What each node has.
    pub nodes: Vec<NodeConfig>,
    /// Processor time of messages and one-sided transfers.
    pub messages: MessageCosts,
    /// What connects the nodes.
    pub network: NetworkSpec,
    /// What each disk is.
    pub disk: DeviceConfig,
    /// Start of every random sequence.
    pub seed: u64,
}

/// Why there is no such machine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MachineError {
    /// The blocks do not fit the disks.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The nodes do not fit the network.
    #[error(transparent)]
    Network(#[from] UnfitNetwork),
}

/// The next number of a random SplitMix64 sequence whose state is `state`.
pub(crate) fn next_random(state: &Cell<u64>) -> u64 {
    let mut numbers = SplitMix64::new(state.get());
    let number = numbers.next_u64();
    state.set(numbers.state());
    number
}

/// What one node has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeConfig {
    /// Disks on its one bus; none on a client.
    pub disks: u32,
    /// Speed of its processor: this many times …
    pub speed: u32,
    /// … over this, the speed of the reference processor.
    pub reference_speed: u32,
    /// How far each piece of work may differ from what it costs on average, in percent: drawn
    /// anew each time, every length within being as likely as another.
    pub variation_percent: u32,
    /// Whether to remember when its processor works: [`Machine::processor_trace`].
    pub traced: bool,
}

/// A machine that moves data of kind `P`.
pub struct Machine<P: Kind> {
    pub(crate) engine: Engine,
    pub(crate) costs: MessageCosts,
    pub(crate) network: Transport,
    pub(crate) nodes: Vec<Rc<Node<P>>>,
    /// Which nodes live. Whoever sends looks at it, and nodes lie far apart.
    alive: Vec<Cell<bool>>,
    /// Nothing happens on it any more.
    is_off: Cell<bool>,
    /// Of nodes that were killed: what their processors had to send until then is lost.
    lost_until: RefCell<BTreeMap<u32, Instant>>,
    pub(crate) flights: RefCell<Flights<P>>,
    pub(crate) own: Weak<Self>,
    /// What the engine calls it.
    callee: Callee,
}

/// One node's state, as its worlds and its peers share it.
pub(crate) struct Node<P: Kind> {
    pub(crate) index: u32,
    processor: RefCell<Processor>,
    variation_percent: u32,
    /// State of the random sequence by which work varies; its own, so that programs draw the
    /// same numbers however long their work takes.
    work_random: Cell<u64>,
    pub(crate) disks: Vec<SimulatedDisk<P>>,
    pub(crate) records: RefCell<[BTreeMap<u64, Vec<u8>>; Shelf::ALL.len()]>,
    /// Only where faults are planned.
    pub(crate) records_under_way: OnceCell<Box<RecordsUnderWay>>,
    pub(crate) random: Cell<u64>,
    pub(crate) regions: RefCell<Regions<P>>,
    pub(crate) links: RefCell<Vec<Link>>,
    /// What the program has yet to receive.
    inbox: RefCell<VecDeque<Arrival>>,
    pub(crate) receiver: RefCell<Option<Waker>>,
}

/// One end of a connection; its number is its place among the links of its node. (A machine may
/// have millions, so that one has ended is told by its node's number.)
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// The node at the other end.
    pub(crate) node: u32,
    /// What that node calls this connection.
    pub(crate) theirs: PeerId,
}

impl Link {
    /// One that has ended. No node has this number.
    const ENDED: Self = Self { node: u32::MAX, theirs: PeerId(u32::MAX) };

    fn unless_ended(self) -> Option<Self> {
        (self.node != Self::ENDED.node).then_some(self)
    }
}

/// What has reached a node.
enum Arrival {
    /// A message, by its place among the flights.
    Message {
        place: u32,
    },
    Departure {
        peer: PeerId,
        cause: String,
        receipt: Option<MarkId>,
    },
}

/// Work that a processor has taken on.
pub(crate) struct Work {
    /// When it is done.
    pub(crate) until: Instant,
    /// What the recorder calls it.
    pub(crate) mark: Option<MarkId>,
}

impl<P: Kind> Machine<P> {
    /// A machine at rest at the engine's present moment.
    ///
    /// # Errors
    /// When the blocks do not fit the disks, or the nodes the network.
    pub fn new(engine: Engine, config: &MachineConfig) -> Result<Rc<Self>, MachineError> {
        let mut disks_before = 0;
        let nodes = config.nodes.iter().enumerate().map(|(index, node)| {
            let first = disks_before;
            disks_before += node.disks;
            Ok(Rc::new(Node::new(&engine, config, index as u32, first, *node)?))
        });
        let nodes: Vec<_> = nodes.collect::<Result<_, LayoutError>>()?;
        let network = Network::new(&config.network, nodes.len() as u32)?;
        Ok(Rc::new_cyclic(|own: &Weak<Self>| Self {
            network: Transport::new(engine.clone(), network, Weak::<Self>::clone(own)),
            callee: engine.register_foreseeing(Weak::<Self>::clone(own)),
            own: Weak::clone(own),
            engine,
            costs: config.messages,
            alive: vec![Cell::new(true); nodes.len()],
            is_off: Cell::default(),
            lost_until: RefCell::default(),
            nodes,
            flights: RefCell::default(),
        }))
    }

    /// The world of node number `node`. Panics when there is none.
    pub fn world(self: &Rc<Self>, node: u32) -> SimulatedWorld<P> {
        SimulatedWorld::new(Rc::clone(self), Rc::clone(&self.nodes[node as usize]))
    }

    /// How long the processor of `node` has been occupied.
    pub fn processor_busy(&self, node: u32) -> Duration {
        self.nodes[node as usize].processor.borrow().busy()
    }

    /// When the processor of `node` worked, from the machine's beginning; empty unless its
    /// configuration asks for it.
    pub fn processor_trace(&self, node: u32) -> Vec<Busy> {
        self.nodes[node as usize].processor.borrow().trace().to_vec()
    }

    /// Ends `node` as a power failure would: its tasks stop where they are, its memory is gone,
    /// and every peer learns of it. Its records remain, and what its disks hold: all of it, or,
    /// where faults are [planned](Self::plan), what was synced, and of the rest what the seed
    /// leaves.
    pub fn kill(&self, node: u32) {
        let node = &self.nodes[node as usize];
        self.alive[node.index as usize].set(false);
        let lost_until = node.processor.borrow().free_at();
        self.lost_until.borrow_mut().insert(node.index, lost_until);
        node.regions.borrow_mut().clear();
        for arrival in node.inbox.take() {
            if let Arrival::Message { place } = arrival {
                drop(self.flights.borrow_mut().remove(place));
            }
        }
        for disk in &node.disks {
            disk.lose_power();
        }
        if let Some(under_way) = node.records_under_way.get() {
            under_way.lose_power(node);
        }
        let links = node.links.borrow().len() as u32;
        for link in (0..links).map(PeerId) {
            self.end(node, link, "the node was killed");
        }
        self.engine.cancel_node(node.index);
    }

    /// Has `node` come back after its end, with what its disks and records kept and no tasks.
    pub fn restart(&self, node: u32) {
        self.alive[node as usize].set(true);
    }

    /// Ends every connection between two nodes; both learn of it at once, and what was on its way
    /// between them is lost.
    pub fn disconnect(&self, one: u32, other: u32) {
        let [one, other] = [one, other].map(|node| &self.nodes[node as usize]);
        let links = one.links.borrow().len() as u32;
        for here in (0..links).map(PeerId) {
            let Some(link) = one.link(here).filter(|link| link.node == other.index) else {
                continue;
            };
            for (node, peer) in [(one, here), (other, link.theirs)] {
                if node.unlink(peer).is_some() {
                    let cause = "the connection was lost".to_owned();
                    node.post(Arrival::Departure { peer, cause, receipt: None });
                }
            }
        }
    }

    /// Says that the simulation is over: programs that are dropped from now on do not hang up,
    /// which for thousands of them would cost as much as a part of the simulation.
    pub fn switch_off(&self) {
        self.is_off.set(true);
    }

    /// Tells the recorder of what is still going on, and then nothing any more.
    pub fn stop_recording(&self) {
        for disk in self.nodes.iter().flat_map(|node| &node.disks) {
            disk.stop_recording();
        }
        self.engine.timeline().stop();
    }

    pub(crate) fn is_alive(&self, node: u32) -> bool {
        self.alive.get(node as usize).is_some_and(Cell::get)
    }

    pub(crate) fn node(&self, number: u32) -> Option<&Rc<Node<P>>> {
        self.nodes.get(number as usize)
    }

    /// Ends a connection on the side of `node` now; the other side learns of it after all that has
    /// left before.
    pub(crate) fn end(&self, node: &Node<P>, link: PeerId, cause: &'static str) {
        if let Some(place) = self.unlink(node, link, cause) {
            self.launch(node.index, place);
        }
    }

    /// Ends a connection of `node` by its program's will, which receives nothing more over it. What
    /// it has sent goes out before.
    pub(crate) fn hang_up(&self, node: &Node<P>, link: PeerId) {
        if self.is_off.get() {
            return;
        }
        if let Some(place) = self.unlink(node, link, "it disconnected") {
            let sent_until = node.processor.borrow().free_at();
            self.launch_at(sent_until, node.index, place);
        }
        let mut flights = self.flights.borrow_mut();
        node.inbox.borrow_mut().retain(|arrival| {
            let Arrival::Message { place } = *arrival else { return true };
            let comes_over_it = flights.bound(place).to.theirs == link;
            if comes_over_it {
                drop(flights.remove(place));
            }
            !comes_over_it
        });
    }

    /// Ends a connection on the side of `node`. Returns, if it was there, the place of the flight
    /// that tells the other side.
    fn unlink(&self, node: &Node<P>, link: PeerId, cause: &'static str) -> Option<u32> {
        let bound = Bound { to: node.unlink(link)?, bytes: ENVELOPE_BYTES };
        Some(self.flights.borrow_mut().insert(bound, Parcel::End { cause }))
    }

    /// Keeps a message that `node` is about to send to `peer`; returns its place among the flights.
    pub(crate) fn keep(&self, node: &Node<P>, peer: PeerId, message: Message<P>) -> Kept {
        let to = node.links.borrow().get(peer.0 as usize).copied().unwrap_or(Link::ENDED);
        let (header_bytes, bytes) = (message.header.len(), message_bytes(&message));
        let bound = Bound { to, bytes };
        let place = self.flights.borrow_mut().insert(bound, Parcel::Message(message));
        Kept { place, header_bytes, bytes }
    }

    /// Forgets a message that is not sent.
    #[cold]
    pub(crate) fn forget(&self, place: u32) {
        let forgotten = self.flights.borrow_mut().remove(place);
        drop(forgotten);
    }

    /// Puts what is at `place` on the network when the processor of `from` is done with it, after
    /// all that it was done with before; it reaches the other side later, unless either side is
    /// gone then.
    pub(crate) fn launch_at(&self, done: Instant, from: u32, place: u32) {
        self.engine.tell_at(done, self.callee, Token::leaves(place, from).0);
    }

    /// The processor of a node is done with what is at a place. With the node's power only messages
    /// are lost: of connections that it had ended before, the other side learns.
    fn leave(&self, from: u32, place: u32) {
        let lost_until = self.lost_until.borrow().get(&from).copied();
        let is_message =
            || matches!(self.flights.borrow_mut().get(place).parcel, Parcel::Message(_));
        if lost_until.is_some_and(|until| self.engine.now() <= until) && is_message() {
            return self.forget(place);
        }
        self.launch(from, place);
    }

    fn launch(&self, from: u32, place: u32) {
        let Bound { to, bytes } = *self.flights.borrow().bound(place);
        let token = Token::arrives(place, to.node).0;
        if let Some(arrival) = self.network.launch((from, to.node), bytes, token) {
            self.engine.tell_at(arrival, self.callee, token);
        }
    }

    /// What has arrived must be taken in by the processor.
    fn arrive(&self, token: Token) {
        let node = &self.nodes[token.node() as usize];
        let work = node.occupy(&self.engine, self.costs.receive, || What::Receive {
            bytes: self.flights.borrow().bound(token.place()).bytes,
        });
        if work.mark.is_some() {
            let mut flights = self.flights.borrow_mut();
            let flight = flights.get(token.place());
            self.engine.timeline().arrow(Because::Message, flight.mark, work.mark);
            flight.mark = work.mark;
        }
        self.engine.tell_at(work.until, self.callee, token.taken_in().0);
    }

    /// Hands to a node's program what has arrived and been taken in by its processor.
    fn take_in(&self, place: u32) {
        let mut flights = self.flights.borrow_mut();
        let Link { node, theirs: peer } = flights.bound(place).to;
        let flight = flights.get(place);
        let receipt = flight.mark;
        let node = &self.nodes[node as usize];
        if node.link(peer).is_none() {
            drop(flights.remove(place));
            return;
        }
        let ended = match &mut flight.parcel {
            Parcel::Message(message) => node.place_body(peer, message).err(),
            Parcel::End { cause } => Some((*cause).to_owned()),
            Parcel::None => unreachable!("what is on its way stays until it is taken in"),
        };
        let Some(cause) = ended else {
            drop(flights);
            return node.post(Arrival::Message { place });
        };
        let parcel = flights.remove(place);
        drop(flights);
        match parcel {
            Parcel::Message(_) => self.end(node, peer, "it refused what was sent to its memory"),
            Parcel::End { .. } | Parcel::None => drop(node.unlink(peer)),
        }
        node.post(Arrival::Departure { peer, cause, receipt });
    }

    /// The next thing that the program of `node` receives, which is the cause of what the running
    /// task does then; or a promise to wake `waker` when there is one.
    pub(crate) fn take(&self, node: &Node<P>, waker: &Waker) -> Option<Incoming<P>> {
        let next = node.inbox.borrow_mut().pop_front();
        let (incoming, request) = match next {
            Some(Arrival::Message { place }) => {
                let mut flights = self.flights.borrow_mut();
                let (from, receipt) = (flights.bound(place).to.theirs, flights.get(place).mark);
                let Parcel::Message(Message { header, body, .. }) = flights.remove(place) else {
                    unreachable!("only messages are received")
                };
                (Incoming::Message { from, header, body }, receipt)
            }
            Some(Arrival::Departure { peer, cause, receipt }) => {
                (Incoming::Departed { peer, cause }, receipt)
            }
            None => {
                *node.receiver.borrow_mut() = Some(waker.clone());
                return None;
            }
        };
        self.engine.timeline().set_cause(Cause { request, command: None });
        Some(incoming)
    }
}

impl<P: Kind> Expire for Machine<P> {
    /// A flight has come to a stage; its node may have been killed meanwhile.
    fn expire(&self, token: u64) {
        let token = Token(token);
        match token.stage() {
            Stage::Leaves => self.leave(token.node(), token.place()),
            Stage::Arrives if self.is_alive(token.node()) => self.arrive(token),
            Stage::Arrives | Stage::TakenIn => self.take_in(token.place()),
        }
    }
}

impl<P: Kind> Node<P> {
    fn new(
        engine: &Engine,
        config: &MachineConfig,
        index: u32,
        first_disk: u32,
        node: NodeConfig,
    ) -> Result<Self, LayoutError> {
        let processor = Processor::new(node.speed, node.reference_speed);
        let random =
            |disk: u32| SplitMix64::mix(config.seed ^ SplitMix64::mix(u64::from(disk) + 1));
        let disks =
            SimulatedDisk::on_one_bus(engine, &config.disk, first_disk, node.disks, random)?;
        Ok(Self {
            index,
            processor: RefCell::new(if node.traced { processor.traced() } else { processor }),
            variation_percent: node.variation_percent.min(100),
            work_random: Cell::new(SplitMix64::mix(
                config.seed ^ SplitMix64::mix(!u64::from(index)),
            )),
            disks,
            records: RefCell::default(),
            records_under_way: OnceCell::new(),
            random: Cell::new(SplitMix64::mix(
                config.seed.wrapping_add(SplitMix64::mix(u64::from(index))),
            )),
            regions: RefCell::default(),
            links: RefCell::default(),
            inbox: RefCell::default(),
            receiver: RefCell::default(),
        })
    }

    /// Has the processor do work that costs the reference processor `cost` on average. Whoever
    /// listens is told `what` it is.
    pub(crate) fn occupy(
        &self,
        engine: &Engine,
        cost: Duration,
        what: impl FnOnce() -> What,
    ) -> Work {
        let (from, until) = self.work(engine.now(), cost);
        let track = Track::Processor(self.index);
        let slice = || Slice { track, from, until, what: what(), phases: &[] };
        let mark = engine.timeline().slice(slice);
        Work { until, mark }
    }

    /// From when until when the processor does work that comes now. (One function for all kinds of
    /// work: what a simulation does over and over should fit the processor's instruction cache.)
    #[inline(never)]
    fn work(&self, now: Instant, cost: Duration) -> (Instant, Instant) {
        let mut processor = self.processor.borrow_mut();
        let from = processor.free_at().max(now);
        (from, processor.occupy(now, self.varied(cost)))
    }

    fn varied(&self, cost: Duration) -> Duration {
        let span = cost.as_ns() / 100 * u64::from(self.variation_percent);
        if span == 0 {
            return cost;
        }
        // Without a division (Lemire, ACM TOMACS 29(1), 2019), and so nearly uniform.
        let random = u128::from(next_random(&self.work_random)) * u128::from(2 * span + 1);
        Duration::from_ns(cost.as_ns() - span + (random >> 64) as u64)
    }

    /// Makes changes of the node's records, all in this instant.
    pub(crate) fn change_records(&self, shelf: Shelf, changes: Vec<RecordChange>) {
        let records = &mut self.records.borrow_mut()[shelf as usize];
        for RecordChange { key, value } in changes {
            match value {
                Some(value) => records.insert(key, value),
                None => records.remove(&key),
            };
        }
    }

    /// Connects two nodes; returns what each calls the connection.
    pub(crate) fn connect(&self, other: &Self) -> (PeerId, PeerId) {
        let (mut own, mut theirs) = (self.links.borrow_mut(), other.links.borrow_mut());
        let (here, there) = (PeerId(own.len() as u32), PeerId(theirs.len() as u32));
        own.push(Link { node: other.index, theirs: there });
        theirs.push(Link { node: self.index, theirs: here });
        (here, there)
    }

    /// The other end of a connection, unless it has ended on this side.
    pub(crate) fn link(&self, peer: PeerId) -> Option<Link> {
        self.links.borrow().get(peer.0 as usize)?.unless_ended()
    }

    fn unlink(&self, peer: PeerId) -> Option<Link> {
        let mut links = self.links.borrow_mut();
        std::mem::replace(links.get_mut(peer.0 as usize)?, Link::ENDED).unless_ended()
    }

    /// Adds to what the node's program will receive.
    fn post(&self, arrival: Arrival) {
        self.inbox.borrow_mut().push_back(arrival);
        let waiting = self.receiver.borrow_mut().take();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }

    /// Puts the body of a message where the message says, if it does; says why it cannot go there.
    fn place_body(&self, from: PeerId, message: &mut Message<P>) -> Result<(), String> {
        if let Some(place) = message.place
            && let Some(payload) = message.body.take()
        {
            self.place(from, place, &payload)?;
        }
        Ok(())
    }

    fn place(&self, from: PeerId, place: Place, payload: &P) -> Result<(), String> {
        let regions = self.regions.borrow();
        let memory = regions.exposed(place.region, from);
        let memory = memory.ok_or_else(|| format!("it wrote to {}, not exposed", place.region))?;
        let run = Run::contiguous(place.offset, payload.length());
        if run.checked_end().is_none_or(|end| end > memory.length()) {
            return Err(format!("it wrote outside {}", place.region));
        }
        memory.scatter(&[run], payload);
        Ok(())
    }
}

/// The error of an operation on a peer that is not connected.
pub(crate) fn departed(peer: PeerId) -> NetworkError {
    NetworkError::Departed { peer, cause: "it is not connected".to_owned() }
}

/// Refuses a header over the limit on the side of its sender.
pub(crate) fn check_header(bytes: usize) -> Result<(), NetworkError> {
    if bytes > world::HEADER_BYTES_MAX {
        let (bytes, bytes_max) = (bytes as u64, world::HEADER_BYTES_MAX as u64);
        return Err(NetworkError::TooLarge { what: "header", bytes, bytes_max });
    }
    Ok(())
}
