//! What is on its way between nodes. Invariant: a token means one flight until that is removed.

use crate::machine::Link;
use crate::timeline::MarkId;
use world::Message;

/// What is on its way between two nodes, by the token that the engine returns when it arrives, or
/// has arrived and is not received yet.
pub(crate) struct Flights<P> {
    slots: Vec<Option<Flight<P>>>,
    free: Vec<u32>,
}

pub(crate) struct Flight<P> {
    pub(crate) to: Link,
    pub(crate) arrived: bool,
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
    pub(crate) fn insert(&mut self, flight: Flight<P>) -> u64 {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = Some(flight);
            return u64::from(index);
        }
        self.slots.push(Some(flight));
        self.slots.len() as u64 - 1
    }

    pub(crate) fn get(&mut self, token: u64) -> Option<&mut Flight<P>> {
        self.slots[token as usize].as_mut()
    }

    pub(crate) fn remove(&mut self, token: u64) -> Option<Flight<P>> {
        self.free.push(token as u32);
        self.slots[token as usize].take()
    }
}
