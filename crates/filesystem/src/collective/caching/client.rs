//! Client side of caching: ReadCP of Figure 2a (TOCS 1997).

use super::super::transfer::Transfer;
use crate::client::{Client, Outcome, PeerMesh, SharedMemory, unexpected};
use crate::scale::rare;
use futures_util::future::join_all;
use policy::{Chunk, Direction};
use std::cell::Cell;
use std::ops::Range;
use units::{ByteRange, ClientId, DiskId, KIB, RegionId, Run, ServerId};
use wire::{
    BlockRequest, Fault, FileRecord, Frequent, PullRequest, ReadRequest, Reply, WriteRequest,
};
use world::{Memory, World};

/// Parameters of one client's requests. They go through its cache if it has one.
pub(crate) struct Chunks<'a, W: World> {
    pub(crate) client: &'a Client<W>,
    pub(crate) direction: Direction,
    pub(crate) file: &'a FileRecord,
    pub(crate) memory: &'a W::Memory,
    /// Region of the memory at the servers.
    pub(crate) region: RegionId,
    pub(crate) outstanding_per_disk: u32,
}

/// Maximum number of bytes of a block that are sent with the write request. A larger part stays
/// here until the server gets it, so that many writers do not fill the server's memory. So does a
/// smaller part for which the server had no room. The blocks of the papers are sent.
const SENT_BYTES_MAX: u64 = 64 * KIB;

/// Carries out a collective by caching.
pub(crate) async fn transfer<W: World>(
    mesh: &PeerMesh<W>,
    transfer: &Transfer,
    memory: &SharedMemory<W>,
) -> Result<(), Fault> {
    let chunks = Chunks::of(mesh, transfer, memory);
    let mut moved = Ok(());
    for chunk in transfer.access.chunks(mesh.rank()) {
        moved = chunks.transfer(chunk).await;
        if moved.is_err() {
            break;
        }
    }
    if moved.is_ok() {
        moved = chunks.write_back().await;
    }
    finish(mesh, transfer, moved).await
}

/// Waits until all members are done, then until the servers have no active transfers of the file.
pub(crate) async fn finish<W: World>(
    mesh: &PeerMesh<W>,
    transfer: &Transfer,
    own: Result<(), Fault>,
) -> Result<(), Fault> {
    mesh.agree(own).await?;
    let flushed = match mesh.rank() {
        ClientId(0) => {
            let sync = transfer.sync && transfer.direction == Direction::Write;
            mesh.client().flush(&transfer.file, sync).await
        }
        _ => Ok(()),
    };
    mesh.agree(flushed).await
}

/// Waits until all members are done. After a write, waits as [`finish`] does; prefetches of a read
/// may remain active.
pub(crate) async fn finish_without_prefetches<W: World>(
    mesh: &PeerMesh<W>,
    transfer: &Transfer,
    own: Result<(), Fault>,
) -> Result<(), Fault> {
    match transfer.direction {
        Direction::Read => mesh.agree(own).await,
        Direction::Write => finish(mesh, transfer, own).await,
    }
}

impl<'a, W: World> Chunks<'a, W> {
    /// Parameters of this member's requests in a transfer.
    pub(crate) fn of(
        mesh: &'a PeerMesh<W>,
        transfer: &'a Transfer,
        memory: &'a SharedMemory<W>,
    ) -> Self {
        Self {
            client: mesh.client(),
            direction: transfer.direction,
            file: &transfer.file,
            memory: &memory.memory,
            region: memory.region,
            outstanding_per_disk: transfer.outstanding_per_disk,
        }
    }

    /// Moves one contiguous chunk: one call of the application.
    pub(crate) async fn transfer(&self, chunk: Chunk) -> Result<(), Fault> {
        if self.client.has_cache() {
            return rare(self.transfer_cached(chunk)).await;
        }
        let range = ByteRange::at(chunk.file_offset, chunk.length);
        let blocks = self.file.stripe.blocks_in(range);
        match blocks.end - blocks.start {
            1 => self.transfer_part(chunk, blocks.start).await,
            _ => rare(self.transfer_in_lanes(chunk, blocks)).await,
        }
    }

    /// Moves one contiguous chunk through the cache of this client.
    pub(crate) async fn transfer_cached(&self, chunk: Chunk) -> Result<(), Fault> {
        let Self { client, file, memory, .. } = self;
        let range = ByteRange::at(chunk.file_offset, chunk.length);
        let offset = chunk.memory_offset;
        match self.direction {
            Direction::Read => client.read_cached(file, range, memory, offset).await,
            Direction::Write => client.write_cached(file, range, memory, offset).await,
        }
    }

    /// After the last chunk of a write, has the servers take the bytes that are in the cache of
    /// this client only. The end of the transfer flushes them.
    pub(crate) async fn write_back(&self) -> Result<(), Fault> {
        match self.direction == Direction::Write && self.client.has_cache() {
            true => rare(self.client.write_cache_back(self.file)).await,
            false => Ok(()),
        }
    }

    /// Sends a fixed number of requests to each disk at a time, each followed by the next on the
    /// same disk.
    async fn transfer_in_lanes(&self, chunk: Chunk, blocks: Range<u64>) -> Result<(), Fault> {
        let stripe = &self.file.stripe;
        let lanes_per_disk = u64::from(self.outstanding_per_disk.max(1));
        let lanes = (0..stripe.servers).flat_map(|server| {
            let disks = 0..stripe.disks_per_server;
            disks.flat_map(move |disk| {
                (0..lanes_per_disk).map(move |lane| (ServerId(server), DiskId(disk), lane))
            })
        });
        let failed = &Cell::new(false);
        let transfers = lanes.map(|(server, disk, lane)| {
            let on_disk = stripe.blocks_on(server, disk, blocks.clone());
            let own = on_disk.skip(lane as usize).step_by(lanes_per_disk as usize);
            self.transfer_blocks(chunk, own, failed)
        });
        // All transfers end, also after a failure: a late answer would bring data for a memory that
        // the servers may no longer reach.
        join_all(transfers).await.into_iter().collect()
    }

    async fn transfer_blocks(
        &self,
        chunk: Chunk,
        blocks: impl Iterator<Item = u64>,
        failed: &Cell<bool>,
    ) -> Result<(), Fault> {
        for block in blocks {
            if failed.get() {
                break;
            }
            let moved = self.transfer_part(chunk, block).await;
            moved.inspect_err(|_| failed.set(true))?;
        }
        Ok(())
    }

    /// Moves the part of a chunk that lies in one block, without a cache.
    pub(crate) async fn transfer_part(&self, chunk: Chunk, block: u64) -> Result<(), Fault> {
        let costs = self.client.costs();
        let cost = match self.direction {
            Direction::Read => costs.client_read,
            Direction::Write => costs.client_write,
        };
        let stripe = &self.file.stripe;
        let in_file = stripe.block_range(block, self.file.bytes);
        let part = in_file.intersect(ByteRange::at(chunk.file_offset, chunk.length));
        let offset = part.start - in_file.start;
        let memory_offset = chunk.memory_offset + (part.start - chunk.file_offset);
        let (file, region) = (self.file.file, self.region);
        let server = self.file.server_of(block);
        match self.direction {
            Direction::Read => {
                let length = part.length();
                let region_offset = memory_offset;
                let read = ReadRequest { file, block, offset, length, region, region_offset };
                self.client.call_often(cost, server, |id| Frequent::Read(id, read), None).await?;
                Ok(())
            }
            Direction::Write => {
                if part.length() <= SENT_BYTES_MAX {
                    let run = Run::contiguous(memory_offset, part.length());
                    let body = Some(self.memory.gather(&[run]));
                    let write = WriteRequest { file, block, offset };
                    let write = |id| Frequent::Write(id, write);
                    if self.client.call_often(cost, server, write, body).await? == Outcome::Done {
                        return Ok(());
                    }
                } else {
                    self.client.world().compute(cost).await;
                }
                let (length, region_offset) = (part.length(), memory_offset);
                let pull = PullRequest { file, block, offset, length, region, region_offset };
                loop {
                    match rare(self.client.call(server, BlockRequest::Pull(pull))).await? {
                        Reply::Done => return Ok(()),
                        // This client was too slow, and others needed the room.
                        Reply::NoRoom => {}
                        other => return Err(unexpected(&other)),
                    }
                }
            }
        }
    }
}
