//! One node of a machine: its processor, disks, records, memory and ends of connections.

use super::config::NodeConfig;
use super::connection::ConnectionEnd;
use super::records::NodeRecords;
use super::regions::Regions;
use crate::device::SimulatedDisk;
use crate::engine::{Engine, Wakeup};
use crate::host_member::{HostMember, SharedHost};
use crate::models::processor::Processor;
use crate::random::next_random;
use crate::timeline::{MarkId, Slice, Track, What};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use units::{Duration, Instant, PeerId, Run, SplitMix64};
use world::payload::Kind;
use world::{Memory, Message, Place};

/// State of one node, shared by its worlds and its peers.
pub(crate) struct Node<P: Kind> {
    pub(super) index: u32,
    pub(super) processor: RefCell<Processor>,
    /// Place on a host; of a node with a processor of its own, made by its first computation.
    host_member: OnceCell<HostMember>,
    variation_percent: u32,
    /// Random sequence of the variation of work. It is separate, so programs draw the same numbers
    /// however long their work takes.
    work_random: Cell<u64>,
    pub(super) disks: Vec<SimulatedDisk<P>>,
    pub(super) records: NodeRecords,
    pub(super) random: Cell<u64>,
    pub(super) regions: RefCell<Regions<P>>,
    pub(super) links: RefCell<Vec<ConnectionEnd>>,
    /// Messages and departures that the program has not received yet.
    pub(super) inbox: RefCell<VecDeque<Arrival>>,
    pub(super) receiver: RefCell<Option<Wakeup>>,
}

/// A message or departure that the processor has received.
pub(super) enum Arrival {
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

/// Work that a processor has accepted.
pub(crate) struct Work {
    /// End of the work.
    pub(crate) until: Instant,
    /// Its slice on the timeline.
    pub(crate) mark: Option<MarkId>,
}

impl<P: Kind> Node<P> {
    /// Creates node number `index` of a machine, with its disks. `seed` is that of the machine.
    pub(super) fn new(
        seed: u64,
        index: u32,
        disks: Vec<SimulatedDisk<P>>,
        node: NodeConfig,
    ) -> Self {
        let processor = Processor::new(node.speed, node.reference_speed);
        Self {
            index,
            processor: RefCell::new(if node.traced { processor.traced() } else { processor }),
            host_member: OnceCell::new(),
            variation_percent: node.variation_percent.min(100),
            work_random: Cell::new(SplitMix64::mix(seed ^ SplitMix64::mix(!u64::from(index)))),
            disks,
            records: NodeRecords::default(),
            random: Cell::new(SplitMix64::mix(
                seed.wrapping_add(SplitMix64::mix(u64::from(index))),
            )),
            regions: RefCell::default(),
            links: RefCell::default(),
            inbox: RefCell::default(),
            receiver: RefCell::default(),
        }
    }

    /// Occupies the processor with work of mean cost `cost` on the reference processor. `what`
    /// describes it to the recorder.
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

    /// Returns beginning and end of work that is accepted now. (One function for all kinds of work:
    /// hot code should fit the processor's instruction cache.)
    #[inline(never)]
    fn work(&self, now: Instant, cost: Duration) -> (Instant, Instant) {
        let cost = self.varied(cost);
        let mut processor = self.processor.borrow_mut();
        let from = processor.free_at().max(now);
        let Some(member) = self.host_member.get() else {
            return (from, processor.occupy(now, cost));
        };
        let length = member.stretch(now, processor.scale(cost));
        let until = processor.occupy_for(now, length);
        member.note_urgent(until);
        (from, until)
    }

    /// Returns `cost` if the processor is idle, so that a message must wake its thread.
    #[inline]
    pub(super) fn wake(&self, now: Instant, cost: Duration) -> Duration {
        let is_asleep = cost > Duration::ZERO && self.processor.borrow().free_at() <= now;
        if is_asleep { cost } else { Duration::ZERO }
    }

    /// Puts the node on a host.
    pub(super) fn join_host(&self, member: HostMember) {
        assert!(self.host_member.set(member).is_ok(), "a node is on one host only");
    }

    /// Returns the node's place on its host.
    pub(super) fn host_member(&self) -> HostMember {
        let alone = || {
            let member = HostMember::new(&SharedHost::new(1, 1), 0);
            member.note_urgent(self.processor.borrow().free_at());
            member
        };
        self.host_member.get_or_init(alone).clone()
    }

    /// Returns how long a computation of a program takes that costs the reference processor `cost`.
    /// It does not vary: programs say how long each of theirs takes.
    pub(super) fn length_of(&self, cost: Duration) -> Duration {
        self.processor.borrow().scale(cost)
    }

    fn varied(&self, cost: Duration) -> Duration {
        let span = cost.as_ns() / 100 * u64::from(self.variation_percent);
        if span == 0 {
            return cost;
        }
        // Multiplication instead of division, nearly uniform (Lemire, ACM TOMACS 29(1), 2019).
        let random = u128::from(next_random(&self.work_random)) * u128::from(2 * span + 1);
        Duration::from_ns(cost.as_ns() - span + (random >> 64) as u64)
    }

    /// Connects two nodes. Returns the number of the connection at each of them.
    pub(crate) fn connect(&self, other: &Self) -> (PeerId, PeerId) {
        let (mut own, mut theirs) = (self.links.borrow_mut(), other.links.borrow_mut());
        let (here, there) = (PeerId(own.len() as u32), PeerId(theirs.len() as u32));
        own.push(ConnectionEnd { node: other.index, theirs: there });
        theirs.push(ConnectionEnd { node: self.index, theirs: here });
        (here, there)
    }

    /// Returns the other end of a connection that has not ended on this side.
    pub(crate) fn link(&self, peer: PeerId) -> Option<ConnectionEnd> {
        self.links.borrow().get(peer.0 as usize)?.unless_ended()
    }

    pub(super) fn unlink(&self, peer: PeerId) -> Option<ConnectionEnd> {
        let mut links = self.links.borrow_mut();
        std::mem::replace(links.get_mut(peer.0 as usize)?, ConnectionEnd::ENDED).unless_ended()
    }

    /// Appends an arrival to the inbox, and wakes the receiver.
    pub(super) fn post(&self, engine: &Engine, arrival: Arrival) {
        self.inbox.borrow_mut().push_back(arrival);
        let waiting = self.receiver.borrow_mut().take();
        if let Some(receiver) = waiting {
            engine.wake(receiver);
        }
    }

    /// Puts the body of a message into the memory region that the message names, if it names one.
    ///
    /// # Errors
    /// The reason why the body cannot go there.
    pub(super) fn place_body(&self, from: PeerId, message: &mut Message<P>) -> Result<(), String> {
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
        let memory =
            memory.ok_or_else(|| format!("it wrote to {}, which is not exposed", place.region))?;
        let run = Run::contiguous(place.offset, payload.length());
        if run.checked_end().is_none_or(|end| end > memory.length()) {
            return Err(format!("it wrote outside {}", place.region));
        }
        memory.scatter(&[run], payload);
        Ok(())
    }
}
