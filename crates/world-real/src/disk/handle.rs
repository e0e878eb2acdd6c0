//! Handle of an open disk.

use super::directory::Directory;
use super::extent_cache::ExtentCache;
use super::failure::Failure;
use super::object::Found;
use super::root::Root;
use super::times::Times;
use crate::config::{DiskConfig, OpenError};
use crate::memory::RealPayload;
use crate::worker::{Step, Worker, WorkerFailure};
use futures_util::future::{Either, select};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::{FileId, Timestamp};
use world::{Disk, DiskError, ObjectMetadata, OrdinaryFile, Payload, Space};

/// Concurrent direct reads of a disk. While the bytes of one are verified and delivered, the device
/// must not be idle.
const READERS: usize = 2;

/// Handle of one open disk.
#[derive(Clone)]
pub(super) struct OpenDisk {
    shared: Rc<Shared>,
}

struct Shared {
    name: String,
    worker: Worker<Directory>,
    /// Thread for metadata queries of the directory, which run while a write waits for the device.
    metadata: Worker<Arc<Root>>,
    places: ExtentCache,
    times: Arc<Times>,
    changing: AllChanging,
    /// Objects of metadata queries in flight, and a flag set when a change of the object is
    /// requested meanwhile.
    queries: RefCell<Vec<(FileId, Weak<Cell<bool>>)>>,
    /// Objects whose removal is not known to be on stable storage.
    removing: RefCell<BTreeSet<FileId>>,
}

impl OpenDisk {
    /// Opens an existing directory as a disk.
    pub(super) fn open(
        config: &DiskConfig,
        objects_open_max: usize,
        hang_limit: Option<Duration>,
    ) -> Result<Self, OpenError> {
        let (path, options) = (&config.directory, config.options);
        let failed = |cause: String| OpenError::Directory {
            directory: path.clone(),
            purpose: "objects",
            cause,
        };
        let name = path.display().to_string();
        let directory = Directory::open(config, objects_open_max).map_err(failed)?;
        directory.check_direct().map_err(|error| OpenError::NotDirect {
            directory: path.clone(),
            cause: error.to_string(),
        })?;
        let times = Arc::clone(&directory.root().times);
        let readers = if options.direct { READERS } else { 0 };
        let metadata = Worker::start("disk metadata", Arc::clone(directory.root()), 0, hang_limit);
        let worker = Worker::start("disk", directory, readers, hang_limit);
        let worker = worker.map_err(|error| failed(error.to_string()))?;
        let metadata = metadata.map_err(|error| failed(error.to_string()))?;
        let (places, changing) = (ExtentCache::default(), AllChanging::default());
        Ok(Self {
            shared: Rc::new(Shared {
                name,
                worker,
                metadata,
                places,
                times,
                changing,
                queries: RefCell::default(),
                removing: RefCell::default(),
            }),
        })
    }

    async fn call<R: Send + 'static>(
        &self,
        operation: String,
        work: impl FnOnce(&mut Directory) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, DiskError> {
        let done = self.shared.worker.call(checked(work)).await;
        self.completed(operation, done)
    }

    /// Executes `work` before queued requests, which it does not depend on.
    async fn call_with_priority<R: Send + 'static>(
        &self,
        operation: String,
        work: impl FnOnce(&mut Directory) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, DiskError> {
        let done = self.shared.worker.call_with_priority(checked(work)).await;
        self.completed(operation, done)
    }

    /// Executes a metadata query on the metadata thread.
    async fn query<R: Send + 'static>(
        &self,
        operation: String,
        query: impl FnOnce(&Root) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, DiskError> {
        let work = |root: &mut Arc<Root>| root.check_present().and_then(|()| query(root));
        let done = self.shared.metadata.call(work).await;
        self.completed(operation, done)
    }

    /// Executes `work` that changes an object.
    async fn change<R: Send + 'static>(
        &self,
        object: FileId,
        operation: String,
        work: impl FnOnce(&mut Directory) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, DiskError> {
        let changing = Changing::begin(&self.shared.changing, object);
        self.invalidate_queries(object);
        let work = move |directory: &mut Directory| {
            let _changing = changing;
            work(directory)
        };
        self.call(operation, work).await
    }

    /// Executes a metadata query of an object; `None` when a change of it was requested before or
    /// meanwhile.
    async fn query_object<R: Send + 'static>(
        &self,
        object: FileId,
        operation: String,
        query: impl FnOnce(&Root) -> Result<R, Failure> + Send + 'static,
    ) -> Result<Option<R>, DiskError> {
        if self.is_changing(object) {
            return Ok(None);
        }
        let is_stale = Rc::<Cell<bool>>::default();
        {
            let mut queries = self.shared.queries.borrow_mut();
            // Ended queries are dropped here: an object that never changes may be queried often.
            queries.retain(|(_, is_stale)| is_stale.strong_count() > 0);
            queries.push((object, Rc::downgrade(&is_stale)));
        }
        let found = self.query(operation, query).await?;
        Ok((!is_stale.get()).then_some(found))
    }

    /// Marks the queries of an object as stale.
    fn invalidate_queries(&self, object: FileId) {
        self.shared.queries.borrow_mut().retain(|(at, is_stale)| {
            let is_stale = is_stale.upgrade();
            if let Some(is_stale) = is_stale.as_ref().filter(|_| *at == object) {
                is_stale.set(true);
            }
            is_stale.is_some()
        });
    }

    /// True if a change of the object is queued.
    fn is_changing(&self, object: FileId) -> bool {
        lock(&self.shared.changing).contains_key(&object)
    }

    /// Converts the outcome of an operation.
    fn completed<R>(
        &self,
        operation: String,
        done: Result<Result<R, Failure>, WorkerFailure>,
    ) -> Result<R, DiskError> {
        let disk = self.shared.name.clone();
        match done {
            Ok(done) => done.map_err(|failure| failure.of(disk, operation)),
            Err(WorkerFailure::Gone) => {
                let cause =
                    "the thread of the disk has stopped, or failed during the operation".into();
                Err(DiskError::Failed { disk, operation, cause })
            }
            Err(WorkerFailure::Hangs(limit)) => {
                let limit = limit.as_secs_f64();
                let cause = format!("the disk hangs: no request has ended for {limit} s");
                Err(DiskError::Failed { disk, operation, cause })
            }
        }
    }
}

/// Returns `work`, preceded by a check that the directory is still there.
fn checked<R>(
    work: impl FnOnce(&mut Directory) -> Result<R, Failure>,
) -> impl FnOnce(&mut Directory) -> Result<R, Failure> {
    |directory| {
        directory.root().check_present()?;
        work(directory)
    }
}

/// Number of queued changes of each object.
type AllChanging = Arc<Mutex<BTreeMap<FileId, usize>>>;

/// Queued change of an object, counted until it ends, even if its caller has stopped waiting.
struct Changing {
    all: AllChanging,
    object: FileId,
}

impl Changing {
    fn begin(all: &AllChanging, object: FileId) -> Self {
        *lock(all).entry(object).or_default() += 1;
        Self { all: Arc::clone(all), object }
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        let mut all = lock(&self.all);
        let Some(count) = all.get_mut(&self.object) else { return };
        *count -= 1;
        if *count == 0 {
            all.remove(&self.object);
        }
    }
}

/// Locks a map, which is held for a step that does not panic.
fn lock(all: &Mutex<BTreeMap<FileId, usize>>) -> MutexGuard<'_, BTreeMap<FileId, usize>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk for OpenDisk {
    type Payload = RealPayload;

    fn address(&self, object: FileId, offset: u64) -> u64 {
        self.shared.places.address(object, offset)
    }

    async fn locate(&self, object: FileId) {
        let known = self.shared.places.version(object);
        let operation = format!("locate {object}");
        let located = self.call(operation, move |directory| Ok(directory.locate(object, known)));
        // Without an answer, blocks are sorted by older addresses, which is not less correct.
        if let Ok(Some(place)) = located.await {
            self.shared.places.learn(object, place);
        }
    }

    async fn metadata(&self, object: FileId) -> Result<Option<ObjectMetadata>, DiskError> {
        let operation = format!("read the metadata of {object}");
        let query = move |root: &Root| root.metadata(object);
        match self.query_object(object, operation.clone(), query).await? {
            Some(metadata) => Ok(metadata),
            None => self.call(operation, move |directory| directory.root().metadata(object)).await,
        }
    }

    fn set_modified(
        &self,
        object: FileId,
        modified: Timestamp,
    ) -> impl Future<Output = ()> + 'static {
        self.shared.times.set(object, modified);
        let store = move |root: &mut Arc<Root>| root.store_time(object);
        let stored = self.shared.metadata.start_with_priority(store);
        async { _ = stored.await }
    }

    async fn read(
        &self,
        object: FileId,
        offset: u64,
        length: u64,
    ) -> Result<RealPayload, DiskError> {
        let operation = format!("read {length} bytes at {offset} of {object}");
        let work = move |directory: &mut Directory| {
            let present = directory.root().check_present();
            match present.and_then(|()| directory.read(object, offset, length)) {
                Ok(Found::Bytes(bytes)) => Step::Done(Ok(bytes)),
                Ok(Found::OnDevice(place)) => Step::Remainder(Box::new(|| place.read())),
                Err(failure) => Step::Done(Err(failure)),
            }
        };
        let done = self.shared.worker.call_shared(work).await;
        self.completed(operation, done)
    }

    async fn write(
        &self,
        object: FileId,
        offset: u64,
        payload: RealPayload,
    ) -> Result<(), DiskError> {
        let operation = format!("write {} bytes at {offset} of {object}", payload.length());
        let work = move |directory: &mut Directory| directory.write(object, offset, &payload);
        self.change(object, operation, work).await
    }

    async fn sync(&self, object: FileId) -> Result<(), DiskError> {
        // The payloads to be synced have been written.
        let work = move |directory: &mut Directory| directory.sync(object);
        self.call_with_priority(format!("sync {object}"), work).await
    }

    async fn truncate(&self, object: FileId, length: u64) -> Result<(), DiskError> {
        let operation = format!("truncate {object} to {length} bytes");
        let work = move |directory: &mut Directory| directory.truncate(object, length);
        self.change(object, operation, work).await
    }

    async fn remove(&self, object: FileId) -> Result<(), DiskError> {
        self.shared.places.forget(object);
        let operation = format!("remove {object}");
        let is_first = self.shared.removing.borrow_mut().insert(object);
        let was_changing = self.is_changing(object);
        let is_there = pin!(self.query(operation.clone(), move |root| root.has(object)));
        let remove = move |directory: &mut Directory| directory.remove(object);
        // Both start now, so that later requests of the object follow its removal.
        let removed = pin!(self.change(object, operation, remove));
        match select(removed, is_there).await {
            Either::Left((removed, _)) => removed?,
            // The object does not exist, so the disk's thread only discards its state of it.
            Either::Right((Ok(false), _)) if is_first && !was_changing => {
                self.shared.removing.borrow_mut().remove(&object);
                return Ok(());
            }
            Either::Right((_, removed)) => removed.await?,
        }
        // All objects removed meanwhile share one write to the device.
        self.call_with_priority(format!("forget {object}"), Directory::sync_entries).await?;
        self.shared.removing.borrow_mut().remove(&object);
        Ok(())
    }

    async fn adopt(
        &self,
        object: FileId,
        path: &str,
        lock: bool,
    ) -> Result<OrdinaryFile, DiskError> {
        let (operation, path) = (format!("adopt {path:?} as {object}"), PathBuf::from(path));
        self.call(operation, move |directory| directory.adopt(object, &path, lock)).await
    }

    async fn extend(&self, object: FileId, length: u64) -> Result<(), DiskError> {
        let operation = format!("extend {object} to {length} bytes");
        self.change(object, operation, move |directory| directory.extend(object, length)).await
    }

    async fn release(&self, object: FileId, length: u64) -> Result<(), DiskError> {
        self.shared.places.forget(object);
        let operation = format!("extend {object} to {length} bytes");
        self.change(object, operation, move |directory| directory.release(object, length)).await
    }

    async fn space(&self) -> Result<Space, DiskError> {
        self.query("report its free space".into(), Root::space).await
    }
}
