//! The server's side of non-collective disk-directed I/O: what Galley does with one structured
//! request (TOCS 1997, section 10).

use super::super::access_checks::{check_client, transfer_fault};
use crate::server::Server;
use crate::server::answer::Answer;
use crate::server::files::open_file::OpenFile;
use futures_util::future::{Either, select, try_join_all};
use policy::{Direction, disk_order};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::pin::pin;
use std::rc::Rc;
use units::{ByteRange, DiskId, Duration, PeerId, PieceRun, Run, ServerId};
use wire::{Fault, PartRequest, Reply};
use world::{Disk, Memory, TransferError, World};

/// The most blocks of one disk that a request takes from the cache before it turns to the disk:
/// their numbers are kept, so that none is transferred twice.
const HELD_FIRST_MAX: usize = 65_536;

/// One client's request, as this server carries it out.
struct Transfer<'a, W: World> {
    server: &'a Server<W>,
    request: &'a PartRequest,
    file: &'a Rc<OpenFile>,
    /// The client's connection.
    peer: PeerId,
    /// Which of the file's servers this is.
    place: ServerId,
    /// Bytes moved so far.
    moved: Cell<u64>,
}

/// Serves the one request of a client. When the client leaves, this ends with its session.
pub(crate) async fn serve<W: World>(
    server: &Rc<Server<W>>,
    from: PeerId,
    request: PartRequest,
) -> Result<Answer<W::Payload>, Fault> {
    let file = server.files.get(request.file)?;
    let place = server.place_in(&file)?;
    check_client(request.client, &request.access)?;
    file.check_access(request.direction, &request.access)?;
    let guard = server.active_transfers.enter((from, request.number), request.file)?;
    let (request, file, moved) = (&request, &file, Cell::new(0));
    let transfer = Transfer { server, request, file, place, peer: from, moved };
    let outcome = {
        let transfer = pin!(transfer.run());
        let aborted = pin!(server.active_transfers.until_aborted(|| guard.abort_reason()));
        match select(aborted, transfer).await {
            Either::Left((fault, _)) => Err(fault),
            Either::Right((moved, _)) => moved,
        }
    };
    // What failed because the file is gone is told as that.
    let outcome = outcome.map_err(|fault| guard.abort_reason().unwrap_or(fault));
    let bytes = transfer.moved.get();
    server.count_moved(bytes);
    outcome.map(|()| Reply::Moved { bytes }.into())
}

impl<W: World> Transfer<'_, W> {
    /// Transfers the blocks of every disk, all disks at the same time.
    async fn run(&self) -> Result<(), Fault> {
        let disks = 0..self.file.stripe.disks_per_server;
        try_join_all(disks.map(|disk| self.transfer_disk(DiskId(disk)))).await.map(|_| ())
    }

    /// First transfers what the cache holds, then the other blocks of the disk as they lie.
    async fn transfer_disk(&self, disk: DiskId) -> Result<(), Fault> {
        let mut blocks = self.blocks_of(disk);
        if blocks.next().is_none() {
            // Not even a buffer of this disk is to be waited for.
            return Ok(());
        }
        let done = self.transfer_held(disk).await?;
        if blocks.next().is_some() {
            self.server.world.disks()[disk.0 as usize].locate(self.file.file).await;
        }
        let order = RefCell::new(self.order_of(disk));
        let next = || {
            let mut order = order.borrow_mut();
            let mut left = order.by_ref().filter(|block| !done.contains(block));
            left.find_map(|block| self.share_of(block)).map(|share| (share, None))
        };
        self.rotate(disk, next).await
    }

    /// Transfers the blocks of a disk that need nothing of it: to read, those whose bytes are in
    /// the cache; to write, those that have a place there. Returns which they were. The cache is
    /// walked, not listed: what others bring there meanwhile, farther ahead, is taken along.
    async fn transfer_held(&self, disk: DiskId) -> Result<BTreeSet<u64>, Fault> {
        let extent = self.request.access.extent_of(self.request.client);
        let ahead = RefCell::new(self.file.stripe.blocks_in(extent));
        let done = RefCell::new(BTreeSet::new());
        let next = || {
            while done.borrow().len() < HELD_FIRST_MAX {
                let left = ahead.borrow().clone();
                let block = self.server.cache.next_held(self.file.file, left)?;
                ahead.borrow_mut().start = block + 1;
                if let Some(found) = self.find_held(disk, block) {
                    done.borrow_mut().insert(block);
                    return Some(found);
                }
            }
            None
        };
        self.rotate(disk, next).await?;
        Ok(done.into_inner())
    }

    /// The client's share of a block that is in the cache and, to read, its bytes.
    fn find_held(&self, disk: DiskId, block: u64) -> Option<(Share, Option<W::Payload>)> {
        if self.file.stripe.locate(block).disk != disk {
            return None;
        }
        let share = self.share_of(block)?;
        let found = match self.request.direction {
            Direction::Read => Some(self.server.cache.peek(self.file.file, block, share.hull)?),
            Direction::Write => None,
        };
        Some((share, found))
    }

    /// The blocks of a disk in which the client has bytes, as they are in the file.
    fn blocks_of(&self, disk: DiskId) -> impl Iterator<Item = u64> + Clone + use<'_, W> {
        let here = Some((self.place, disk));
        self.request.access.blocks_of(self.request.client, &self.file.stripe, here)
    }

    /// The blocks of a disk in which the client has bytes, in the order in which to use it. Both
    /// the blocks and their order are made while they are walked.
    fn order_of(&self, number: DiskId) -> impl Iterator<Item = u64> {
        let (request, stripe, place) = (self.request, &self.file.stripe, self.place);
        let blocks = self.blocks_of(number);
        let extent = stripe.blocks_in(request.access.extent_of(request.client));
        let total = (extent.end - extent.start).div_ceil(stripe.disks());
        let (object, file) = (self.file.file, Rc::clone(self.file));
        let disk = self.server.world.disks()[number.0 as usize].clone();
        let address = move |block| disk.address(object, file.disk_offset(block));
        disk_order(request.order, blocks, total, (place.0, stripe.servers), address)
    }

    /// Transfers what `next` says of a disk, with a few buffers that take turns.
    async fn rotate(
        &self,
        disk: DiskId,
        next: impl Fn() -> Option<(Share, Option<W::Payload>)>,
    ) -> Result<(), Fault> {
        let extent = self.request.access.extent_of(self.request.client);
        let (server, bytes) = (self.server, extent.length().min(self.file.stripe.block_bytes));
        let buffers = &server.buffer_pools[disk.0 as usize];
        let buffer = || async {
            loop {
                // The buffer first: what is found in the cache stays while it is held.
                let _permit = buffers.take(&server.world, bytes).await;
                let Some((share, found)) = next() else { break };
                match self.request.direction {
                    Direction::Read => self.read_block(share, found).await?,
                    Direction::Write => self.write_block(share).await?,
                }
            }
            Ok(())
        };
        let count = self.server.config.buffers_per_disk.max(1);
        try_join_all((0..count).map(|_| buffer())).await.map(|_| ())
    }

    /// Takes a block from the cache, which may have to read it, and puts the client's pieces of it
    /// as one transfer. Whoever finds the block there, or on its way, pays for looking it up only.
    async fn read_block(&self, share: Share, found: Option<W::Payload>) -> Result<(), Fault> {
        let (world, costs) = (&self.server.world, &self.server.config.costs);
        let is_there = found.is_some() || self.is_held(share.block);
        world.compute(if is_there { costs.cache_read } else { costs.block }).await;
        let data = match found {
            Some(data) => data,
            None => self.server.cache.read(self.file, share.block, share.hull).await?,
        };
        world.compute(self.cost_of(&share)).await;
        let pieces = share.in_hull();
        let put = world.put(self.peer, self.request.region, &pieces, &data);
        let moved = self.server.watchdog.watch(self.at(&share), share.bytes(), put).await;
        self.count(moved, &share)
    }

    /// Gets the client's pieces of a block as one transfer, and puts them in their places in the
    /// cache. A whole block becomes the cache's as it came; less is copied.
    async fn write_block(&self, share: Share) -> Result<(), Fault> {
        let bytes = share.bytes();
        let (world, costs) = (&self.server.world, &self.server.config.costs);
        let is_there = self.is_held(share.block);
        world.compute(if is_there { costs.cache_write } else { costs.block }).await;
        // Room first: what has none stays with the client.
        let _room = self.server.cache.reserve(self.file, share.block).await?;
        let memory = world.memory(bytes);
        world.compute(self.cost_of(&share)).await;
        let pieces = share.packed();
        let got = world.get(self.peer, self.request.region, &pieces, &memory);
        let moved = self.server.watchdog.watch(self.at(&share), bytes, got).await;
        self.count(moved, &share)?;
        if bytes < self.range_of(share.block).length() {
            world.compute(costs.copy(bytes)).await;
        }
        let runs: Vec<Run> = share.pieces.iter().map(|piece| piece.file_side()).collect();
        self.server.cache.write(self.file, share.block, &runs, memory.freeze()).await
    }

    /// Between whom a share moves: the client, and the disk of the block.
    fn at(&self, share: &Share) -> (PeerId, DiskId) {
        (self.peer, self.file.stripe.locate(share.block).disk)
    }

    /// The client's pieces of a block, if it has any.
    fn share_of(&self, block: u64) -> Option<Share> {
        let range = self.range_of(block);
        let relative = |piece: PieceRun| PieceRun { offset: piece.offset - range.start, ..piece };
        let pieces = self.request.access.pieces(self.request.client, range).map(relative);
        Share::new(block, pieces.collect())
    }

    /// Processor time to find the places of a share's pieces.
    fn cost_of(&self, share: &Share) -> Duration {
        self.server.config.costs.pieces(&self.request.access, &share.pieces)
    }

    fn is_held(&self, block: u64) -> bool {
        self.server.cache.holds(self.file.file, block)
    }

    fn range_of(&self, block: u64) -> ByteRange {
        self.file.block_range(block)
    }

    fn count(&self, moved: Result<(), TransferError>, share: &Share) -> Result<(), Fault> {
        moved.map_err(|error| transfer_fault(self.request.client, error))?;
        self.moved.set(self.moved.get() + share.bytes());
        Ok(())
    }
}

/// The client's pieces of one block, with offsets from the block's start.
struct Share {
    block: u64,
    /// Ascending; at least one.
    pieces: Vec<PieceRun>,
    /// The smallest range of the block that holds them.
    hull: ByteRange,
}

impl Share {
    fn new(block: u64, pieces: Vec<PieceRun>) -> Option<Self> {
        let start = pieces.first()?.offset;
        let end = pieces.iter().filter_map(|piece| piece.file_side().checked_end()).max()?;
        Some(Self { block, pieces, hull: ByteRange::new(start, end) })
    }

    fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes()).sum()
    }

    /// The pieces with offsets from the start of the hull.
    fn in_hull(&self) -> Vec<PieceRun> {
        let start = self.hull.start;
        let relative = |piece: &PieceRun| PieceRun { offset: piece.offset - start, ..*piece };
        self.pieces.iter().map(relative).collect()
    }

    /// The pieces as they lie in a memory of nothing but them.
    fn packed(&self) -> Vec<PieceRun> {
        let mut at = 0;
        let packed = |piece: &PieceRun| {
            let placed = PieceRun { offset: at, stride: piece.length, ..*piece };
            at += piece.bytes();
            placed
        };
        self.pieces.iter().map(packed).collect()
    }
}
