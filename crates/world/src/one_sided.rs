//! One-sided memory: memput and memget (TOCS 1997, section 4).
//!
//! The owner of a memory exposes it; a peer then writes or reads it without the owner's program
//! taking part.

use crate::{NetworkError, Payloads};
use std::future::Future;
use thiserror::Error;
use units::{PeerId, PieceRun, RegionId};

/// One-sided access to the memory of peers.
///
/// In both calls the *file side* of each [`PieceRun`] is the local block and its *memory side* is
/// the peer's region. Pieces of one call form one transfer: gathered, moved, scattered.
pub trait OneSided: Payloads {
    /// Lets each of `peers` read and write all of `memory`, under the returned name (the same for
    /// all of them). When it returns, each peer knows.
    fn expose(
        &self,
        memory: &Self::Memory,
        peers: &[PeerId],
    ) -> impl Future<Output = Result<RegionId, NetworkError>>;

    /// Lets every peer read and write all of `memory`, under the returned name, also those that
    /// connect later: whoever may connect to this node, and knows the name, may use it.
    fn expose_to_all(&self, memory: &Self::Memory) -> impl Future<Output = RegionId>;

    /// Ends all access under that name. It begins when it is called, also when the future is
    /// dropped; when that returns, nothing lands any more.
    fn withdraw(&self, region: RegionId) -> impl Future<Output = ()>;

    /// memput: writes pieces of `source` into the peer's region. When it returns, they are there.
    fn put(
        &self,
        peer: PeerId,
        region: RegionId,
        pieces: &[PieceRun],
        source: &Self::Payload,
    ) -> impl Future<Output = Result<(), TransferError>>;

    /// memget: reads pieces of the peer's region into `target`. Several may fill one memory at
    /// the same time.
    fn get(
        &self,
        peer: PeerId,
        region: RegionId,
        pieces: &[PieceRun],
        target: &Self::Memory,
    ) -> impl Future<Output = Result<(), TransferError>>;
}

/// Why a one-sided transfer failed. Nothing is known about which of its bytes moved.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TransferError {
    /// The owner of the memory has left.
    #[error("{peer} has left: {cause}")]
    Departed {
        /// Who.
        peer: PeerId,
        /// Why, as far as the transport knows.
        cause: String,
    },
    /// The peer exposes no such region, or the pieces leave it.
    #[error("{region} of {peer} does not hold the bytes asked for: {cause}")]
    OutOfRegion {
        /// Who.
        peer: PeerId,
        /// Which region.
        region: RegionId,
        /// What is wrong.
        cause: String,
    },
}
