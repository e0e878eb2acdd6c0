//! Networks that are driven by events, because later messages can delay those under way.
//!
//! The driver asks such a network for arrivals at the instants that it names. A network with flow
//! control of its own (finite buffers, credits, wormhole routing) belongs here.

use super::torus::exact::ExactTorus;
use super::torus::modelled::Torus;
use units::Instant;

/// A network whose driver has to ask, at the instants that it names, for arrivals.
#[derive(Debug)]
pub(crate) enum EventDriven {
    /// A torus whose heads are moved where packets contend.
    ModelledTorus(Torus),
    /// A torus whose flits are all moved.
    ExactTorus(ExactTorus),
}

impl EventDriven {
    /// Sends `bytes` now from one node to another. Returns the arrival of the last byte if it is
    /// known already: `now` for a message of a node to itself. Otherwise
    /// [`arrived`](Self::arrived) will return the number that `parcel` gives.
    #[inline]
    pub(crate) fn send(
        &mut self,
        now: Instant,
        ends: (u32, u32),
        bytes: u64,
        parcel: impl FnOnce() -> u32,
    ) -> Option<Instant> {
        match self {
            Self::ModelledTorus(torus) => torus.send(now, ends, bytes, parcel),
            Self::ExactTorus(_) if ends.0 == ends.1 => Some(now),
            Self::ExactTorus(torus) => {
                torus.send(now, ends, bytes, parcel());
                None
            }
        }
    }

    /// Returns the next parcel, in order, whose last flit has arrived by now.
    pub(crate) fn arrived(&mut self, now: Instant) -> Option<u32> {
        match self {
            Self::ModelledTorus(torus) => torus.arrived(now),
            Self::ExactTorus(torus) => torus.arrived(now),
        }
    }

    /// Lower bound of the next arrival, whatever else is sent; `None` when nothing is under way.
    pub(crate) fn next_arrival_from(&self) -> Option<Instant> {
        match self {
            Self::ModelledTorus(torus) => torus.next_arrival_from(),
            Self::ExactTorus(torus) => torus.next_arrival_from(),
        }
    }
}
