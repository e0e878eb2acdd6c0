//! Memory of a node for frames that arrive, shared by all of its connections.
//!
//! Invariants:
//!
//! - Frames take at most the bytes of the pool, or one frame, from before their first byte is read
//!   until the program has received their message. A frame of at most [`FREE_BYTES`] takes none.
//! - Readers get room in the order in which they asked.
//! - A peer whose frame does not arrive keeps others waiting for the stall timeout only.

use super::connection::Connection;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Size up to which a frame takes no room, in bytes: each connection may have one.
pub(crate) const FREE_BYTES: u64 = 64 << 10;

/// Speed of a slow network, in bytes per millisecond. The time that all held bytes take at it is
/// added to the stall timeout.
const SLOW_BYTES_PER_MS: u64 = 4_000;

/// Maximum number of halvings of the stall timeout: one for each stall since a frame last arrived.
/// The peers of an attack stall one after the other.
const HALVINGS_MAX: u32 = 3;

/// Pool of one node.
pub(crate) struct ReceivePool {
    bytes_max: u32,
    stall_timeout: Duration,
    /// One permit for each byte.
    free: Arc<Semaphore>,
    /// Frames that have room and have not arrived, in the order in which they got it.
    arriving: RefCell<BTreeMap<u64, Weak<Connection>>>,
    next: Cell<u64>,
    stalls: Cell<u32>,
}

/// Room of one frame. Returned when dropped.
pub(crate) struct Room {
    pool: Rc<ReceivePool>,
    number: u64,
    #[expect(dead_code, reason = "returns the bytes when it is dropped")]
    bytes: OwnedSemaphorePermit,
}

impl Room {
    /// Notes that the frame has arrived: it no longer depends on its peer.
    pub(crate) fn has_arrived(&self) {
        self.pool.arriving.borrow_mut().remove(&self.number);
        self.pool.stalls.set(0);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.pool.arriving.borrow_mut().remove(&self.number);
    }
}

impl ReceivePool {
    /// Makes a pool of `bytes_max` bytes.
    pub(crate) fn new(bytes_max: u32, stall_timeout: Duration) -> Rc<Self> {
        Rc::new(Self {
            bytes_max,
            stall_timeout,
            free: Arc::new(Semaphore::new(bytes_max as usize)),
            arriving: RefCell::default(),
            next: Cell::default(),
            stalls: Cell::default(),
        })
    }

    /// Waits for room for a frame of `bytes` bytes that comes over `connection`; `None` if it needs
    /// none. Calls `disconnect` for each peer that stalls meanwhile.
    pub(crate) async fn take(
        self: &Rc<Self>,
        connection: &Rc<Connection>,
        bytes: u64,
        disconnect: impl Fn(&Rc<Connection>),
    ) -> Option<Room> {
        if bytes <= FREE_BYTES {
            return None;
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes_max);
        let began = self.next.get();
        let mut turn = std::pin::pin!(Arc::clone(&self.free).acquire_many_owned(bytes));
        let permit = loop {
            match tokio::time::timeout(self.timeout(), &mut turn).await {
                Ok(permit) => break permit,
                Err(_) => self.stalled_since(began).iter().for_each(&disconnect),
            }
        };
        let number = self.next.replace(self.next.get() + 1);
        self.arriving.borrow_mut().insert(number, Rc::downgrade(connection));
        // The semaphore is never closed.
        permit.ok().map(|bytes| Room { pool: Rc::clone(self), number, bytes })
    }

    fn timeout(&self) -> Duration {
        let held = u64::from(self.bytes_max) - self.free.available_permits() as u64;
        let base = self.stall_timeout / (1 << self.stalls.get().min(HALVINGS_MAX));
        base + Duration::from_millis(held / SLOW_BYTES_PER_MS)
    }

    /// Takes out the frames that have been arriving since before number `began`.
    fn stalled_since(&self, began: u64) -> Vec<Rc<Connection>> {
        let mut arriving = self.arriving.borrow_mut();
        let later = arriving.split_off(&began);
        let stalled = std::mem::replace(&mut *arriving, later);
        if !stalled.is_empty() {
            self.stalls.set(self.stalls.get().saturating_add(1));
        }
        stalled.into_values().filter_map(|connection| connection.upgrade()).collect()
    }
}
