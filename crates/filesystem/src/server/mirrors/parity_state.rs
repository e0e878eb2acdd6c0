//! State of the parity that a server has of others, besides its bytes.

use super::pending_parity::PendingParity;
use crate::task_lock::{TaskLock, TaskLockGuard};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{DiskId, Duration, FileId, Instant};
use wire::FileSize;
use world::{Payload, Space};

/// Time for which it counts what space a disk had.
const SPACE_KNOWN: Duration = Duration::from_ms(100);

/// Free bytes of a disk below which it is asked each time.
const ASKED_BELOW_BYTES: u64 = 1 << 30;

/// Sizes and locks of the parity at this server.
pub(super) struct ParityObjects<P> {
    /// Changes that the disks do not have yet.
    pub(super) pending: PendingParity<P>,
    /// Sizes of files that changes of their parity have shown. A sync stores them.
    sizes: RefCell<BTreeMap<FileId, FileSize>>,
    /// Held while an object changes.
    turns: RefCell<BTreeMap<(FileId, DiskId), Rc<TaskLock>>>,
    /// Held while parity is cut.
    cutting: TaskLock,
    /// When each disk was last asked for its space, and what it had.
    spaces: RefCell<BTreeMap<DiskId, (Instant, Space)>>,
}

impl<P: Payload> ParityObjects<P> {
    /// Makes the state of a server that holds so many bytes of changes.
    pub(super) fn new(pending_bytes_max: u64) -> Self {
        Self {
            pending: PendingParity::new(pending_bytes_max),
            sizes: RefCell::default(),
            turns: RefCell::default(),
            cutting: TaskLock::default(),
            spaces: RefCell::default(),
        }
    }

    /// Lock of an object, held while it changes.
    pub(super) fn turn(&self, file: FileId, disk: DiskId) -> Rc<TaskLock> {
        let mut turns = self.turns.borrow_mut();
        // Those that nobody uses.
        turns.retain(|_, lock| Rc::strong_count(lock) > 1);
        Rc::clone(turns.entry((file, disk)).or_default())
    }

    /// Notes a size that a change of parity has shown.
    pub(super) fn learn(&self, file: FileId, size: FileSize) {
        let mut sizes = self.sizes.borrow_mut();
        let known = sizes.entry(file).or_default();
        *known = size.max(*known);
    }

    /// Size of a file that changes of its parity have shown.
    pub(super) fn shown(&self, file: FileId) -> Option<FileSize> {
        self.sizes.borrow().get(&file).copied()
    }

    /// Space that a disk had a moment ago; `None` if it must be asked.
    pub(super) fn space_of(&self, disk: DiskId, now: Instant) -> Option<Space> {
        let (at, space) = *self.spaces.borrow().get(&disk)?;
        let is_known = space.free_bytes > ASKED_BELOW_BYTES && now.since(at) < SPACE_KNOWN;
        is_known.then_some(space)
    }

    /// Notes the space that a disk has.
    pub(super) fn has_space(&self, disk: DiskId, now: Instant, space: Space) {
        self.spaces.borrow_mut().insert(disk, (now, space));
    }

    /// Waits until no other parity is cut.
    pub(super) async fn cut(&self) -> TaskLockGuard<'_> {
        self.cutting.lock().await
    }

    /// Forgets a file whose data is dropped.
    pub(super) fn forget(&self, file: FileId) {
        self.sizes.borrow_mut().remove(&file);
        self.pending.forget(file);
    }
}
