//! What is on its way between nodes. Invariant: a place means one flight until that is removed.

use super::connection::ConnectionEnd;
use crate::models::network::NODES_MAX;
use crate::timeline::MarkId;
use world::{Message, Payload};

/// What is on its way between two nodes, waits to be sent, or has arrived and is not received yet,
/// by its place.
pub(crate) struct Flights<P> {
    slots: Vec<Flight<P>>,
    /// Beside them, where four are a line of a processor's caches: to send a message, and to hear
    /// that it has arrived, is to look at this only.
    bounds: Vec<Bound>,
    free: Vec<u32>,
}

/// Where a flight is bound for.
#[derive(Clone, Copy)]
pub(crate) struct Bound {
    /// The other end of its connection; of no meaning before its sending begins if that has ended.
    pub(crate) to: ConnectionEnd,
    /// What it weighs on the network.
    pub(crate) bytes: u64,
}

/// A message that is kept until its sending begins.
pub(crate) struct Kept {
    /// Its place among the flights.
    pub(crate) place: u32,
    pub(crate) header_bytes: usize,
    /// What it weighs on the network.
    pub(crate) bytes: u64,
}

/// How far a flight has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The processor that sends it is done with it.
    Leaves,
    /// It is where it goes to.
    Arrives,
    /// The processor there has taken it in.
    TakenIn,
}

/// What the engine returns when a flight has come to a stage. It says all that this is about: where
/// much is on its way, a look at the flight is slow.
#[derive(Clone, Copy)]
pub(crate) struct Token(pub(crate) u64);

impl Token {
    const LEAVES: u64 = 1 << 62;
    const IS_TAKEN_IN: u64 = 1 << 63;

    /// Of the flight at `place`, which leaves node `from`.
    pub(crate) fn leaves(place: u32, from: u32) -> Self {
        Self(Self::arrives(place, from).0 | Self::LEAVES)
    }

    /// Of the flight at `place`, which arrives at node `to`.
    pub(crate) fn arrives(place: u32, to: u32) -> Self {
        Self(u64::from(to) << 32 | u64::from(place))
    }

    /// Of one that has arrived, when it is taken in.
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

    /// The node whose processor it is about.
    pub(crate) fn node(self) -> u32 {
        ((self.0 & !(Self::IS_TAKEN_IN | Self::LEAVES)) >> 32) as u32
    }
}

const _: () = assert!(NODES_MAX < 1 << 30, "a token must have room for a node and two marks");

/// (It lies in two lines of a processor's caches: where much is on its way, to look at one is to
/// miss them, and without this most would lie in three.)
#[repr(align(64))]
pub(crate) struct Flight<P> {
    /// The latest that the recorder knows of it: its sending, then its receipt.
    pub(crate) mark: Option<MarkId>,
    pub(crate) parcel: Parcel<P>,
}

pub(crate) enum Parcel<P> {
    Message(Message<P>),
    /// The other side has ended the connection.
    End {
        cause: &'static str,
    },
    /// Nothing: the place is free.
    None,
}

/// Bytes of a message besides its header and data: routing, reply address, check.
pub(crate) const ENVELOPE_BYTES: u64 = 16;

/// What a message weighs on the network.
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
    /// A place for something that is bound for somewhere.
    pub(crate) fn insert(&mut self, bound: Bound, parcel: Parcel<P>) -> u32 {
        let Some(place) = self.free.pop() else {
            self.slots.push(Flight { mark: None, parcel });
            self.bounds.push(bound);
            return self.slots.len() as u32 - 1;
        };
        self.bounds[place as usize] = bound;
        // Part by part, so that a message is not moved more often than it must.
        let flight = &mut self.slots[place as usize];
        flight.mark = None;
        flight.parcel = parcel;
        place
    }

    /// Where the flight at a place is bound for.
    pub(crate) fn bound(&self, place: u32) -> &Bound {
        &self.bounds[place as usize]
    }

    pub(crate) fn get(&mut self, place: u32) -> &mut Flight<P> {
        &mut self.slots[place as usize]
    }

    /// Takes what is at a place; from now on it is free.
    pub(crate) fn remove(&mut self, place: u32) -> Parcel<P> {
        self.free.push(place);
        std::mem::replace(&mut self.slots[place as usize].parcel, Parcel::None)
    }
}
