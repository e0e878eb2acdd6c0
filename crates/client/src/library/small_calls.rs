//! State of small calls that the threads of a program share: gathered writes, and kept pages.

use super::cached_record::CachedRecord;
use filesystem::{
    Activity, Fault, GatheredStore, KeptPages, KeptStore, PendingWrites, TakenWrites,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use units::{ByteRange, FileId};
use wire::FileRecord;
use world_real::{RealPayload, host_time_ns};

/// Small calls on one file of a connection.
pub(super) struct SmallCalls {
    pub(super) known: CachedRecord,
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
    pub(super) fn pending(&self) -> MutexGuard<'_, PendingWrites<Vec<u8>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, KeptPages<RealPayload>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Size of the file as far as this connection knows, with gathered writes.
    pub(super) fn known_bytes(&self) -> u64 {
        self.known.get().bytes.max(self.pending().end())
    }

    /// True if a call on `range` must come after gathered writes, or tell of lost ones.
    pub(super) fn concerns(&self, range: ByteRange) -> bool {
        self.pending().concerns(range)
    }
}

impl KeptStore for Store {
    fn drop_pages(&self) {
        self.0.kept().drop_all();
    }

    fn used_at(&self) -> u64 {
        self.0.kept().used_at()
    }

    fn confirm(&self, at: u64) {
        self.0.kept().confirm(at);
    }

    fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// Small calls on a file as the I/O thread sees them.
pub(super) struct Store(pub(super) Arc<SmallCalls>);

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
