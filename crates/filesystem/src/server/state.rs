//! The state of a server, and what all of its requests use.

use crate::server::block_cache::BlockCache;
use crate::server::block_cache::block_locks::BlockLocks;
use crate::server::catalogue::Catalogue;
use crate::server::clients::outbound_connections::OutboundConnections;
use crate::server::clients::session::Session;
use crate::server::config::ServerConfig;
use crate::server::files::kept_sizes::KeptSizes;
use crate::server::files::open_file::OpenFile;
use crate::server::files::open_files::OpenFiles;
use crate::server::rendezvous::Rendezvous;
use crate::server::transfers::active_transfers::ActiveTransfers;
use crate::server::transfers::buffer_pool::TransferBufferPool;
use crate::server::transfers::transfer_watchdog::TransferWatchdog;
use crate::server::transfers::write_budget::WriteBudget;
use crate::signal::Signal;
use crate::table::Table;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use units::{FileId, PeerId, ServerId};
use wire::{ClientKey, Fault};
use world::{Scope, World};

/// The state of a server.
pub(crate) struct Server<W: World> {
    pub(crate) world: W,
    pub(crate) config: ServerConfig,
    pub(crate) cache: Rc<BlockCache<W>>,
    pub(crate) locks: Rc<BlockLocks>,
    pub(crate) files: OpenFiles,
    pub(crate) kept_sizes: KeptSizes<W>,
    pub(crate) catalogue: Option<Catalogue<W>>,
    /// The clients that are connected.
    pub(crate) sessions: RefCell<Table<PeerId, Box<Session<W>>>>,
    /// The connection of each client, by its name.
    pub(super) peers: RefCell<BTreeMap<ClientKey, PeerId>>,
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
    /// Active collectives and parts of single clients.
    pub(crate) active_transfers: ActiveTransfers,
    /// Groups whose members meet at the servers.
    pub(crate) rendezvous: Rendezvous,
    pub(crate) stopping: Cell<bool>,
    pub(crate) stop: Signal,
}

/// What a server counts.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) requests: Cell<u64>,
    pub(crate) bytes_moved: Cell<u64>,
}

impl<W: World> Server<W> {
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
