//! A server: one process that owns disks, answers requests, and directs collectives.
//!
//! Invariants: whatever a client holds here (open files, running requests, buffers) is freed at
//! once when it leaves; a request is answered exactly once or its client has left; nothing a
//! client sends makes the server panic.

pub(crate) mod active_transfers;
pub(crate) mod block_cache;
pub(crate) mod block_locks;
mod catalogue;
pub(crate) mod failures;
mod files;
mod group_rosters;
mod kept_sizes;
pub(crate) mod open_file;
mod outbound_connections;
pub(crate) mod rendezvous;
pub(crate) mod requests;
mod resize;
mod session;
pub(crate) mod transfer_watchdog;

use crate::Costs;
use crate::server::active_transfers::{ActiveTransfer, TransferBufferPool, WriteBudget};
use crate::server::block_cache::BlockCache;
use crate::server::block_locks::BlockLocks;
use crate::server::catalogue::Catalogue;
use crate::server::files::Files;
use crate::server::kept_sizes::KeptSizes;
use crate::server::open_file::OpenFile;
use crate::server::outbound_connections::OutboundConnections;
use crate::server::rendezvous::Rendezvous;
use crate::server::session::Session;
use crate::server::transfer_watchdog::TransferWatchdog;
use crate::signal::Signal;
use crate::table::Table;
use futures_util::future::{join, select};
use policy::{Location, Rules};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use units::{DiskId, FileId, PeerId, ServerId};
use wire::{ClientKey, Fault, Frequent, Message, Request, RequestId, WriteRequest};
use world::{DiskError, Incoming, Payload, Scope, World};

/// What a server is told at its start.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Its number; server 0 keeps the catalogue.
    pub id: ServerId,
    /// Number of servers of the instance.
    pub servers: u32,
    /// Room of its block cache, in bytes; at least one block is always held.
    pub cache_bytes: u64,
    /// So many hundredths of it may be dirty; with more, the blocks that have been so longest are
    /// written back until half of that is left. 100 for whatever there is room for.
    pub dirty_percent: u32,
    /// Blocks that a collective, or the part of one client, holds for each disk: two, while one is
    /// at the disk the other is on the network (TOCS 1997, section 4).
    pub buffers_per_disk: u32,
    /// Bytes that all of these together hold, besides the cache, each disk the same part; there is
    /// room for those of one collective in any case. As many may wait for room in the cache with
    /// the requests that brought them. `u64::MAX` for as many as are wanted: then no client is let
    /// go for keeping memory from others either.
    pub buffer_bytes: u64,
    /// What its own work costs its processor.
    pub costs: Costs,
    /// By which rules blocks may leave its cache.
    pub rules: Rules,
}

/// The most requests of one client that a server works on at the same time.
pub(crate) const REQUESTS_PER_CLIENT_MAX: usize = 4096;

/// The state of a server.
pub(crate) struct Server<W: World> {
    pub(crate) world: W,
    pub(crate) config: ServerConfig,
    pub(crate) cache: Rc<BlockCache<W>>,
    pub(crate) locks: Rc<BlockLocks>,
    pub(crate) files: Files,
    pub(crate) kept_sizes: KeptSizes<W>,
    pub(crate) catalogue: Option<Catalogue<W>>,
    /// The clients that are connected.
    pub(crate) sessions: RefCell<Table<PeerId, Box<Session<W>>>>,
    /// The connection of each client, by its name.
    peers: RefCell<BTreeMap<ClientKey, PeerId>>,
    pub(crate) outbound: OutboundConnections,
    /// Changes of the catalogue, which go on to their end when whoever asked for them leaves.
    pub(crate) changes: Scope<W, Infallible>,
    pub(crate) counters: Counters,
    /// Bytes of each disk, and free ones, as it last told.
    pub(crate) spaces: Box<[Cell<(u64, u64)>]>,
    /// Of collectives and parts under way, by disk.
    pub(crate) buffer_pools: Box<[TransferBufferPool]>,
    /// With requests to write.
    pub(crate) write_budget: Rc<WriteBudget>,
    /// Of data between these, or the cache, and clients.
    pub(crate) watchdog: Rc<TransferWatchdog>,
    /// Collectives and parts under way, by who asked for them and their number.
    pub(crate) active_transfers: RefCell<BTreeMap<(PeerId, u64), ActiveTransfer>>,
    /// Groups whose members meet at the servers.
    pub(crate) rendezvous: Rendezvous,
    /// Rung when a client has left, or a collective has ended or must.
    pub(crate) abort_signal: Signal,
    pub(crate) stopping: Cell<bool>,
    pub(crate) stop: Signal,
}

/// What a server counts.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) requests: Cell<u64>,
    pub(crate) bytes_moved: Cell<u64>,
}

/// Serves until a client asks to stop or `stop_requested` ends. Everything is written back when it
/// returns. `is_ready` is called when nothing stands in the way of its service any more.
pub async fn serve<W: World>(
    world: W,
    config: ServerConfig,
    is_ready: impl FnOnce(),
    stop_requested: impl Future<Output = ()>,
) -> Result<(), Fault> {
    let catalogue = match config.id {
        ServerId(0) => Some(Catalogue::load(world.clone()).await?),
        _ => None,
    };
    let kept_sizes = KeptSizes::load(world.clone(), config.id).await?;
    is_ready();
    let locks = Rc::new(BlockLocks::default());
    let watchdog = Rc::new(TransferWatchdog::new(config.buffer_bytes < u64::MAX));
    let cache = {
        let (locks, watchdog) = (Rc::clone(&locks), Rc::clone(&watchdog));
        BlockCache::new(world.clone(), &config, locks, watchdog)
    };
    let buffer_pool = |disk| {
        let bytes_max = config.buffer_bytes / (world.disks().len() as u64).max(1);
        TransferBufferPool::new(
            disk,
            bytes_max,
            u64::from(config.buffers_per_disk),
            Rc::clone(&watchdog),
        )
    };
    let spaces = world.disks().iter().map(|_| Cell::default()).collect();
    let server = Rc::new(Server {
        cache,
        changes: Scope::new(world.clone()),
        buffer_pools: (0..world.disks().len() as u32).map(DiskId).map(buffer_pool).collect(),
        write_budget: Rc::new(WriteBudget::new(config.buffer_bytes)),
        watchdog,
        world,
        config,
        locks,
        files: Files::default(),
        kept_sizes,
        catalogue,
        sessions: RefCell::default(),
        peers: RefCell::default(),
        outbound: OutboundConnections::default(),
        counters: Counters::default(),
        spaces,
        active_transfers: RefCell::default(),
        rendezvous: Rendezvous::default(),
        abort_signal: Signal::default(),
        stopping: Cell::new(false),
        stop: Signal::default(),
    });
    let listening = std::pin::pin!(join(listen(&server), disconnect_stalled(&server)));
    let stopped = std::pin::pin!(server.stop.until(|| server.stopping.get().then_some(())));
    let stop_requested = std::pin::pin!(stop_requested);
    select(listening, select(stopped, stop_requested)).await;
    // Dropping the sessions ends what they still had under way.
    let sessions = std::mem::take(&mut *server.sessions.borrow_mut());
    for (peer, _) in sessions.iter() {
        server.disconnect_outbound_of(peer);
        server.world.disconnect(peer);
    }
    drop(sessions);
    let Ok(()) = server.changes.finished().await;
    let mut stored = server.cache.write_back_all().await;
    // After what must not be lost.
    for file in server.files.all_replaced() {
        stored = stored.and(server.drop_file(file).await.map(|_| ()));
    }
    // Of no use to anybody; if it fails, the next start finds it again.
    let _ = server.kept_sizes.settle().await;
    if let Some(catalogue) = &server.catalogue {
        let _ = catalogue.settle().await;
    }
    stored
}

async fn listen<W: World>(server: &Rc<Server<W>>) {
    loop {
        match server.world.receive().await {
            Incoming::Message { from, header, body } => server.accept(from, &header, body),
            Incoming::Departed { peer, .. } => server.forget(peer),
        }
    }
}

/// Ends the connections of clients that have stopped and keep others from going on.
async fn disconnect_stalled<W: World>(server: &Rc<Server<W>>) {
    loop {
        let peer = server.watchdog.next_to_disconnect().await;
        server.world.disconnect(peer);
        server.forget(peer);
    }
}

impl<W: World> Server<W> {
    /// Takes in one message. Whoever sends something that is none is disconnected.
    fn accept(self: &Rc<Self>, from: PeerId, header: &[u8], body: Option<W::Payload>) {
        let accepted = match Frequent::decode(header) {
            Some(Frequent::Read(id, read)) => {
                self.begin((from, id), |server| server.answer_read((from, id), read))
            }
            Some(Frequent::Write(id, write)) => self.begin_write((from, id), write, body),
            Some(Frequent::Done(_)) => false,
            None => match wire::decode(header) {
                Ok(Message::Hello { version, key }) => self.greet(from, version, key),
                Ok(Message::Request { id, request }) => self.begin_other((from, id), request, body),
                Ok(_) | Err(_) => false,
            },
        };
        if !accepted {
            self.world.disconnect(from);
            self.forget(from);
        }
    }

    /// A client introduces itself. One of another version gets the fault with its first answer.
    fn greet(&self, from: PeerId, version: u16, key: ClientKey) -> bool {
        let mut sessions = self.sessions.borrow_mut();
        let mut peers = self.peers.borrow_mut();
        let is_known = sessions.contains(from) || self.outbound.contains(from);
        if peers.contains_key(&key) || is_known {
            return false;
        }
        peers.insert(key, from);
        sessions.insert(from, Box::new(Session::new(self.world.clone(), key, version)));
        true
    }

    /// Starts to work on a request, in the scope of its client, unless the client speaks another
    /// version.
    #[inline]
    fn begin<F: Future<Output = Result<(), Infallible>> + 'static>(
        self: &Rc<Self>,
        (from, id): (PeerId, RequestId),
        answer: impl FnOnce(Rc<Self>) -> F,
    ) -> bool {
        let sessions = self.sessions.borrow();
        let Some(session) = sessions.get(from) else { return false };
        if session.scope.running() >= REQUESTS_PER_CLIENT_MAX {
            return false;
        }
        self.counters.requests.set(self.counters.requests.get() + 1);
        let server = Rc::clone(self);
        match session.check_version() {
            Ok(()) => session.scope.spawn_built(|| answer(server)),
            Err(refused) => session.scope.spawn_built(|| server.refuse((from, id), refused)),
        }
        true
    }

    /// The same for a request that has brought data, which is kept if it may be.
    fn begin_write(
        self: &Rc<Self>,
        call: (PeerId, RequestId),
        request: WriteRequest,
        body: Option<W::Payload>,
    ) -> bool {
        match self.write_budget.keep(body.as_ref().map_or(0, Payload::length)) {
            Some(permit) => {
                self.begin(call, |server| server.answer_write(call, request, body, permit))
            }
            None => self.begin(call, |server| server.turn_away(call)),
        }
    }

    /// The same for a request whose form is not the usual one. (Numbers of 2^63 and more in a
    /// request to read or write are not decoded as [`Frequent`].)
    fn begin_other(
        self: &Rc<Self>,
        call: (PeerId, RequestId),
        request: Request,
        body: Option<W::Payload>,
    ) -> bool {
        match request {
            Request::Read(read) => self.begin(call, |server| server.answer_read(call, read)),
            Request::Write(write) => self.begin_write(call, write, body),
            rare => self.begin(call, |server| server.answer(call, rare)),
        }
    }

    /// A client has left: its requests end, its buffers are freed, its collectives fail.
    fn forget(self: &Rc<Self>, peer: PeerId) {
        let session = self.sessions.borrow_mut().remove(peer);
        if let Some(session) = session {
            self.peers.borrow_mut().remove(&session.key);
            let closed = self.files.close_all(&session.open);
            // What it had under way ends here.
            drop(session);
            self.rendezvous.peer_left(peer);
            self.disconnect_outbound_of(peer);
            closed.into_iter().for_each(|file| self.closed(file));
        }
        self.outbound.remove(peer);
        self.abort_signal.notify();
    }

    /// Ends the connections that were made for a client.
    fn disconnect_outbound_of(&self, requester: PeerId) {
        for peer in self.outbound.remove_all_of(requester) {
            self.world.disconnect(peer);
        }
    }

    /// Nobody has a file open any more.
    pub(crate) fn closed(self: &Rc<Self>, file: FileId) {
        if !self.files.must_go(file) {
            self.files.forget_unused(file);
            self.cache.release(file);
            return;
        }
        // At once, so that nobody opens it again.
        self.files.forget(file);
        let server = Rc::clone(self);
        self.changes.spawn(async move {
            // Nobody is left to be told of a disk that fails; what it keeps has no name.
            let _ = server.drop_file(file).await;
            Ok(())
        });
    }

    /// The connection of the client of this name.
    pub(crate) fn peer_of(&self, key: ClientKey) -> Option<PeerId> {
        self.peers.borrow().get(&key).copied()
    }

    /// Which of the servers of a file this one is.
    pub(crate) fn place_in(&self, file: &OpenFile) -> Result<ServerId, Fault> {
        file.place_of(self.config.id).ok_or_else(|| Fault::BadRequest {
            cause: format!("{:?} has no blocks on {}", file.name(), self.config.id),
        })
    }

    /// Whether a client is connected, whichever side made the connection.
    pub(crate) fn is_here(&self, peer: PeerId) -> bool {
        self.sessions.borrow().contains(peer) || self.outbound.contains(peer)
    }
}

/// The fault of a disk of server `server`.
pub(crate) fn disk_fault(server: ServerId, error: &DiskError) -> Fault {
    let cause = error.to_string();
    match error {
        DiskError::NoSpace { .. } => Fault::NoSpace { server, cause },
        DiskError::Vanished { .. } | DiskError::Failed { .. } | DiskError::Corrupt { .. } => {
            Fault::DiskFailed { server, cause }
        }
    }
}

/// The fault of disk `disk` of server `server`, met while working for `file`.
pub(crate) fn file_fault(
    server: ServerId,
    file: &OpenFile,
    disk: DiskId,
    error: &DiskError,
) -> Fault {
    let (stripe, block_bytes) = (&file.stripe, file.stripe.block_bytes);
    let place = file.place_of(server).filter(|_| disk.0 < stripe.disks_per_server);
    match (error, place) {
        (DiskError::Corrupt { offset, length, .. }, Some(place)) => {
            let slot = offset / block_bytes;
            let block = stripe.block_of(Location { server: place, disk, slot });
            let range = file.block_range(block);
            // Damage that goes on in the next block here is not what follows in the file.
            let start = range.start.saturating_add(offset % block_bytes).min(range.end);
            let length = (range.end - start).min(*length);
            let (file, cause) = (file.name().clone(), error.to_string());
            Fault::Corrupt { file, offset: start, length, server, cause }
        }
        (DiskError::Failed { .. }, _) => {
            let cause = format!("{error} (it is of {:?})", *file.name());
            Fault::DiskFailed { server, cause }
        }
        (other, _) => disk_fault(server, other),
    }
}

#[cfg(test)]
mod tests {
    //! Proves: damage of an object is told as bytes of its file, within its block and the file.
    use super::*;
    use policy::{Buffering, Pool, Stripe};
    use units::FileId;
    use wire::FileRecord;

    /// What is told of damage at `offset` of the object of 3 servers with 2 disks, on disk 1 of
    /// server 3, the last of the three, which has blocks 5, 11, 17 and so on.
    fn fault_range(block_bytes: u64, file_bytes: u64, offset: u64) -> Option<(u64, u64)> {
        let stripe = Stripe::round_robin(block_bytes, 3, 2);
        let (file, name) = (FileId(1), "f".to_owned());
        let (pool, buffering) = (Pool::Consecutive { first: 1, of: 4 }, Buffering::default());
        let bytes = file_bytes;
        let record = FileRecord { file, name, bytes, cuts: 0, stripe, pool, buffering };
        let record = OpenFile::new(record);
        let (disk, object, length) = ("d".to_owned(), file, 65_536);
        let error = DiskError::Corrupt { disk, object, offset, length };
        match file_fault(ServerId(3), &record, DiskId(1), &error) {
            Fault::Corrupt { file, offset, length, server: ServerId(3), .. } if file == "f" => {
                Some((offset, length))
            }
            _ => None,
        }
    }

    #[test]
    fn corrupt_disk_range_is_reported_as_file_bytes() {
        const PIECE: u64 = 65_536;
        const MIB: u64 = 1 << 20;
        assert_eq!(fault_range(MIB, 100 * MIB, 3 * PIECE), Some((5 * MIB + 3 * PIECE, PIECE)));
        assert_eq!(fault_range(MIB, 100 * MIB, MIB), Some((11 * MIB, PIECE)));
        // A piece of several blocks is told by its first one, which ends where the block ends.
        assert_eq!(fault_range(8192, 100 * MIB, PIECE), Some(((8 * 6 + 5) * 8192, 8192)));
        assert_eq!(fault_range(PIECE + 10, 100 * MIB, PIECE), Some((5 * (PIECE + 10) + PIECE, 10)));
        // The file ends within the piece, or before it.
        assert_eq!(fault_range(MIB, 5 * MIB + 100, 0), Some((5 * MIB, 100)));
        assert_eq!(fault_range(MIB, 5 * MIB, 0), Some((5 * MIB, 0)));
    }

    #[test]
    fn a_disk_without_the_file_is_a_disk_that_failed() {
        let stripe = Stripe::round_robin(1, 1, 1);
        let (pool, buffering, name) = (Pool::all(1), Buffering::default(), String::new());
        let file = FileId(1);
        let file = FileRecord { file, name, bytes: 1, cuts: 0, stripe, pool, buffering };
        let file = OpenFile::new(file);
        let object = FileId(1);
        let error = DiskError::Corrupt { disk: String::new(), object, offset: 0, length: 1 };
        let fault = file_fault(ServerId(0), &file, DiskId(1), &error);
        assert!(matches!(fault, Fault::DiskFailed { .. }), "{fault:?}");
    }
}
