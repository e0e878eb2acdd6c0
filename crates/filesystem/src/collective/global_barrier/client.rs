//! Client side of the global barrier. The barrier itself begins every collective.

use super::super::caching;
use super::super::transfer::Transfer;
use crate::client::{PeerMesh, SharedMemory};
use crate::scale::rare;
use caching::client::Chunks;
use futures_util::stream::{self, StreamExt};
use policy::Chunk;
use std::cell::Cell;
use units::ByteRange;
use wire::Fault;
use world::World;

/// Maximum number of requests of a member under way. A chunk of more blocks begins with so many. A
/// server disconnects a client with more than 4096.
const REQUESTS_MAX: usize = 1024;

/// Carries out a collective by a global barrier.
pub(crate) async fn transfer<W: World>(
    mesh: &PeerMesh<W>,
    transfer: &Transfer,
    memory: &SharedMemory<W>,
) -> Result<(), Fault> {
    let moved = move_chunks(mesh, transfer, memory).await;
    caching::client::finish_without_prefetches(mesh, transfer, moved).await
}

/// Moves the chunks of this member, one after another.
pub(crate) async fn move_chunks<W: World>(
    mesh: &PeerMesh<W>,
    transfer: &Transfer,
    memory: &SharedMemory<W>,
) -> Result<(), Fault> {
    let chunks = Chunks::of(mesh, transfer, memory);
    for chunk in transfer.access.chunks(mesh.rank()) {
        chunks.transfer_at_once(chunk).await?;
    }
    chunks.write_back().await
}

impl<W: World> Chunks<'_, W> {
    /// Moves one chunk by requests for all of its blocks at once.
    async fn transfer_at_once(&self, chunk: Chunk) -> Result<(), Fault> {
        if self.client.has_cache() {
            return rare(self.transfer_cached(chunk)).await;
        }
        let blocks = self.file.stripe.blocks_in(ByteRange::at(chunk.file_offset, chunk.length));
        if blocks.end - blocks.start == 1 {
            return self.transfer_part(chunk, blocks.start).await;
        }
        let failed = &Cell::new(false);
        let begun = blocks.take_while(|_| !failed.get());
        let requests = stream::iter(begun.map(|block| self.transfer_part(chunk, block)));
        let mut answers = requests.buffer_unordered(REQUESTS_MAX);
        let mut outcome = Ok(());
        // All requests that have begun end, also after a failure: a late answer would bring data
        // for a memory that the servers may no longer reach.
        while let Some(answer) = answers.next().await {
            failed.set(failed.get() || answer.is_err());
            outcome = outcome.and(answer);
        }
        outcome
    }
}
