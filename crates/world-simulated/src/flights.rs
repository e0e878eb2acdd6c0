//! What is on its way between nodes. Invariant: a place means one flight until that is removed.

use crate::machine::Link;
use crate::timeline::MarkId;
use world::Message;

/// What is on its way between two nodes, or has arrived and is not received yet, by its place.
pub(crate) struct Flights<P> {
    slots: Vec<Option<Flight<P>>>,
    free: Vec<u32>,
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

pub(crate) struct Flight<P> {
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
}

impl<P> Default for Flights<P> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<P> Flights<P> {
    pub(crate) fn insert(&mut self, flight: Flight<P>) -> u32 {
        if let Some(place) = self.free.pop() {
            self.slots[place as usize] = Some(flight);
            return place;
        }
        self.slots.push(Some(flight));
        self.slots.len() as u32 - 1
    }

    pub(crate) fn get(&mut self, place: u32) -> Option<&mut Flight<P>> {
        self.slots[place as usize].as_mut()
    }

    pub(crate) fn remove(&mut self, place: u32) -> Option<Flight<P>> {
        self.free.push(place);
        self.slots[place as usize].take()
    }
}
