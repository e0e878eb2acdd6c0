//! State of a server, and operations that all requests use.

use crate::scale::Table;
use crate::server::block_cache::BlockCache;
use crate::server::block_cache::block_locks::BlockLocks;
use crate::server::catalogue::Catalogue;
use crate::server::client_caches::{ClientCaches, UncachedUse};
use crate::server::clients::departed_keys::DepartedKeys;
use crate::server::clients::probes::Probes;
use crate::server::clients::session::Session;
use crate::server::config::ServerConfig;
use crate::server::files::kept_sizes::KeptSizes;
use crate::server::files::open_file::OpenFile;
use crate::server::files::open_files::OpenFiles;
use crate::server::files::write_failures::WriteFailures;
use crate::server::groups::Groups;
use crate::server::transfers::active_transfers::ActiveTransfers;
use crate::server::transfers::answer_pools::AnswerPools;
use crate::server::transfers::buffer_pool::TransferBufferPool;
use crate::server::transfers::request_budget::RequestBudget;
use crate::server::transfers::transfer_watchdog::TransferWatchdog;
use crate::server::transfers::write_budget::WriteBudget;
use crate::signal::Signal;
use futures_util::future::join_all;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use units::{FileId, PeerId, ServerId};
use wire::{ClientKey, Fault};
use world::{Disk, Scope, World};

/// State of a server.
pub(crate) struct Server<W: World> {
    pub(crate) world: W,
    pub(crate) config: ServerConfig,
    pub(crate) cache: BlockCache<W>,
    /// Failures of write-behind.
    pub(crate) write_failures: Rc<WriteFailures>,
    pub(crate) locks: Rc<BlockLocks>,
    pub(crate) files: OpenFiles,
    pub(crate) kept_sizes: KeptSizes<W>,
    pub(crate) catalogue: Option<Catalogue<W>>,
    /// Sessions of connected clients.
    pub(crate) sessions: RefCell<Table<PeerId, Box<Session<W>>>>,
    /// Connection of each client, by its key.
    pub(super) peers: RefCell<BTreeMap<ClientKey, PeerId>>,
    pub(crate) departed: DepartedKeys,
    /// Notified when a client has sent its greeting.
    pub(crate) greeted: Signal,
    /// Caches at clients.
    pub(crate) client_caches: ClientCaches<W>,
    /// Active changes of the catalogue. They run to their end even when their client leaves.
    pub(crate) changes: Scope<W, Infallible>,
    pub(crate) counters: Counters,
    /// Capacity and free space of each disk in bytes, as last reported.
    pub(crate) spaces: Box<[Cell<(u64, u64)>]>,
    /// Buffers of active transfers, by disk.
    pub(crate) buffer_pools: Box<[TransferBufferPool]>,
    /// Data of answers, from before it is read until the client has it.
    pub(crate) answers: AnswerPools,
    /// Budget of the bytes of large requests.
    pub(crate) request_budget: Rc<RequestBudget>,
    /// Budget of data that came with write requests.
    pub(crate) write_budget: Rc<WriteBudget>,
    /// Watchdog of transfers between these buffers, or the cache, and clients.
    pub(crate) watchdog: Rc<TransferWatchdog>,
    /// Active collectives and parts of single clients.
    pub(crate) active_transfers: ActiveTransfers,
    /// Groups of clients, and their calls.
    pub(crate) groups: Groups,
    /// Active collectives of groups.
    pub(crate) collectives: Scope<W, Infallible>,
    /// Clients that are being pinged.
    pub(crate) probes: Probes,
    pub(crate) stopping: Cell<bool>,
    pub(crate) stop: Signal,
}

/// Counters of a server.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) requests: Cell<u64>,
    pub(crate) bytes_moved: Cell<u64>,
}

impl<W: World> Server<W> {
    /// Handles the last close of a file. Returns true when the file has no name any more, so that
    /// its data goes.
    pub(crate) fn closed(self: &Rc<Self>, file: FileId) -> bool {
        if !self.files.must_go(file) {
            self.forget_unused(file);
            self.cache.release(file);
            return false;
        }
        // At once, so that no client opens it again.
        self.files.forget(file);
        let server = Rc::clone(self);
        self.changes.spawn(async move {
            // No client is left that could get a fault of the disk; the remaining data has no name.
            let _ = server.drop_file(file).await;
            Ok(())
        });
        true
    }

    /// Forgets the state of a file that no client has open, after the disks have got its time.
    pub(crate) fn forget_unused(&self, file: FileId) {
        if let Some(file) = self.files.forget_unused(file) {
            // It takes effect at once.
            drop(self.give_time_to_disks(&file));
        }
    }

    /// Gives the disks the time of a file that was changed. Returns the end of that.
    pub(crate) fn give_time_to_disks(&self, file: &OpenFile) -> impl Future + '_ {
        let modified = file.modified_since_open();
        let set = modified.into_iter().flat_map(|modified| {
            let disks = self.disks_with_blocks(file);
            disks.map(move |(_, disk)| disk.set_modified(file.file, modified))
        });
        join_all(set.collect::<Vec<_>>())
    }

    /// Begins to change a file other than through a cache of a client.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when clients use the file through caches: they would not see it.
    /// [`Fault::ReadOnly`] when nothing may be changed.
    pub(crate) fn begin_change(&self, file: &Rc<OpenFile>) -> Result<FileChange<'_, W>, Fault> {
        self.check_not_read_only()?;
        let begun = self.client_caches.files.begin_change(file.file);
        let begun = begun.ok_or_else(|| in_caches(file))?;
        Ok(FileChange { world: &self.world, file: Rc::clone(file), _use: begun })
    }

    /// Refuses to change a file as [`begin_change`](Self::begin_change) does, for a change that
    /// ends at once.
    pub(crate) fn check_not_cached(&self, file: &OpenFile) -> Result<(), Fault> {
        self.check_not_read_only()?;
        match self.client_caches.files.is_wanted(file.file) {
            false => Ok(()),
            true => Err(in_caches(file)),
        }
    }

    /// Fails if nothing may be changed.
    pub(crate) fn check_not_read_only(&self) -> Result<(), Fault> {
        if self.config.read_only { Err(Fault::ReadOnly) } else { Ok(()) }
    }

    /// Returns the connection of the client with this key.
    pub(crate) fn peer_of(&self, key: ClientKey) -> Option<PeerId> {
        self.peers.borrow().get(&key).copied()
    }

    /// Returns the number of this server among the servers of a file.
    pub(crate) fn place_in(&self, file: &OpenFile) -> Result<ServerId, Fault> {
        file.place_of(self.config.id).ok_or_else(|| Fault::BadRequest {
            cause: format!("{:?} has no blocks on {}", file.name(), self.config.id),
        })
    }

    /// Tells if a client is connected.
    pub(crate) fn is_here(&self, peer: PeerId) -> bool {
        self.sessions.borrow().contains(peer)
    }
}

/// Change of a file other than through a cache of a client. When it is dropped, the file has a new
/// time, whatever of the change was made.
pub(crate) struct FileChange<'a, W: World> {
    world: &'a W,
    file: Rc<OpenFile>,
    _use: UncachedUse<'a>,
}

impl<W: World> Drop for FileChange<'_, W> {
    fn drop(&mut self) {
        self.file.changed_at(self.world.timestamp());
    }
}

fn in_caches(file: &OpenFile) -> Fault {
    let cause = format!(
        "{:?} is in caches of clients, so it can be changed through such a cache only",
        *file.name()
    );
    Fault::BadRequest { cause }
}
