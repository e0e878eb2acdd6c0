//! What is on its way between nodes. Invariant: a place means one flight until that is removed.

use crate::machine::Link;
use crate::timeline::MarkId;
use world::{Message, Payload};

/// What is on its way between two nodes, waits to be sent, or has arrived and is not received yet,
/// by its place.
pub(crate) struct Flights<P> {
    slots: Vec<Flight<P>>,
    free: Vec<u32>,
}

/// A message that is kept until its processor has sent it.
pub(crate) struct Kept {
    /// Its place among the flights.
    pub(crate) place: u32,
    pub(crate) header_bytes: usize,
    /// What it weighs on the network.
    pub(crate) bytes: u64,
}

/// What the engine returns when a flight arrives, and when its receiver has taken it in. It says
/// all that the arrival is about: where much is on its way, a look at the flight is slow.
#[derive(Clone, Copy)]
pub(crate) struct Token(pub(crate) u64);

impl Token {
    const HAS_ARRIVED: u64 = 1 << 63;

    /// Of the flight at `place`, to node `to`.
    pub(crate) fn new(place: u32, to: u32) -> Self {
        Self(u64::from(to) << 32 | u64::from(place))
    }

    pub(crate) fn arrived(self) -> Self {
        Self(self.0 | Self::HAS_ARRIVED)
    }

    pub(crate) fn has_arrived(self) -> bool {
        self.0 & Self::HAS_ARRIVED != 0
    }

    pub(crate) fn place(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn to(self) -> u32 {
        ((self.0 & !Self::HAS_ARRIVED) >> 32) as u32
    }
}

/// (It lies in two lines of a processor's caches: where much is on its way, to look at one is to
/// miss them, and without this most would lie in three.)
#[repr(align(64))]
pub(crate) struct Flight<P> {
    /// Where it goes to; of no meaning before it is sent over a connection that has ended.
    pub(crate) to: Link,
    pub(crate) bytes: u64,
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
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<P> Flights<P> {
    /// A place for something that is to go to `to`.
    pub(crate) fn insert(&mut self, to: Link, bytes: u64, parcel: Parcel<P>) -> u32 {
        let Some(place) = self.free.pop() else {
            self.slots.push(Flight { to, bytes, mark: None, parcel });
            return self.slots.len() as u32 - 1;
        };
        // Part by part, so that a message is not moved more often than it must.
        let flight = &mut self.slots[place as usize];
        flight.to = to;
        flight.bytes = bytes;
        flight.mark = None;
        flight.parcel = parcel;
        place
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
