//! Server side of disk-directed I/O: CollectiveReadIOP of Figure 2c (TOCS 1997).

use super::super::access_checks::transfer_fault;
use super::super::pieces;
use super::participants::{Members, Participants, Place};
use crate::server::Server;
use crate::server::files::open_file::OpenFile;
use crate::server::transfers::active_transfers::TransferKey;
use crate::server::transfers::buffer_pool::TransferBufferPool;
use futures_util::future::{Either, select, try_join_all};
use policy::{Access, Direction, DiskOrder, covers_block, disk_order};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tracing::debug;
use units::{ByteRange, ClientId, DiskId, Duration, PieceRun, Run, ServerId};
use wire::{CallId, CollectiveCall, Fault};
use world::{Disk, Memory, Payload, Scope, TransferError, World};

/// A collective call that all members of a group have joined.
pub(crate) struct DirectedCall<M> {
    pub(crate) id: CallId,
    pub(crate) parameters: CollectiveCall,
    /// Bytes of each member, by rank.
    pub(crate) access: Access,
    pub(crate) members: Members<M>,
    /// Time to wait for a member that is not connected yet.
    pub(crate) timeout: Duration,
}

/// One collective transfer on this server.
struct Collective<W: World> {
    server: Rc<Server<W>>,
    parameters: CollectiveCall,
    access: Access,
    file: Rc<OpenFile>,
    /// Number of this server among the servers of the file.
    place: ServerId,
    participants: Participants<W>,
    /// First and last block of the access.
    ends: (u64, u64),
    /// Number of bytes moved so far.
    moved: Cell<u64>,
}

impl<M> DirectedCall<M> {
    /// Carries out the transfer; returns the number of bytes moved. When a participant leaves
    /// before the end, drops the transfer with all its buffers.
    pub(crate) async fn serve<W: World<Memory = M>>(
        self,
        server: &Rc<Server<W>>,
    ) -> Result<u64, Fault> {
        let Self { id, parameters, access, members, timeout } = self;
        server.recall_leases(parameters.file, None).await;
        if parameters.direction == Direction::Write {
            server.exclude_readers(parameters.file, None).await;
        }
        let file = server.files().get(parameters.file)?;
        file.check_access(parameters.direction, &access)?;
        let ByteRange { start, end } = access.file_extent();
        debug!(
            file = file.name().as_str(),
            members = access.clients(),
            start,
            end,
            "a transfer begins"
        );
        let _change = match parameters.direction {
            Direction::Read => None,
            Direction::Write => Some(server.begin_change(&file)?),
        };
        let place = server.place_in(&file)?;
        let guard = server.active_transfers().enter(TransferKey::Call(id), parameters.file)?;
        let blocks = file.stripe.blocks_in(access.file_extent());
        let ends = (blocks.start, blocks.end.saturating_sub(1));
        let collective = Rc::new(Collective {
            server: Rc::clone(server),
            parameters,
            access,
            file,
            place,
            participants: Participants::new(server, members, timeout),
            ends,
            moved: Cell::new(0),
        });
        let abort_reason = || guard.abort_reason().or_else(|| collective.departure_fault());
        let outcome = {
            let transfer = std::pin::pin!(collective.run());
            let aborted = std::pin::pin!(server.active_transfers().until_aborted(abort_reason));
            match select(aborted, transfer).await {
                Either::Left((fault, _)) => Err(fault),
                Either::Right((moved, _)) => moved,
            }
        };
        // A transfer that failed because a client left reports the departure.
        let outcome = outcome.map_err(|fault| abort_reason().unwrap_or(fault));
        let bytes = collective.moved.get();
        server.counters().count_moved(bytes);
        outcome.map(|()| bytes)
    }
}

impl<W: World> Collective<W> {
    /// Transfers the blocks of every disk, all disks at the same time.
    async fn run(self: &Rc<Self>) -> Result<(), Fault> {
        let disks = 0..self.file.stripe.disks_per_server;
        try_join_all(disks.map(|disk| self.transfer_disk(DiskId(disk)))).await?;
        if self.parameters.sync && self.parameters.direction == Direction::Write {
            // Of earlier calls some bytes are in the cache.
            let failures = self.server.write_failures();
            let before = failures.count();
            self.server.cache().flush(self.file.file).await;
            if failures.count() > before {
                failures.latest(self.file.file)?;
            }
            self.server.disks().sync(&self.file).await?;
        }
        Ok(())
    }

    /// Transfers the blocks of one disk in the order of their addresses, with a few rotating
    /// buffers. Each buffer is a task, so that an event of one block wakes only the task of its
    /// buffer.
    async fn transfer_disk(self: &Rc<Self>, number: DiskId) -> Result<(), Fault> {
        let asked = self.parameters.order;
        let order = blocks_in_order(&self.server, &self.file, &self.access, asked, number).await;
        let Some(order) = order else {
            // A disk that is not needed may have stopped.
            return Ok(());
        };
        let counted = Rc::new(Cell::new(0_u64));
        let order = Rc::new(RefCell::new(order));
        let begun = self.server.world().now();
        let tasks = Scope::new(self.server.world().clone());
        for _ in 0..self.server.config().buffers_per_disk.max(1) {
            let (collective, order) = (Rc::clone(self), Rc::clone(&order));
            let counted = Rc::clone(&counted);
            tasks.spawn(async move {
                let buffers = collective.server.memory().buffers(number);
                loop {
                    let next = order.borrow_mut().next();
                    let Some(block) = next else { return Ok(()) };
                    counted.set(counted.get() + 1);
                    collective.transfer_block(buffers, block).await?;
                }
            });
        }
        let ended = tasks.finished().await;
        let (blocks, seconds) =
            (counted.get(), self.server.world().now().since(begun).as_seconds());
        let (file, disk) = (self.file.name(), number.0);
        debug!(file = file.as_str(), disk, order = ?asked, blocks, seconds, "a disk is done");
        drop(file);
        ended
    }

    async fn transfer_block(&self, buffers: &TransferBufferPool, block: u64) -> Result<(), Fault> {
        let range = self.file.block_range(block);
        let place = (self.place, self.file.stripe.servers);
        let shares = shares_of(&self.access, range, place);
        if shares.is_empty() {
            return Ok(());
        }
        let _permit = buffers.take(self.server.world(), range.length()).await;
        if self.is_for_cache(block, &shares) {
            return self.transfer_in_cache(block, shares).await;
        }
        self.server.world().compute(self.server.config().costs.block).await;
        match self.parameters.direction {
            Direction::Read => self.read_block(block, shares).await,
            Direction::Write => self.write_block(block, shares).await,
        }
    }

    /// Tells if a block goes through the block cache: the first or last block of an access that
    /// wants only some of its bytes. Programs that make small calls one after the other want the
    /// rest of it next. A call with gaps in many blocks leaves the cache alone, and so does one
    /// that waits for stable storage.
    fn is_for_cache(&self, block: u64, shares: &[Share]) -> bool {
        if !self.server.config().caches_ends
            || self.parameters.sync
            || (block != self.ends.0 && block != self.ends.1)
        {
            return false;
        }
        let range = self.file.block_range(block);
        match self.parameters.direction {
            // Several clients may want the same bytes.
            Direction::Read => !wants_whole(shares, range.length()),
            Direction::Write => !self.covers(shares, range),
        }
    }

    /// Transfers a block by the block cache, as a request of a single client does. A block that is
    /// cached costs only the lookup.
    async fn transfer_in_cache(&self, block: u64, shares: Vec<Share>) -> Result<(), Fault> {
        let (world, costs) = (self.server.world(), &self.server.config().costs);
        let lookup = match self.parameters.direction {
            Direction::Read => costs.cache_read,
            Direction::Write => costs.cache_write,
        };
        let is_there = self.server.cache().holds(self.file.file, block);
        world.compute(if is_there { lookup } else { costs.block }).await;
        match self.parameters.direction {
            Direction::Read => self.read_cached(block, shares).await,
            Direction::Write => self.write_cached(block, shares).await,
        }
    }

    async fn read_cached(&self, block: u64, shares: Vec<Share>) -> Result<(), Fault> {
        let all = shares.iter().flat_map(|share| &share.pieces);
        let Some(hull) = pieces::hull(all) else { return Ok(()) };
        let data = self.server.cache().read(&self.file, block, hull).await?;
        let relative = |share: Share| {
            let pieces = pieces::relative_to(hull.start, &share.pieces);
            Share { pieces, ..share }
        };
        self.put_all(block, &data, shares.into_iter().map(relative)).await
    }

    /// Gets the pieces as [`write_block`](Self::write_block) does, into a memory without gaps. The
    /// cache takes room for them first: data without room stays with the clients.
    async fn write_cached(&self, block: u64, shares: Vec<Share>) -> Result<(), Fault> {
        let cache = self.server.cache();
        let _room = cache.reserve(&self.file, block).await?;
        let runs = shares.iter().flat_map(|share| &share.pieces).map(|piece| piece.file_side());
        let runs: Vec<Run> = runs.collect();
        let bytes: u64 = shares.iter().map(Share::bytes).sum();
        let memory = self.server.world().memory(bytes);
        let mut at = 0;
        let packed = |share: Share| {
            let pieces = pieces::packed(at, &share.pieces);
            at += share.bytes();
            Share { pieces, ..share }
        };
        self.get_all(block, &memory, shares.into_iter().map(packed)).await?;
        self.server.world().compute(self.server.config().costs.copy(bytes)).await;
        cache.write(&self.file, block, &runs, memory.freeze()).await
    }

    /// Reads a block, cuts it into pieces, and puts each client's pieces as one transfer.
    async fn read_block(&self, block: u64, shares: Vec<Share>) -> Result<(), Fault> {
        let data = self.load(block, self.file.block_range(block)).await?;
        self.put_all(block, &data, shares.into_iter()).await
    }

    /// Puts each client's pieces of `data` as one transfer.
    async fn put_all(
        &self,
        block: u64,
        data: &W::Payload,
        shares: impl Iterator<Item = Share>,
    ) -> Result<(), Fault> {
        let on = self.disk_of(block);
        let puts = shares.map(|share| async move {
            self.find_pieces(&share).await;
            let (peer, region) = match self.participants.place_of(share.client).await? {
                Place::Exposed(peer, region) => (peer, region),
                Place::Staged(memory) => {
                    copy_from(data, &memory, &share.pieces);
                    return self.count_staged(&share).await;
                }
            };
            let put = self.server.world().put(peer, region, &share.pieces, data);
            let moved = self.server.memory().watchdog().watch((peer, on), share.bytes(), put).await;
            self.count(moved, &share)
        });
        try_join_all(puts).await.map(|_| ())
    }

    /// Gets each client's pieces into `memory` as one transfer.
    async fn get_all(
        &self,
        block: u64,
        memory: &W::Memory,
        shares: impl Iterator<Item = Share>,
    ) -> Result<(), Fault> {
        let on = self.disk_of(block);
        let gets = shares.map(|share| async move {
            self.find_pieces(&share).await;
            let (peer, region) = match self.participants.place_of(share.client).await? {
                Place::Exposed(peer, region) => (peer, region),
                Place::Staged(staged) => {
                    let sides = |piece: &PieceRun| (piece.file_side(), piece.memory_side());
                    let (to, from): (Vec<Run>, Vec<Run>) = share.pieces.iter().map(sides).unzip();
                    memory.scatter(&to, &staged.gather(&from));
                    return self.count_staged(&share).await;
                }
            };
            let got = self.server.world().get(peer, region, &share.pieces, memory);
            let moved = self.server.memory().watchdog().watch((peer, on), share.bytes(), got).await;
            self.count(moved, &share)
        });
        try_join_all(gets).await.map(|_| ())
    }

    /// Gets each client's pieces as one transfer, assembles the block, and writes it.
    async fn write_block(&self, block: u64, shares: Vec<Share>) -> Result<(), Fault> {
        let range = self.file.block_range(block);
        let _lock = self.server.cache().lock(self.file.file, block).await;
        self.server.cache().write_back_and_evict(self.file.file, block).await;
        let memory = if self.covers(&shares, range) {
            self.server.world().memory(range.length())
        } else {
            // Bytes that no client writes must keep their values.
            self.server.world().thaw(self.load(block, range).await?)
        };
        self.get_all(block, &memory, shares.into_iter()).await?;
        let payload = memory.freeze();
        assert!(payload.length() == range.length(), "a block is written as a whole");
        let (disk, offset) = (self.disk_of(block), self.file.disk_offset(block));
        self.server.disks().write(&self.file, disk, offset, payload).await
    }

    /// Tells if the clients write every byte of a block.
    fn covers(&self, shares: &[Share], range: ByteRange) -> bool {
        let bytes: u64 = shares.iter().map(Share::bytes).sum();
        if bytes != range.length() || !self.access.may_overlap() {
            return bytes == range.length();
        }
        wants_whole(shares, range.length())
    }

    /// Returns a block from the cache, which may have newer data, or from the disk.
    async fn load(&self, block: u64, range: ByteRange) -> Result<W::Payload, Fault> {
        if let Some(held) = self.server.cache().held_block(&self.file, block).await? {
            return Ok(held);
        }
        let (disk, offset) = (self.disk_of(block), self.file.disk_offset(block));
        self.server.disks().read(&self.file, disk, offset, range.length()).await
    }

    /// Occupies the processor for the cost of finding a share's pieces. At zero cost it does not
    /// wait for the processor, where the next block would overtake this one.
    async fn find_pieces(&self, share: &Share) {
        let cost = self.server.config().costs.pieces(&self.access, &share.pieces);
        if cost > Duration::ZERO {
            self.server.world().compute(cost).await;
        }
    }

    fn count(&self, moved: Result<(), TransferError>, share: &Share) -> Result<(), Fault> {
        moved.map_err(|error| transfer_fault(share.client, error))?;
        self.moved.set(self.moved.get() + share.bytes());
        Ok(())
    }

    /// Counts a share that was copied at this server, and occupies the processor for the copy.
    async fn count_staged(&self, share: &Share) -> Result<(), Fault> {
        self.server.world().compute(self.server.config().costs.copy(share.bytes())).await;
        self.count(Ok(()), share)
    }

    fn disk_of(&self, block: u64) -> DiskId {
        self.file.stripe.locate(block).disk
    }

    /// Returns the fault of a participant whose connection has ended.
    fn departure_fault(&self) -> Option<Fault> {
        let client = self.participants.first_gone()?;
        let cause = "its connection to a server ended".to_owned();
        Some(Fault::ClientLeft { client, cause })
    }
}

/// Returns the blocks of an access on a disk, in the order of their transfer. Some have no bytes of
/// the access. Returns nothing if none has.
pub(crate) async fn blocks_in_order<W: World>(
    server: &Rc<Server<W>>,
    file: &Rc<OpenFile>,
    access: &Access,
    order: DiskOrder,
    number: DiskId,
) -> Option<impl Iterator<Item = u64> + use<W>> {
    let (stripe, place) = (&file.stripe, server.place_in(file).ok()?);
    let disk = &server.world().disks()[number.0 as usize];
    let blocks = stripe.blocks_in(access.file_extent());
    let own = stripe.blocks_on(place, number, blocks.clone());
    let total = (blocks.end - blocks.start).div_ceil(stripe.disks());
    let is_wanted = |block: u64| access.clients_in(file.block_range(block)).next().is_some();
    if !own.clone().any(is_wanted) {
        return None;
    }
    if own.clone().nth(1).is_some() {
        // One block is in every order.
        disk.locate(file.file).await;
    }
    let (disk, open) = (disk.clone(), Rc::clone(file));
    let address = move |block| disk.address(open.file, open.disk_offset(block));
    Some(disk_order(order, own, total, (place.0, stripe.servers), address))
}

/// Tells if the pieces of all clients together are every byte of a block of `length` bytes.
fn wants_whole(shares: &[Share], length: u64) -> bool {
    if shares.iter().map(Share::bytes).sum::<u64>() < length {
        return false;
    }
    let all: Vec<PieceRun> = shares.iter().flat_map(|share| share.pieces.clone()).collect();
    covers_block(&all, length)
}

/// Copies pieces of a block into the memory of a member.
fn copy_from<M: Memory>(data: &M::Payload, memory: &M, pieces: &[PieceRun]) {
    for run in pieces {
        for number in 0..run.count {
            let bytes = data.slice(run.offset + number * run.stride, run.length);
            let at = run.memory_offset + number * run.memory_stride;
            memory.scatter(&[Run::contiguous(at, run.length)], &bytes);
        }
    }
}

/// Returns the pieces of each client in a block, with offsets from the block's start. Each server,
/// at a place among so many, starts with a different client, to avoid incast.
pub(super) fn shares_of(
    access: &Access,
    range: ByteRange,
    (place, servers): (ServerId, u32),
) -> Vec<Share> {
    let shares = access.clients_in(range).map(|client| {
        let relative = |piece: PieceRun| PieceRun { offset: piece.offset - range.start, ..piece };
        Share { client, pieces: access.pieces(client, range).map(relative).collect() }
    });
    let mut shares: Vec<Share> = shares.filter(|share| !share.pieces.is_empty()).collect();
    let (id, servers) = (u64::from(place.0), u64::from(servers));
    let first = ClientId((id * u64::from(access.clients()) / servers.max(1)) as u32);
    let turned = shares.partition_point(|share| share.client < first);
    shares.rotate_left(turned);
    shares
}

/// One client's pieces of one block.
pub(super) struct Share {
    pub(super) client: ClientId,
    pieces: Vec<PieceRun>,
}

impl Share {
    pub(super) fn bytes(&self) -> u64 {
        pieces::bytes_of(&self.pieces)
    }
}
