//! The machine: it puts nodes and network together, and moves messages between nodes.
//!
//! Nodes are numbered from 0 in the order of [`MachineConfig::nodes`].
//!
//! Invariant: each node numbers its ends of connections from 0 and never reuses a number, so late
//! messages of an old connection are not taken for those of a new one.

use super::config::{HostConfig, MachineConfig, MachineError};
use super::connection::ConnectionEnd;
use super::flights::{Bound, ENVELOPE_BYTES, Flights, Kept, Parcel, Stage, Token, message_bytes};
use super::message_costs::MessageCosts;
use super::node::{Arrival, Node};
use super::silence::Silence;
use super::transport::Transport;
use crate::device::SimulatedDisk;
use crate::engine::{Engine, HandlerId, TimerHandler};
use crate::host_member::{HostMember, SharedHost};
use crate::models::layout::LayoutError;
use crate::models::processor::Busy;
use crate::models::shared_medium::SharedMedium;
use crate::timeline::{Cause, Link as Because, What};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::task::Waker;
use units::{Duration, Instant, PeerId, SplitMix64};
use world::payload::Kind;
use world::{Incoming, Message, RecordTable};

/// A machine that moves data of kind `P`.
pub struct Machine<P: Kind> {
    pub(super) engine: Engine,
    pub(super) costs: MessageCosts,
    pub(super) network: Transport,
    pub(super) nodes: Vec<Rc<Node<P>>>,
    /// True for nodes that are alive. (Apart from the nodes: every sender reads it, and nodes lie
    /// far apart.)
    alive: Vec<Cell<bool>>,
    /// True once the simulation is over ([`switch_off`](Self::switch_off)).
    is_off: Cell<bool>,
    /// For killed nodes: end of the work of their processors. Messages that they had to send until
    /// then are lost.
    lost_until: RefCell<BTreeMap<u32, Instant>>,
    pub(super) flights: RefCell<Flights<P>>,
    pub(super) silence: Silence,
    pub(super) own: Weak<Self>,
    /// The engine's handler id of this machine.
    handler: HandlerId,
}

impl<P: Kind> Machine<P> {
    /// Creates a machine at rest at the engine's present instant.
    ///
    /// # Errors
    /// Fails when the blocks do not fit the disks, or the nodes the network.
    pub fn new(engine: Engine, config: &MachineConfig) -> Result<Rc<Self>, MachineError> {
        let random =
            |disk: u32| SplitMix64::mix(config.seed ^ SplitMix64::mix(u64::from(disk) + 1));
        let mut disks_before = 0;
        let nodes = config.nodes.iter().enumerate().map(|(index, node)| {
            let first = disks_before;
            disks_before += node.disks;
            let disks =
                SimulatedDisk::on_one_bus(&engine, &config.disk, first, node.disks, random)?;
            Ok(Rc::new(Node::new(config.seed, index as u32, disks, *node)))
        });
        let nodes: Vec<_> = nodes.collect::<Result<_, LayoutError>>()?;
        for HostConfig { cores, nodes: members } in &config.hosts {
            let on_host = || members.clone().map(|node| &nodes[node as usize]);
            let threads = || on_host().flat_map(|node| &node.disks);
            let host = SharedHost::new(*cores, members.len() + threads().count());
            for (member, node) in on_host().enumerate() {
                node.join_host(HostMember::new(&host, member));
            }
            let medium = SharedMedium::default();
            for (index, disk) in threads().enumerate() {
                disk.join_host(HostMember::new(&host, members.len() + index), &medium);
            }
        }
        let network = config.network.build(nodes.len() as u32)?;
        Ok(Rc::new_cyclic(|own: &Weak<Self>| Self {
            network: Transport::new(engine.clone(), network, Weak::<Self>::clone(own)),
            handler: engine.register_with_hints(Weak::<Self>::clone(own)),
            own: Weak::clone(own),
            engine,
            costs: config.messages,
            alive: vec![Cell::new(true); nodes.len()],
            is_off: Cell::default(),
            lost_until: RefCell::default(),
            nodes,
            flights: RefCell::default(),
            silence: Silence::default(),
        }))
    }

    /// Total time for which the processor of `node` has been occupied.
    pub fn processor_busy(&self, node: u32) -> Duration {
        self.nodes[node as usize].processor.borrow().busy()
    }

    /// Busy intervals of the processor of `node`, from the machine's beginning on; empty unless its
    /// configuration asks for them.
    pub fn processor_trace(&self, node: u32) -> Vec<Busy> {
        self.nodes[node as usize].processor.borrow().trace().to_vec()
    }

    /// Kills `node` as a power failure would: its tasks stop at once, its memory is gone, and every
    /// peer gets a departure. Its records remain. Its disks keep all data; where faults are
    /// [planned](Self::plan), they keep synced data, and the seed decides about the rest.
    pub fn kill(&self, node: u32) {
        let node = &self.nodes[node as usize];
        self.silence.end(node.index);
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
        node.records.lose_power();
        let links = node.links.borrow().len() as u32;
        for link in (0..links).map(PeerId) {
            self.end(node, link, "the node was killed");
        }
        self.engine.cancel_node(node.index);
    }

    /// Restarts `node` with the contents of its disks and records, and without tasks.
    pub fn restart(&self, node: u32) {
        self.alive[node as usize].set(true);
    }

    /// Replaces all disks of `node`, which is down, by empty ones. Its records are lost too, but
    /// for those of the tables `kept`.
    pub fn replace_disks(&self, node: u32, kept: &[RecordTable]) {
        let node = &self.nodes[node as usize];
        node.disks.iter().for_each(SimulatedDisk::replace);
        let lost = RecordTable::ALL.into_iter().filter(|table| !kept.contains(table));
        lost.for_each(|table| node.records.lose(table));
    }

    /// Loses all records of a table of `node`, which is down.
    pub fn lose_records(&self, node: u32, table: RecordTable) {
        self.nodes[node as usize].records.lose(table);
    }

    /// Breaks every connection between two nodes. Both get a departure at once, and messages under
    /// way between them are lost.
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
                    node.post(&self.engine, Arrival::Departure { peer, cause, receipt: None });
                }
            }
        }
        self.silence.wake();
    }

    /// Declares the simulation over: programs that are dropped from now on do not disconnect. (For
    /// thousands of programs that would cost as much as a part of the simulation.)
    pub fn switch_off(&self) {
        self.is_off.set(true);
    }

    /// Reports everything that is still going on to the recorder, and ends the recording.
    pub fn stop_recording(&self) {
        for disk in self.nodes.iter().flat_map(|node| &node.disks) {
            disk.stop_recording();
        }
        self.engine.timeline().stop();
    }

    pub(super) fn is_alive(&self, node: u32) -> bool {
        self.alive.get(node as usize).is_some_and(Cell::get)
    }

    pub(super) fn node(&self, number: u32) -> Option<&Rc<Node<P>>> {
        self.nodes.get(number as usize)
    }

    /// Ends a connection on the side of `node` now. The other side gets a departure after all that
    /// was sent before.
    pub(super) fn end(&self, node: &Node<P>, link: PeerId, cause: &'static str) {
        if let Some(place) = self.unlink(node, link, cause) {
            self.launch(node.index, place);
        }
    }

    /// Disconnects `node` at the will of its program, which receives nothing more over the
    /// connection. Messages that it has sent go out before.
    pub(super) fn hang_up(&self, node: &Node<P>, link: PeerId) {
        if self.is_off.get() || self.silence.is_stopped(node.index) {
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

    /// Ends a connection on the side of `node`. Returns, if the connection existed, the place of
    /// the flight that brings the departure to the other side.
    fn unlink(&self, node: &Node<P>, link: PeerId, cause: &'static str) -> Option<u32> {
        let bound = Bound { to: node.unlink(link)?, bytes: ENVELOPE_BYTES };
        self.silence.wake();
        Some(self.flights.borrow_mut().insert(bound, Parcel::End { cause }))
    }

    /// Stores a message that `node` is about to send to `peer`. Returns its place among the
    /// flights.
    pub(super) fn keep(&self, node: &Node<P>, peer: PeerId, message: Message<P>) -> Kept {
        let to = node.links.borrow().get(peer.0 as usize).copied().unwrap_or(ConnectionEnd::ENDED);
        // On one host the receiver maps what it is lent.
        let is_mapped = message.loan.is_some() && self.costs.direct.is_some();
        let (header_bytes, all_bytes) = (message.header.len(), message_bytes(&message));
        let bytes = if is_mapped { ENVELOPE_BYTES + header_bytes as u64 } else { all_bytes };
        let has_place = message.place.is_some();
        let bound = Bound { to, bytes };
        let place = self.flights.borrow_mut().insert(bound, Parcel::Message(message));
        Kept { place, has_place, header_bytes, bytes }
    }

    /// Drops a message that is not sent.
    #[cold]
    pub(super) fn forget(&self, place: u32) {
        let forgotten = self.flights.borrow_mut().remove(place);
        drop(forgotten);
    }

    /// Sends the flight at `place` when the processor of `from` is done with it and with all
    /// earlier work. The flight arrives later, unless either side is gone then.
    pub(super) fn launch_at(&self, done: Instant, from: u32, place: u32) {
        self.engine.invoke_at(done, self.handler, Token::leaves(place, from).0);
    }

    /// Sends the flight at `place`, with which the processor of `from` is done. A power failure
    /// loses only messages: departures of connections that ended before still arrive.
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
            self.engine.invoke_at(arrival, self.handler, token);
        }
    }

    /// Occupies the processor of the receiving node with a flight that has arrived.
    fn arrive(&self, token: Token) {
        let node = &self.nodes[token.node() as usize];
        let bytes = || self.flights.borrow().bound(token.place()).bytes;
        // Where receiving costs nothing for a byte, the flight is not looked up: see [`Token`].
        let cost = match self.costs.streams() {
            true => self.costs.receive_bytes(bytes()),
            false => self.costs.receive,
        };
        let cost = cost + node.wake(self.engine.now(), self.costs.wake);
        let work = node.occupy(&self.engine, cost, || What::Receive { bytes: bytes() });
        if work.mark.is_some() {
            let mut flights = self.flights.borrow_mut();
            let flight = flights.get(token.place());
            self.engine.timeline().arrow(Because::Message, flight.mark, work.mark);
            flight.mark = work.mark;
        }
        self.engine.invoke_at(work.until, self.handler, token.taken_in().0);
    }

    /// Hands a flight that the processor has received to the node's program.
    fn take_in(&self, place: u32) {
        let mut flights = self.flights.borrow_mut();
        let ConnectionEnd { node, theirs: peer } = flights.bound(place).to;
        let flight = flights.get(place);
        let receipt = flight.mark;
        let node = &self.nodes[node as usize];
        if node.link(peer).is_none() || self.silence.swallows(node.index, peer) {
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
            return node.post(&self.engine, Arrival::Message { place });
        };
        let parcel = flights.remove(place);
        drop(flights);
        match parcel {
            Parcel::Message(_) => self.end(node, peer, "it refused a transfer to its memory"),
            Parcel::End { .. } | Parcel::None => {
                node.unlink(peer);
                self.silence.wake();
            }
        }
        node.post(&self.engine, Arrival::Departure { peer, cause, receipt });
    }

    /// Takes the next message or departure for the program of `node`, and makes it the cause of the
    /// running task. Stores `waker` if there is none.
    pub(super) fn take(&self, node: &Node<P>, waker: &Waker) -> Option<Incoming<P>> {
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
                *node.receiver.borrow_mut() = Some(self.engine.wakeup(waker));
                return None;
            }
        };
        self.engine.timeline().set_cause(Cause { request, command: None });
        Some(incoming)
    }
}

impl<P: Kind> TimerHandler for Machine<P> {
    /// Moves a flight to its next stage. Its node may have been killed meanwhile.
    fn on_timer(&self, token: u64) {
        let token = Token(token);
        match token.stage() {
            Stage::Leaves => self.leave(token.node(), token.place()),
            Stage::Arrives if self.is_alive(token.node()) => self.arrive(token),
            Stage::Arrives | Stage::TakenIn => self.take_in(token.place()),
        }
    }
}
