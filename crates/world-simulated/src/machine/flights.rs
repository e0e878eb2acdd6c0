//! Messages and departures on their way between nodes.
//!
//! Invariant: a place belongs to one flight until that is removed.

use super::connection::ConnectionEnd;
use crate::models::network::NODES_MAX;
use crate::timeline::MarkId;
use world::{Message, Payload};

/// All flights by their place: those that wait to be sent, are on their way, or have arrived and
/// are not yet received.
pub(crate) struct Flights<P> {
    slots: Vec<Flight<P>>,
    /// Destinations, apart from the flights, four to a cache line: sending and arriving touch only
    /// these.
    bounds: Vec<Bound>,
    free: Vec<u32>,
}

/// Destination and size of a flight.
#[derive(Clone, Copy)]
pub(crate) struct Bound {
    /// Other end of its connection. Meaningless before the sending begins if the connection has
    /// ended.
    pub(crate) to: ConnectionEnd,
    /// Bytes on the network.
    pub(crate) bytes: u64,
}

/// A message that is stored until its sending begins.
pub(crate) struct Kept {
    /// Place among the flights.
    pub(crate) place: u32,
    /// True for data whose place in the receiver's memory is known.
    pub(crate) has_place: bool,
    pub(crate) header_bytes: usize,
    /// Bytes on the network.
    pub(crate) bytes: u64,
}

/// Stage that a flight reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The sending processor is done with it.
    Leaves,
    /// It has arrived at the receiving node.
    Arrives,
    /// The receiving processor is done with it.
    TakenIn,
}

/// Token of a timer of a flight. It holds everything that the handler needs, because access to the
/// flight itself is slow when many are under way.
#[derive(Clone, Copy)]
pub(crate) struct Token(pub(crate) u64);

impl Token {
    const LEAVES: u64 = 1 << 62;
    const IS_TAKEN_IN: u64 = 1 << 63;

    /// Token of the flight at `place` that leaves node `from`.
    pub(crate) fn leaves(place: u32, from: u32) -> Self {
        Self(Self::arrives(place, from).0 | Self::LEAVES)
    }

    /// Token of the flight at `place` that arrives at node `to`.
    pub(crate) fn arrives(place: u32, to: u32) -> Self {
        Self(u64::from(to) << 32 | u64::from(place))
    }

    /// Token of an arrived flight, for the end of its receipt.
    pub(crate) fn taken_in(self) -> Self {
        Self(self.0 | Self::IS_TAKEN_IN)
    }

    #[inline]
    pub(crate) fn stage(self) -> Stage {
        match self.0 {
            token if token & Self::IS_TAKEN_IN != 0 => Stage::TakenIn,
            token if token & Self::LEAVES != 0 => Stage::Leaves,
            _ => Stage::Arrives,
        }
    }

    pub(crate) fn place(self) -> u32 {
        self.0 as u32
    }

    /// Node whose processor handles this stage.
    pub(crate) fn node(self) -> u32 {
        ((self.0 & !(Self::IS_TAKEN_IN | Self::LEAVES)) >> 32) as u32
    }
}

const _: () = assert!(NODES_MAX < 1 << 30, "a token must have room for a node and two marks");

/// One flight. (Aligned to two cache lines: an access misses each line, and most flights would lie
/// in three without this.)
#[repr(align(64))]
pub(crate) struct Flight<P> {
    /// Latest slice of it on the timeline: its sending, then its receipt.
    pub(crate) mark: Option<MarkId>,
    pub(crate) parcel: Parcel<P>,
}

pub(crate) enum Parcel<P> {
    Message(Message<P>),
    /// The departure of a peer that ended the connection.
    End {
        cause: &'static str,
    },
    /// Nothing: the place is free.
    None,
}

/// Bytes of a message besides header and data: routing, reply address, check sum.
pub(crate) const ENVELOPE_BYTES: u64 = 16;

/// Bytes of a message on the network.
pub(crate) fn message_bytes<P: Payload>(message: &Message<P>) -> u64 {
    let body = message.body.as_ref().map_or(0, Payload::length);
    ENVELOPE_BYTES + message.header.len() as u64 + body
}

impl<P> Default for Flights<P> {
    fn default() -> Self {
        Self { slots: Vec::new(), bounds: Vec::new(), free: Vec::new() }
    }
}

impl<P> Flights<P> {
    /// Stores a flight. Returns its place.
    pub(crate) fn insert(&mut self, bound: Bound, parcel: Parcel<P>) -> u32 {
        let Some(place) = self.free.pop() else {
            self.slots.push(Flight { mark: None, parcel });
            self.bounds.push(bound);
            return self.slots.len() as u32 - 1;
        };
        self.bounds[place as usize] = bound;
        // Field by field, so that the message is moved only once.
        let flight = &mut self.slots[place as usize];
        flight.mark = None;
        flight.parcel = parcel;
        place
    }

    /// Destination and size of the flight at a place.
    pub(crate) fn bound(&self, place: u32) -> &Bound {
        &self.bounds[place as usize]
    }

    pub(crate) fn get(&mut self, place: u32) -> &mut Flight<P> {
        &mut self.slots[place as usize]
    }

    /// Takes the parcel of the flight at a place, which is free from now on.
    pub(crate) fn remove(&mut self, place: u32) -> Parcel<P> {
        self.free.push(place);
        std::mem::replace(&mut self.slots[place as usize].parcel, Parcel::None)
    }
}
