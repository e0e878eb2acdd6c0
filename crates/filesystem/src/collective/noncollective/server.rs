//! Server side of non-collective disk-directed I/O: Galley's way of serving one structured request
//! (TOCS 1997, section 10).

use super::super::access_checks::{check_client, transfer_fault};
use super::super::pieces;
use crate::server::Server;
use crate::server::answer::Answer;
use crate::server::files::open_file::OpenFile;
use crate::server::transfers::active_transfers::TransferKey;
use futures_util::future::{Either, select, try_join_all};
use policy::{Direction, disk_order};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::pin::pin;
use std::rc::Rc;
use units::{ByteRange, DiskId, Duration, PeerId, PieceRun, Run, ServerId};
use wire::{Fault, PartRequest, Reply};
use world::{Disk, Memory, TransferError, World};

/// Maximum number of blocks of one disk that a request takes from the cache before it turns to the
/// disk. Their numbers are kept, so that no block is transferred twice.
const HELD_FIRST_MAX: usize = 65_536;

/// One client's request on this server.
struct Transfer<'a, W: World> {
    server: &'a Server<W>,
    request: &'a PartRequest,
    file: &'a Rc<OpenFile>,
    /// Connection of the client.
    peer: PeerId,
    /// Number of this server among the servers of the file.
    place: ServerId,
    /// Number of bytes moved so far.
    moved: Cell<u64>,
}

/// Serves the one request of a client. Ends with the client's session.
pub(crate) async fn serve<W: World>(
    server: &Rc<Server<W>>,
    from: PeerId,
    request: PartRequest,
) -> Result<Answer<W::Payload>, Fault> {
    server.recall_leases(request.file, Some(from)).await;
    if request.direction == Direction::Write {
        server.exclude_readers(request.file, None).await;
    }
    let file = server.files().get(request.file)?;
    let place = server.place_in(&file)?;
    check_client(request.client, &request.access)?;
    file.check_access(request.direction, &request.access)?;
    let _change = match request.direction {
        Direction::Read => None,
        Direction::Write => Some(server.begin_change(&file)?),
    };
    let guard =
        server.active_transfers().enter(TransferKey::Part(from, request.number), request.file)?;
    let (request, file, moved) = (&request, &file, Cell::new(0));
    let transfer = Transfer { server, request, file, place, peer: from, moved };
    let outcome = {
        let transfer = pin!(transfer.run());
        let aborted = pin!(server.active_transfers().until_aborted(|| guard.abort_reason()));
        match select(aborted, transfer).await {
            Either::Left((fault, _)) => Err(fault),
            Either::Right((moved, _)) => moved,
        }
    };
    // A transfer that failed because the file is gone reports that.
    let outcome = outcome.map_err(|fault| guard.abort_reason().unwrap_or(fault));
    let bytes = transfer.moved.get();
    server.counters().count_moved(bytes);
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
            // Do not even wait for a buffer of this disk.
            return Ok(());
        }
        let done = self.transfer_held(disk).await?;
        if blocks.next().is_some() {
            self.server.world().disks()[disk.0 as usize].locate(self.file.file).await;
        }
        let order = RefCell::new(self.order_of(disk));
        let next = || {
            let mut order = order.borrow_mut();
            let mut left = order.by_ref().filter(|block| !done.contains(block));
            left.find_map(|block| self.share_of(block)).map(|share| (share, None))
        };
        self.rotate(disk, next).await
    }

    /// Transfers the blocks of a disk that need nothing of the disk: for a read, blocks whose bytes
    /// are cached; for a write, blocks that have an entry in the cache. Returns their numbers.
    /// Walks the cache instead of listing it, so that it also finds blocks that others bring in
    /// farther ahead.
    async fn transfer_held(&self, disk: DiskId) -> Result<BTreeSet<u64>, Fault> {
        let extent = self.request.access.extent_of(self.request.client);
        let ahead = RefCell::new(self.file.stripe.blocks_in(extent));
        let done = RefCell::new(BTreeSet::new());
        let next = || {
            while done.borrow().len() < HELD_FIRST_MAX {
                let left = ahead.borrow().clone();
                let block = self.server.cache().next_held(self.file.file, left)?;
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

    /// Returns the client's share of a cached block and, for a read, its bytes.
    fn find_held(&self, disk: DiskId, block: u64) -> Option<(Share, Option<W::Payload>)> {
        if self.file.stripe.locate(block).disk != disk {
            return None;
        }
        let share = self.share_of(block)?;
        let found = match self.request.direction {
            Direction::Read => Some(self.server.cache().peek(self.file.file, block, share.hull)?),
            Direction::Write => None,
        };
        Some((share, found))
    }

    /// Returns the blocks of a disk in which the client has bytes, in the order of the file.
    fn blocks_of(&self, disk: DiskId) -> impl Iterator<Item = u64> + Clone + use<'_, W> {
        let here = Some((self.place, disk));
        self.request.access.blocks_of(self.request.client, &self.file.stripe, here)
    }

    /// Returns the blocks of a disk in which the client has bytes, in the order of use. Blocks and
    /// order are both lazy.
    fn order_of(&self, number: DiskId) -> impl Iterator<Item = u64> {
        let (request, stripe, place) = (self.request, &self.file.stripe, self.place);
        let blocks = self.blocks_of(number);
        let extent = stripe.blocks_in(request.access.extent_of(request.client));
        let total = (extent.end - extent.start).div_ceil(stripe.disks());
        let (object, file) = (self.file.file, Rc::clone(self.file));
        let disk = self.server.world().disks()[number.0 as usize].clone();
        let address = move |block| disk.address(object, file.disk_offset(block));
        disk_order(request.order, blocks, total, (place.0, stripe.servers), address)
    }

    /// Transfers the shares that `next` returns, with a few rotating buffers.
    async fn rotate(
        &self,
        disk: DiskId,
        next: impl Fn() -> Option<(Share, Option<W::Payload>)>,
    ) -> Result<(), Fault> {
        let extent = self.request.access.extent_of(self.request.client);
        let (server, bytes) = (self.server, extent.length().min(self.file.stripe.block_bytes));
        let buffers = server.memory().buffers(disk);
        let buffer = || async {
            loop {
                // The buffer first: the bytes found in the cache must stay while it is held.
                let _permit = buffers.take(server.world(), bytes).await;
                let Some((share, found)) = next() else { break };
                match self.request.direction {
                    Direction::Read => self.read_block(share, found).await?,
                    Direction::Write => self.write_block(share).await?,
                }
            }
            Ok(())
        };
        let count = self.server.config().buffers_per_disk.max(1);
        try_join_all((0..count).map(|_| buffer())).await.map(|_| ())
    }

    /// Takes a block from the cache, which may have to read it, and puts the client's pieces as one
    /// transfer. A block that is cached or on its way costs only the lookup.
    async fn read_block(&self, share: Share, found: Option<W::Payload>) -> Result<(), Fault> {
        let (world, costs) = (self.server.world(), &self.server.config().costs);
        let is_there = found.is_some() || self.is_held(share.block);
        world.compute(if is_there { costs.cache_read } else { costs.block }).await;
        let data = match found {
            Some(data) => data,
            None => self.server.cache().read(self.file, share.block, share.hull).await?,
        };
        world.compute(self.cost_of(&share)).await;
        let pieces = pieces::relative_to(share.hull.start, &share.pieces);
        let put = world.put(self.peer, self.request.region, &pieces, &data);
        let moved =
            self.server.memory().watchdog().watch(self.at(&share), share.bytes(), put).await;
        self.count(moved, &share)
    }

    /// Gets the client's pieces of a block as one transfer, and puts them into the cache. The cache
    /// keeps a whole block without a copy; a smaller part is copied.
    async fn write_block(&self, share: Share) -> Result<(), Fault> {
        let bytes = share.bytes();
        let (world, costs) = (self.server.world(), &self.server.config().costs);
        let is_there = self.is_held(share.block);
        world.compute(if is_there { costs.cache_write } else { costs.block }).await;
        // Room first: data without room stays with the client.
        let _room = self.server.cache().reserve(self.file, share.block).await?;
        let memory = world.memory(bytes);
        world.compute(self.cost_of(&share)).await;
        let pieces = pieces::packed(0, &share.pieces);
        let got = world.get(self.peer, self.request.region, &pieces, &memory);
        let moved = self.server.memory().watchdog().watch(self.at(&share), bytes, got).await;
        self.count(moved, &share)?;
        if bytes < self.range_of(share.block).length() {
            world.compute(costs.copy(bytes)).await;
        }
        let runs: Vec<Run> = share.pieces.iter().map(|piece| piece.file_side()).collect();
        self.server.cache().write(self.file, share.block, &runs, memory.freeze()).await
    }

    /// Returns the client's connection and the disk of the block, between which a share moves.
    fn at(&self, share: &Share) -> (PeerId, DiskId) {
        (self.peer, self.file.stripe.locate(share.block).disk)
    }

    /// Returns the client's pieces of a block, if it has any.
    fn share_of(&self, block: u64) -> Option<Share> {
        let range = self.range_of(block);
        let relative = |piece: PieceRun| PieceRun { offset: piece.offset - range.start, ..piece };
        let pieces = self.request.access.pieces(self.request.client, range).map(relative);
        Share::new(block, pieces.collect())
    }

    /// Returns the processor time to find a share's pieces.
    fn cost_of(&self, share: &Share) -> Duration {
        self.server.config().costs.pieces(&self.request.access, &share.pieces)
    }

    fn is_held(&self, block: u64) -> bool {
        self.server.cache().holds(self.file.file, block)
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
    /// At least one. Those of each nest of a union ascend, one nest after the other.
    pieces: Vec<PieceRun>,
    /// Smallest range of the block that holds all pieces.
    hull: ByteRange,
}

impl Share {
    fn new(block: u64, pieces: Vec<PieceRun>) -> Option<Self> {
        let hull = pieces::hull(pieces.iter())?;
        Some(Self { block, pieces, hull })
    }

    fn bytes(&self) -> u64 {
        pieces::bytes_of(&self.pieces)
    }
}
