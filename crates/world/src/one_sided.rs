//! One-sided memory: memput and memget (TOCS 1997, section 4).
//!
//! The owner of a memory exposes it. A peer then writes or reads it without participation of the
//! owner's program.

use crate::{NetworkError, Payloads};
use std::future::Future;
use thiserror::Error;
use units::{PeerId, PieceRun, RegionId};

/// One-sided access to the memory of peers.
///
/// In both calls the *file side* of each [`PieceRun`] is the local block and its *memory side* is
/// the peer's region. The pieces of one call form one transfer: gathered, moved, scattered.
pub trait OneSided: Payloads {
    /// Exposes all of `memory` to each of `peers`, for reading and writing, under the returned name
    /// (one name for all). When it returns, each peer knows the region.
    fn expose(
        &self,
        memory: &Self::Memory,
        peers: &[PeerId],
    ) -> impl Future<Output = Result<RegionId, NetworkError>>;

    /// Exposes all of `memory` to every peer under the returned name, including peers that connect
    /// later: any peer that may connect to this node and knows the name may use it.
    fn expose_to_all(&self, memory: &Self::Memory) -> impl Future<Output = RegionId>;

    /// Ends all access under that name, even if the future is dropped. When the future completes,
    /// nothing from a connected peer lands any more. It does not wait for peers that have left:
    /// where one of them may still write the memory, that is not reused before it cannot.
    fn withdraw(&self, region: RegionId) -> impl Future<Output = ()>;

    /// memput: writes pieces of `source` into the peer's region. When it returns, they are in
    /// place.
    fn put(
        &self,
        peer: PeerId,
        region: RegionId,
        pieces: &[PieceRun],
        source: &Self::Payload,
    ) -> impl Future<Output = Result<(), TransferError>>;

    /// memget: reads pieces of the peer's region into `target`. Several calls may fill one memory
    /// at the same time.
    fn get(
        &self,
        peer: PeerId,
        region: RegionId,
        pieces: &[PieceRun],
        target: &Self::Memory,
    ) -> impl Future<Output = Result<(), TransferError>>;
}

/// Error of a one-sided transfer. It may have moved any of its bytes.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TransferError {
    /// The owner of the memory has left.
    #[error("{peer} has left: {cause}")]
    Departed {
        /// Peer that left.
        peer: PeerId,
        /// Reason, as far as the transport knows it.
        cause: String,
    },
    /// The peer exposes no such region, or the pieces leave it.
    #[error("{region} of {peer} does not contain the requested bytes: {cause}")]
    OutOfRegion {
        /// Peer of the transfer.
        peer: PeerId,
        /// Region of the transfer.
        region: RegionId,
        /// The violated limit.
        cause: String,
    },
}
