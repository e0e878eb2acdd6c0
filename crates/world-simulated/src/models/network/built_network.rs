//! The interfaces of networks that are built, and by which their driver uses them.

use std::fmt::Debug;
use units::Instant;

/// A network, by the interface that its driver has to use.
#[derive(Debug)]
pub enum BuiltNetwork {
    /// Names the arrival of a message when it is sent.
    Switched(Box<dyn SwitchedNetwork>),
    /// Names instants at which its driver asks for arrivals.
    EventDriven(Box<dyn EventDrivenNetwork>),
}

/// A network of switches, which names the arrival of each message at once.
pub trait SwitchedNetwork: Debug {
    /// Sends `bytes` now. Returns the arrival of the last byte, which is not before `now`: `now`
    /// for a message of a node to itself.
    fn deliver(&mut self, now: Instant, from: u32, to: u32, bytes: u64) -> Instant;
}

/// A network that is driven by events, because later messages can delay those under way.
///
/// Its driver asks for arrivals at the instants that the network names. A network with flow control
/// of its own (finite buffers, credits, wormhole routing) belongs here. Instants never decrease
/// from call to call.
pub trait EventDrivenNetwork: Debug {
    /// Sends `bytes` now from one node to another. Returns the arrival of the last byte if it is
    /// known already: `now` for a message of a node to itself. Otherwise calls `parcel` once, and
    /// [`arrived`](Self::arrived) will return the number that it gives.
    fn send(
        &mut self,
        now: Instant,
        ends: (u32, u32),
        bytes: u64,
        parcel: &mut dyn FnMut() -> u32,
    ) -> Option<Instant>;

    /// Returns the next parcel, in order, whose last byte has arrived by now; each parcel once.
    fn arrived(&mut self, now: Instant) -> Option<u32>;

    /// Lower bound of the next arrival, whatever else is sent; `None` when nothing is under way.
    fn next_arrival_from(&self) -> Option<Instant>;
}
