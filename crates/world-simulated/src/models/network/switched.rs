//! Networks of switches, which name the arrival of a message when it is sent.

use super::crossbar::Crossbar;
use super::fat_tree::FatTree;
use units::Instant;

/// A network that names the arrival of each message at once.
#[derive(Clone, Debug)]
pub(crate) enum Switched {
    /// One switch.
    Crossbar(Crossbar),
    /// Two levels of switches.
    FatTree(FatTree),
}

impl Switched {
    /// Sends `bytes` now. Returns the arrival of the last byte: `now` for a message of a node to
    /// itself.
    pub(crate) fn deliver(&mut self, now: Instant, from: u32, to: u32, bytes: u64) -> Instant {
        match self {
            Self::Crossbar(crossbar) => crossbar.deliver(now, from, to, bytes),
            Self::FatTree(tree) => tree.deliver(now, from, to, bytes),
        }
    }
}
