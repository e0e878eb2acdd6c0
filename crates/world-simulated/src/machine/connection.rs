//! Connections between nodes, as each of their two ends sees them.

use units::PeerId;
use world::NetworkError;

/// One end of a connection. Its number is its index among the connections of its node. (A machine
/// may have millions, so a node number marks an end as closed.)
#[derive(Clone, Copy)]
pub(crate) struct ConnectionEnd {
    /// Node at the other end.
    pub(crate) node: u32,
    /// Number of the connection at that node.
    pub(crate) theirs: PeerId,
}

impl ConnectionEnd {
    /// A closed end. No node has this number.
    pub(super) const ENDED: Self = Self { node: u32::MAX, theirs: PeerId(u32::MAX) };

    pub(super) fn unless_ended(self) -> Option<Self> {
        (self.node != Self::ENDED.node).then_some(self)
    }
}

/// Returns the error of an operation on a peer that is not connected.
pub(crate) fn departed(peer: PeerId) -> NetworkError {
    NetworkError::Departed { peer, cause: "it is not connected".to_owned() }
}

/// Refuses a header over the limit, on the side of its sender.
pub(crate) fn check_header(bytes: usize) -> Result<(), NetworkError> {
    if bytes > world::HEADER_BYTES_MAX {
        let (bytes, bytes_max) = (bytes as u64, world::HEADER_BYTES_MAX as u64);
        return Err(NetworkError::TooLarge { what: "header", bytes, bytes_max });
    }
    Ok(())
}
