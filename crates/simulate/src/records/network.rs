//! Count of the bytes on the network.

use units::Instant;
use world_simulated::{Link, Mark, Recorder, Slice, What};

/// Adds up what processors send and what they move of other nodes' memory.
#[derive(Default)]
pub(super) struct NetworkBytes {
    /// Begin and bytes of each.
    sent: Vec<(Instant, u64)>,
}

impl NetworkBytes {
    /// Bytes from an instant on.
    pub(super) fn since(&self, from: Instant) -> u64 {
        self.sent.iter().filter(|(at, _)| *at >= from).map(|(_, bytes)| bytes).sum()
    }
}

impl Recorder for NetworkBytes {
    fn slice(&mut self, slice: &Slice<'_>) -> Option<Mark> {
        match slice.what {
            What::Send { bytes, .. } | What::Put { bytes, .. } | What::GetAnswer { bytes, .. } => {
                self.sent.push((slice.from, bytes));
            }
            _ => {}
        }
        None
    }

    fn arrow(&mut self, _: Link, _: Mark, _: Mark) {}
}
