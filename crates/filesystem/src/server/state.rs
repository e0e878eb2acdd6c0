//! State of a server, and operations that all requests use.

use crate::server::block_cache::BlockCache;
use crate::server::catalogue::Catalogue;
use crate::server::client_caches::{ClientCaches, UncachedUse};
use crate::server::clients::connected::Clients;
use crate::server::config::ServerConfig;
use crate::server::counters::Counters;
use crate::server::files::file_disks::FileDisks;
use crate::server::files::kept_sizes::KeptSizes;
use crate::server::files::open_file::OpenFile;
use crate::server::files::open_files::OpenFiles;
use crate::server::files::write_failures::WriteFailures;
use crate::server::groups::Groups;
use crate::server::stop::Stop;
use crate::server::transfers::active_transfers::ActiveTransfers;
use crate::server::transfers::memory::TransferMemory;
use std::convert::Infallible;
use std::rc::Rc;
use units::{FileId, ServerId};
use wire::Fault;
use world::{Scope, World};

/// A server: its parts, each with state of its own.
pub(crate) struct Server<W: World> {
    pub(crate) world: W,
    pub(crate) config: ServerConfig,
    pub(crate) cache: BlockCache<W>,
    /// Failures of write-behind.
    pub(crate) write_failures: Rc<WriteFailures>,
    pub(crate) files: OpenFiles,
    pub(crate) kept_sizes: KeptSizes<W>,
    pub(crate) disks: FileDisks<W>,
    pub(crate) catalogue: Option<Catalogue<W>>,
    pub(crate) clients: Clients<W>,
    /// Caches at clients.
    pub(crate) client_caches: ClientCaches<W>,
    /// Active changes of the catalogue. They run to their end even when their client leaves.
    pub(crate) changes: Scope<W, Infallible>,
    pub(crate) counters: Counters,
    pub(crate) memory: TransferMemory,
    /// Active collectives and parts of single clients.
    pub(crate) active_transfers: ActiveTransfers,
    /// Groups of clients, and their calls.
    pub(crate) groups: Groups,
    /// Active collectives of groups.
    pub(crate) collectives: Scope<W, Infallible>,
    pub(crate) stop: Stop,
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
            drop(self.disks.set_time(&file));
        }
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

    /// Returns the number of this server among the servers of a file.
    pub(crate) fn place_in(&self, file: &OpenFile) -> Result<ServerId, Fault> {
        file.place_of(self.config.id).ok_or_else(|| Fault::BadRequest {
            cause: format!("{:?} has no blocks on {}", file.name(), self.config.id),
        })
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
