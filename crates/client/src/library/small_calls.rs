//! Small calls that need no message: writes that are gathered in the memory of the program, and
//! reads from pages that it keeps
//! ([0080](../../../../docs/decisions/0080-clients-gather-small-writes-under-leases.md)).
//!
//! A thread that writes a few bytes adds them to those of its process. The I/O thread sends them
//! when there are many, when they are old, and when a server wants them. A thread that reads a few
//! bytes takes them from a page of its process, which the I/O thread drops when a server wants that.
//!
//! Invariants:
//! - A call on the same bytes comes after gathered writes of them.
//! - A read from a page that begins after another client's write has ended gets its bytes.
//! - What was gathered is sent before its connection ends, also when the process exits.

use super::cached_record::CachedRecord;
use super::connection::{Connection, Inner};
use filesystem::{
    Activity, Added, Fault, GatheredStore, Kept, KeptPages, KeptStore, PendingWrites, TakenWrites,
};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use units::{ByteRange, FileId};
use wire::FileRecord;
use world_real::{BlockingConnection, RealPayload, host_time_ns};

/// Longest write that is gathered, in bytes.
const GATHERED_WRITE_MAX: usize = BlockingConnection::BODY_BYTES_MAX;

/// Largest read from kept pages, in bytes.
const KEPT_READ_MAX: usize = 256 << 10;

/// Maximum number of pages that are fetched for one read, and once more to read from them.
const FETCHES_MAX: u32 = 3;

/// Tells if a call may wait for messages that make later ones faster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waiting {
    /// It may.
    ForServers,
    /// It must return at once.
    Never,
}

/// Small calls on one file of a connection.
pub(super) struct SmallCalls {
    known: CachedRecord,
    pending: Mutex<PendingWrites<Vec<u8>>>,
    kept: Mutex<KeptPages<RealPayload>>,
}

/// Files of a connection with small calls.
#[derive(Default)]
pub(super) struct FilesOfSmallCalls(Mutex<BTreeMap<FileId, Weak<SmallCalls>>>);

impl FilesOfSmallCalls {
    /// Returns the small calls on a file, which all handles of it share.
    pub(super) fn of(&self, known: &CachedRecord) -> Arc<SmallCalls> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = known.get().file;
        if let Some(calls) = files.get(&file).and_then(Weak::upgrade) {
            return calls;
        }
        files.retain(|_, calls| calls.strong_count() > 0);
        let (known, pending, kept) = (known.clone(), Mutex::default(), Mutex::default());
        let calls = Arc::new(SmallCalls { known, pending, kept });
        files.insert(file, Arc::downgrade(&calls));
        calls
    }
}

impl SmallCalls {
    fn pending(&self) -> MutexGuard<'_, PendingWrites<Vec<u8>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, KeptPages<RealPayload>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// End of the gathered writes that servers may not have.
    pub(super) fn end(&self) -> u64 {
        self.pending().end()
    }

    /// True if a call on `range` must come after gathered writes, or tell of lost ones.
    pub(super) fn concerns(&self, range: ByteRange) -> bool {
        self.pending().concerns(range)
    }
}

impl Connection {
    /// Gathers a write of a file. False if the caller must write the bytes by itself.
    pub(super) fn gather(
        &self,
        calls: &Arc<SmallCalls>,
        from: &[u8],
        offset: u64,
        waiting: Waiting,
    ) -> bool {
        let is_small = (1..=GATHERED_WRITE_MAX).contains(&from.len());
        let range = ByteRange::checked_at(offset, from.len() as u64);
        let Some(range) = range.filter(|range| is_small && range.end <= policy::BYTES_MAX) else {
            return false;
        };
        // A forked child must not touch what other threads of its parent may have locked.
        if !self.options().gathers_writes || !self.0.thread.is_of_this_process() {
            return false;
        }
        let file = calls.known.get();
        loop {
            let added = calls.pending().add(&file, range, host_time_ns(), |data, part| {
                data.extend_from_slice(&from[part.start as usize..part.end as usize]);
            });
            if matches!(added, Added::Gathered | Added::HalfFull) {
                calls.kept().wrote(range);
            }
            match added {
                Added::Gathered => return true,
                Added::HalfFull => {
                    // It goes on by itself, while the caller gathers more.
                    drop(self.begin_sending(file.file));
                    return true;
                }
                Added::Full => {
                    let sending = self.begin_sending(file.file);
                    if waiting == Waiting::Never || sending.wait().is_err() {
                        return false;
                    }
                }
                Added::Refused => return false,
                Added::WantsLease => {
                    let beginning = self.begin_gathering(calls);
                    // The call itself meets what is wrong with a server.
                    if waiting == Waiting::Never || !beginning.wait().unwrap_or(false) {
                        return false;
                    }
                }
            }
        }
    }

    fn begin_sending(&self, file: FileId) -> super::Operation<()> {
        let what = || "cannot send gathered writes".to_owned();
        self.begin(what, false, async move |shared| {
            shared.client.settle(file, false).await;
            Ok(())
        })
    }

    /// Begins to ask for a lease of a file. False if there is none.
    fn begin_gathering(&self, calls: &Arc<SmallCalls>) -> super::Operation<bool> {
        settle_at_exit(self);
        calls.pending().asked();
        let calls = Arc::clone(calls);
        let what = || "cannot gather writes".to_owned();
        self.begin(what, false, async move |shared| {
            let store = Rc::new(Store(Arc::clone(&calls)));
            let begun = shared.client.begin_gathering(store).await;
            if !matches!(begun, Ok(true)) {
                calls.pending().refused();
            }
            begun
        })
    }
}

impl Connection {
    /// Reads bytes from pages that the program keeps, if they are there or it is time to fetch them.
    /// False if the caller must read them by itself.
    pub(super) fn read_kept(
        &self,
        calls: &Arc<SmallCalls>,
        into: &mut [u8],
        offset: u64,
        waiting: Waiting,
    ) -> bool {
        let range = ByteRange::checked_at(offset, into.len() as u64);
        let is_small = (1..=KEPT_READ_MAX).contains(&into.len());
        let is_ours = self.0.thread.is_of_this_process();
        let Some(range) = range.filter(|_| is_small && is_ours) else { return false };
        let record = calls.known.get();
        for _ in 0..FETCHES_MAX {
            let (kept, event) = {
                let mut kept = calls.kept();
                let read = kept.read(&record, range, host_time_ns(), |page, start, part| {
                    let (start, length) = (start as usize, (part.end - part.start) as usize);
                    let into = &mut into[part.start as usize..part.end as usize];
                    into.copy_from_slice(&page.bytes()[start..start + length]);
                });
                (read, kept.event())
            };
            let block = match kept {
                Kept::Read => return true,
                Kept::Missing => return false,
                Kept::Wants(block) => block,
            };
            let fetching = self.begin_fetch(calls, &record, (block, event));
            // The read itself meets what is wrong with a server.
            if waiting == Waiting::Never || !fetching.wait().unwrap_or(false) {
                return false;
            }
        }
        false
    }
}

impl Connection {
    /// Begins to fetch a page that was wanted after some event. False if it may not be kept.
    fn begin_fetch(
        &self,
        calls: &Arc<SmallCalls>,
        record: &Arc<FileRecord>,
        (block, event): (u64, u64),
    ) -> super::Operation<bool> {
        let (calls, record) = (Arc::clone(calls), Arc::clone(record));
        let what = || "cannot fetch a page".to_owned();
        self.begin(what, false, async move |shared| {
            let store = Rc::new(Store(Arc::clone(&calls)));
            let (page, may_keep) = shared.client.page_to_keep(&record, block, store).await?;
            Ok(may_keep && calls.kept().keep(&record, block, page, event))
        })
    }
}

impl KeptStore for Store {
    fn drop_pages(&self) {
        self.0.kept().drop_all();
    }

    fn used_at(&self) -> u64 {
        self.0.kept().used_at()
    }

    fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// Small calls on a file as the I/O thread sees them.
struct Store(Arc<SmallCalls>);

impl GatheredStore<RealPayload> for Store {
    fn permit(&self, may_gather: bool) {
        self.0.pending().permit(may_gather, host_time_ns());
    }

    fn take(&self) -> TakenWrites<RealPayload> {
        self.0.pending().take(host_time_ns(), RealPayload::from)
    }

    fn flushed(&self, outcome: Result<(), Fault>) {
        self.0.pending().flushed(outcome);
    }

    fn activity(&self) -> Activity {
        self.0.pending().activity()
    }

    fn record(&self) -> FileRecord {
        FileRecord::clone(&self.0.known.get())
    }

    fn learn(&self, record: &FileRecord) {
        self.0.known.learn(record);
    }

    fn take_failure(&self) -> Option<Fault> {
        self.0.pending().take_failure()
    }
}

/// Connections that gather writes.
static GATHERING: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

/// Has the gathered writes of a connection sent when the process exits, though the program does not
/// close its files.
#[allow(unsafe_code, reason = "the system has no safe call for it")]
fn settle_at_exit(connection: &Connection) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: `settle_all` is a function of this library, which is not unloaded: it has a
        // thread. A failure, for want of memory, leaves the process as without it.
        let _ = unsafe { libc::atexit(settle_all) };
    });
    let mut connections = GATHERING.lock().unwrap_or_else(PoisonError::into_inner);
    connections.retain(|known| known.strong_count() > 0);
    let own = Arc::downgrade(&connection.0);
    if !connections.iter().any(|known| known.ptr_eq(&own)) {
        connections.push(own);
    }
}

extern "C" fn settle_all() {
    // A thread that exits in the middle of a call may have it locked.
    let Ok(connections) = GATHERING.try_lock() else { return };
    let connections: Vec<Arc<Inner>> = connections.iter().filter_map(Weak::upgrade).collect();
    for connection in connections {
        if !connection.thread.is_of_this_process() || connection.thread.is_here() {
            // Its end would wait for the I/O thread.
            std::mem::forget(connection);
            continue;
        }
        let connection = Connection(connection);
        let what = || "cannot send gathered writes".to_owned();
        let settled = connection.begin(what, false, async move |shared| {
            shared.client.settle_all().await;
            Ok(())
        });
        // Whoever wants to know of an error closes the file.
        let _ = settled.wait();
        std::mem::forget(connection);
    }
}
