//! State of a server, and operations that all requests use.

use crate::collective::select::active::Selections;
use crate::collective::select::summaries::Summaries;
use crate::server::block_cache::BlockCache;
use crate::server::catalogue::{Catalogue, CatalogueCopy};
use crate::server::client_caches::{ClientCaches, UncachedUse};
use crate::server::clients::connected::Clients;
use crate::server::config::ServerConfig;
use crate::server::counters::Counters;
use crate::server::files::file_disks::FileDisks;
use crate::server::files::in_place_files::InPlaceFiles;
use crate::server::files::kept_sizes::KeptSizes;
use crate::server::files::open_file::OpenFile;
use crate::server::files::open_files::OpenFiles;
use crate::server::files::protections::Protections;
use crate::server::files::write_failures::WriteFailures;
use crate::server::groups::Groups;
use crate::server::leases::{Leases, Readers};
use crate::server::mirrors::{Marked, Marks, Mirrors};
use crate::server::other_servers::OtherServers;
use crate::server::refill::Lacking;
use crate::server::stop::Stop;
use crate::server::transfers::active_transfers::ActiveTransfers;
use crate::server::transfers::memory::TransferMemory;
use crate::to_its_end::to_its_end;
use policy::Protection;
use std::convert::Infallible;
use std::rc::Rc;
use units::{FileId, ServerId};
use wire::Fault;
use world::{Scope, World};

/// A server: its parts, each with state of its own.
pub(crate) struct Server<W: World> {
    world: W,
    config: ServerConfig,
    cache: BlockCache<W>,
    write_failures: Rc<WriteFailures>,
    files: OpenFiles<W>,
    in_place: InPlaceFiles,
    kept_sizes: Rc<KeptSizes<W>>,
    disks: Rc<FileDisks<W>>,
    others: Rc<OtherServers<W>>,
    mirrors: Rc<Mirrors<W>>,
    lacking: Rc<Lacking<W>>,
    catalogue: Option<Rc<Catalogue<W>>>,
    catalogue_copy: Option<CatalogueCopy<W>>,
    clients: Clients<W>,
    client_caches: ClientCaches<W>,
    changes: Scope<W, Infallible>,
    counters: Counters,
    memory: TransferMemory,
    active_transfers: ActiveTransfers,
    groups: Groups<W::Memory>,
    leases: Leases,
    readers: Readers,
    selections: Selections<W::Payload>,
    summaries: Summaries<W::Payload>,
    collectives: Scope<W, Infallible>,
    stop: Stop,
}

impl<W: World> Server<W> {
    /// Makes a server without clients and files.
    pub(crate) fn new(
        world: W,
        config: ServerConfig,
        (kept_sizes, protections): (KeptSizes<W>, Protections<W>),
        catalogue: Option<Catalogue<W>>,
        catalogue_copy: Option<CatalogueCopy<W>>,
        marks: (Marks<W>, Vec<Marked>),
        lacking: Lacking<W>,
    ) -> Rc<Self> {
        let memory = TransferMemory::new(&config, world.disks().len());
        let write_failures = Rc::new(WriteFailures::default());
        let catalogue = catalogue.map(Rc::new);
        let others = Rc::new(OtherServers::new(world.clone(), config.id));
        let (told, known) = (Rc::clone(&others), catalogue.clone());
        let lacking = Rc::new(lacking);
        let refill = (Rc::clone(&lacking), Rc::clone(&write_failures));
        let kept_sizes = Rc::new(kept_sizes);
        let sizes = Rc::clone(&kept_sizes);
        let own = (config.id, config.cache_bytes);
        let mirrors = Mirrors::new(world.clone(), own, told, known, marks, refill, sizes);
        let mirrors = Rc::new(mirrors);
        let (failures, copies) = (Rc::clone(&write_failures), Rc::clone(&mirrors));
        let protections = Rc::new(protections);
        let files = OpenFiles::new(Rc::clone(&protections));
        let known = (Rc::clone(&lacking), protections);
        let disks = Rc::new(FileDisks::new(world.clone(), &config, failures, copies, known));
        let cache = BlockCache::new(
            world.clone(),
            &config,
            Rc::clone(memory.watchdog()),
            Rc::clone(&write_failures),
            Rc::clone(&disks),
        );
        let selections = Selections::new(config.buffer_bytes);
        let server = Rc::new(Self {
            cache,
            disks,
            others,
            mirrors,
            lacking,
            write_failures,
            changes: Scope::new(world.clone()),
            collectives: Scope::new(world.clone()),
            world,
            config,
            files,
            in_place: InPlaceFiles::default(),
            kept_sizes,
            catalogue,
            catalogue_copy,
            clients: Clients::default(),
            client_caches: ClientCaches::default(),
            counters: Counters::default(),
            memory,
            active_transfers: ActiveTransfers::default(),
            groups: Groups::default(),
            leases: Leases::default(),
            readers: Readers::default(),
            selections,
            summaries: Summaries::default(),
            stop: Stop::default(),
        });
        let weak = Rc::downgrade(&server);
        server.mirrors.when_rolled_back(move |file| {
            if let Some(server) = weak.upgrade() {
                server.forget_clean(file);
            }
        });
        server
    }

    /// Forgets what the disks had of a file, which is not what they have. Clients that keep pages
    /// of it drop them.
    fn forget_clean(self: &Rc<Self>, file: FileId) {
        self.cache.forget_clean(file);
        self.summaries.forget(file);
        if let Ok(open) = self.files.get(file) {
            open.note_change();
        }
        let server = Rc::clone(self);
        self.changes.spawn(async move {
            server.exclude_readers(file, None).await;
            Ok(())
        });
    }

    pub(crate) fn world(&self) -> &W {
        &self.world
    }

    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// The cache of blocks.
    pub(crate) fn cache(&self) -> &BlockCache<W> {
        &self.cache
    }

    /// Failures of write-behind.
    pub(crate) fn write_failures(&self) -> &WriteFailures {
        &self.write_failures
    }

    /// Carries out work to its end, also when the client that asked for it leaves: half of it could
    /// leave a file open, or make records and memory differ.
    pub(crate) async fn to_its_end<T: 'static>(
        &self,
        work: impl Future<Output = T> + 'static,
    ) -> T {
        to_its_end(self.changes(), work).await
    }

    /// Files that clients have open.
    pub(crate) fn files(&self) -> &OpenFiles<W> {
        &self.files
    }

    /// Sizes of files that must not be lost.
    pub(crate) fn kept_sizes(&self) -> &KeptSizes<W> {
        &self.kept_sizes
    }

    /// The parts of files on the disks.
    pub(crate) fn disks(&self) -> &FileDisks<W> {
        &self.disks
    }

    /// The other servers of the instance.
    pub(crate) fn others(&self) -> &Rc<OtherServers<W>> {
        &self.others
    }

    /// Copies of the parts of mirrored files that this server holds.
    pub(crate) fn mirrors(&self) -> &Rc<Mirrors<W>> {
        &self.mirrors
    }

    /// List of files that new data directories lack.
    pub(crate) fn lacking(&self) -> &Lacking<W> {
        &self.lacking
    }

    /// The catalogue, which one server of an instance has.
    pub(crate) fn catalogue(&self) -> Option<&Catalogue<W>> {
        self.catalogue.as_deref()
    }

    /// The copy of the catalogue, which the other servers have.
    pub(crate) fn catalogue_copy(&self) -> Option<&CatalogueCopy<W>> {
        self.catalogue_copy.as_ref()
    }

    /// The clients that are connected.
    pub(crate) fn clients(&self) -> &Clients<W> {
        &self.clients
    }

    /// Caches at clients.
    pub(crate) fn client_caches(&self) -> &ClientCaches<W> {
        &self.client_caches
    }

    /// Active changes of the catalogue. They run to their end even when their client leaves.
    pub(crate) fn changes(&self) -> &Scope<W, Infallible> {
        &self.changes
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Memory of transfers.
    pub(crate) fn memory(&self) -> &TransferMemory {
        &self.memory
    }

    /// Ordinary files that this server works on.
    pub(crate) fn in_place(&self) -> &InPlaceFiles {
        &self.in_place
    }

    /// Active collectives and parts of single clients.
    pub(crate) fn active_transfers(&self) -> &ActiveTransfers {
        &self.active_transfers
    }

    /// Groups of clients, and their calls.
    pub(crate) fn groups(&self) -> &Groups<W::Memory> {
        &self.groups
    }

    /// Leases of clients that gather writes.
    pub(crate) fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Clients that keep pages.
    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    /// Selections of records that clients have begun.
    pub(crate) fn selections(&self) -> &Selections<W::Payload> {
        &self.selections
    }

    /// Summaries of files.
    pub(crate) fn summaries(&self) -> &Summaries<W::Payload> {
        &self.summaries
    }

    /// Active collectives of groups.
    pub(crate) fn collectives(&self) -> &Scope<W, Infallible> {
        &self.collectives
    }

    /// Request to end the server.
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Handles the last close of a file. Returns true when the file has no name any more, so that
    /// its data goes.
    pub(crate) fn closed(self: &Rc<Self>, file: FileId) -> bool {
        if !self.files.must_go(file) {
            self.forget_unused(file);
            self.cache.release(file);
            return false;
        }
        // At once, so that no client opens it again.
        let known = self.files.forget(file);
        let protection = known.as_ref().map_or(Protection::None, |known| known.protection());
        let server = Rc::clone(self);
        self.changes.spawn(async move {
            if let Some(known) = known {
                // The clients that wrote have left.
                let _ = server.settle_in_place(&known).await;
            }
            // No client is left that could get a fault of the disk; the remaining data has no name.
            let _ = server.drop_file(file, protection).await;
            Ok(())
        });
        true
    }

    /// Forgets the state of a file that no client has open, after the disks have got its time.
    pub(crate) fn forget_unused(&self, file: FileId) {
        if let Some(file) = self.files.forget_unused(file) {
            // It takes effect at once.
            drop(self.disks.set_time(&file));
            self.mirrors.release(file.file);
        }
    }

    /// Begins to change a file other than through a cache of a client.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when clients use the file through caches: they would not see it.
    /// [`Fault::ReadOnly`] when nothing may be changed.
    pub(crate) fn begin_change(&self, file: &Rc<OpenFile>) -> Result<FileChange<'_, W>, Fault> {
        self.check_not_read_only()?;
        let uncached = match self.config.client_caches {
            true => {
                let begun = self.client_caches.files.begin_change(file.file);
                Some(begun.ok_or_else(|| in_caches(file))?)
            }
            false => None,
        };
        file.changes.update(|changes| changes + 1);
        Ok(FileChange { world: &self.world, file: Rc::clone(file), _uncached: uncached })
    }

    /// Refuses to change a file as [`begin_change`](Self::begin_change) does, for a change that
    /// ends at once.
    pub(crate) fn check_not_cached(&self, file: &OpenFile) -> Result<(), Fault> {
        self.check_not_read_only()?;
        match self.config.client_caches && self.client_caches.files.is_wanted(file.file) {
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
    /// Keeps the file out of caches at clients, if there can be any.
    _uncached: Option<UncachedUse<'a>>,
}

impl<W: World> Drop for FileChange<'_, W> {
    fn drop(&mut self) {
        self.file.changes.update(|changes| changes - 1);
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
