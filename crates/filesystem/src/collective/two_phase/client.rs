//! Client side of two-phase I/O: CollectiveReadCP of Figure 2b (TOCS 1997).

use super::super::access_checks::transfer_fault;
use super::super::caching;
use super::super::transfer::Transfer;
use crate::client::{PeerMesh, SharedMemory};
use caching::client::Chunks;
use futures_util::future::try_join_all;
use policy::{Chunk, Direction, conforming_segment};
use units::{ByteRange, ClientId, Duration, PieceRun, Run};
use wire::Fault;
use world::{Memory, World};

/// Maximum number of bytes of the segment that are permuted at a time, to keep a gathered transfer
/// small.
const WINDOW_BYTES: u64 = 1 << 20;

/// Copies of a member's own pieces within its memory: they are gathered and scattered.
const COPIES_OF_OWN: u64 = 2;

/// Further copies of what a read brings: from memory of the library to that of the program
/// (docs/decisions/0030).
const COPIES_OF_READ: u64 = 1;

/// Carries out a collective in two phases.
pub(crate) async fn transfer<W: World>(
    mesh: &PeerMesh<W>,
    transfer: &Transfer,
    memory: &SharedMemory<W>,
) -> Result<(), Fault> {
    mesh.share_among_members(memory).await?;
    let segment = segment_of(mesh, transfer);
    let phases = Phases { mesh, transfer, memory, segment };
    match transfer.direction {
        Direction::Read => phases.read().await,
        Direction::Write => phases.write().await,
    }
}

/// Returns the part of the file that a member reads or writes.
pub(crate) fn segment_of<W: World>(mesh: &PeerMesh<W>, transfer: &Transfer) -> ByteRange {
    // All members know the access, but one may know of a longer file than the others. Bytes before
    // and behind the access stay untouched: a program may append to a large file.
    let range = transfer.access.file_extent();
    conforming_segment(mesh.rank(), mesh.size(), range, &transfer.file.stripe)
}

/// One client's segment and memory in a transfer.
struct Phases<'a, W: World> {
    mesh: &'a PeerMesh<W>,
    transfer: &'a Transfer,
    memory: &'a SharedMemory<W>,
    /// Part of the file that this client reads or writes.
    segment: ByteRange,
}

impl<W: World> Phases<'_, W> {
    async fn read(&self) -> Result<(), Fault> {
        let conforming = self.world().memory(self.segment.length());
        let read = self.request(Direction::Read, &conforming).await;
        caching::client::finish(self.mesh, self.transfer, read).await?;
        self.keep_own(&conforming).await;
        let delivering = self.copying(COPIES_OF_READ, self.segment.length());
        if delivering > Duration::ZERO {
            self.world().compute(delivering).await;
        }
        let permuted = self.permute_out(conforming.freeze()).await;
        self.mesh.agree(permuted).await
    }

    async fn write(&self) -> Result<(), Fault> {
        let conforming = self.world().memory(self.segment.length());
        self.fill_gaps(&conforming).await?;
        let permuted = self.permute_in(&conforming).await;
        self.mesh.agree(permuted).await?;
        let written = self.request(Direction::Write, &conforming).await;
        caching::client::finish(self.mesh, self.transfer, written).await
    }

    fn world(&self) -> &W {
        self.mesh.client().world()
    }

    /// Returns the processor time of `copies` copies within this client.
    fn copying(&self, copies: u64, bytes: u64) -> Duration {
        self.mesh.client().costs().segment(copies, bytes)
    }

    /// Returns the processor time to find and copy this member's own pieces.
    fn cost_of_own(&self, pieces: &[PieceRun]) -> Duration {
        let bytes = pieces.iter().map(|piece| piece.bytes()).sum();
        self.cost_of(pieces) + self.copying(COPIES_OF_OWN, bytes)
    }

    /// Reads or writes the segment as one large contiguous request.
    async fn request(&self, direction: Direction, conforming: &W::Memory) -> Result<(), Fault> {
        if self.segment.is_empty() {
            return Ok(());
        }
        let client = self.mesh.client();
        let region = client.expose_to_servers(conforming).await?;
        let chunks = Chunks {
            client,
            direction,
            file: &self.transfer.file,
            memory: conforming,
            region,
            outstanding_per_disk: self.transfer.outstanding_per_disk,
        };
        let (file_offset, length) = (self.segment.start, self.segment.length());
        let mut moved = chunks.transfer(Chunk { file_offset, memory_offset: 0, length }).await;
        if moved.is_ok() {
            moved = chunks.write_back().await;
        }
        client.world().withdraw(region).await;
        moved
    }

    /// Reads the segment before a write that leaves some of its bytes out, because they must keep
    /// their values. All members agree here: one's read must precede another's write of the same
    /// file.
    async fn fill_gaps(&self, conforming: &W::Memory) -> Result<(), Fault> {
        let access = &self.transfer.access;
        let owners = access.clients_in(self.segment);
        let covered: u64 = owners.map(|client| access.count_bytes(client, self.segment)).sum();
        let filled = match covered == self.segment.length() && !access.may_overlap() {
            true => Ok(()),
            false => self.request(Direction::Read, conforming).await,
        };
        self.mesh.agree(filled).await
    }

    /// Copies the pieces of the segment that are this client's own to their places.
    async fn keep_own(&self, conforming: &W::Memory) {
        let rank = self.mesh.rank();
        for window in self.segment.windows(WINDOW_BYTES) {
            let pieces = self.pieces(rank, window);
            self.world().compute(self.cost_of_own(&pieces)).await;
            copy(conforming, Side::File, &self.memory.memory, &pieces);
        }
    }

    /// Puts the pieces of the segment into their other owners' memories.
    async fn permute_out(&self, conforming: W::Payload) -> Result<(), Fault> {
        for window in self.segment.windows(WINDOW_BYTES) {
            let others = self.owners(window).filter(|owner| *owner != self.mesh.rank());
            let puts = others.map(|owner| {
                let conforming = &conforming;
                async move {
                    let pieces = self.pieces(owner, window);
                    self.world().compute(self.cost_of(&pieces)).await;
                    let (peer, region) = self.place_of(owner);
                    let put = self.world().put(peer, region, &pieces, conforming).await;
                    put.map_err(|error| transfer_fault(owner, error))
                }
            });
            try_join_all(puts).await?;
        }
        Ok(())
    }

    /// Gets the pieces of the segment from their owners' memories.
    async fn permute_in(&self, conforming: &W::Memory) -> Result<(), Fault> {
        for window in self.segment.windows(WINDOW_BYTES) {
            let gets = self.owners(window).map(|owner| async move {
                let pieces = self.pieces(owner, window);
                if owner == self.mesh.rank() {
                    self.world().compute(self.cost_of_own(&pieces)).await;
                    copy(&self.memory.memory, Side::Memory, conforming, &pieces);
                    return Ok(());
                }
                self.world().compute(self.cost_of(&pieces)).await;
                let (peer, region) = self.place_of(owner);
                let got = self.world().get(peer, region, &pieces, conforming).await;
                got.map_err(|error| transfer_fault(owner, error))
            });
            try_join_all(gets).await?;
        }
        Ok(())
    }

    /// Returns the owners of bytes in `window`, beginning with the next rank, to avoid incast.
    fn owners(&self, window: ByteRange) -> impl Iterator<Item = ClientId> {
        let owners: Vec<ClientId> = self.transfer.access.clients_in(window).collect();
        let first = owners.partition_point(|owner| *owner <= self.mesh.rank());
        let (before, after) = owners.split_at(first);
        let rotated: Vec<ClientId> = after.iter().chain(before).copied().collect();
        rotated.into_iter()
    }

    /// Returns the pieces of one owner in `window`, with offsets from the segment's start.
    fn pieces(&self, owner: ClientId, window: ByteRange) -> Vec<PieceRun> {
        let start = self.segment.start;
        let relative = |piece: PieceRun| PieceRun { offset: piece.offset - start, ..piece };
        self.transfer.access.pieces(owner, window).map(relative).collect()
    }

    /// Returns the processor time to find pieces.
    fn cost_of(&self, pieces: &[PieceRun]) -> Duration {
        self.mesh.client().costs().pieces(&self.transfer.access, pieces)
    }

    fn place_of(&self, owner: ClientId) -> (units::PeerId, units::RegionId) {
        (self.mesh.peer(owner), self.memory.region_of(owner))
    }
}

/// Side of the pieces that is the source of a local copy.
enum Side {
    File,
    Memory,
}

fn copy<M: Memory>(source: &M, side: Side, target: &M, pieces: &[PieceRun]) {
    let file: Vec<Run> = pieces.iter().map(|piece| piece.file_side()).collect();
    let memory: Vec<Run> = pieces.iter().map(|piece| piece.memory_side()).collect();
    let (from, to) = match side {
        Side::File => (file, memory),
        Side::Memory => (memory, file),
    };
    target.scatter(&to, &source.gather(&from));
}
